//! The shard's slice: how long its tasks have run since its reactor last looked.
//!
//! The reactor runs only when every task queue is empty, so the slice belongs to
//! the shard and not to a task: one cell, asked by every long loop.

use std::cell::Cell;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use glommio::timer::Timer;

/// How long a shard works before it lets its reactor look at completions.
pub const SLICE: Duration = Duration::from_micros(100);

/// The timer that lets the reactor run. It must have expired when the reactor
/// looks (1 us costs four times as much, because glommio then enters its sleep
/// path), and must not be ready at its first poll (0 is, and starves everybody):
/// 200 ns mostly does both, at about 6.5 us a pause; [`pass`] sees to the rest. A yield would not do: it leaves the
/// queue runnable, and the reactor waits until all queues are empty.
pub const PAUSE: Duration = Duration::from_nanos(200);

/// The time of the last reactor pass; cloning shares it.
#[derive(Clone)]
pub struct Slice(Rc<Cell<Instant>>);

#[expect(clippy::disallowed_methods, reason = "the slice is about real time on this core")]
impl Slice {
    /// A slice that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self(Rc::new(Cell::new(Instant::now())))
    }

    /// Whether the shard has worked for [`SLICE`] since the last pass.
    #[must_use]
    pub fn over(&self) -> bool {
        self.0.get().elapsed() >= SLICE
    }

    /// Says that the reactor has just run: after each await that cannot end
    /// without it (a timer, a park, a blocking call).
    pub fn restart(&self) {
        self.0.set(Instant::now());
    }

    /// Gives way to the reactor and to every other task. For the pump, for which
    /// the tasks wait in `Env::pause`.
    pub async fn pause(&self) {
        pass().await;
        self.restart();
    }
}

/// Completes after the reactor has run, and not before: a thread that was
/// interrupted finds the timer ready at its first poll, then takes a longer one.
pub(super) async fn pass() {
    let mut wait = PAUSE;
    let mut timer = Timer::new(wait);
    let mut pended = false;
    poll_fn(|context| {
        while Pin::new(&mut timer).poll(context).is_ready() {
            if pended {
                return Poll::Ready(());
            }
            wait *= 2;
            timer = Timer::new(wait);
        }
        pended = true;
        Poll::Pending
    })
    .await;
}

impl Default for Slice {
    fn default() -> Self {
        Self::new()
    }
}
