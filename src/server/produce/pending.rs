//! A produce request in flight: what became of its batches, and the reply.

use std::rc::Rc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::io::Env;
use crate::model::{ErrorCode, Offset, PartitionIndex, Timestamp};
use crate::partition::{Acks, AppendOutcome};
use crate::record::Rejected;
use crate::shard::{AckWait, OwnedTopic, PendingEvent};
use crate::wire::Writer;
use crate::wire::produce::{ProduceOutcome, ProduceResponseWriter};
use crate::wire::topic_ref::TopicRef;

use super::super::context::Context;
use super::super::reply::{self, ReplyTo};
use super::taking::Stopped;

/// A topic as the request named it, for the reply.
pub(super) enum Topic {
    Known(Rc<OwnedTopic>),
    Unknown(TopicRef<'static>),
}

/// What becomes of one partition's batch.
pub(super) struct Outcome {
    pub(super) index: i32,
    pub(super) error: ErrorCode,
    /// Set until it is decided.
    pub(super) wait: Option<AckWait>,
    pub(super) base_offset: Offset,
    pub(super) log_append_time: Timestamp,
    pub(super) log_start: Offset,
    pub(super) rejected: Option<Box<Rejected>>,
}

impl Outcome {
    pub(super) fn failed(index: i32, error: ErrorCode) -> Self {
        Self {
            index,
            error,
            wait: None,
            base_offset: Offset(-1),
            log_append_time: Timestamp::NONE,
            log_start: Offset(-1),
            rejected: None,
        }
    }

    pub(super) fn rejected(index: i32, rejected: Rejected) -> Self {
        let code = rejected.code;
        Self { rejected: Some(Box::new(rejected)), ..Self::failed(index, code) }
    }

    fn fail(&mut self, error: ErrorCode) {
        *self = Self::failed(self.index, error);
    }
}

/// A produce request in flight.
pub struct PendingProduce {
    pub(super) to: ReplyTo,
    pub(super) acks: Result<Acks, ErrorCode>,
    /// It names a transactional id.
    pub(super) transactional: bool,
    /// It comes from a client that may write internal topics.
    pub(super) admin: bool,
    /// Its time passed while it lacked room: nothing more is taken.
    pub(super) late: bool,
    /// Topics as far as it got, each with its number of partitions.
    pub(super) topics: SmallVec<[(Topic, usize); 1]>,
    /// Of all topics, in the order of the request.
    pub(super) outcomes: SmallVec<[Outcome; 1]>,
    waiting: usize,
    /// Monotonic time at which the client wants an answer all the same.
    pub(super) deadline: Duration,
    /// Set while it is not done with its frame.
    pub(super) stopped: Option<Box<Stopped>>,
}

impl PendingProduce {
    pub(super) fn new(to: ReplyTo, acks: Result<Acks, ErrorCode>, deadline: Duration) -> Self {
        Self {
            to,
            acks,
            transactional: false,
            admin: false,
            late: false,
            topics: SmallVec::new(),
            outcomes: SmallVec::new(),
            waiting: 0,
            deadline,
            stopped: None,
        }
    }

    pub(super) fn push(&mut self, outcome: Outcome) {
        self.waiting += usize::from(outcome.wait.is_some());
        self.outcomes.push(outcome);
    }

    /// Whether it has no reply (acks=0).
    pub(super) fn is_silent(&self) -> bool {
        self.acks == Ok(Acks::None)
    }

    /// acks=0 has no reply that could tell of a failure: closing does
    /// (checklist 26).
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(super) fn check_silence(&self) -> Result<(), String> {
        match self.outcomes.iter().find(|outcome| outcome.error != ErrorCode::None) {
            Some(failed) if self.is_silent() => {
                Err(format!("acks=0 batch refused: {}", failed.error.name()))
            }
            _ => Ok(()),
        }
    }

    /// Takes what the pump delivers.
    pub(in crate::server) fn event<E: Env>(&mut self, context: &Context<E>, event: PendingEvent) {
        match event {
            PendingEvent::Appended { index, outcome } => self.decided(index as usize, outcome),
            PendingEvent::Deadline => self.time_out(context),
            PendingEvent::Wake { .. }
            | PendingEvent::Round
            | PendingEvent::Read { .. }
            | PendingEvent::Answer(_)
            | PendingEvent::Abandon(_) => {
                unreachable!("a produce waits for appends alone")
            }
        }
    }

    /// Ends every wait; the decisions come back as events.
    fn time_out<E: Env>(&self, context: &Context<E>) {
        let mut outcomes = self.outcomes.iter();
        for (topic, count) in &self.topics {
            let Topic::Known(topic) = topic else {
                outcomes.by_ref().take(*count).for_each(drop);
                continue;
            };
            for outcome in outcomes.by_ref().take(*count) {
                // A topic that is being deleted decides by itself.
                if let Some(wait) = outcome.wait
                    && let Some(partition) = topic.partition(PartitionIndex(outcome.index))
                {
                    context.owner.time_out(&partition, wait);
                }
            }
        }
    }

    fn decided(&mut self, at: usize, decision: AppendOutcome) {
        let outcome = &mut self.outcomes[at];
        assert!(outcome.wait.take().is_some(), "a batch is decided once");
        self.waiting -= 1;
        match decision {
            AppendOutcome::Committed { base_offset } => {
                debug_assert_eq!(base_offset, outcome.base_offset);
            }
            decision => outcome.fail(decision.error_code()),
        }
    }

    /// Whether every batch is decided.
    pub(in crate::server) fn is_ready(&self) -> bool {
        self.waiting == 0 && self.stopped.is_none()
    }

    /// Whether the client wants an answer by now.
    pub(in crate::server) fn is_overdue(&self, now: Duration) -> bool {
        self.waiting > 0 && now >= self.deadline
    }

    /// Appends the whole reply to `out`, which is none for acks=0.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(in crate::server) fn encode(&self, out: &mut Vec<u8>) -> Result<(), String> {
        if self.is_silent() {
            return Ok(());
        }
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
