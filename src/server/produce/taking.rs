//! The way from a frame to the owners: partition by partition, stopping where
//! there is no room and going on there.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::io::{ChunkSlice, Env};
use crate::model::limits::{DECOMPRESSED_BYTES_MAX, PARTITIONS_PER_DATA_REQUEST_MAX};
use crate::model::topic_name::is_internal;
use crate::model::{ErrorCode, PartitionIndex, Timestamp, TopicConfig};
use crate::partition::Acks;
use crate::record::{BatchSummary, FinalBytes, Validated, Validator};
use crate::shard::{Appending, OwnedPartition, OwnedTopic, Pause, Place, Resumed, Verdict, Waiter};
use crate::wire::Reader;
use crate::wire::produce::{ProducePartition, ProducePlace, ProduceView, ProduceWalk};
use crate::wire::topic_ref::TopicRef;

use super::super::context::Context;
use super::super::pending::Pending;
use super::super::reply::ReplyTo;
use super::pending::{Outcome, PendingProduce, Topic};
use super::rules::rules;

/// The client id of Kafka's own tools, which may write internal topics.
const ADMIN_CLIENT: &str = "__admin_client";

/// A request asks whether the slice is over once per so many bytes; each
/// partition counts as [`PARTITION_BYTES`] more.
const SLICE_BYTES: usize = 16 << 10;

/// What a partition costs beside its bytes, in bytes.
const PARTITION_BYTES: usize = 512;

/// A request that had so many bytes decompressed asks at its end as well: its
/// frame may be short, and the connection's next one like it.
const LONG_BYTES: usize = 64 << 10;

/// Scratch memory of validation; one per shard.
pub(in crate::server) struct Producing(RefCell<Validator>);

impl Producing {
    pub(in crate::server) fn new() -> Self {
        Self(RefCell::new(Validator::new()))
    }
}

/// Where a request stopped, and what it needs to go on.
pub(super) struct Stopped {
    at: ProducePlace,
    pause: Pause,
    /// Bytes that its other batches may still have when decompressed.
    budget: usize,
    /// The batch that did not fit.
    kept: Option<Kept>,
}

/// A batch that is valid and not appended yet.
struct Kept {
    partition: Rc<OwnedPartition>,
    bytes: KeptBytes,
    summary: BatchSummary,
    log_append_time: Timestamp,
}

enum KeptBytes {
    /// These of the frame.
    InFrame(Range<usize>),
    /// Those that the topic's configuration made of them.
    Rewritten(ChunkSlice),
}

/// A batch on its way to its owner.
struct Incoming<'a> {
    bytes: &'a [u8],
    summary: &'a BatchSummary,
    log_append_time: Timestamp,
}

/// Handles a produce request.
///
/// # Errors
/// Why the connection must be closed.
pub(in crate::server) fn start<E: Env>(
    context: &Rc<Context<E>>,
    producing: &Producing,
    place: Place,
    to: ReplyTo,
    client_id: &str,
    reader: Reader<'_>,
) -> Result<Verdict<Pending>, String> {
    let view = ProduceView::parse(reader, to.version)
        .map_err(|e| format!("Produce version {}: {e}", to.version))?;
    if view.partition_count > PARTITIONS_PER_DATA_REQUEST_MAX {
        return Err(format!(
            "a produce names {} partitions, over the limit of {PARTITIONS_PER_DATA_REQUEST_MAX}",
            view.partition_count
        ));
    }
    producing.0.borrow_mut().begin(DECOMPRESSED_BYTES_MAX);
    let timeout_ms = u64::try_from(view.timeout_ms).unwrap_or(0);
    let deadline = context.owner.env().monotonic() + Duration::from_millis(timeout_ms);
    let mut pending = PendingProduce::new(to, Acks::from_wire(view.acks), deadline);
    pending.transactional = view.transactional_id.is_some();
    pending.admin = client_id == ADMIN_CLIENT;
    let mut taking = Taking::new(context, producing, place, &mut pending);
    let paused = taking.take_all(view.walk());
    Ok(match paused {
        Some(pause) => Verdict::Partly(Pending::Produce(pending), pause),
        None => {
            pending.check_silence()?;
            if pending.is_silent() {
                Verdict::Silent
            } else {
                Verdict::Overlap(Pending::Produce(pending))
            }
        }
    })
}

