//! Produce: every partition's batch is validated where the request came in and
//! handed to its owner; the reply waits for the appends that were taken.
//!
//! Without allocation for the common request of one partition. Refuses to know
//! how an append becomes durable.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::io::Env;
use crate::model::limits::{DECOMPRESSED_BYTES_MAX, PARTITIONS_PER_DATA_REQUEST_MAX};
use crate::model::topic_name::is_internal;
use crate::model::{CompressionType, ErrorCode, Offset, PartitionIndex, Timestamp, TopicConfig};
use crate::partition::{Acks, AppendOutcome};
use crate::record::{
    Compression, ProduceRules, Rejected, TargetCompression, TimestampType, Validated, Validator,
};
use crate::shard::{Appending, OwnedPartition, OwnedTopic, PendingEvent, Place, Verdict, Waiter};
use crate::wire::produce::{ProduceOutcome, ProduceResponseWriter, ProduceView};
use crate::wire::topic_ref::TopicRef;
use crate::wire::{Reader, Writer};

use super::context::Context;
use super::pending::Pending;
use super::reply::{self, ReplyTo};

/// First version whose batches may be compressed with zstd (KIP-110).
const ZSTD_FROM: i16 = 7;

/// The client id of Kafka's own tools, which may write internal topics.
const ADMIN_CLIENT: &str = "__admin_client";

/// Scratch memory of validation; one per shard.
pub(super) struct Producing(RefCell<Validator>);

impl Producing {
    pub(super) fn new() -> Self {
        Self(RefCell::new(Validator::new()))
    }
}

/// A topic as the request named it, for the reply.
enum Topic {
    Known(Rc<OwnedTopic>),
    Unknown(TopicRef<'static>),
}

/// What becomes of one partition's batch.
struct Outcome {
    index: i32,
    error: ErrorCode,
    waiting: bool,
    base_offset: Offset,
    log_append_time: Timestamp,
    log_start: Offset,
    rejected: Option<Box<Rejected>>,
}

impl Outcome {
    fn failed(index: i32, error: ErrorCode) -> Self {
        Self {
            index,
            error,
            waiting: false,
            base_offset: Offset(-1),
            log_append_time: Timestamp::NONE,
            log_start: Offset(-1),
            rejected: None,
        }
    }

    fn fail(&mut self, error: ErrorCode) {
        *self = Self::failed(self.index, error);
    }
}

/// A produce request in flight.
pub struct PendingProduce {
    to: ReplyTo,
    topics: SmallVec<[(Topic, usize); 1]>,
    /// Of all topics, in the order of the request.
    outcomes: SmallVec<[Outcome; 1]>,
    waiting: usize,
    /// Monotonic time at which the client wants an answer all the same.
    deadline: Duration,
}

/// Handles a produce request.
///
/// # Errors
/// Why the connection must be closed.
pub(super) fn start<E: Env>(
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
    let acks = Acks::from_wire(view.acks);
    let timeout_ms = u64::try_from(view.timeout_ms).unwrap_or(0);
    let mut pending = PendingProduce {
        to,
        topics: SmallVec::new(),
        outcomes: SmallVec::new(),
        waiting: 0,
        deadline: context.owner.env().monotonic() + Duration::from_millis(timeout_ms),
    };
    let mut request = Taking {
        context,
        producing,
        place,
        acks,
        version: to.version,
        transactional: view.transactional_id.is_some(),
        now: Timestamp(context.owner.env().wall_ms()),
        taken: 0,
    };
    for topic in view.topics() {
        let known = match &topic.topic {
            TopicRef::Name(name) => context.owner.topic(name),
            TopicRef::Id(id) => context.owner.topic_by_id(*id),
        };
        let refused = match &known {
            Some(known) if is_internal(&known.name) && client_id != ADMIN_CLIENT => {
                Some(ErrorCode::InvalidTopicException)
            }
            Some(_) => None,
            None if matches!(topic.topic, TopicRef::Id(_)) => Some(ErrorCode::UnknownTopicId),
            None => Some(ErrorCode::UnknownTopicOrPartition),
        };
        let config = known.as_ref().map(|known| known.config());
        for partition in topic.partitions() {
            let records = partition.records.unwrap_or_default();
            let (index, at) = (partition.index, pending.outcomes.len());
            let outcome = match (&known, &config, refused) {
                (Some(topic), Some(config), None) => {
                    request.take(topic, config, index, records, at)
                }
                (_, _, error) => {
                    let error = error.unwrap_or(ErrorCode::UnknownTopicOrPartition);
                    Ok(Outcome::failed(index, error))
                }
            };
            let Ok(outcome) = outcome else {
                if request.taken == 0 {
                    return Ok(Verdict::Later);
                }
                // Part of the request is taken: the rest must be sent again.
                pending.outcomes.push(Outcome::failed(index, ErrorCode::KafkaStorageError));
                continue;
            };
            pending.waiting += usize::from(outcome.waiting);
            pending.outcomes.push(outcome);
        }
        let named = match (known, topic.topic) {
            (Some(known), _) => Topic::Known(known),
            (None, TopicRef::Id(id)) => Topic::Unknown(TopicRef::Id(id)),
            (None, TopicRef::Name(name)) => {
                Topic::Unknown(TopicRef::Name(name.into_owned().into()))
            }
        };
        pending.topics.push((named, topic.partition_count));
    }
    if acks == Ok(Acks::None) {
        return match pending.outcomes.iter().find(|o| o.error != ErrorCode::None) {
            // acks=0 has no reply that could tell: closing does (checklist 26).
            Some(failed) => Err(format!("acks=0 batch refused: {}", failed.error.name())),
            None => Ok(Verdict::Silent),
        };
    }
    Ok(Verdict::Overlap(Pending::Produce(pending)))
}

/// There is no memory for the batch now.
struct NoRoom;

/// The part of a request that all its batches share.
struct Taking<'a, E: Env> {
    context: &'a Rc<Context<E>>,
    producing: &'a Producing,
    place: Place,
    acks: Result<Acks, ErrorCode>,
    version: i16,
    transactional: bool,
    now: Timestamp,
    /// Batches that were appended.
    taken: usize,
}

