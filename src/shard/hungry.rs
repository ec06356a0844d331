//! Who found no memory, and when they try again.
//!
//! Most tries fail while a disk is slow: so one of them tries in each round,
//! and all when that went well. They may wait for different things (pools,
//! journals), so all also try now and then.

use std::collections::VecDeque;
use std::time::Duration;

/// Time between two tries of all.
const ALL_EVERY: Duration = Duration::from_millis(1);

/// Connections, named by `T`, whose turn found no memory, oldest first.
#[derive(Debug)]
pub(super) struct Hungry<T> {
    waiting: VecDeque<T>,
    /// Who tries for all in this round.
    taster: Option<T>,
    /// Monotonic time of the next try of all.
    all_at: Duration,
}

impl<T: Copy + PartialEq> Hungry<T> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), taster: None, all_at: Duration::ZERO }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Makes those ready who try in this round.
    pub(super) fn feed(&mut self, now: Duration, ready: &mut VecDeque<T>) {
        self.taster = None;
        if now >= self.all_at {
            self.all_at = now + ALL_EVERY;
            ready.extend(self.waiting.drain(..));
        } else if let Some(first) = self.waiting.pop_front() {
            self.taster = Some(first);
            ready.push_back(first);
        }
    }

    /// A turn found no memory.
    pub(super) fn push(&mut self, who: T) {
        self.taster = self.taster.filter(|taster| *taster != who);
        self.waiting.push_back(who);
    }

    /// A turn has ended: unless it was pushed, all follow the one who tried.
    pub(super) fn turn_ended(&mut self, who: T) {
        if self.taster == Some(who) {
            self.all_at = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tries_for_all_and_all_follow() {
        let at = Duration::from_micros;
        let mut hungry = Hungry::new();
        let mut ready = VecDeque::new();
        let mut fed = |hungry: &mut Hungry<i32>, now| {
            hungry.feed(at(now), &mut ready);
            ready.drain(..).collect::<Vec<_>>()
        };
        [1, 2, 3].into_iter().for_each(|who| hungry.push(who));
        assert_eq!(fed(&mut hungry, 1), [1, 2, 3]);
        assert!(hungry.is_empty());
        [1, 2, 3].into_iter().for_each(|who| hungry.push(who));
        assert_eq!(fed(&mut hungry, 2), [1], "the oldest tries");
        hungry.push(1);
        hungry.turn_ended(1);
        assert_eq!(fed(&mut hungry, 3), [2], "it failed: the next");
        hungry.turn_ended(9);
        assert_eq!(fed(&mut hungry, 4), [3]);
        hungry.push(2);
        hungry.turn_ended(3);
        assert_eq!(fed(&mut hungry, 5), [1, 2], "it went well: all");
        [1, 2].into_iter().for_each(|who| hungry.push(who));
        assert_eq!(fed(&mut hungry, 1100), [1, 2], "all, after a while");
    }
}
