//! Starts a shard: one thread with its executor, its ring, its environment and
//! the tasks that guard it, running one async main.
//!
//! Owner: the launching thread until the shard runs, then the shard. It knows
//! nothing of what the shard serves. A panic in the main or in a task that
//! `Env::spawn` started ends the shard, and `join` says so at once; the broker
//! decides what that means.

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_lite::FutureExt as _;
use futures_lite::future::or;
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement, PoolPlacement};

use super::watchdog::Pulse;
use crate::io::Pool;
use crate::io::env::Env as _;
use crate::io::glommio::{Doorbell, GlommioEnv, panic_text};
use crate::io::preflight::EXECUTOR_MEMORY;
use crate::io::ring::{Ring, RingConfig};

/// Nobody relies on preemption, and each of its timers can make the executor
/// park beside runnable tasks (ADR 0008): far away, then.
const PREEMPT: Duration = Duration::from_secs(3600);

/// Threads of the blocking pool, not pinned: a rename must not wait behind
/// unlinks, nor on the shard's own core.
const BLOCKING_THREADS: usize = 2;

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
    pulse: Arc<Pulse>,
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
    pub fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// Awaits the ring's bell or its completions, as the pump does when nothing
    /// is left; then the reactor has run, and a new slice begins.
    pub async fn park(&self) {
        self.ring.park().await;
        self.env.slice().restart();
    }

    /// Lets the reactor and the tasks run when the slice is over: the pump's
    /// pause, for which every `Env::pause` waits.
    pub async fn pause(&self) {
        self.env.slice().pause().await;
    }

    /// Runs `future` and serves file operations until it is done: for start and
    /// stop, when no pump runs; socket events meanwhile are dropped.
    pub async fn drive<T>(&self, future: impl Future<Output = T>) -> T {
        or(future, self.serve_files()).await
    }

    async fn serve_files<T>(&self) -> T {
        loop {
            self.ring.submit();
            // Nothing listens yet, or a connection outlived the pump's patience.
            self.ring.reap(|event| tracing::debug!("{event:?} while no pump runs"));
            self.pulse.round(self.ring.in_flight());
            if self.env.slice_over() {
                self.pause().await;
            } else {
                self.park().await;
            }
        }
    }
}

/// A running shard.
pub struct ShardThread<T> {
    shard: usize,
    outcome: mpsc::Receiver<Result<T, ShardDied>>,
    thread: ExecutorJoinHandle<()>,
    pulse: Arc<Pulse>,
}

impl<T> ShardThread<T> {
    /// Waits for the end of the shard's main. After a panic it does not wait
    /// for the thread, which may be unable to unwind: the process is to end.
    pub fn join(self) -> Result<T, ShardDied> {
        match self.outcome.recv() {
            Ok(Ok(value)) => self.end_thread().map(|()| value),
            Ok(Err(died)) => Err(died),
            Err(mpsc::RecvError) => {
                let shard = self.shard;
                self.end_thread()?;
                Err(ShardDied { shard, panic: "it ended without a result".into() })
            }
        }
    }

    fn end_thread(self) -> Result<(), ShardDied> {
        let shard = self.shard;
        let died = |error: glommio::GlommioError<()>| match error {
            glommio::GlommioError::BuilderError(glommio::BuilderErrorKind::ThreadPanic(panic)) => {
                panic_text(&*panic)
            }
            other => other.to_string(),
        };
        self.thread.join().map_err(|error| ShardDied { shard, panic: died(error) })
    }

    /// What a watchdog guards.
    #[must_use]
    pub fn pulse(&self) -> Arc<Pulse> {
        self.pulse.clone()
    }
}

/// A shard ended by a panic.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
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
    let shard = config.shard;
    let placement = config.core.map_or(Placement::Unbound, Placement::Fixed);
    let pulse = Arc::new(Pulse::default());
    let on_shard = pulse.clone();
    let (started, start) = mpsc::channel();
    let (ended, outcome) = mpsc::channel();
    let thread = LocalExecutorBuilder::new(placement)
        .name(&format!("shard-{shard}"))
        .preempt_timer(PREEMPT)
        .io_memory(EXECUTOR_MEMORY)
        .blocking_thread_pool_placement(PoolPlacement::Unbound(BLOCKING_THREADS))
        .spawn(move || async move {
            let (runtime, doorbell) = match set_up(&config, on_shard) {
                Ok(both) => both,
                Err(error) => return drop(started.send(Err(error))),
            };
            let _ = started.send(Ok(()));
            let result = run(shard, runtime, doorbell, main).await;
            // Nobody waits when the handle was dropped.
            let _ = ended.send(result);
        })
        .map_err(|error| io::Error::other(error.to_string()))?;
    let running = ShardThread { shard, outcome, thread, pulse };
    match start.recv() {
        Ok(Ok(())) => Ok(running),
        Ok(Err(error)) => Err(error),
        Err(mpsc::RecvError) => match running.end_thread() {
            Ok(()) => Err(io::Error::other(format!("shard {shard} ended before it started"))),
            Err(died) => Err(io::Error::other(died)),
        },
    }
}

fn set_up(config: &RuntimeConfig, pulse: Arc<Pulse>) -> io::Result<(Runtime, Doorbell)> {
    pulse.of_this_thread();
    let ring = Ring::new(&config.ring, &config.receive_pool)?;
    let env = GlommioEnv::new(&ring);
    let doorbell = Doorbell::start(&ring)?;
    Ok((Runtime { env, ring, pulse }, doorbell))
}

async fn run<T, F, Fut>(
    shard: usize,
    runtime: Runtime,
    doorbell: Doorbell,
    main: F,
) -> Result<T, ShardDied>
where
    F: FnOnce(Runtime) -> Fut,
    Fut: Future<Output = T>,
{
    let pulse = glommio::spawn_local(runtime.pulse.clone().answer(runtime.ring.bell()));
    let env = runtime.env.clone();
    let main = async move {
        let result = AssertUnwindSafe(async { main(runtime).await }).catch_unwind().await;
        result.map_err(|panic: Box<dyn Any + Send>| panic_text(&*panic))
    };
    // A task's panic ends the shard as well.
    let result = or(main, async { Err(env.task_panic().await) }).await;
    if result.is_ok() {
        pulse.cancel().await;
        // A descriptor that fails to close now closes with the process.
        let _ = doorbell.stop().await;
    }
    result.map_err(|panic| ShardDied { shard, panic })
}

/// Lets the tasks of this shard run that are runnable now, without the reactor.
/// For the pump between two looks only: a task that it woke runs after 0.4 us
/// instead of when the pump pauses. Everything else awaits `Env::pause`, since
/// a task that only yields starves the reactor.
#[expect(clippy::disallowed_methods, reason = "the one place that may yield, see above")]
pub async fn yield_in_place() {
    futures_lite::future::yield_now().await;
}
