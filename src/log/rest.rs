//! When reclaim rests. Uncommitted data cannot be written behind: freeing a file
//! copies it to the journal's head. When it fills the files from which reclaim
//! starts, what was copied comes round again, and so without end. After one round
//! reclaim therefore rests before each copy, longer each time, until something is
//! committed. It never stops for good, since behind the oldest file there may be
//! one that takes no copy.

use std::rc::Rc;
use std::time::Duration;

use super::config::DurabilityClass;
use super::error::Result;
use super::journal::writer::Rest;
use super::reclaim::RETRY;
use super::state::{Log, Shared};
use crate::io::{Env, Task as _};

/// The longest rest before a copy is `RETRY` doubled so often: a second.
const REST_DOUBLINGS: u32 = 10;
/// Pause between two looks for commits during a rest.
const REST_LOOK: Duration = Duration::from_millis(10);

impl<E: Env> Shared<E> {
    /// Frees the oldest full file of a journal, or rests before it: `false` then.
    pub(super) async fn reclaim(self: &Rc<Self>, class: DurabilityClass) -> Result<bool> {
        let rounds = {
            let journal = &mut self.state.borrow_mut().journals[class.index()];
            let rested = std::mem::take(&mut journal.rest) == Rest::Over;
            journal.rounds_in_vain().filter(|_| !rested)
        };
        let Some(rounds) = rounds.filter(|_| self.copies_much(class)) else {
            return self.reclaim_oldest(class).await.map(|()| true);
        };
        self.state.borrow_mut().journals[class.index()].rest = Rest::Now;
        let shared = self.clone();
        let pause = RETRY * (1 << rounds.min(REST_DOUBLINGS));
        // A task of its own: the other class has its turn meanwhile.
        self.env.spawn(async move { shared.rest(class, pause).await }).detach();
        Ok(false)
    }

    async fn rest(self: Rc<Self>, class: DurabilityClass, pause: Duration) {
        let until = self.env.monotonic() + pause;
        loop {
            let now = self.env.monotonic();
            if now >= until || self.is_poisoned() || !self.copies_much(class) {
                break;
            }
            self.env.sleep((until - now).min(REST_LOOK)).await;
        }
        self.state.borrow_mut().journals[class.index()].rest = Rest::Over;
        self.kick_keeper();
    }

    /// Whether freeing the oldest file takes a copy of uncommitted data that is
    /// no small part of it, and nobody waits for the file.
    fn copies_much(&self, class: DurabilityClass) -> bool {
        let state = self.state.borrow();
        let journal = &state.journals[class.index()];
        let Some(oldest) = journal.full.front() else { return false };
        if journal.stalled && !journal.may_grow() {
            return false;
        }
        let logs = oldest.logs.keys().filter_map(|handle| state.log(*handle));
        logs.map(Log::uncommitted).sum::<u64>() > oldest.header.capacity / 4
    }
}

impl Log {
    /// Bytes above the high watermark, as far as marks say.
    fn uncommitted(&self) -> u64 {
        let active = self.active();
        active.end_pos - active.position_below(self.high_watermark, active.written)
    }
}
