//! A plain thread that keeps executors from sleeping beside runnable tasks.
//!
//! glommio 0.9 can park while tasks are runnable (ADR 0008); a wake from a
//! foreign thread always unparks it. So the watchdog wakes a small task of each
//! shard, its pulse, when the shard has work in flight and makes no progress.
//! Owner: its own thread, not pinned; it shares only atomics and one waker with
//! each shard. At most one pulse of a shard is unanswered: glommio counts the
//! references of a waker in an i16.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::io::ring::{Bell, LATE_AFTER};
use crate::io::syscall::unpin_thread;

/// Between two looks at a shard that works.
pub const TICK: Duration = Duration::from_millis(1);

/// Between two looks at, and two pulses of, a shard that rests; also how long
/// after its last progress a shard counts as working.
pub const REST: Duration = Duration::from_millis(100);

/// A pulse that is not answered for so long is reported.
pub const STUCK_AFTER: Duration = Duration::from_secs(10);

/// What a shard and the watchdog know of each other.
#[derive(Debug, Default)]
pub struct Pulse {
    progress: AtomicU64,
    in_flight: AtomicU64,
    late: AtomicU64,
    rescues: AtomicU64,
    asked: AtomicU64,
    answered: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Pulse {
    /// Called by the pump once a round: `in_flight` counts what must end by
    /// itself (submitted disk and send entries, queued mesh messages, woken
    /// tasks), not armed receives, timers and parked fetches.
    pub fn round(&self, in_flight: usize) {
        // One writer, so plain loads and stores do.
        self.progress.store(self.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.in_flight.store(in_flight as u64, Ordering::Relaxed);
    }

    /// Called on the shard where a message or a task is found that waited for
    /// longer than [`LATE_AFTER`]; the next pulse then counts as a rescue.
    pub fn note_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Times a pulse found work that had been forgotten for over 1 ms.
    #[must_use]
    pub fn rescues(&self) -> u64 {
        self.rescues.load(Ordering::Relaxed)
    }

    /// Pulses that the watchdog sent.
    #[must_use]
    pub fn pulses(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn waker(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard's side: a task that never ends, to be cancelled before the
    /// executor goes.
    pub(super) async fn answer(self: Arc<Self>, bell: Bell) {
        let _forget = Forget(self.clone());
        let seen = |pulse: &Self| pulse.late.load(Ordering::Relaxed) + bell.late();
        let mut late = seen(&self);
        poll_fn(|context| {
            let mut waker = self.waker();
            if waker.is_none() {
                *waker = Some(context.waker().clone());
            }
            drop(waker);
            let asked = self.asked.load(Ordering::Acquire);
            if self.answered.load(Ordering::Relaxed) != asked {
                let forgotten = bell.waiting_for().is_some_and(|since| since > LATE_AFTER);
                if forgotten || seen(&self) != late {
                    self.rescues.fetch_add(1, Ordering::Relaxed);
                }
                self.answered.store(asked, Ordering::Release);
            }
            late = seen(&self);
            Poll::<()>::Pending
        })
        .await;
    }
}

/// Takes the waker away from the watchdog when the pulse task ends.
struct Forget(Arc<Pulse>);

impl Drop for Forget {
    fn drop(&mut self) {
        self.0.waker().take();
    }
}

/// A shard that has not answered for [`STUCK_AFTER`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// Index into the list given to `start`.
    pub shard: usize,
    /// How long.
    pub silent: Duration,
}

/// The watchdog's view of one shard.
struct Guarded {
    pulse: Arc<Pulse>,
    progress: u64,
    moved_at: Instant,
    asked_at: Instant,
    looked_at: Instant,
    /// How long a pulse has been unanswered, as far as this thread ran: after a
    /// stopped process goes on, nobody was silent meanwhile.
    silent: Duration,
    reported: bool,
}

/// What a look at a shard led to.
struct Look {
    stuck: Option<Duration>,
    busy: bool,
}

impl Guarded {
    fn look(&mut self, now: Instant) -> Look {
        let pulse = &self.pulse;
        let progress = pulse.progress.load(Ordering::Relaxed);
        let still = progress == self.progress;
        if !still {
            (self.progress, self.moved_at) = (progress, now);
        }
        let working =
            pulse.in_flight.load(Ordering::Relaxed) > 0 && now.duration_since(self.moved_at) < REST;
        let since_asked = now.duration_since(self.asked_at);
        let since_look = now.duration_since(self.looked_at).min(2 * REST);
        self.looked_at = now;
        let answered =
            pulse.answered.load(Ordering::Acquire) == pulse.asked.load(Ordering::Relaxed);
        if !answered {
            self.silent += since_look;
            let stuck = self.silent >= STUCK_AFTER && !self.reported;
            self.reported |= stuck;
            return Look { stuck: stuck.then_some(self.silent), busy: true };
        }
        self.reported = false;
        self.silent = Duration::ZERO;
        if (still && working) || since_asked >= REST {
            let waker = pulse.waker();
            if let Some(waker) = waker.as_ref() {
                self.asked_at = now;
                pulse.asked.fetch_add(1, Ordering::Release);
                waker.wake_by_ref();
            }
        }
        Look { stuck: None, busy: working }
    }
}

/// The watchdog's thread. Dropping it stops the thread.
pub struct Watchdog {
    pulses: Vec<Arc<Pulse>>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    /// Guards `pulses`; `on_stuck` is called on the watchdog's thread, once for
    /// each silence over [`STUCK_AFTER`].
    #[expect(clippy::disallowed_methods, reason = "the watchdog is real time by nature")]
    pub fn start(
        pulses: Vec<Arc<Pulse>>,
        mut on_stuck: impl FnMut(Stuck) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let start = Instant::now();
        let guard = |pulse: &Arc<Pulse>| Guarded {
            pulse: pulse.clone(),
            progress: 0,
            moved_at: start,
            asked_at: start,
            looked_at: start,
            silent: Duration::ZERO,
            reported: false,
        };
        let mut guarded: Vec<_> = pulses.iter().map(guard).collect();
        let run = move || {
            // Else it would wait for the very shard that it guards.
            let _ = unpin_thread();
            while !stopped.load(Ordering::Relaxed) {
                let now = Instant::now();
                let mut rest = REST;
                for (shard, guarded) in guarded.iter_mut().enumerate() {
                    let look = guarded.look(now);
                    if let Some(silent) = look.stuck {
                        on_stuck(Stuck { shard, silent });
                    }
                    if look.busy {
                        rest = TICK;
                    }
                }
                thread::park_timeout(rest);
            }
        };
        let thread = thread::Builder::new().name("watchdog".into()).spawn(run)?;
        Ok(Self { pulses, stop, thread: Some(thread) })
    }

    /// Rescues of all shards.
    #[must_use]
    pub fn rescues(&self) -> u64 {
        self.pulses.iter().map(|pulse| pulse.rescues()).sum()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic but in `on_stuck`, whose panic was printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "builds instants to feed")]
mod tests {
    use super::*;

    fn guarded() -> (Guarded, Instant) {
        let start = Instant::now();
        let pulse = Arc::new(Pulse::default());
        *pulse.waker() = Some(Waker::noop().clone());
        let guarded = Guarded {
            pulse,
            progress: 0,
            moved_at: start,
            asked_at: start,
            looked_at: start,
            silent: Duration::ZERO,
            reported: false,
        };
        (guarded, start)
    }

    #[test]
    fn a_shard_at_work_that_stands_still_is_woken_each_tick() {
        let (mut shard, start) = guarded();
        shard.pulse.round(1);
        assert!(shard.look(start + TICK).busy);
        assert_eq!(shard.pulse.pulses(), 0, "it has just moved");
        shard.look(start + 2 * TICK);
        assert_eq!(shard.pulse.pulses(), 1);
        shard.look(start + 3 * TICK);
        assert_eq!(shard.pulse.pulses(), 1, "one unanswered pulse at most");
        shard.pulse.answered.store(1, Ordering::Relaxed);
        shard.look(start + 4 * TICK);
        assert_eq!(shard.pulse.pulses(), 2);
    }

    #[test]
    fn a_resting_shard_is_woken_ten_times_a_second() {
        let (mut shard, start) = guarded();
        for tick in 1..1000 {
            assert!(!shard.look(start + tick * TICK).busy);
            let asked = shard.pulse.asked.load(Ordering::Relaxed);
            shard.pulse.answered.store(asked, Ordering::Relaxed);
        }
        assert_eq!(shard.pulse.pulses(), 9);
    }

    #[test]
    fn silence_is_reported_once_and_only_while_this_thread_ran() {
        let (mut shard, start) = guarded();
        shard.look(start + REST);
        assert!(shard.look(start + 2 * STUCK_AFTER).stuck.is_none(), "the process was stopped");
        let mut reports = 0;
        for tick in 1..=200 {
            let now = start + 2 * STUCK_AFTER + tick * REST;
            reports += u32::from(shard.look(now).stuck.is_some());
        }
        assert_eq!(reports, 1);
    }
}
