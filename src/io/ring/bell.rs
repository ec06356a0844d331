//! The bell that wakes the shard's pump: rung by tasks of the same shard, by
//! the ring when something is queued, and by whoever reads the ring's eventfd.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A ring that is answered later than this counts as late: the sign of a slow
/// turn, or of an executor that slept beside runnable tasks.
const LATE_AFTER: Duration = Duration::from_millis(1);

#[derive(Default)]
struct State {
    /// When it was rung and has not been answered yet.
    rung_at: Cell<Option<Instant>>,
    parked: RefCell<Option<Waker>>,
    /// The last ring that was answered late: when it was rung, and answered.
    late: Cell<Option<(Instant, Instant)>>,
}

/// Wakes the pump of this shard; cloning shares it. A ring is never lost: it
/// is kept until the pump's next park, which then ends at once.
#[derive(Clone, Default)]
pub struct Bell(Rc<State>);

impl Bell {
    /// Makes the pump run its next round instead of parking. Cheap; ringing
    /// again before it is answered does nothing.
    #[expect(clippy::disallowed_methods, reason = "measures the executor itself, not the model")]
    pub fn ring(&self) {
        if self.0.rung_at.get().is_none() {
            self.0.rung_at.set(Some(Instant::now()));
            if let Some(waker) = self.0.parked.borrow_mut().take() {
                waker.wake();
            }
        }
    }

    /// As `ring`, but only if the pump is parked: for what a pump that is awake
    /// sees by itself.
    pub(super) fn wake_parked(&self) {
        if self.0.parked.borrow().is_some() {
            self.ring();
        }
    }

    /// Whether it was rung since the pump last parked or answered.
    #[must_use]
    pub fn is_rung(&self) -> bool {
        self.0.rung_at.get().is_some()
    }

    /// Takes the ring, as a pump does that is awake anyhow.
    #[expect(clippy::disallowed_methods, reason = "measures the executor itself, not the model")]
    pub fn answer(&self) -> bool {
        let Some(rung) = self.0.rung_at.take() else { return false };
        let now = Instant::now();
        if now.duration_since(rung) > LATE_AFTER {
            self.0.late.set(Some((rung, now)));
        }
        true
    }

    /// Whether at `time` a ring had waited for over [`LATE_AFTER`]: the one that
    /// waits now, or the last that was answered late.
    #[must_use]
    pub fn waited_at(&self, time: Instant) -> bool {
        let since = |rung| time.saturating_duration_since(rung) > LATE_AFTER;
        let answered = |(rung, answered)| since(rung) && answered >= time;
        self.0.rung_at.get().is_some_and(since) || self.0.late.get().is_some_and(answered)
    }

    /// Sets whom to wake; the pump alone parks.
    pub(super) fn set_parked(&self, waker: Option<&Waker>) {
        let mut parked = self.0.parked.borrow_mut();
        match (waker, parked.as_mut()) {
            (Some(new), Some(old)) => old.clone_from(new),
            (new, _) => *parked = new.cloned(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "instants to compare with")]
mod tests {
    use super::*;

    #[test]
    fn it_knows_when_a_ring_has_waited_long() {
        let bell = Bell::default();
        let before = Instant::now();
        bell.ring();
        let soon = before + LATE_AFTER;
        let later = Instant::now() + 2 * LATE_AFTER;
        assert!(!bell.waited_at(before) && bell.waited_at(later));
        while Instant::now() <= later {
            std::hint::spin_loop();
        }
        assert!(bell.answer() && !bell.answer());
        assert!(bell.waited_at(later), "it had waited at that time");
        assert!(!bell.waited_at(soon), "not yet long");
        assert!(!bell.waited_at(Instant::now() + LATE_AFTER), "it is answered by now");
    }
}
