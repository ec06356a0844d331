//! The owner table: the partitions of this shard, each machine with its log.
//! The only module that appends to a partition or truncates one.
//!
//! Everything here runs inside the shard, synchronously; what takes time comes
//! back through the [`Mailbox`] as events.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use slab::Slab;

use crate::base::Giver;
use crate::io::Env;
use crate::log::{AppendError, LogHandle, LogSet, ReadOutcome};
use crate::model::planted::{Bug, armed};
use crate::model::{
    ErrorCode, LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicConfig, TopicId,
};
use crate::partition::{
    AckToken, Acks, Admitted, AppendOutcome, Completed, Effects, FetchBounds, FetchToken, Interest,
    Isolation, Partition,
};
use crate::record::BatchSummary;

use super::fatal::{Fatal, FatalReason};
use super::handler::{Mailbox, PendingEvent, Place};
use super::pump::RoundEnd;
use super::torn::{Guard, Torn};

/// A topic with partitions on this shard.
pub struct OwnedTopic {
    /// Its name.
    pub name: Arc<str>,
    /// Its id.
    pub id: TopicId,
    config: RefCell<Arc<TopicConfig>>,
    partitions: RefCell<Vec<Option<Rc<OwnedPartition>>>>,
}

impl OwnedTopic {
    /// Its settings as they are now.
    #[must_use]
    pub fn config(&self) -> Arc<TopicConfig> {
        self.config.borrow().clone()
    }

    /// Changes its settings.
    pub fn set_config(&self, config: Arc<TopicConfig>) {
        *self.config.borrow_mut() = config;
    }

    /// Its partitions on this shard.
    #[must_use]
    pub fn partitions(&self) -> Vec<Rc<OwnedPartition>> {
        self.partitions.borrow().iter().flatten().cloned().collect()
    }

    /// One of its partitions.
    #[must_use]
    pub fn partition(&self, index: PartitionIndex) -> Option<Rc<OwnedPartition>> {
        let index = usize::try_from(index.0).ok()?;
        self.partitions.borrow().get(index)?.clone()
    }
}

/// A partition that this shard owns.
pub struct OwnedPartition {
    /// Its topic.
    pub topic: Rc<OwnedTopic>,
    /// Its index.
    pub index: PartitionIndex,
    /// Its log.
    pub log: LogHandle,
    machine: RefCell<Partition>,
}

impl OwnedPartition {
    /// Looks at the machine.
    pub fn with<T>(&self, look: impl FnOnce(&Partition) -> T) -> T {
        look(&self.machine.borrow())
    }
}

/// Who waits for an append to be decided.
#[derive(Debug)]
pub enum Waiter {
    /// A request, through the mailbox.
    Request {
        /// Where its answer belongs.
        place: Place,
        /// Which of its partitions.
        index: u32,
    },
    /// A task of this shard.
    Task(Giver<AppendOutcome>),
}

/// An append that is to be decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckWait {
    end: Offset,
    token: AckToken,
}

/// What became of a batch at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appending {
    /// `PendingEvent::Appended` follows, except for acks=0.
    Waiting {
        /// Offset of its first record.
        base_offset: Offset,
        /// Set for the copy of an earlier batch: the timestamp of the first.
        duplicate: Option<Timestamp>,
        /// To give up waiting; `None` for acks=0.
        wait: Option<AckWait>,
    },
    /// There is no memory for it now: try again in a later round.
    NoRoom,
}

/// What a fetch finds at once.
#[derive(Debug)]
pub enum Reading {
    /// Batches, hot or to be read from disk.
    Found(ReadOutcome),
    /// Nothing yet.
    Nothing,
}

/// Bounds that every answer about a partition carries.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// First offset that can be read.
    pub log_start: Offset,
    /// Consumers stop here.
    pub high_watermark: Offset,
    /// Readers of committed data stop here.
    pub last_stable: Offset,
    /// Epoch of the leadership.
    pub epoch: LeaderEpoch,
}

