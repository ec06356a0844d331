//! Notices a panic inside a change of a partition. Its log and its machine may
//! then disagree, and nothing may become durable or be acknowledged any more:
//! the process ends with a number of its own (ADR 0042).

use std::cell::OnceCell;

use super::owner::OwnedPartition;

/// What a panic left half done, on this shard.
#[derive(Debug, Default)]
pub(super) struct Torn(OnceCell<String>);

impl Torn {
    /// Watches over `what` until the guard is dropped.
    pub(super) fn guard<'a>(
        &'a self,
        what: &'static str,
        partition: &'a OwnedPartition,
    ) -> Guard<'a> {
        Guard { torn: self, what, partition }
    }

    /// What was found to be torn.
    pub(super) fn found(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Dropped by a panic, it says so.
pub(super) struct Guard<'a> {
    torn: &'a Torn,
    what: &'static str,
    partition: &'a OwnedPartition,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (topic, index) = (&self.partition.topic.name, self.partition.index);
            self.torn.0.get_or_init(|| format!("a panic inside {} of {topic}-{index}", self.what));
        }
    }
}