impl<E: Env> Taking<'_, E> {
    /// Validates one batch and hands it to its owner.
    fn take(
        &mut self,
        topic: &Rc<OwnedTopic>,
        config: &TopicConfig,
        index: i32,
        records: &[u8],
        at: usize,
    ) -> Result<Outcome, NoRoom> {
        let acks = match self.acks {
            Ok(acks) => acks,
            Err(error) => return Ok(Outcome::failed(index, error)),
        };
        let Some(partition) = topic.partition(PartitionIndex(index)) else {
            return Ok(Outcome::failed(index, ErrorCode::UnknownTopicOrPartition));
        };
        let rules = rules(config, self.version, self.now);
        let validated = match self.producing.0.borrow_mut().validate(records, &rules) {
            Ok(validated) => validated,
            Err(rejected) => {
                let mut outcome = Outcome::failed(index, rejected.code);
                outcome.rejected = Some(Box::new(rejected));
                return Ok(outcome);
            }
        };
        if self.transactional || validated.summary.is_transactional {
            // No transactional id has a coordinator yet, so none is open.
            return Ok(Outcome::failed(index, ErrorCode::InvalidTxnState));
        }
        self.append(&partition, records, &validated, acks, at)
    }

    fn append(
        &mut self,
        partition: &OwnedPartition,
        records: &[u8],
        validated: &Validated,
        acks: Acks,
        at: usize,
    ) -> Result<Outcome, NoRoom> {
        let owner = &self.context.owner;
        let index = partition.index.0;
        let at = u32::try_from(at).expect("a frame has under 2^32 partitions");
        let waiter = Waiter::Request { place: self.place, index: at };
        let bytes = validated.bytes.resolve(records);
        match owner.append(partition, bytes, &validated.summary, acks, waiter) {
            Ok(Appending::Waiting { base_offset, duplicate }) => {
                self.taken += 1;
                let log_append_time = match (validated.log_append_time, duplicate) {
                    // A copy answers as its original did (checklist 39).
                    (time, Some(original)) if time != Timestamp::NONE => original,
                    (time, _) => time,
                };
                let mut outcome = Outcome::failed(index, ErrorCode::None);
                outcome.waiting = acks != Acks::None;
                outcome.base_offset = base_offset;
                outcome.log_append_time = log_append_time;
                outcome.log_start = owner.bounds(partition).log_start;
                Ok(outcome)
            }
            Ok(Appending::NoRoom) => Err(NoRoom),
            Err(error) => Ok(Outcome::failed(index, error)),
        }
    }
}

