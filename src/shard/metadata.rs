//! Drives the controller and the metadata log: one command at a time becomes
//! records, the records become durable, then they change the image and the
//! partitions of this shard, then the reply goes out.
//!
//! Owner: the shard of the controller. The only module that appends to
//! `__cluster_metadata`.

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_lock::Mutex;

use crate::base::once;
use crate::cluster::{Command, Controller, Ctx, Image, MetadataRecord, PartitionImage, Reply};
use crate::io::{Env, Task as _};
use crate::log::{KnownLog, LogConfig};
use crate::model::config::{BrokerConfig, Status, list_items, topic_key};
use crate::model::{
    DurabilityClass, ErrorCode, LeaderEpoch, LogId, NodeId, PartitionIndex, ProducerId, Timestamp,
    TopicConfig, TopicId,
};
use crate::partition::producers::ProducerStates;
use crate::partition::{Acks, AppendOutcome, Partition, PartitionInit};
use crate::record::{BatchBuilder, BatchView, Compression, NewRecord};

use super::owner::{Appending, OwnedPartition, OwnedTopic, Owner, Waiter};

/// Name of the metadata topic.
pub const METADATA_TOPIC: &str = "__cluster_metadata";

/// Id of the metadata topic, Kafka's own (KIP-516).
pub const METADATA_TOPIC_ID: TopicId = TopicId([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// Log id of the metadata log: the one that is known before any metadata is.
pub const METADATA_LOG_ID: LogId = LogId::METADATA;

/// Time between two tries to register while the disk is full.
const REGISTRATION_RETRY: Duration = Duration::from_secs(1);

/// Producer ids of this node's block that are not given out.
#[derive(Clone, Copy, Debug, Default)]
struct IdBlock {
    next: i64,
    end: i64,
}

/// The metadata of the cluster, as this shard knows and changes it.
pub struct Metadata<E: Env> {
    owner: Rc<Owner<E>>,
    node: NodeId,
    config: BrokerConfig,
    controller: Controller,
    image: RefCell<Image>,
    log: Rc<OwnedPartition>,
    /// Held from a command's step until its records are applied.
    turn: Mutex<()>,
    /// Records with which this node starts, until they are durable.
    registration: RefCell<Vec<MetadataRecord>>,
    producer_ids: RefCell<IdBlock>,
    /// Partitions of the image whose logs could not be made yet.
    missing: RefCell<Vec<(TopicId, PartitionIndex)>>,
    /// Topic keys without effect that somebody set and was told about.
    warned: RefCell<BTreeSet<&'static str>>,
}

/// The settings of the log layer in a topic's settings.
#[must_use]
pub fn log_config(config: &TopicConfig) -> LogConfig {
    let bytes = |value: i32| u64::try_from(value).expect("the table's bounds exclude negatives");
    LogConfig {
        segment_bytes: bytes(config.segment_bytes),
        segment_ms: config.segment_ms,
        segment_index_bytes: bytes(config.segment_index_bytes),
        index_interval_bytes: bytes(config.index_interval_bytes),
        // A compacted topic's old segments are not old records.
        retention_ms: if config.cleanup.delete { config.retention_ms } else { -1 },
        retention_bytes: if config.cleanup.delete { config.retention_bytes } else { -1 },
        file_delete_delay: Duration::from_millis(config.file_delete_delay_ms.unsigned_abs()),
    }
}

/// What the log layer must know of a partition.
#[must_use]
pub fn known_log(
    name: &Arc<str>,
    id: TopicId,
    partition: &PartitionImage,
    epoch: LeaderEpoch,
    config: &TopicConfig,
) -> KnownLog {
    KnownLog {
        log_id: partition.log_id,
        topic: name.clone(),
        partition: partition.index,
        topic_id: id,
        class: config.durability,
        epoch_to_start: Some(epoch),
        config: log_config(config),
    }
}

/// What the log layer must know of the metadata log.
#[must_use]
pub fn metadata_log(config: &TopicConfig) -> KnownLog {
    KnownLog {
        log_id: METADATA_LOG_ID,
        topic: METADATA_TOPIC.into(),
        partition: PartitionIndex(0),
        topic_id: METADATA_TOPIC_ID,
        // Metadata must survive what any topic survives.
        class: DurabilityClass::Disk,
        epoch_to_start: None,
        // Every record of it counts.
        config: LogConfig { retention_ms: -1, retention_bytes: -1, ..log_config(config) },
    }
}

/// Applies the records of whole batches to an image, and notes which topics
/// they remove.
///
/// # Errors
/// Words for the operator when a record is damaged or from a newer version.
pub fn replay(image: &mut Image, removed: &mut Vec<TopicId>, batches: &[u8]) -> Result<(), String> {
    for batch in crate::record::batches(batches) {
        let batch = batch.map_err(|e| e.to_string())?;
        let at = batch.base_offset();
        let bytes = batch.decompressed(usize::MAX).map_err(|e| format!("offset {at}: {e}"))?;
        for record in batch.iter(&bytes) {
            let record = record.map_err(|e| format!("offset {at}: {e}"))?;
            let value = record.value.unwrap_or_default();
            match crate::cluster::decode(value) {
                Ok(crate::cluster::Decoded::Record(record)) => {
                    image.apply(&record).map_err(|e| format!("offset {at}: {e}"))?;
                    if let MetadataRecord::TopicRemoved { id } = record {
                        removed.push(id);
                    }
                }
                Ok(crate::cluster::Decoded::Skipped { kind }) => {
                    tracing::info!("metadata record of type {kind} at offset {at} skipped");
                }
                Err(e) => return Err(format!("offset {at}: {e}")),
            }
        }
    }
    Ok(())
}

impl<E: Env> Metadata<E> {
    /// The driver over an image that was replayed from `log`.
    #[must_use]
    pub fn new(
        owner: Rc<Owner<E>>,
        node: NodeId,
        config: BrokerConfig,
        image: Image,
        log: Rc<OwnedPartition>,
    ) -> Rc<Self> {
        Rc::new(Self {
            owner,
            node,
            controller: Controller::new(config.clone()),
            config,
            image: RefCell::new(image),
            log,
            turn: Mutex::new(()),
            registration: RefCell::default(),
            producer_ids: RefCell::default(),
            missing: RefCell::default(),
            warned: RefCell::default(),
        })
    }

    /// The image as it is now. Do not hold it across an await.
    #[must_use]
    pub fn image(&self) -> Ref<'_, Image> {
        self.image.borrow()
    }

    /// The broker's configuration.
    #[must_use]
    pub fn config(&self) -> &BrokerConfig {
        &self.config
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Carries a command out. When it returns, its records are durable and in
    /// the image, and new partitions take appends.
    ///
    /// # Errors
    /// A retriable code when the records could not be made durable.
    pub async fn command(&self, command: Command) -> Result<Reply, ErrorCode> {
        let _turn = self.turn.lock().await;
        self.append_registration().await?;
        self.create_missing().await;
        let step = {
            let env = self.owner.env().clone();
            let mut random = move || env.random();
            let mut ctx = Ctx { random: &mut random };
            self.controller.step(&self.image.borrow(), command, &mut ctx)
        };
        let grows = step.records.iter().any(|r| matches!(r, MetadataRecord::Partition(_)));
        if grows && !self.owner.logs().has_space() {
            // A deletion is carried out on a full disk; this would fail half-way.
            return Err(ErrorCode::KafkaStorageError);
        }
        if !step.records.is_empty() {
            // A panic between the log and the image must not be survived.
            let _torn = self.owner.guard("a metadata change", &self.log);
            self.append(&step.records).await?;
            self.apply(&step.records).await?;
        }
        Ok(step.reply)
    }

    /// Makes records durable that the image has already: those with which
    /// this node starts. When the log cannot take them yet for want of space,
    /// they follow as soon as it can, before any command's.
    ///
    /// # Errors
    /// A code when they could not be made durable for another reason.
    pub async fn register(self: &Rc<Self>, records: Vec<MetadataRecord>) -> Result<(), ErrorCode> {
        *self.registration.borrow_mut() = records;
        if self.owner.logs().is_ready() {
            return self.append_registration().await;
        }
        let metadata = self.clone();
        let later = self.owner.env().spawn(async move {
            loop {
                metadata.owner.env().sleep(REGISTRATION_RETRY).await;
                let _turn = metadata.turn.lock().await;
                if metadata.append_registration().await.is_ok() {
                    return;
                }
            }
        });
        later.detach();
        Ok(())
    }

    async fn append_registration(&self) -> Result<(), ErrorCode> {
        let records = self.registration.borrow().clone();
        if !records.is_empty() {
            self.append(&records).await?;
            self.registration.borrow_mut().clear();
        }
        Ok(())
    }

    /// Appends records as one batch and waits until it is committed.
    async fn append(&self, records: &[MetadataRecord]) -> Result<(), ErrorCode> {
        let now = Timestamp(self.owner.env().wall_ms());
        let mut builder = BatchBuilder::new(Compression::None).base_timestamp(now);
        for record in records {
            let value = crate::cluster::encode(record);
            let record = NewRecord { timestamp: now, key: None, value: Some(&value), headers: &[] };
            builder.push(&record);
        }
        let batch = builder.build().map_err(|_| ErrorCode::UnknownServerError)?;
        let (view, _) = BatchView::parse(&batch).map_err(|_| ErrorCode::UnknownServerError)?;
        let summary = view.summary().map_err(|_| ErrorCode::UnknownServerError)?;
        loop {
            let (giver, receiver) = once();
            let waiter = Waiter::Task(giver);
            match self.owner.append(&self.log, &batch, &summary, Acks::All, waiter)? {
                Appending::Waiting { .. } => {
                    self.owner.mailbox().ring();
                    return match receiver.await {
                        Some(AppendOutcome::Committed { .. }) => Ok(()),
                        Some(outcome) => Err(outcome.error_code()),
                        None => Err(ErrorCode::KafkaStorageError),
                    };
                }
                Appending::NoRoom => {
                    self.owner.env().sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }

    /// Changes the image and this shard's partitions.
    async fn apply(&self, records: &[MetadataRecord]) -> Result<(), ErrorCode> {
        for record in records {
            let removed = match record {
                MetadataRecord::TopicRemoved { id } => Some(*id),
                _ => None,
            };
            let applied = self.image.borrow_mut().apply(record);
            applied.expect("the controller's records fit the image that it looked at");
            if let Some(id) = removed {
                self.delete_logs(id).await;
            }
        }
        // Configs come after partitions in a step, so partitions wait for both.
        let mut outcome = Ok(());
        for record in records {
            match record {
                MetadataRecord::Partition(partition) => {
                    let wanted = (partition.topic_id, partition.index);
                    let created = self.create_log(wanted.0, wanted.1).await;
                    if created.is_err() {
                        self.missing.borrow_mut().push(wanted);
                        outcome = outcome.and(created);
                    }
                }
                MetadataRecord::TopicConfig { id, key, value } => {
                    if let Some(value) = value {
                        self.warn_without_effect(key, value);
                    }
                    if let Some(topic) = self.owner.topic_by_id(*id) {
                        self.configure(&topic);
                    }
                }
                _ => {}
            }
        }
        outcome
    }

    /// A topic's settings hold from here on, for its logs too.
    fn configure(&self, topic: &OwnedTopic) {
        let config = self.topic_config(topic.id);
        for partition in topic.partitions() {
            self.owner.logs().set_config(partition.log, log_config(&config));
        }
        topic.set_config(config);
    }

    /// Makes the logs that could not be made when their records were applied.
    async fn create_missing(&self) {
        let missing = std::mem::take(&mut *self.missing.borrow_mut());
        for (id, index) in missing {
            if self.create_log(id, index).await.is_err() {
                self.missing.borrow_mut().push((id, index));
            }
        }
    }

    /// Says once per start that nothing comes of a key (yet).
    fn warn_without_effect(&self, key: &str, value: &str) {
        let Some(key) = topic_key(key) else { return };
        if key.name == "cleanup.policy" && list_items(value).any(|item| item == "compact") {
            if self.warned.borrow_mut().insert(key.name) {
                tracing::warn!("cleanup.policy: compaction does not exist in this version");
            }
            return;
        }
        if key.status == Status::Enforced {
            return;
        }
        if self.warned.borrow_mut().insert(key.name) {
            tracing::warn!(
                "topic configuration {} is stored and described but has no effect in this version",
                key.name
            );
        }
    }

    /// A topic's settings, resolved.
    #[must_use]
    pub fn topic_config(&self, id: TopicId) -> Arc<TopicConfig> {
        let image = self.image.borrow();
        let empty = std::collections::BTreeMap::new();
        let configs = image.topic_by_id(id).map_or(&empty, |topic| &topic.configs);
        Arc::new(TopicConfig::resolve(&self.config, configs))
    }

    async fn create_log(&self, id: TopicId, index: PartitionIndex) -> Result<(), ErrorCode> {
        let config = self.topic_config(id);
        let (name, known, epoch) = {
            let image = self.image.borrow();
            let Some(topic) = image.topic_by_id(id) else { return Ok(()) };
            let partition = topic.partition(index).expect("the record is applied");
            let epoch = image.leader_epoch(partition);
            let known = known_log(&topic.name, id, partition, epoch, &config);
            (topic.name.clone(), known, epoch)
        };
        if self.owner.topic_by_id(id).is_some_and(|topic| topic.partition(index).is_some()) {
            return Ok(());
        }
        let log = self.owner.logs().create(&known).await.map_err(|error| {
            tracing::error!("cannot create the log of {name}-{index}: {error}");
            ErrorCode::KafkaStorageError
        })?;
        let machine = Partition::new(PartitionInit {
            epoch,
            log_start: crate::model::Offset::ZERO,
            high_watermark: crate::model::Offset::ZERO,
            log_end: crate::model::Offset::ZERO,
            producers: ProducerStates::default(),
        });
        let topic = self.owner.add_topic(&name, id, config);
        self.owner.add_partition(&topic, index, log, machine);
        Ok(())
    }

    async fn delete_logs(&self, id: TopicId) {
        for log in self.owner.remove_topic(id) {
            if let Err(error) = self.owner.logs().delete(log).await {
                // Replay ignores its log id from now on; the directory remains.
                tracing::error!("cannot delete a log of topic {id}: {error}");
            }
        }
    }

    /// A producer id that nobody else gets, also after a restart (KIP-98).
    ///
    /// # Errors
    /// When a new block cannot be made durable.
    pub async fn next_producer_id(&self) -> Result<ProducerId, ErrorCode> {
        loop {
            {
                let mut block = self.producer_ids.borrow_mut();
                if block.next < block.end {
                    block.next += 1;
                    return Ok(ProducerId(block.next - 1));
                }
            }
            let command = Command::AllocateProducerIds { node: self.node };
            match self.command(command).await? {
                Reply::ProducerIds { first, count } => {
                    let mut block = self.producer_ids.borrow_mut();
                    // Another task may have fetched a block meanwhile; an
                    // unused rest is lost, never given out twice.
                    *block = IdBlock { next: first.0, end: first.0 + count };
                }
                Reply::Refused(error) => return Err(error.code),
                reply => unreachable!("AllocateProducerIds answered {reply:?}"),
            }
        }
    }
}
