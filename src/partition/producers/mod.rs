//! Idempotent producers of one partition: deduplication, sequence and epoch
//! checks (KIP-98, KIP-360), expiry, the snapshot file, and exact rollback.
//!
//! Owner: the shard that owns the partition. Refuses to know files and clocks.

mod entry;
mod snapshot;
mod states;

pub use entry::{
    BATCHES_RETAINED, BatchMeta, NO_SEQUENCE, ProducerBatch, ProducerEntry, sequence_minus,
    sequence_plus,
};
pub use snapshot::{SnapshotError, decode as decode_snapshot, encode as encode_snapshot};
pub use states::{ProducerStates, Verdict};

#[cfg(test)]
mod tests;
