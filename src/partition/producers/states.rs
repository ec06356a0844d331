//! All producers of one partition, and the history that takes changes back.
//!
//! Invariant: after `truncate(to)` the state equals what it was before the
//! first batch at or beyond `to` was applied (producers that expired in
//! between stay away or come back until the next expiry; both are allowed).
//! The history covers the uncommitted batches only: `settle` drops what can
//! no longer be truncated.

use std::collections::{BTreeMap, VecDeque};

use ahash::AHashMap;

use super::entry::{BatchMeta, ProducerBatch, ProducerEntry};
use super::snapshot::{self, SnapshotError};
use crate::model::{ErrorCode, Offset, ProducerEpoch, ProducerId, Timestamp};

/// What the state says to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is the next one.
    New,
    /// It was appended before: answer with where and when it was.
    Duplicate(BatchMeta),
}

/// The entry of a producer before the batch at `at` changed it.
#[derive(Clone, Copy, Debug)]
struct Undo {
    at: Offset,
    producer_id: ProducerId,
    before: Option<ProducerEntry>,
}

/// Producer state of one partition.
#[derive(Debug, Default)]
pub struct ProducerStates {
    entries: AHashMap<ProducerId, ProducerEntry>,
    /// First offsets of open transactions, for the last stable offset.
    open: BTreeMap<Offset, ProducerId>,
    /// One element per applied batch that is not settled, in offset order.
    history: VecDeque<Undo>,
}

impl ProducerStates {
    /// State from the bytes of a `.snapshot` file.
    ///
    /// # Errors
    /// When the bytes are not a snapshot of a known version with a right CRC.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut states = Self::default();
        for entry in snapshot::decode(bytes)? {
            states.put(entry.producer_id, Some(entry));
        }
        Ok(states)
    }

    /// The bytes of a `.snapshot` file with the state as it is now, in the
    /// order of producer ids, so that equal states give equal bytes.
    #[must_use]
    pub fn to_snapshot(&self) -> Vec<u8> {
        let mut entries: Vec<_> = self.entries.values().collect();
        entries.sort_unstable_by_key(|entry| entry.producer_id);
        snapshot::encode(&entries)
    }

    /// Producers remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no producer is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The state of one producer.
    #[must_use]
    pub fn get(&self, producer_id: ProducerId) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id)
    }

    /// First offset of the oldest open transaction: readers of committed data
    /// stop here.
    #[must_use]
    pub fn first_undecided(&self) -> Option<Offset> {
        self.open.first_key_value().map(|(offset, _)| *offset)
    }

    /// Judges a client's data batch; changes nothing.
    ///
    /// # Errors
    /// `InvalidProducerEpoch` for an old generation; `OutOfOrderSequenceNumber`
    /// for a gap or a new generation that does not start at 0;
    /// `InvalidTxnState` when the batch does not agree with the producer's
    /// open transaction.
    pub fn check(&self, batch: &ProducerBatch) -> Result<Verdict, ErrorCode> {
        let Some(entry) = self.entries.get(&batch.producer_id) else {
            // Nothing known (never seen, expired, or deleted with its
            // records): any sequence starts a new history.
            return if batch.is_transactional {
                Err(ErrorCode::InvalidTxnState)
            } else {
                Ok(Verdict::New)
            };
        };
        if let Some(known) = entry.duplicate_of(batch) {
            return Ok(Verdict::Duplicate(*known));
        }
        if batch.is_transactional && entry.txn_first_offset.is_none() {
            // Nobody verified with the coordinator that it began (KIP-890).
            return Err(ErrorCode::InvalidTxnState);
        }
        if batch.producer_epoch < entry.epoch {
            return Err(ErrorCode::InvalidProducerEpoch);
        }
        if batch.producer_epoch > entry.epoch {
            if batch.base_sequence != 0 && entry.epoch != ProducerEpoch::NONE {
                return Err(ErrorCode::OutOfOrderSequenceNumber);
            }
        } else if !follows(entry.last_sequence(), batch.base_sequence) {
            return Err(ErrorCode::OutOfOrderSequenceNumber);
        }
        if !batch.is_transactional && entry.txn_first_offset.is_some() {
            return Err(ErrorCode::InvalidTxnState);
        }
        Ok(Verdict::New)
    }

    /// Takes in a batch that was appended, or that the log held at recovery.
    pub fn apply(&mut self, batch: &ProducerBatch) {
        debug_assert!(
            self.history.back().is_none_or(|undo| undo.at < batch.base_offset),
            "producer batch at {} applied out of order",
            batch.base_offset
        );
        let before = self.entries.get(&batch.producer_id).copied();
        self.history.push_back(Undo {
            at: batch.base_offset,
            producer_id: batch.producer_id,
            before,
        });
        let mut entry = before.unwrap_or_else(|| ProducerEntry::empty(batch.producer_id));
        entry.record(batch);
        self.put(batch.producer_id, Some(entry));
    }

    /// Says that everything below `offset` is there to stay.
    pub fn settle(&mut self, offset: Offset) {
        while self.history.front().is_some_and(|undo| undo.at < offset) {
            self.history.pop_front();
        }
    }

    /// Takes back every batch at or beyond `to`, newest first.
    pub fn truncate(&mut self, to: Offset) {
        if crate::model::planted::armed(crate::model::planted::Bug::ProducerStateNotRolledBack) {
            return;
        }
        while let Some(undo) = self.history.pop_back_if(|undo| undo.at >= to) {
            self.put(undo.producer_id, undo.before);
        }
    }

    /// Forgets the producers without an open transaction whose newest record
    /// is `expiration_ms` old or older; returns how many.
    pub fn expire(&mut self, now: Timestamp, expiration_ms: i64) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| {
            entry.txn_first_offset.is_some()
                || now.0.saturating_sub(entry.last_timestamp.0) < expiration_ms
        });
        before - self.entries.len()
    }

    /// Sets one entry, and the open transactions with it.
    fn put(&mut self, producer_id: ProducerId, entry: Option<ProducerEntry>) {
        let opened = entry.and_then(|entry| entry.txn_first_offset);
        let old = match entry {
            Some(entry) => self.entries.insert(producer_id, entry),
            None => self.entries.remove(&producer_id),
        };
        let closed = old.and_then(|entry| entry.txn_first_offset);
        if closed != opened {
            if let Some(offset) = closed {
                self.open.remove(&offset);
            }
            if let Some(offset) = opened {
                self.open.insert(offset, producer_id);
            }
        }
    }
}

/// Whether `next` is the sequence right after `last`.
fn follows(last: i32, next: i32) -> bool {
    i64::from(next) == i64::from(last) + 1 || (next == 0 && last == i32::MAX)
}
