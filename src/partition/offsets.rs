//! The five offsets of a partition, never merged.

use crate::model::Offset;

/// Positions that matter in a partition, in ascending order:
/// `log_start <= last_stable <= high_watermark <= log_end` and
/// `durable <= log_end`. On one node also `high_watermark <= durable`; with
/// replicas a majority may have a batch before the leader's own disk does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offsets {
    /// First offset that can be read.
    pub log_start: Offset,
    /// Readers of committed data stop here: no transaction below is undecided.
    pub last_stable: Offset,
    /// Consumers stop here: everything below is committed.
    pub high_watermark: Offset,
    /// Everything below survives what the topic's durability class promises.
    pub durable: Offset,
    /// Where the next record goes.
    pub log_end: Offset,
}

impl Offsets {
    /// Panics when the order is broken, which only a bug can do.
    pub(super) fn assert_ordered(&self) {
        assert!(
            self.log_start <= self.last_stable
                && self.last_stable <= self.high_watermark
                && self.high_watermark <= self.log_end
                && self.durable <= self.log_end,
            "offsets out of order: {self:?}"
        );
    }
}
