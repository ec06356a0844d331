//! Fetches that wait for more data, and how many bytes became visible.
//!
//! Positions in bytes count from the machine's birth and never go back, so a
//! waiter is a number to reach. The connection that waits on many partitions
//! keeps the running total; a partition only reports what it gained. With a
//! total of `missing` bytes over `n` partitions, a report size of
//! `missing / n` (rounded up) on each cannot miss the moment: when the total
//! is reached, one of them has gained its share.

use std::collections::VecDeque;

use crate::model::Offset;

/// Names one waiting fetch; the caller chooses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FetchToken(pub u64);

/// A fetch that must look again. Its registration is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// As registered.
    pub token: FetchToken,
    /// Bytes at or beyond the fetch offset that became visible since the
    /// registration; 0 when something else changed (truncation, leadership,
    /// log start).
    pub bytes: u64,
}

/// Sizes of the batches that consumers cannot see yet.
#[derive(Debug)]
pub(super) struct Growth {
    /// End offset of each such batch, and all bytes appended up to there.
    hidden: VecDeque<(Offset, u64)>,
    /// Bytes appended.
    total: u64,
    /// Bytes below the high watermark.
    visible: u64,
}

impl Growth {
    pub(super) const fn new() -> Self {
        Self { hidden: VecDeque::new(), total: 0, visible: 0 }
    }

    /// A batch was appended.
    pub(super) fn append(&mut self, end: Offset, bytes: u64) {
        self.total += bytes;
        self.hidden.push_back((end, self.total));
    }

    /// The high watermark moved; returns the bytes visible now.
    pub(super) fn show(&mut self, high_watermark: Offset) -> u64 {
        while let Some((_, total)) = self.hidden.pop_front_if(|(end, _)| *end <= high_watermark) {
            self.visible = total;
        }
        self.visible
    }

    /// Bytes that were appended below `offset`, as far as still known; the
    /// visible ones for every offset below the high watermark.
    pub(super) fn bytes_below(&self, offset: Offset) -> u64 {
        let below = self.hidden.partition_point(|(end, _)| *end <= offset);
        below.checked_sub(1).map_or(self.visible, |last| self.hidden[last].1)
    }

    /// Whether `to` is the end of a batch that is still hidden.
    pub(super) fn is_boundary(&self, to: Offset) -> bool {
        self.hidden.binary_search_by_key(&to, |(end, _)| *end).is_ok()
    }

    /// Offsets at and beyond `to` are gone.
    pub(super) fn truncate(&mut self, to: Offset) {
        while self.hidden.pop_back_if(|(end, _)| *end > to).is_some() {}
        self.total = self.hidden.back().map_or(self.visible, |(_, total)| *total);
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    token: FetchToken,
    /// Bytes below the fetch offset.
    start: u64,
    /// Wake when this many are visible.
    goal: u64,
    /// Committed readers also wake when the last stable offset moves.
    committed: bool,
}

/// The fetches that wait on one partition.
#[derive(Debug)]
pub(super) struct FetchWaiters {
    waiting: Vec<Waiter>,
    /// The smallest goal, so that most advances look at no waiter.
    next_goal: u64,
}

impl FetchWaiters {
    pub(super) const fn new() -> Self {
        Self { waiting: Vec::new(), next_goal: u64::MAX }
    }

    pub(super) fn register(
        &mut self,
        token: FetchToken,
        start: u64,
        report_bytes: u64,
        committed: bool,
    ) {
        let goal = start.saturating_add(report_bytes.max(1));
        self.waiting.push(Waiter { token, start, goal, committed });
        self.next_goal = self.next_goal.min(goal);
    }

    pub(super) fn cancel(&mut self, token: FetchToken) -> bool {
        let Some(at) = self.waiting.iter().position(|waiter| waiter.token == token) else {
            return false;
        };
        self.waiting.swap_remove(at);
        true
    }

    /// `visible` bytes can be read now; `stable` says whether that holds for
    /// committed readers too, `stable_moved` whether their bound moved.
    pub(super) fn advance(
        &mut self,
        visible: u64,
        stable: bool,
        stable_moved: bool,
        wake: &mut Vec<Wake>,
    ) {
        if visible < self.next_goal && (stable || !stable_moved) {
            return;
        }
        self.next_goal = u64::MAX;
        self.waiting.retain(|waiter| {
            let ready = if waiter.committed && !stable {
                // Their bytes are not counted apart while a transaction is
                // open: they look again whenever their bound moves.
                stable_moved
            } else {
                visible >= waiter.goal
            };
            if ready {
                let bytes = visible.saturating_sub(waiter.start);
                wake.push(Wake { token: waiter.token, bytes });
            } else {
                self.next_goal = self.next_goal.min(waiter.goal);
            }
            !ready
        });
    }

    /// Everyone must look again.
    pub(super) fn wake_all(&mut self, wake: &mut Vec<Wake>) {
        wake.extend(self.waiting.drain(..).map(|waiter| Wake { token: waiter.token, bytes: 0 }));
        self.next_goal = u64::MAX;
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
