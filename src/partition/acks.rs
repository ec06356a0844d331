//! Acknowledgements that wait for an offset to become durable or committed.
//!
//! Owner: the partition's machine. Invariant: each queue is sorted by the
//! offset waited for. Appends wait for growing offsets, so they go to the
//! back; only an answer to a duplicate of a batch in flight is sorted in.

use std::collections::VecDeque;

use crate::model::{ErrorCode, Offset};

/// Names one waiting acknowledgement; the caller chooses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AckToken(pub u64);

/// What a producer asked to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acks {
    /// `acks=0`: nothing, and no answer.
    None,
    /// `acks=1`: this node's log is durable up to the batch.
    Leader,
    /// `acks=all`: the batch is committed.
    All,
}

impl Acks {
    /// From the request field.
    ///
    /// # Errors
    /// `InvalidRequiredAcks` for anything but -1, 0 and 1.
    pub fn from_wire(acks: i16) -> Result<Self, ErrorCode> {
        match acks {
            0 => Ok(Self::None),
            1 => Ok(Self::Leader),
            -1 => Ok(Self::All),
            _ => Err(ErrorCode::InvalidRequiredAcks),
        }
    }
}

/// How an append ended after its offsets were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendOutcome {
    /// What the acks asked for is reached.
    Committed {
        /// Offset of the batch's first record.
        base_offset: Offset,
    },
    /// A new leader's log took the place of these offsets.
    Truncated,
    /// Leadership ended first; the batch may still be committed elsewhere.
    NotLeader,
    /// The request's deadline passed first; the batch may still be committed.
    Timeout,
}

impl AppendOutcome {
    /// What the produce response says.
    #[must_use]
    pub fn error_code(self) -> ErrorCode {
        match self {
            Self::Committed { .. } => ErrorCode::None,
            Self::Truncated | Self::NotLeader => ErrorCode::NotLeaderOrFollower,
            Self::Timeout => ErrorCode::RequestTimedOut,
        }
    }
}

/// One acknowledgement that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completed {
    /// As given with the append.
    pub token: AckToken,
    /// How it ended.
    pub outcome: AppendOutcome,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    end: Offset,
    base: Offset,
    token: AckToken,
}

impl Pending {
    fn ended(self, outcome: AppendOutcome) -> Completed {
        Completed { token: self.token, outcome }
    }

    fn committed(self) -> Completed {
        self.ended(AppendOutcome::Committed { base_offset: self.base })
    }
}

/// Acknowledgements waiting for one kind of progress.
#[derive(Debug, Default)]
pub(super) struct AckQueue(VecDeque<Pending>);

impl AckQueue {
    /// Waits until everything below `end` is reached.
    pub(super) fn push(&mut self, end: Offset, base: Offset, token: AckToken) {
        let pending = Pending { end, base, token };
        if self.0.back().is_none_or(|last| last.end <= end) {
            self.0.push_back(pending);
        } else {
            let at = self.0.partition_point(|other| other.end <= end);
            self.0.insert(at, pending);
        }
    }

    /// Everything below `reached` is there: completes in offset order.
    pub(super) fn advance(&mut self, reached: Offset, done: &mut Vec<Completed>) {
        while let Some(pending) = self.0.pop_front_if(|pending| pending.end <= reached) {
            done.push(pending.committed());
        }
    }

    /// Offsets at and beyond `to` are gone.
    pub(super) fn truncate(&mut self, to: Offset, done: &mut Vec<Completed>) {
        let keep = self.0.partition_point(|pending| pending.end <= to);
        done.extend(self.0.drain(keep..).map(|pending| pending.ended(AppendOutcome::Truncated)));
    }

    /// Ends all with one outcome.
    pub(super) fn fail_all(&mut self, outcome: AppendOutcome, done: &mut Vec<Completed>) {
        done.extend(self.0.drain(..).map(|pending| pending.ended(outcome)));
    }

    /// Removes one by its offset and token; whether it was still waiting.
    pub(super) fn cancel(&mut self, end: Offset, token: AckToken) -> bool {
        let from = self.0.partition_point(|pending| pending.end < end);
        let same_offset = self.0.range(from..).take_while(|pending| pending.end == end);
        let Some(at) = same_offset.map(|pending| pending.token).position(|t| t == token) else {
            return false;
        };
        self.0.remove(from + at);
        true
    }

    /// Acknowledgements that wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
