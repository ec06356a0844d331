//! From a data directory to owned partitions: the metadata log first, then
//! every partition that it knows, then this node's registration.

use std::rc::Rc;
use std::sync::Arc;

use crate::cluster::{Command, Controller, Ctx, Image, MetadataRecord, Reply};
use crate::io::Env;
use crate::log::{LogSet, LogSetConfig, ReadOutcome, Recovered, Recovery};
use crate::model::config::BrokerConfig;
use crate::model::registration::NodeRegistration;
use crate::model::{LeaderEpoch, Offset, PartitionIndex, TopicConfig, TopicId};
use crate::partition::producers::ProducerStates;
use crate::partition::{Partition, PartitionInit, producer_batch};
use crate::shard::metadata::{METADATA_TOPIC, METADATA_TOPIC_ID, known_log, metadata_log, replay};
use crate::shard::{Fatal, FatalReason, Mailbox, Metadata, Owner};

use super::StartError;

/// Bytes of the metadata log that are read at once.
const READ_BYTES: usize = 1 << 20;

/// What a shard starts from.
pub(super) struct Started<E: Env> {
    pub(super) owner: Rc<Owner<E>>,
    pub(super) metadata: Rc<Metadata<E>>,
    /// Appended before anything else, once the pump runs.
    pub(super) registration: Vec<MetadataRecord>,
}

/// What the log layer found: its numbered reason when it has one.
fn data(error: crate::log::Error) -> StartError {
    match error.fatal_reason() {
        Some(reason) => StartError::Fatal(Fatal::new(FatalReason::Log(reason), error.to_string())),
        None => StartError::Data(error.to_string()),
    }
}

/// The metadata log holds what this version cannot apply.
fn metadata_fault(what: impl std::fmt::Display) -> StartError {
    StartError::Fatal(Fatal::new(FatalReason::Metadata, format!("{METADATA_TOPIC}: {what}")))
}

/// Recovers everything and hands it to an owner.
pub(super) async fn recover<E: Env>(
    env: &E,
    log_config: LogSetConfig,
    config: &BrokerConfig,
    node: NodeRegistration,
    mailbox: Mailbox,
) -> Result<Started<E>, StartError> {
    let mut recovery = Recovery::scan(env.clone(), log_config).await.map_err(data)?;
    let metadata_config = Arc::new(metadata_config());
    let found = recovery.recover_log(&metadata_log(&metadata_config)).await.map_err(data)?;
    let mut removed = Vec::new();
    let mut image = read_image(recovery.set(), &found, &mut removed).await?;

    let node_id = node.node_id;
    let (registration, epoch) = register(env, config, &image, node)?;
    for record in &registration {
        image.apply(record).map_err(metadata_fault)?;
    }
    let mut recovered = Vec::new();
    let topics: Vec<_> = image.topics().cloned().collect();
    for topic in &topics {
        let settings = Arc::new(TopicConfig::resolve(config, &topic.configs));
        for partition in &topic.partitions {
            let epoch = epoch.max(partition.leader_epoch);
            let known = known_log(&topic.name, topic.id, partition, epoch, &settings);
            let found = recovery.recover_log(&known).await.map_err(data)?;
            recovered.push((topic.clone(), settings.clone(), partition.index, found));
        }
    }
    let logs = recovery.finish().await.map_err(data)?;
    if let Err(error) = logs.delete_removed(&removed).await {
        // Only space is lost; the next start tries again.
        tracing::warn!("directories of removed topics stay on disk: {error}");
    }

    let owner = Owner::new(env.clone(), logs, mailbox);
    let hidden = owner.hidden_topic(METADATA_TOPIC, METADATA_TOPIC_ID, metadata_config);
    let machine_0 = machine(&found, METADATA_TOPIC, PartitionIndex(0))?;
    let log = owner.add_partition(&hidden, PartitionIndex(0), found.handle, machine_0);
    for (topic, settings, index, found) in recovered {
        let owned = owner.add_topic(&topic.name, topic.id, settings);
        let machine = machine(&found, &topic.name, index)?;
        owner.add_partition(&owned, index, found.handle, machine);
    }
    let metadata = Metadata::new(owner.clone(), node_id, config.clone(), image, log);
    Ok(Started { owner, metadata, registration })
}

/// The metadata log's settings: the table's defaults, never a user's.
fn metadata_config() -> TopicConfig {
    TopicConfig::resolve(&BrokerConfig::default(), &std::collections::BTreeMap::new())
}

/// A partition's machine from what recovery found.
fn machine(found: &Recovered, topic: &str, index: PartitionIndex) -> Result<Partition, StartError> {
    let mut producers = match &found.snapshot {
        Some((offset, bytes)) => ProducerStates::from_snapshot(bytes).map_err(|e| {
            StartError::Data(format!(
                "{topic}-{index}/{offset:0>20}.snapshot: {e}; delete this file: the next start \
                 rebuilds from the log what producers have sent"
            ))
        })?,
        None => ProducerStates::default(),
    };
    for batch in &found.batches_after {
        if let Some(batch) = producer_batch(&batch.summary, batch.base_offset) {
            producers.apply(&batch);
        }
    }
    Ok(Partition::new(PartitionInit {
        epoch: found.epoch,
        log_start: found.log_start,
        high_watermark: found.log_end,
        log_end: found.log_end,
        producers,
    }))
}

/// The image, and the topics that were removed on the way to it.
async fn read_image<E: Env>(
    logs: &LogSet<E>,
    found: &Recovered,
    removed: &mut Vec<TopicId>,
) -> Result<Image, StartError> {
    let mut image = Image::default();
    let mut at = found.log_start;
    while at < found.log_end {
        let slices = match logs.read(found.handle, at, found.log_end, READ_BYTES, true) {
            ReadOutcome::Hot(slices) => slices,
            ReadOutcome::Cold(read) => logs.read_cold(read).await.map_err(data)?,
            ReadOutcome::Empty | ReadOutcome::OutOfRange => {
                return Err(metadata_fault(format_args!(
                    "offset {at} cannot be read though the log ends at {}",
                    found.log_end
                )));
            }
        };
        let mut bytes = Vec::with_capacity(slices.iter().map(|s| s.len()).sum());
        slices.iter().for_each(|slice| bytes.extend_from_slice(slice));
        replay(&mut image, removed, &bytes).map_err(metadata_fault)?;
        at = next_offset(&bytes, at)?;
    }
    Ok(image)
}

fn next_offset(bytes: &[u8], at: Offset) -> Result<Offset, StartError> {
    let last = crate::record::batches(bytes).last();
    match last {
        Some(Ok(batch)) if batch.last_offset() >= at => Ok(batch.last_offset().plus(1)),
        _ => Err(metadata_fault(format_args!("no whole batch at offset {at}"))),
    }
}

/// The records with which this node begins its life, and its epoch.
fn register<E: Env>(
    env: &E,
    config: &BrokerConfig,
    image: &Image,
    node: NodeRegistration,
) -> Result<(Vec<MetadataRecord>, LeaderEpoch), StartError> {
    let mut random = || env.random();
    let mut ctx = Ctx { random: &mut random };
    let controller = Controller::new(config.clone());
    let step = controller.step(image, Command::RegisterNode(node), &mut ctx);
    match step.reply {
        Reply::Registered { epoch } => Ok((step.records, epoch)),
        Reply::Refused(error) => Err(StartError::Data(error.message)),
        reply => unreachable!("RegisterNode answered {reply:?}"),
    }
}
