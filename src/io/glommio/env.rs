//! `Env` of a shard.

use std::cell::Cell;
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::fs::GlommioFs;
use super::slice::Slice;
use crate::io::env::{Env, Task};
use crate::io::ring::Ring;

struct Inner {
    fs: GlommioFs,
    slice: Slice,
    start: Instant,
    random: Cell<u64>,
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
            slice: Slice::new(),
            start: Instant::now(),
            // The keys of the standard hasher come from the system.
            random: Cell::new(RandomState::new().hash_one(0)),
        }))
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
        GlommioTask(glommio::spawn_local(future))
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
        self.0.slice.clone().pause()
    }
}