/// Goes on where the request stopped. `frame` is the one that it came in.
pub(in crate::server) fn resume<E: Env>(
    context: &Rc<Context<E>>,
    producing: &Producing,
    place: Place,
    pending: &mut PendingProduce,
    frame: &[u8],
) -> Resumed {
    let stopped = pending.stopped.take().expect("it stopped before");
    if stopped.pause == Pause::NoMemory && context.owner.env().monotonic() >= pending.deadline {
        pending.late = true;
    }
    producing.0.borrow_mut().begin(stopped.budget);
    let mut taking = Taking::new(context, producing, place, pending);
    let at = match taking.take_kept(stopped, frame) {
        Ok(at) => at,
        Err(stopped) => {
            pending.stopped = Some(stopped);
            return Resumed::Again(Pause::NoMemory);
        }
    };
    if let Some(pause) = taking.take_all(ProduceWalk::resume(frame, at)) {
        return Resumed::Again(pause);
    }
    match pending.check_silence() {
        Ok(()) => Resumed::Done,
        Err(reason) => Resumed::Close(reason),
    }
}

/// There is no memory for the batch now. It was kept, unless there was no
/// memory for that either.
struct NoRoom(Option<Kept>);

/// The topic whose partitions come now.
enum Current {
    Open(Rc<OwnedTopic>, Arc<TopicConfig>),
    Refused(ErrorCode),
}

/// A request while its batches are taken.
struct Taking<'a, E: Env> {
    context: &'a Rc<Context<E>>,
    producing: &'a Producing,
    place: Place,
    pending: &'a mut PendingProduce,
    now: Timestamp,
}

impl<'a, E: Env> Taking<'a, E> {
    fn new(
        context: &'a Rc<Context<E>>,
        producing: &'a Producing,
        place: Place,
        pending: &'a mut PendingProduce,
    ) -> Self {
        let now = Timestamp(context.owner.env().wall_ms());
        Self { context, producing, place, pending, now }
    }

    /// Takes partitions until all are taken, or says why it stopped.
    fn take_all(&mut self, mut walk: ProduceWalk<'_>) -> Option<Pause> {
        let mut topic = self.pending.topics.last().map(|(topic, _)| self.current(topic));
        let mut since = 0;
        let budget_at_start = self.producing.0.borrow().budget();
        while !walk.is_done() {
            if since >= SLICE_BYTES && self.context.owner.env().slice_over() {
                return Some(self.stop(walk.place(), Pause::Slice, None));
            }
            let before = walk.place();
            let Some(partition) = walk.next_partition() else {
                let Some((reference, count)) = walk.next_topic() else { break };
                let next = self.find(reference);
                topic = Some(self.current(&next));
                self.pending.topics.push((next, count));
                continue;
            };
            since =
                since % SLICE_BYTES + PARTITION_BYTES + partition.records.map_or(0, <[u8]>::len);
            let topic = topic.as_ref().expect("a partition follows its topic");
            let budget = self.producing.0.borrow().budget();
            match self.take(topic, &partition) {
                Ok(outcome) => {
                    self.pending.push(outcome);
                    // A small batch may have been much work.
                    since += budget - self.producing.0.borrow().budget();
                }
                Err(NoRoom(None)) => {
                    // It is decompressed again at the next try, and counts once.
                    self.producing.0.borrow_mut().begin(budget);
                    return Some(self.stop(before, Pause::NoMemory, None));
                }
                Err(NoRoom(kept)) => return Some(self.stop(walk.place(), Pause::NoMemory, kept)),
            }
        }
        let opened = budget_at_start - self.producing.0.borrow().budget();
        if opened >= LONG_BYTES && self.context.owner.env().slice_over() {
            return Some(self.stop(walk.place(), Pause::Slice, None));
        }
        None
    }

    fn stop(&mut self, at: ProducePlace, pause: Pause, kept: Option<Kept>) -> Pause {
        self.context.counters.produce_pauses.add(1);
        let budget = self.producing.0.borrow().budget();
        self.pending.stopped = Some(Box::new(Stopped { at, pause, budget, kept }));
        pause
    }

    fn find(&self, reference: TopicRef<'_>) -> Topic {
        let known = match &reference {
            TopicRef::Name(name) => self.context.owner.topic(name),
            TopicRef::Id(id) => self.context.owner.topic_by_id(*id),
        };
        match (known, reference) {
            (Some(known), _) => Topic::Known(known),
            (None, TopicRef::Id(id)) => Topic::Unknown(TopicRef::Id(id)),
            (None, TopicRef::Name(name)) => {
                Topic::Unknown(TopicRef::Name(name.into_owned().into()))
            }
        }
    }

    fn current(&self, topic: &Topic) -> Current {
        match topic {
            Topic::Unknown(TopicRef::Id(_)) => Current::Refused(ErrorCode::UnknownTopicId),
            Topic::Unknown(_) => Current::Refused(ErrorCode::UnknownTopicOrPartition),
            Topic::Known(known) if is_internal(&known.name) && !self.pending.admin => {
                Current::Refused(ErrorCode::InvalidTopicException)
            }
            Topic::Known(known) => Current::Open(known.clone(), known.config()),
        }
    }

