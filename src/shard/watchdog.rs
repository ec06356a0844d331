//! A plain thread that keeps executors from sleeping beside runnable tasks.
//!
//! glommio 0.9 can park while tasks are runnable (ADR 0008); a wake from a
//! foreign thread always unparks it. So the watchdog wakes a small task of each
//! shard, its pulse, when the shard has work in flight and makes no progress.
//! A pulse that finds the shard's thread asleep beside a bell that has rung for
//! over 1 ms counts as a rescue; a slow turn, or a thread that waits for its
//! core, does not. Owner: its own thread, not pinned; it shares only atomics and one waker with
//! each shard. At most one pulse of a shard is unanswered: glommio counts the
//! references of a waker in an i16.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::asleep::ThreadState;
use crate::io::ring::Bell;
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
    rescues: AtomicU64,
    asked: AtomicU64,
    answered: AtomicU64,
    /// When the last pulse was sent, if the thread slept then.
    slept_at: Mutex<Option<Instant>>,
    /// The shard's thread; without /proc it is not known, and nothing counts as
    /// a rescue.
    thread: OnceLock<ThreadState>,
    waker: Mutex<Option<Waker>>,
}

impl Pulse {
    /// Called on the shard's thread before anything else.
    pub(super) fn of_this_thread(&self) {
        if let Ok(state) = ThreadState::of_this_thread() {
            let _ = self.thread.set(state);
        }
    }

    /// Called by the pump once a round: `in_flight` counts what must end by
    /// itself (submitted disk and send entries, queued mesh messages), not armed
    /// receives, timers and parked fetches.
    pub fn round(&self, in_flight: usize) {
        // One writer, so plain loads and stores do.
        self.progress.store(self.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.in_flight.store(in_flight as u64, Ordering::Relaxed);
    }

    /// Times a pulse woke a thread that slept although the pump's bell had rung
    /// for over 1 ms.
    #[must_use]
    pub fn rescues(&self) -> u64 {
        self.rescues.load(Ordering::Relaxed)
    }

    /// Pulses that the watchdog sent.
    #[must_use]
    pub fn pulses(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slept_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.slept_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watchdog's side: wakes the pulse task, unless it is not there.
    fn ask(&self, now: Instant, slept: bool) -> bool {
        let waker = self.waker();
        let Some(waker) = waker.as_ref() else { return false };
        *self.slept_at() = slept.then_some(now);
        self.asked.fetch_add(1, Ordering::Release);
        waker.wake_by_ref();
        true
    }

    /// The shard's side: a task that never ends, to be cancelled before the
    /// executor goes.
    pub(super) async fn answer(self: Arc<Self>, bell: Bell) {
        let _forget = Forget(self.clone());
        poll_fn(|context| {
            let mut waker = self.waker();
            if waker.is_none() {
                *waker = Some(context.waker().clone());
            }
            drop(waker);
            let asked = self.asked.load(Ordering::Acquire);
            if self.answered.load(Ordering::Relaxed) != asked {
                if self.slept_at().is_some_and(|at| bell.waited_at(at)) {
                    self.rescues.fetch_add(1, Ordering::Relaxed);
                }
                self.answered.store(asked, Ordering::Release);
            }
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
            let slept = still && pulse.thread.get().is_some_and(ThreadState::sleeps);
            if pulse.ask(now, slept) {
                self.asked_at = now;
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

    /// A shard's thread whose bell has rung and is not answered, asleep or at
    /// work; rescues after one pulse.
    fn rescues_of(asleep: bool) -> u64 {
        let (mut shard, start) = guarded();
        shard.pulse.waker().take();
        let pulse = shard.pulse.clone();
        let (rung, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (told, goes_on) = (rung.clone(), go_on.clone());
        let thread = thread::Builder::new().spawn(move || {
            pulse.of_this_thread();
            let bell = Bell::default();
            let mut answer = std::pin::pin!(pulse.clone().answer(bell.clone()));
            let mut context = std::task::Context::from_waker(Waker::noop());
            assert!(answer.as_mut().poll(&mut context).is_pending());
            bell.ring();
            told.store(true, Ordering::SeqCst);
            while !goes_on.load(Ordering::SeqCst) {
                if asleep { thread::park() } else { std::hint::spin_loop() }
            }
            bell.answer();
            assert!(answer.as_mut().poll(&mut context).is_pending());
        });
        let thread = thread.unwrap();
        while !rung.load(Ordering::SeqCst) || asleep != shard.pulse.thread.get().unwrap().sleeps() {
            thread::yield_now();
        }
        shard.pulse.round(1);
        shard.look(start + TICK);
        let since = Instant::now();
        while since.elapsed() <= 2 * TICK {
            thread::park_timeout(TICK);
        }
        shard.look(Instant::now());
        assert_eq!(shard.pulse.pulses(), 1);
        go_on.store(true, Ordering::SeqCst);
        thread.thread().unpark();
        thread.join().unwrap();
        shard.pulse.rescues()
    }

    #[test]
    fn only_a_thread_that_slept_beside_a_ringing_bell_was_rescued() {
        assert_eq!(rescues_of(true), 1);
        assert_eq!(rescues_of(false), 0, "it was only slow");
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