/// A fetch that waits for one partition.
#[derive(Clone, Copy)]
struct Fetching {
    place: Place,
    /// Which of its partitions.
    index: u32,
}

/// The partitions of one shard.
pub struct Owner<E: Env> {
    env: E,
    logs: LogSet<E>,
    mailbox: Mailbox,
    by_name: RefCell<AHashMap<Arc<str>, Rc<OwnedTopic>>>,
    by_id: RefCell<AHashMap<TopicId, Rc<OwnedTopic>>>,
    /// By index of the log handle.
    by_log: RefCell<Vec<Option<Rc<OwnedPartition>>>>,
    /// Acknowledgements that are waited for.
    acks: RefCell<Slab<Waiter>>,
    /// Fetches that wait; each registration has an entry and a number of its
    /// own, so that a late cancel cannot meet a stranger.
    fetches: RefCell<Slab<Fetching>>,
    registrations: Cell<u32>,
    lacked_memory: Cell<bool>,
    effects: RefCell<Effects>,
    durable: RefCell<Vec<(LogHandle, Offset)>>,
    torn: Torn,
}

impl<E: Env> Owner<E> {
    /// An owner of nothing yet.
    #[must_use]
    pub fn new(env: E, logs: LogSet<E>, mailbox: Mailbox) -> Rc<Self> {
        Rc::new(Self {
            env,
            logs,
            mailbox,
            by_name: RefCell::default(),
            by_id: RefCell::default(),
            by_log: RefCell::default(),
            acks: RefCell::default(),
            fetches: RefCell::default(),
            registrations: Cell::new(0),
            lacked_memory: Cell::new(false),
            effects: RefCell::default(),
            durable: RefCell::default(),
            torn: Torn::default(),
        })
    }

    /// The shard's logs.
    #[must_use]
    pub fn logs(&self) -> &LogSet<E> {
        &self.logs
    }

