//! How another thread tells a shard to stop: a flag, and the eventfd of the
//! shard's ring, which wakes the pump.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::io::ring::Ring;

/// The shard's side.
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<AtomicBool>);

/// The other side; may be used on any thread.
#[derive(Debug)]
pub struct Stopper {
    flag: Arc<AtomicBool>,
    eventfd: File,
}

/// The two sides for the shard of `ring`.
///
/// # Errors
/// When the ring's eventfd cannot be duplicated.
pub fn stop_pair(ring: &Ring) -> io::Result<(StopSignal, Stopper)> {
    let flag = Arc::new(AtomicBool::new(false));
    let eventfd = File::from(ring.eventfd()?);
    Ok((StopSignal(flag.clone()), Stopper { flag, eventfd }))
}

impl StopSignal {
    /// Whether the shard shall stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Stopper {
    /// Tells the shard to stop; saying it again does nothing.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::Release);
        if let Err(error) = (&self.eventfd).write_all(&1u64.to_ne_bytes()) {
            // The pump looks at the flag each round anyhow.
            tracing::warn!("cannot wake the shard to stop: {error}");
        }
    }
}