fn rules(config: &TopicConfig, version: i16, now: Timestamp) -> ProduceRules {
    let bytes = |value: i32| usize::try_from(value).unwrap_or(0);
    let codec = |codec| TargetCompression::Codec(codec);
    ProduceRules {
        max_message_bytes: bytes(config.max_message_bytes),
        segment_bytes: bytes(config.segment_bytes),
        compression: match config.compression {
            CompressionType::Producer => TargetCompression::Producer,
            CompressionType::Uncompressed => codec(Compression::None),
            CompressionType::Gzip => codec(Compression::Gzip),
            CompressionType::Snappy => codec(Compression::Snappy),
            CompressionType::Lz4 => codec(Compression::Lz4),
            CompressionType::Zstd => codec(Compression::Zstd),
        },
        timestamp_type: if config.log_append_time {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        },
        timestamp_before_max_ms: config.timestamp_before_max_ms,
        timestamp_after_max_ms: config.timestamp_after_max_ms,
        compacted: config.cleanup.compact,
        allow_zstd: version >= ZSTD_FROM,
        decompressed_bytes_max: bytes(config.max_decompressed_bytes),
        now,
    }
}

impl PendingProduce {
    /// Takes what the pump delivers.
    pub(super) fn event(&mut self, event: PendingEvent) {
        match event {
            PendingEvent::Appended { index, outcome } => self.decided(index as usize, outcome),
            PendingEvent::Deadline => {
                for outcome in self.outcomes.iter_mut().filter(|o| o.waiting) {
                    outcome.fail(ErrorCode::RequestTimedOut);
                }
                self.waiting = 0;
            }
            PendingEvent::Wake { .. }
            | PendingEvent::Read { .. }
            | PendingEvent::Answer(_)
            | PendingEvent::Abandon(_) => {
                unreachable!("a produce waits for appends alone")
            }
        }
    }

    fn decided(&mut self, at: usize, decision: AppendOutcome) {
        let outcome = &mut self.outcomes[at];
        if !std::mem::take(&mut outcome.waiting) {
            return; // Answered by its deadline already.
        }
        self.waiting -= 1;
        match decision {
            AppendOutcome::Committed { base_offset } => {
                debug_assert_eq!(base_offset, outcome.base_offset);
            }
            decision => outcome.fail(decision.error_code()),
        }
    }

    /// Whether every batch is decided.
    pub(super) fn is_ready(&self) -> bool {
        self.waiting == 0
    }

    /// Whether the client wants an answer by now.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        self.waiting > 0 && now >= self.deadline
    }

    /// Appends the whole reply to `out`.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), String> {
        let start = reply::begin(out, self.to);
        let written = self.write_body(&mut Writer::new(out));
        let written = written.and_then(|()| reply::end(out, start, 0));
        written.map_err(|e| format!("Produce reply: {e}"))
    }

    fn write_body(&self, writer: &mut Writer<'_>) -> Result<(), crate::wire::WireError> {
        let version = self.to.version;
        let mut body = ProduceResponseWriter::new(writer, version, self.topics.len())?;
        let mut outcomes = self.outcomes.iter();
        for (topic, count) in &self.topics {
            let named;
            let reference = match topic {
                Topic::Unknown(reference) => reference,
                Topic::Known(known) => {
                    named = if version >= crate::wire::topic_ref::TOPIC_ID_FROM {
                        TopicRef::Id(known.id)
                    } else {
                        TopicRef::Name((&*known.name).into())
                    };
                    &named
                }
            };
            body.topic(reference, *count)?;
            for outcome in outcomes.by_ref().take(*count) {
                let rejected = outcome.rejected.as_deref();
                body.partition(&ProduceOutcome {
                    index: outcome.index,
                    error_code: outcome.error,
                    base_offset: outcome.base_offset.0,
                    log_append_time_ms: outcome.log_append_time.0,
                    log_start_offset: outcome.log_start.0,
                    record_errors: rejected.map_or(&[], |r| &r.record_errors),
                    error_message: rejected.map(|r| r.message.as_str()),
                    current_leader: None,
                })?;
            }
        }
        body.finish(0, &[])
    }
}
