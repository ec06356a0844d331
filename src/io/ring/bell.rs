//! The bell that wakes the shard's pump: rung by tasks of the same shard, by
//! the ring when something is queued, and by whoever reads the ring's eventfd.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A ring that is answered later than this counts as late: the sign of an
/// executor that slept beside runnable tasks.
pub const LATE_AFTER: Duration = Duration::from_millis(1);

#[derive(Default)]
struct State {
    /// When it was rung and has not been answered yet.
    rung_at: Cell<Option<Instant>>,
    parked: RefCell<Option<Waker>>,
    late: Cell<u64>,
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
    pub fn answer(&self) -> bool {
        let Some(at) = self.0.rung_at.take() else { return false };
        if at.elapsed() > LATE_AFTER {
            self.0.late.set(self.0.late.get() + 1);
        }
        true
    }

    /// How long an unanswered ring has waited.
    #[must_use]
    pub fn waiting_for(&self) -> Option<Duration> {
        self.0.rung_at.get().map(|at| at.elapsed())
    }

    /// Rings answered later than [`LATE_AFTER`].
    #[must_use]
    pub fn late(&self) -> u64 {
        self.0.late.get()
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
