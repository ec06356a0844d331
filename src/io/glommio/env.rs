//! `Env` of a shard.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher as _, RandomState};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_lite::FutureExt as _;

use super::blocking::panic_text;
use super::fs::GlommioFs;
use super::slice::{Slice, pass};
use crate::io::env::{Env, Task};
use crate::io::ring::Ring;

struct Inner {
    fs: GlommioFs,
    ring: Ring,
    slice: Slice,
    start: Instant,
    random: Cell<u64>,
    /// The first panic of a task, and whom to tell.
    panic: RefCell<Option<String>>,
    panic_waker: RefCell<Option<Waker>>,
}

/// The machine as one shard sees it. Made inside the shard's executor.
#[derive(Clone)]
pub struct GlommioEnv(Rc<Inner>);

/// A task of the shard's executor; dropping it cancels the task.
pub struct GlommioTask(glommio::Task<()>);

impl Task for GlommioTask {
    fn detach(self) {
        self.0.detach();
    }
}

impl GlommioEnv {
    /// The environment over `ring`.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub fn new(ring: &Ring) -> Self {
        Self(Rc::new(Inner {
            fs: GlommioFs::new(ring),
            ring: ring.clone(),
            slice: Slice::new(),
            start: Instant::now(),
            // The keys of the standard hasher come from the system.
            random: Cell::new(RandomState::new().hash_one(0)),
            panic: RefCell::default(),
            panic_waker: RefCell::default(),
        }))
    }

    /// Waits for the first panic of a task that `spawn` started, and says what
    /// it said: for whoever ends the shard then, and nobody else.
    pub async fn task_panic(&self) -> String {
        poll_fn(|context| match self.0.panic.take() {
            Some(text) => Poll::Ready(text),
            None => {
                self.0.panic_waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }

    /// The shard's slice.
    #[must_use]
    pub fn slice(&self) -> &Slice {
        &self.0.slice
    }
}

impl Env for GlommioEnv {
    type Fs = GlommioFs;
    type Task = GlommioTask;

    fn fs(&self) -> &GlommioFs {
        &self.0.fs
    }

    fn monotonic(&self) -> Duration {
        self.0.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn wall_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> u64 {
        // SplitMix64 over a seed from the system: for ids and jitter, no secrets.
        let state = self.0.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> GlommioTask {
        let inner = self.0.clone();
        GlommioTask(glommio::spawn_local(async move {
            if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
                inner.panic.borrow_mut().get_or_insert_with(|| panic_text(&*panic));
                if let Some(waker) = inner.panic_waker.take() {
                    waker.wake();
                }
            }
        }))
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        let slice = self.slice().clone();
        async move {
            glommio::timer::sleep(duration).await;
            if !duration.is_zero() {
                slice.restart();
            }
        }
    }

    fn slice_over(&self) -> bool {
        self.0.slice.over()
    }

    fn pause(&self) -> impl Future<Output = ()> + 'static {
        let inner = self.0.clone();
        async move {
            inner.ring.pass_turn(pass).await;
            inner.slice.restart();
        }
    }
}
