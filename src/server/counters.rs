//! What the requests of a shard came to since its start: for the last words of
//! the log, for tests, and for metrics once there are any.

use std::cell::Cell;
use std::fmt;

/// A count of one shard.
#[derive(Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    /// Counts `more`.
    pub fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }

    /// The count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Counts since the start.
#[derive(Default, Debug)]
pub struct Counters {
    /// Batches of producers that were looked through.
    pub batches_validated: Counter,
    /// Times a produce stopped for want of room, or of time.
    pub produce_pauses: Counter,
    /// Partitions that fetches looked at.
    pub partitions_read: Counter,
    /// Reads from files for fetches, each try.
    pub cold_reads: Counter,
    /// Fetches that found no room among those in flight at once.
    pub fetches_held_back: Counter,
    /// Reports of partitions to fetches that wait.
    pub fetch_reports: Counter,
    /// Changes of metadata that were refused because too many were in progress.
    pub commands_refused: Counter,
}
