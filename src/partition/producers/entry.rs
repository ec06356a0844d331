//! What a partition remembers of one idempotent producer.
//!
//! Owner: the shard that owns the partition. Invariant: `batches` holds the
//! last batches of the current producer epoch only, oldest first, at most
//! [`BATCHES_RETAINED`]. Refuses to know where batches are stored.

use crate::model::{Offset, ProducerEpoch, ProducerId, Timestamp};

/// Batches remembered per producer; a client has at most as many in flight
/// (`max.in.flight.requests.per.connection`, KIP-98), so each of them can be
/// recognised when it is sent again.
pub const BATCHES_RETAINED: usize = 5;

/// "No sequence", -1 on the wire.
pub const NO_SEQUENCE: i32 = -1;

/// The sequence `count` records after `sequence`; after 2³¹-1 comes 0.
#[must_use]
pub const fn sequence_plus(sequence: i32, count: i32) -> i32 {
    if sequence > i32::MAX - count { count - (i32::MAX - sequence) - 1 } else { sequence + count }
}

/// The sequence `count` records before `sequence`; before 0 comes 2³¹-1.
#[must_use]
pub const fn sequence_minus(sequence: i32, count: i32) -> i32 {
    if sequence < count { i32::MAX - (count - sequence) + 1 } else { sequence - count }
}

/// One batch of an idempotent producer, with the offsets that it took or will
/// take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerBatch {
    /// Who sent it.
    pub producer_id: ProducerId,
    /// Generation of the sender.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of its first record; -1 in control batches.
    pub base_sequence: i32,
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Records minus one.
    pub last_offset_delta: i32,
    /// Largest record timestamp, as the log stores it.
    pub max_timestamp: Timestamp,
    /// Part of a transaction.
    pub is_transactional: bool,
    /// A transaction marker instead of data.
    pub is_control: bool,
}

impl ProducerBatch {
    /// Sequence of its last record.
    #[must_use]
    pub const fn last_sequence(&self) -> i32 {
        sequence_plus(self.base_sequence, self.last_offset_delta)
    }

    /// Offset of its last record.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(i64::from(self.last_offset_delta))
    }
}

/// One remembered batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BatchMeta {
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Timestamp to answer a duplicate with.
    pub timestamp: Timestamp,
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Records minus one.
    pub offset_delta: i32,
}

impl BatchMeta {
    /// Sequence of its first record.
    #[must_use]
    pub const fn first_sequence(&self) -> i32 {
        sequence_minus(self.last_sequence, self.offset_delta)
    }

    /// Offset of its first record.
    #[must_use]
    pub const fn first_offset(&self) -> Offset {
        Offset(self.last_offset.0 - self.offset_delta as i64)
    }
}

/// State of one producer in one partition (KIP-98). `Copy`, so that the undo
/// history can keep what it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its newest generation; [`ProducerEpoch::NONE`] before the first batch.
    pub epoch: ProducerEpoch,
    /// Epoch of the transaction coordinator that wrote the last marker; -1.
    pub coordinator_epoch: i32,
    /// Largest timestamp of its newest batch or marker.
    pub last_timestamp: Timestamp,
    /// First offset of its open transaction.
    pub txn_first_offset: Option<Offset>,
    batches: [BatchMeta; BATCHES_RETAINED],
    len: u8,
}

impl ProducerEntry {
    /// A producer of which nothing is known.
    #[must_use]
    pub fn empty(producer_id: ProducerId) -> Self {
        Self {
            producer_id,
            epoch: ProducerEpoch::NONE,
            coordinator_epoch: -1,
            last_timestamp: Timestamp::NONE,
            txn_first_offset: None,
            batches: [BatchMeta::default(); BATCHES_RETAINED],
            len: 0,
        }
    }

    /// The remembered batches, oldest first.
    #[must_use]
    pub fn batches(&self) -> &[BatchMeta] {
        &self.batches[..usize::from(self.len)]
    }

    /// The newest batch of the current epoch, if any is remembered.
    #[must_use]
    pub fn last_batch(&self) -> Option<&BatchMeta> {
        self.batches().last()
    }

    /// Sequence of the newest record, [`NO_SEQUENCE`] when none is remembered.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        self.last_batch().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// The remembered batch with exactly this batch's epoch and sequences.
    #[must_use]
    pub fn duplicate_of(&self, batch: &ProducerBatch) -> Option<&BatchMeta> {
        if batch.producer_epoch != self.epoch {
            return None;
        }
        self.batches().iter().find(|known| {
            known.first_sequence() == batch.base_sequence
                && known.last_sequence == batch.last_sequence()
        })
    }

    /// Takes in a batch that was checked, or that a log already holds.
    pub fn record(&mut self, batch: &ProducerBatch) {
        self.enter_epoch(batch.producer_epoch);
        self.last_timestamp = batch.max_timestamp;
        if batch.is_control {
            self.txn_first_offset = None;
            return;
        }
        self.push(BatchMeta {
            last_offset: batch.last_offset(),
            timestamp: batch.max_timestamp,
            last_sequence: batch.last_sequence(),
            offset_delta: batch.last_offset_delta,
        });
        if batch.is_transactional && self.txn_first_offset.is_none() {
            self.txn_first_offset = Some(batch.base_offset);
        }
    }

    /// Remembers one more batch, forgetting the oldest when full.
    pub(super) fn push(&mut self, batch: BatchMeta) {
        if usize::from(self.len) == BATCHES_RETAINED {
            self.batches.rotate_left(1);
            self.len -= 1;
        }
        self.batches[usize::from(self.len)] = batch;
        self.len += 1;
    }

    /// Sequences start again with a new epoch, so the old ones are forgotten.
    fn enter_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches = [BatchMeta::default(); BATCHES_RETAINED];
            self.len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c40_sequences_wrap_both_ways() {
        assert_eq!(sequence_plus(i32::MAX, 1), 0);
        assert_eq!(sequence_plus(i32::MAX - 1, 3), 1);
        assert_eq!(sequence_minus(0, 1), i32::MAX);
        assert_eq!(sequence_minus(1, 3), i32::MAX - 1);
        for (sequence, count) in [(0, 0), (7, 3), (i32::MAX, i32::MAX), (5, i32::MAX)] {
            assert_eq!(sequence_minus(sequence_plus(sequence, count), count), sequence);
        }
    }

    #[test]
    fn an_entry_stays_small() {
        assert!(size_of::<ProducerEntry>() <= 168, "{}", size_of::<ProducerEntry>());
    }
}
