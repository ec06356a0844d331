//! Turns the ring's eventfd into rings of its bell, through glommio's reactor,
//! so that a parked pump wakes and the executor can sleep as usual.
//!
//! A task of its own reads the eventfd again and again: its read is never raced
//! against anything and never cancelled, so no signal is lost. The ring signals
//! only while the pump is parked.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write as _};
use std::rc::Rc;

use crate::io::ring::{Bell, Ring};
use crate::io::syscall;

/// The task that reads the eventfd. One per ring; `stop` it before the executor
/// ends, or the descriptor leaks.
pub struct Doorbell {
    eventfd: File,
    bell: Bell,
    stopping: Rc<Cell<bool>>,
    task: glommio::Task<()>,
}

impl Doorbell {
    /// Starts the task on the current executor.
    pub fn start(ring: &Ring) -> io::Result<Self> {
        let eventfd = File::from(ring.eventfd()?);
        let reader = syscall::buffered_file(ring.eventfd()?);
        let stopping = Rc::new(Cell::new(false));
        let (bell, stop) = (ring.bell(), stopping.clone());
        let task = glommio::spawn_local(async move {
            loop {
                // The eventfd counts in eight bytes; a read resets it.
                if let Err(error) = reader.read_at(0, 8).await {
                    panic!("reading the ring's eventfd: {error}");
                }
                bell.ring();
                if stop.get() {
                    break;
                }
            }
            let _ = reader.close().await;
        });
        Ok(Self { eventfd, bell: ring.bell(), stopping, task })
    }

    /// Ends the task and closes its descriptor.
    pub async fn stop(mut self) -> io::Result<()> {
        self.stopping.set(true);
        self.eventfd.write_all(&1u64.to_ne_bytes())?;
        self.task.await;
        self.bell.answer();
        Ok(())
    }
}
