//! Fetches that wait for more data, and how many bytes became visible.
//!
//! Positions in bytes count from the machine's birth and never go back, so a
//! waiter is a number to reach. The connection that waits on many partitions
//! keeps the running total; a partition reports only what it gained, and goes
//! on reporting until that fetch can want no more of it. So nobody asks all
//! partitions again when one of them moves.

use std::collections::VecDeque;

use crate::model::Offset;

/// Batches between the last stable offset and the high watermark whose ends
/// are known one by one; beyond that every second end is forgotten.
const UNDECIDED_MAX: usize = 4096;

/// Names one waiting fetch; the caller chooses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FetchToken(pub u64);

/// How much a waiting fetch wants to hear of one partition, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// A report is due when so many more became visible.
    pub report_bytes: u64,
    /// With so many in all the registration is over: more is of no use.
    pub limit_bytes: u64,
}

/// A report to a fetch that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// As registered.
    pub token: FetchToken,
    /// Bytes at or beyond the fetch offset that became visible since the last
    /// report; 0 when something else changed (truncation, leadership, log
    /// start), so that the partition must be looked at.
    pub bytes: u64,
    /// The registration is over.
    pub over: bool,
}

/// Sizes of the batches that some consumers cannot see yet.
#[derive(Debug)]
pub(super) struct Growth {
    /// End offset of such batches, and all bytes appended up to there.
    hidden: VecDeque<(Offset, u64)>,
    /// Bytes appended.
    total: u64,
    /// Bytes below the high watermark.
    visible: u64,
    /// Bytes below the last stable offset.
    stable: u64,
    last_stable: Offset,
}

impl Growth {
    pub(super) const fn new(last_stable: Offset) -> Self {
        Self { hidden: VecDeque::new(), total: 0, visible: 0, stable: 0, last_stable }
    }

    /// A batch was appended.
    pub(super) fn append(&mut self, end: Offset, bytes: u64) {
        self.total += bytes;
        self.hidden.push_back((end, self.total));
    }

    /// The high watermark or the last stable offset moved.
    pub(super) fn show(&mut self, high_watermark: Offset, last_stable: Offset) {
        let before = self.stable;
        while let Some((_, total)) = self.hidden.pop_front_if(|(end, _)| *end <= last_stable) {
            self.stable = total;
        }
        if last_stable > self.last_stable && self.stable == before {
            // Nobody knows what lies between; whoever waits for anything is
            // to hear of it.
            let next = self.hidden.front().map_or(self.total, |(_, total)| *total);
            self.stable = next.min(before + 1);
        }
        self.last_stable = self.last_stable.max(last_stable);
        let undecided = self.hidden.partition_point(|(end, _)| *end <= high_watermark);
        let visible = undecided.checked_sub(1).map_or(self.stable, |last| self.hidden[last].1);
        self.visible = self.visible.max(visible);
        if undecided > UNDECIDED_MAX {
            self.thin(undecided);
        }
    }

    /// Forgets every second of the first `count` ends, not the last of them.
    fn thin(&mut self, count: usize) {
        let mut at = 0;
        self.hidden.retain(|_| {
            at += 1;
            at >= count || at % 2 == 0
        });
    }

    /// Bytes that a class of readers can see.
    fn seen(&self, committed: bool) -> u64 {
        if committed { self.stable } else { self.visible }
    }

    /// From where a reader at `offset` counts: what it sees already, or what
    /// lies below its offset.
    pub(super) fn start(&self, offset: Offset, committed: bool) -> u64 {
        let below = self.hidden.partition_point(|(end, _)| *end <= offset);
        let below = below.checked_sub(1).map_or(0, |last| self.hidden[last].1);
        below.max(self.seen(committed))
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
    committed: bool,
    report: u64,
    /// Bytes reported, and those below the fetch offset.
    from: u64,
    /// Report when this many are visible.
    goal: u64,
    /// The registration is over when this many are.
    end: u64,
}

/// The fetches that wait on one partition.
#[derive(Debug)]
pub(super) struct FetchWaiters {
    waiting: Vec<Waiter>,
    /// The smallest goal of each class of readers, so that most advances look
    /// at no waiter.
    next_goals: [u64; 2],
}

impl FetchWaiters {
    pub(super) const fn new() -> Self {
        Self { waiting: Vec::new(), next_goals: [u64::MAX; 2] }
    }

    pub(super) fn register(
        &mut self,
        token: FetchToken,
        from: u64,
        committed: bool,
        interest: Interest,
    ) {
        let report = interest.report_bytes.clamp(1, interest.limit_bytes.max(1));
        let goal = from.saturating_add(report);
        let end = from.saturating_add(interest.limit_bytes.max(1));
        self.waiting.push(Waiter { token, committed, report, from, goal, end });
        let next = &mut self.next_goals[usize::from(committed)];
        *next = goal.min(*next);
    }