    /// Validates one batch and hands it to its owner.
    fn take(&mut self, topic: &Current, asked: &ProducePartition<'_>) -> Result<Outcome, NoRoom> {
        let index = asked.index;
        if self.pending.late {
            return Ok(Outcome::failed(index, ErrorCode::RequestTimedOut));
        }
        let (topic, config) = match topic {
            Current::Open(topic, config) => (topic, config),
            Current::Refused(error) => return Ok(Outcome::failed(index, *error)),
        };
        if let Err(error) = self.pending.acks {
            return Ok(Outcome::failed(index, error));
        }
        let Some(partition) = topic.partition(PartitionIndex(index)) else {
            return Ok(Outcome::failed(index, ErrorCode::UnknownTopicOrPartition));
        };
        let records = asked.records.unwrap_or_default();
        let rules = rules(config, self.pending.to.version, self.now);
        self.context.counters.batches_validated.add(1);
        let validated = match self.producing.0.borrow_mut().validate(records, &rules) {
            Ok(validated) => validated,
            Err(rejected) => return Ok(Outcome::rejected(index, rejected)),
        };
        if self.pending.transactional || validated.summary.is_transactional {
            // No transactional id has a coordinator yet, so none is open.
            return Ok(Outcome::failed(index, ErrorCode::InvalidTxnState));
        }
        let incoming = Incoming {
            bytes: validated.bytes.resolve(records),
            summary: &validated.summary,
            log_append_time: validated.log_append_time,
        };
        match self.append(&partition, &incoming) {
            Some(outcome) => Ok(outcome),
            None => Err(NoRoom(self.keep(partition, asked, validated))),
        }
    }

    /// Appends a valid batch; `None` when there is no room now.
    fn append(&mut self, partition: &Rc<OwnedPartition>, batch: &Incoming<'_>) -> Option<Outcome> {
        let owner = &self.context.owner;
        let index = partition.index.0;
        let acks = self.pending.acks.unwrap_or(Acks::All);
        let at = u32::try_from(self.pending.outcomes.len()).expect("the limit is far below");
        let waiter = Waiter::Request { place: self.place, index: at };
        match owner.append(partition, batch.bytes, batch.summary, acks, waiter) {
            Ok(Appending::Waiting { base_offset, duplicate, wait }) => {
                let log_append_time = match (batch.log_append_time, duplicate) {
                    // A copy answers as its original did (checklist 39).
                    (time, Some(original)) if time != Timestamp::NONE => original,
                    (time, _) => time,
                };
                let log_start = owner.bounds(partition).log_start;
                Some(Outcome {
                    wait,
                    base_offset,
                    log_append_time,
                    log_start,
                    ..Outcome::failed(index, ErrorCode::None)
                })
            }
            Ok(Appending::NoRoom) => None,
            Err(error) => Some(Outcome::failed(index, error)),
        }
    }

    /// Keeps a batch that did not fit. New bytes go to a pool; without memory
    /// there they are made again at the next try.
    fn keep(
        &self,
        partition: Rc<OwnedPartition>,
        asked: &ProducePartition<'_>,
        validated: Validated,
    ) -> Option<Kept> {
        let bytes = match validated.bytes {
            FinalBytes::Original => {
                let len = asked.records.map_or(0, <[u8]>::len);
                KeptBytes::InFrame(asked.records_at..asked.records_at + len)
            }
            FinalBytes::Rewritten(bytes) => {
                let mut chunk = self.context.kept_pool.take(bytes.len())?;
                chunk.extend(&bytes);
                KeptBytes::Rewritten(chunk.freeze())
            }
        };
        let (summary, log_append_time) = (validated.summary, validated.log_append_time);
        Some(Kept { partition, bytes, summary, log_append_time })
    }

    /// Tries the batch that did not fit again; where the walk goes on.
    fn take_kept(
        &mut self,
        stopped: Box<Stopped>,
        frame: &[u8],
    ) -> Result<ProducePlace, Box<Stopped>> {
        let Some(kept) = &stopped.kept else { return Ok(stopped.at) };
        let outcome = if self.pending.late {
            Outcome::failed(kept.partition.index.0, ErrorCode::RequestTimedOut)
        } else {
            let bytes = match &kept.bytes {
                KeptBytes::InFrame(range) => &frame[range.clone()],
                KeptBytes::Rewritten(bytes) => bytes,
            };
            let (summary, log_append_time) = (&kept.summary, kept.log_append_time);
            match self.append(&kept.partition, &Incoming { bytes, summary, log_append_time }) {
                Some(outcome) => outcome,
                None => return Err(stopped),
            }
        };
        self.pending.push(outcome);
        Ok(stopped.at)
    }
}
