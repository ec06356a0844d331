//! Whose turn it is on the shard: the pump's rounds, and the slices of tasks
//! between them.
//!
//! A task that worked for a slice joins the line; while the pump has something
//! to do, one task is let through per round of the pump, oldest first, and none
//! before a round has begun after it joined. So the tasks of a shard together
//! take one slice between two rounds, in whatever order the reactor wakes them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Looks of a task at a pump that has work and begins no round, before it goes
/// on all the same: then no pump runs (a start, a test). A pump that pauses is
/// back after two passes of the reactor. Likewise the looks for each task before
/// it in the line: one of them may be kept without being polled.
const LOOKS_MAX: u32 = 8;

#[derive(Default)]
struct State {
    rounds: Cell<u64>,
    /// The pump has work left that the ring does not know of.
    more: Cell<bool>,
    /// The round whose slice was given to a task.
    given: Cell<u64>,
    line: RefCell<VecDeque<u64>>,
    next: Cell<u64>,
}

/// The turns of one shard; cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Turns(Rc<State>);

impl Turns {
    /// The pump begins a round.
    pub(super) fn round(&self) {
        self.0.rounds.set(self.0.rounds.get() + 1);
    }

    /// What the pump says at the end of a round.
    pub(super) fn set_more(&self, more: bool) {
        self.0.more.set(more);
    }

    pub(super) fn more(&self) -> bool {
        self.0.more.get()
    }

    /// Joins the line.
    pub(super) fn join(&self) -> Place {
        let (number, round) = (self.0.next.get(), self.0.rounds.get());
        self.0.next.set(number + 1);
        let mut line = self.0.line.borrow_mut();
        line.push_back(number);
        let left = u32::try_from(line.len()).unwrap_or(u32::MAX).saturating_mul(LOOKS_MAX);
        Place { turns: self.clone(), number, joined: round, seen: round, looks: 0, left }
    }
}

/// A task's place in the line; dropping it leaves the line.
pub(super) struct Place {
    turns: Turns,
    number: u64,
    joined: u64,
    /// The last round that a look saw, and looks since then.
    seen: u64,
    looks: u32,
    /// Looks left at most.
    left: u32,
}

impl Place {
    /// One look after a pass of the reactor: whether the task may go on.
    /// `wanted` says that the pump has something to do.
    pub(super) fn may_go(&mut self, wanted: bool) -> bool {
        let state = &self.turns.0;
        let round = state.rounds.get();
        if round != self.seen {
            (self.seen, self.looks) = (round, 0);
        }
        self.looks += 1;
        self.left = self.left.saturating_sub(1);
        if !wanted || self.looks >= LOOKS_MAX || self.left == 0 {
            return true;
        }
        let first = state.line.borrow().front() == Some(&self.number);
        if !first || round == self.joined || round == state.given.get() {
            return false;
        }
        state.given.set(round);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut line = self.turns.0.line.borrow_mut();
        match line.front() {
            Some(first) if *first == self.number => drop(line.pop_front()),
            _ => line.retain(|number| *number != self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_task_goes_on_per_round_of_a_busy_pump_oldest_first() {
        let turns = Turns::default();
        let mut places: Vec<_> = (0..5).map(|_| turns.join()).collect();
        let mut order = Vec::new();
        for round in 0..5 {
            let may: Vec<_> = places.iter_mut().map(|place| place.may_go(true)).collect();
            assert!(!may.contains(&true), "none before the pump's round {round}");
            turns.round();
            // The reactor may wake them in any order, and more than once.
            for _ in 0..2 {
                for at in (0..places.len()).rev() {
                    if places[at].may_go(true) {
                        order.push(places[at].number);
                        places[at] = turns.join();
                    }
                }
            }
            assert_eq!(order.len(), round + 1, "one in each round");
        }
        assert_eq!(order, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_pump_without_work_holds_nobody_up_and_a_dropped_place_neither() {
        let turns = Turns::default();
        let (mut first, mut second) = (turns.join(), turns.join());
        assert!(first.may_go(false) && second.may_go(false));
        let (gone, mut third) = (first, turns.join());
        turns.round();
        assert!(!third.may_go(true), "two are before it");
        drop((gone, second));
        assert!(third.may_go(true));
    }

    #[test]
    fn without_a_pump_the_wait_is_bounded() {
        let turns = Turns::default();
        let mut place = turns.join();
        let looks = (1..).find(|_| place.may_go(true)).unwrap();
        assert_eq!(looks, LOOKS_MAX);
        drop(place);
        // Nor does a task that is not polled hold up those behind it for ever.
        let (_first, mut second) = (turns.join(), turns.join());
        let looks = (1..).find(|_| {
            turns.round();
            second.may_go(true)
        });
        assert_eq!(looks, Some(2 * LOOKS_MAX));
    }
}
