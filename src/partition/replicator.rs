//! The seam between a partition and what decides that its batches are
//! committed: this node's disk now, a raft group later.

use super::acks::Acks;
use crate::model::{ErrorCode, Offset};

/// Decides when batches are committed.
pub trait Replicator {
    /// Whether an append that asks for `acks` may be taken now.
    ///
    /// # Errors
    /// `NotEnoughReplicas` when too few replicas are in sync for `acks=all`.
    fn may_append(&self, acks: Acks) -> Result<(), ErrorCode>;

    /// The local log grew to `log_end`; returns the offset below which all is
    /// committed.
    fn appended(&mut self, log_end: Offset, durable: Offset) -> Offset;

    /// The local log is durable below `durable`; returns the offset below
    /// which all is committed.
    fn durable(&mut self, log_end: Offset, durable: Offset) -> Offset;
}

/// One replica: committed is what this node's disk has.
///
/// `min.insync.replicas` never refuses here: Kafka caps it at the number of
/// replicas, which is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Replicator for Local {
    fn may_append(&self, _acks: Acks) -> Result<(), ErrorCode> {
        Ok(())
    }

    fn appended(&mut self, log_end: Offset, durable: Offset) -> Offset {
        if crate::model::planted::armed(crate::model::planted::Bug::HighWatermarkPastDurable) {
            return log_end;
        }
        durable
    }

    fn durable(&mut self, log_end: Offset, durable: Offset) -> Offset {
        self.appended(log_end, durable)
    }
}