    pub(super) fn cancel(&mut self, token: FetchToken) -> bool {
        let Some(at) = self.waiting.iter().position(|waiter| waiter.token == token) else {
            return false;
        };
        self.waiting.swap_remove(at);
        true
    }

    /// More can be seen: reports what is due.
    pub(super) fn advance(&mut self, growth: &Growth, wake: &mut Vec<Wake>) {
        let seen = [growth.seen(false), growth.seen(true)];
        if seen[0] < self.next_goals[0] && seen[1] < self.next_goals[1] {
            return;
        }
        self.next_goals = [u64::MAX; 2];
        self.waiting.retain_mut(|waiter| {
            let class = usize::from(waiter.committed);
            let seen = seen[class];
            let over = seen >= waiter.end;
            if seen >= waiter.goal {
                wake.push(Wake { token: waiter.token, bytes: seen - waiter.from, over });
                waiter.from = seen;
                waiter.goal = seen.saturating_add(waiter.report).min(waiter.end);
            }
            if !over {
                self.next_goals[class] = self.next_goals[class].min(waiter.goal);
            }
            !over
        });
    }

    /// Everyone must look again.
    pub(super) fn wake_all(&mut self, wake: &mut Vec<Wake>) {
        let told = |waiter: Waiter| Wake { token: waiter.token, bytes: 0, over: true };
        wake.extend(self.waiting.drain(..).map(told));
        self.next_goals = [u64::MAX; 2];
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of 10 bytes and one record, from offset 0.
    fn grown(batches: i64) -> Growth {
        let mut growth = Growth::new(Offset(0));
        (1..=batches).for_each(|end| growth.append(Offset(end), 10));
        growth
    }

    #[test]
    fn each_class_of_readers_sees_up_to_its_bound() {
        let mut growth = grown(10);
        growth.show(Offset(7), Offset(3));
        assert_eq!((growth.seen(false), growth.seen(true)), (70, 30));
        for (offset, start) in [(0, (70, 30)), (5, (70, 50)), (7, (70, 70)), (9, (90, 90))] {
            let start_of = |committed| growth.start(Offset(offset), committed);
            assert_eq!((start_of(false), start_of(true)), start, "offset {offset}");
        }
        growth.show(Offset(8), Offset(8));
        assert_eq!((growth.seen(false), growth.seen(true)), (80, 80));
        assert!(growth.is_boundary(Offset(9)) && !growth.is_boundary(Offset(8)));
        growth.truncate(Offset(9));
        growth.append(Offset(10), 5);
        growth.show(Offset(10), Offset(10));
        assert_eq!((growth.seen(false), growth.seen(true)), (95, 95));
    }

    #[test]
    fn committed_readers_hear_of_their_bytes_when_their_bound_moves() {
        let mut growth = grown(10);
        let mut waiters = FetchWaiters::new();
        let interest = Interest { report_bytes: 1, limit_bytes: 1000 };
        waiters.register(FetchToken(1), growth.start(Offset(0), true), true, interest);
        waiters.register(FetchToken(2), growth.start(Offset(0), false), false, interest);
        let mut told = |growth: &Growth| {
            let mut wake = Vec::new();
            waiters.advance(growth, &mut wake);
            wake.iter().map(|w| (w.token.0, w.bytes)).collect::<Vec<_>>()
        };
        growth.show(Offset(6), Offset(0));
        assert_eq!(told(&growth), [(2, 60)]);
        growth.show(Offset(6), Offset(4));
        assert_eq!(told(&growth), [(1, 40)]);
        growth.show(Offset(10), Offset(10));
        assert_eq!(told(&growth), [(1, 60), (2, 40)]);
        assert_eq!(told(&growth), []);
    }

    #[test]
    fn a_long_transaction_costs_bounded_memory_and_hides_nothing_for_ever() {
        let mut growth = grown(0);
        let batches = 10 * UNDECIDED_MAX as i64;
        for end in 1..=batches {
            growth.append(Offset(end), 10);
            growth.show(Offset(end), Offset(0));
            assert!(growth.hidden.len() <= UNDECIDED_MAX + 1);
        }
        assert_eq!(growth.seen(false), 10 * batches as u64);
        // A bound inside of what was forgotten shows at least something.
        let first = growth.hidden[0].0;
        growth.show(Offset(batches), Offset(first.0 - 1));
        assert_eq!(growth.seen(true), 1);
        growth.show(Offset(batches), Offset(batches));
        assert_eq!(growth.seen(true), 10 * batches as u64);
        assert!(growth.hidden.is_empty());
    }
}