    /// The environment.
    #[must_use]
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Where events go.
    #[must_use]
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// A topic by name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<Rc<OwnedTopic>> {
        self.by_name.borrow().get(name).cloned()
    }

    /// A topic by id.
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<Rc<OwnedTopic>> {
        self.by_id.borrow().get(&id).cloned()
    }

    /// A topic that no client finds by name or id.
    pub fn hidden_topic(
        &self,
        name: &str,
        id: TopicId,
        config: Arc<TopicConfig>,
    ) -> Rc<OwnedTopic> {
        Rc::new(OwnedTopic {
            name: name.into(),
            id,
            config: RefCell::new(config),
            partitions: RefCell::default(),
        })
    }

    /// Makes a topic known, or finds it.
    pub fn add_topic(
        &self,
        name: &Arc<str>,
        id: TopicId,
        config: Arc<TopicConfig>,
    ) -> Rc<OwnedTopic> {
        if let Some(topic) = self.topic_by_id(id) {
            return topic;
        }
        let topic = Rc::new(OwnedTopic {
            name: name.clone(),
            id,
            config: RefCell::new(config),
            partitions: RefCell::default(),
        });
        self.by_name.borrow_mut().insert(name.clone(), topic.clone());
        self.by_id.borrow_mut().insert(id, topic.clone());
        topic
    }

    /// Takes over a partition.
    pub fn add_partition(
        &self,
        topic: &Rc<OwnedTopic>,
        index: PartitionIndex,
        log: LogHandle,
        machine: Partition,
    ) -> Rc<OwnedPartition> {
        let partition = Rc::new(OwnedPartition {
            topic: topic.clone(),
            index,
            log,
            machine: RefCell::new(machine),
        });
        let at = usize::try_from(index.0).expect("partition indexes start at 0");
        put(&mut topic.partitions.borrow_mut(), at, partition.clone());
        put(&mut self.by_log.borrow_mut(), log.slot as usize, partition.clone());
        partition
    }

    /// Gives up a topic: requests in flight are answered, its logs are handed
    /// out for deletion.
    pub fn remove_topic(&self, id: TopicId) -> Vec<LogHandle> {
        let Some(topic) = self.by_id.borrow_mut().remove(&id) else { return Vec::new() };
        let mut by_name = self.by_name.borrow_mut();
        if by_name.get(&topic.name).is_some_and(|current| current.id == id) {
            by_name.remove(&topic.name);
        }
        drop(by_name);
        let mut logs = Vec::new();
        for partition in topic.partitions.borrow_mut().drain(..).flatten() {
            let mut effects = self.effects.borrow_mut();
            partition.machine.borrow_mut().resign(&mut effects);
            self.pass_on(&mut effects);
            self.by_log.borrow_mut()[partition.log.slot as usize] = None;
            logs.push(partition.log);
        }
        logs
    }

    /// Appends one validated batch. `waiter` is told when it is decided.
    ///
    /// # Errors
    /// What the machine refuses (checklist 39-42), and a retriable error while
    /// the disk is full.
    pub fn append(
        &self,
        partition: &OwnedPartition,
        batch: &[u8],
        summary: &BatchSummary,
        acks: Acks,
        waiter: Waiter,
    ) -> Result<Appending, ErrorCode> {
        if self.torn.found().is_some() {
            return Err(ErrorCode::KafkaStorageError);
        }
        let mut machine = partition.machine.borrow_mut();
        let mut effects = self.effects.borrow_mut();
        let admitted = machine.admit(summary, acks)?;
        let _torn = self.torn.guard("an append", partition);
        let (base_offset, wait, duplicate) = match admitted {
            Admitted::Append(admission) => {
                let (base, epoch) = (admission.base_offset, admission.epoch);
                match self.logs.append(partition.log, batch, summary, base, epoch) {
                    Ok(appended) => {
                        if let Some(at) = appended.snapshot_at {
                            self.store_snapshot(partition, &machine, at);
                        }
                    }
                    Err(AppendError::Full) => {
                        self.lack_memory();
                        return Ok(Appending::NoRoom);
                    }
                    Err(AppendError::NoSpace | AppendError::Poisoned(_)) => {
                        return Err(ErrorCode::KafkaStorageError);
                    }
                    Err(AppendError::Gone) => return Err(ErrorCode::UnknownTopicOrPartition),
                }
                let from_client = matches!(waiter, Waiter::Request { .. });
                assert!(!(armed(Bug::PanicInsideAppend) && from_client), "a planted panic");
                let wait = self.new_wait(waiter, acks, admission.end_offset);
                machine.appended(&admission, wait.map(|wait| (wait.token, acks)), &mut effects);
                (base, wait, None)
            }
            Admitted::Duplicate { base_offset, end_offset, timestamp } => {
                let wait = self.new_wait(waiter, acks, end_offset);
                if let Some(AckWait { token, .. }) = wait {
                    machine.wait_for_ack(base_offset, end_offset, token, acks, &mut effects);
                }
                (base_offset, wait, Some(timestamp))
            }
        };
        self.pass_on(&mut effects);
        Ok(Appending::Waiting { base_offset, duplicate, wait })
    }

    /// While this lives, a panic ends the process.
    pub(super) fn guard<'a>(&'a self, what: &'static str, of: &'a OwnedPartition) -> Guard<'a> {
        self.torn.guard(what, of)
    }

    fn new_wait(&self, waiter: Waiter, acks: Acks, end: Offset) -> Option<AckWait> {
        let token = || AckToken(self.acks.borrow_mut().insert(waiter) as u64);
        (acks != Acks::None).then(|| AckWait { end, token: token() })
    }

    /// Gives up waiting for an append that is not decided: its waiter is told
    /// so, and the batch stays.
    pub fn time_out(&self, partition: &OwnedPartition, wait: AckWait) {
        let mut effects = self.effects.borrow_mut();
        let _torn = self.torn.guard("the end of a wait", partition);
        partition.machine.borrow_mut().time_out(wait.end, wait.token, &mut effects);
        self.pass_on(&mut effects);
    }

    /// Producer state before the batch that began a segment goes to disk.
    fn store_snapshot(&self, partition: &OwnedPartition, machine: &Partition, at: Offset) {
        let (offset, bytes) = machine.snapshot();
        assert_eq!(offset, at, "the machine has not taken the new batch yet");
        let storing = self.logs.put_producer_snapshot(partition.log, bytes, at);
        let name = format!("{}-{}", partition.topic.name, partition.index);
        let task = self.env.spawn(async move {
            if let Err(error) = storing.await {
                // Recovery then starts from an older one and reads more.
                tracing::warn!("producer snapshot of {name} at offset {at} failed: {error}");
            }
        });
        crate::io::Task::detach(task);
    }

    /// Turns effects of a machine into events.
    fn pass_on(&self, effects: &mut Effects) {
        for Completed { token, outcome } in effects.completed.drain(..) {
            let key = usize::try_from(token.0).expect("slab keys are usize");
            let waiter = self.acks.borrow_mut().remove(key);
            match waiter {
                Waiter::Request { place, index } => {
                    self.mailbox.post(place, PendingEvent::Appended { index, outcome });
                }
                Waiter::Task(giver) => giver.give(outcome),
            }
        }
        for wake in effects.wake.drain(..) {
            let mut fetches = self.fetches.borrow_mut();
            let key = registration(wake.token).0;
            let Fetching { place, index } =
                if wake.over { fetches.remove(key) } else { fetches[key] };
            self.mailbox.post(place, PendingEvent::Wake { index, wake });
        }
    }

    /// Reads from one offset, as far as `isolation` may see.
    ///
    /// # Errors
    /// `OffsetOutOfRange`, and those of the epoch check (checklist 48, 51).
    pub fn read(
        &self,
        partition: &OwnedPartition,
        offset: Offset,
        isolation: Isolation,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Reading, ErrorCode> {
        match partition.machine.borrow().fetch_bounds(offset, isolation)? {
            FetchBounds::Wait => Ok(Reading::Nothing),
            FetchBounds::Readable { upper } => {
                match self.logs.read(partition.log, offset, upper, max_bytes, at_least_one) {
                    ReadOutcome::OutOfRange => Err(ErrorCode::OffsetOutOfRange),
                    ReadOutcome::Empty => Ok(Reading::Nothing),
                    found => Ok(Reading::Found(found)),
                }
            }
        }
    }

    /// Tells a fetch what can be read beyond what it has `seen`
    /// ([`Partition::seen_bytes`]), as far as it is of interest. The number
    /// says which of its partitions this is; the token comes with each report,
    /// and cancels the rest.
    pub fn wait_for_data(
        &self,
        partition: &OwnedPartition,
        (place, index): (Place, u32),
        seen: u64,
        isolation: Isolation,
        interest: Interest,
    ) -> FetchToken {
        let number = self.registrations.get().wrapping_add(1);
        self.registrations.set(number);
        let key = self.fetches.borrow_mut().insert(Fetching { place, index });
        let key = u32::try_from(key).expect("under 2^32 fetches wait");
        let token = FetchToken(u64::from(number) << 32 | u64::from(key));
        let mut effects = self.effects.borrow_mut();
        let mut machine = partition.machine.borrow_mut();
        machine.wait_for_data(token, seen, isolation, interest, &mut effects);
        self.pass_on(&mut effects);
        token
    }

    /// Ends a wait that has not ended.
    pub fn cancel_wait(&self, partition: &OwnedPartition, token: FetchToken) {
        if partition.machine.borrow_mut().cancel_wait(token) {
            self.fetches.borrow_mut().remove(registration(token).0);
        }
    }

    /// Where the reader's log parts from the partition's (checklist 52).
    ///
    /// # Errors
    /// `OffsetOutOfRange` when the epoch is unknown here, or the offset is
    /// below the log start.
    pub fn diverging(
        &self,
        partition: &OwnedPartition,
        last_fetched: LeaderEpoch,
        offset: Offset,
    ) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
        let known = match last_fetched {
            LeaderEpoch::NONE => None,
            last_fetched => self.logs.end_of_epoch(partition.log, last_fetched),
        };
        partition.with(|machine| machine.diverging_epoch(last_fetched, offset, known))
    }

    /// Bounds that answers carry.
    #[must_use]
    pub fn bounds(&self, partition: &OwnedPartition) -> Bounds {
        let machine = partition.machine.borrow();
        let offsets = machine.offsets();
        Bounds {
            log_start: offsets.log_start,
            high_watermark: offsets.high_watermark,
            last_stable: offsets.last_stable,
            epoch: machine.epoch(),
        }
    }

    /// All partitions of this shard, the metadata log's too.
    pub(super) fn partitions(&self) -> Vec<Rc<OwnedPartition>> {
        self.by_log.borrow().iter().flatten().cloned().collect()
    }

    /// Logs that are open, the metadata log among them.
    #[must_use]
    pub fn log_count(&self) -> usize {
        self.by_log.borrow().iter().flatten().count()
    }

    /// The machine learns where its log begins now; who waits below is woken.
    pub(super) fn follow_log_start(&self, partition: &OwnedPartition) {
        let Some((start, _, _)) = self.logs.bounds(partition.log) else { return };
        let mut effects = self.effects.borrow_mut();
        partition.machine.borrow_mut().advance_log_start(start, &mut effects);
        effects.last_stable = None;
        self.pass_on(&mut effects);
    }

    /// Forgets producers that were idle for `expiration_ms`.
    pub fn expire_producers(&self, expiration_ms: i64) -> usize {
        let now = Timestamp(self.env.wall_ms());
        let partitions = self.partitions();
        partitions.iter().map(|p| p.machine.borrow_mut().expire_producers(now, expiration_ms)).sum()
    }

    /// Notes that memory was short for an append or a read.
    pub fn lack_memory(&self) {
        self.lacked_memory.set(true);
    }

    fn advance_durable(&self) {
        let mut durable = self.durable.borrow_mut();
        self.logs.drain_durable(&mut durable);
        let mut effects = self.effects.borrow_mut();
        for (log, upto) in durable.drain(..) {
            let partition = self.by_log.borrow().get(log.slot as usize).cloned().flatten();
            // Deleted while its last group was under way.
            let Some(partition) = partition.filter(|p| p.log == log) else { continue };
            partition.machine.borrow_mut().durable(upto, &mut effects);
            if let Some(high_watermark) = effects.high_watermark.take() {
                self.logs.set_high_watermark(log, high_watermark);
            }
            effects.last_stable = None;
            self.pass_on(&mut effects);
        }
    }
}

impl<E: Env> RoundEnd for Owner<E> {
    fn end_round(&self) {
        if self.torn.found().is_some() {
            return; // Nothing more is to become durable, or acknowledged.
        }
        self.logs.flush();
        self.advance_durable();
    }

    fn lacked_memory(&self) -> bool {
        self.lacked_memory.take()
    }

    fn fatal(&self) -> Option<Fatal> {
        if let Some(torn) = self.torn.found() {
            return Some(Fatal::new(FatalReason::TornPartition, torn));
        }
        let (reason, detail) = self.logs.fatal()?;
        Some(Fatal::new(FatalReason::Log(reason), detail))
    }
}

/// Slab key and number of a registration.
fn registration(token: FetchToken) -> (usize, u32) {
    ((token.0 & u64::from(u32::MAX)) as usize, (token.0 >> 32) as u32)
}

fn put<T>(list: &mut Vec<Option<T>>, at: usize, value: T) {
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    list[at] = Some(value);
}
