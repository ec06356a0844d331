//! Builds batches: for the broker's own logs, for load tools, and for tests,
//! which also need batches that no client would send.

use crate::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};

use super::codec::{self, Compression};
use super::error::Error;
use super::header::{
    self, CONTROL_BIT, Fields, HEADER_LEN, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT,
};
use super::varint::{write_i32, write_i64};

/// One record to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NewRecord<'a> {
    /// Milliseconds since the epoch, or -1.
    pub timestamp: Timestamp,
    /// Null unless given.
    pub key: Option<&'a [u8]>,
    /// Null unless given.
    pub value: Option<&'a [u8]>,
    /// In this order; keys may repeat and need not be text.
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

/// What a control batch of a transaction says (KIP-98).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControlType {
    /// The transaction's records are void.
    Abort,
    /// The transaction's records count.
    Commit,
}

/// Collects records and writes one batch. Header fields follow from the
/// records unless they are set, so that tests can build any header.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    fields: Fields,
    compression: Compression,
    /// Records as written so far, not compressed.
    records: Vec<u8>,
    scratch: Vec<u8>,
    pushed: i32,
    next_offset_delta: i32,
    base_timestamp: Option<Timestamp>,
    max_timestamp: Option<Timestamp>,
    last_offset_delta: Option<i32>,
    record_count: Option<i32>,
    /// Greatest timestamp pushed.
    max_pushed: i64,
}

impl BatchBuilder {
    /// An empty batch without producer id, at offset 0.
    #[must_use]
    pub fn new(compression: Compression) -> Self {
        Self {
            fields: Fields {
                base_offset: 0,
                leader_epoch: -1,
                magic: 2,
                attributes: i16::from(compression.id()),
                last_offset_delta: 0,
                base_timestamp: -1,
                max_timestamp: -1,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                record_count: 0,
            },
            compression,
            records: Vec::new(),
            scratch: Vec::new(),
            pushed: 0,
            next_offset_delta: 0,
            base_timestamp: None,
            max_timestamp: None,
            last_offset_delta: None,
            record_count: None,
            max_pushed: -1,
        }
    }

    /// The batch that ends a transaction of `producer`, with the one record
    /// that all clients understand.
    #[must_use]
    pub fn control(
        kind: ControlType,
        producer: (ProducerId, ProducerEpoch),
        coordinator_epoch: i32,
        now: Timestamp,
    ) -> Self {
        let kind = match kind {
            ControlType::Abort => 0i16,
            ControlType::Commit => 1,
        };
        // Key and value each start with their version, 0.
        let key = [[0, 0], kind.to_be_bytes()].concat();
        let value = [&[0, 0], &coordinator_epoch.to_be_bytes()[..]].concat();
        Self::new(Compression::None)
            .producer(producer.0, producer.1, -1)
            .transactional(true)
            .control_batch(true)
            .record(&NewRecord {
                timestamp: now,
                key: Some(&key),
                value: Some(&value),
                headers: &[],
            })
    }

    /// Offset of the first record.
    #[must_use]
    pub fn base_offset(mut self, offset: Offset) -> Self {
        self.fields.base_offset = offset.0;
        self
    }

    /// Epoch of the leader; -1 as producers send it.
    #[must_use]
    pub fn leader_epoch(mut self, epoch: LeaderEpoch) -> Self {
        self.fields.leader_epoch = epoch.0;
        self
    }

    /// Idempotent producer, its epoch, and the sequence of the first record.
    #[must_use]
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> Self {
        self.fields.producer_id = id.0;
        self.fields.producer_epoch = epoch.0;
        self.fields.base_sequence = base_sequence;
        self
    }

    /// Marks the batch as part of a transaction.
    #[must_use]
    pub fn transactional(self, on: bool) -> Self {
        self.attribute(TRANSACTIONAL_BIT, on)
    }

    /// Marks the records as control records.
    #[must_use]
    pub fn control_batch(self, on: bool) -> Self {
        self.attribute(CONTROL_BIT, on)
    }

    /// Gives all records the broker's timestamp.
    #[must_use]
    pub fn log_append_time(mut self, now: Timestamp) -> Self {
        self.max_timestamp = Some(now);
        self.attribute(LOG_APPEND_TIME_BIT, true)
    }

    /// All attribute bits as they are, also those that contradict the rest.
    #[must_use]
    pub fn raw_attributes(mut self, attributes: i16) -> Self {
        self.fields.attributes = attributes;
        self
    }

    /// Another magic byte than 2, over the same layout.
    #[must_use]
    pub fn raw_magic(mut self, magic: i8) -> Self {
        self.fields.magic = magic;
        self
    }

    /// Base timestamp, else that of the first record. Set it before the first
    /// record: deltas are relative to it.
    ///
    /// # Panics
    /// If there is a record already.
    #[must_use]
    pub fn base_timestamp(mut self, base: Timestamp) -> Self {
        assert_eq!(self.pushed, 0, "deltas are relative to the base timestamp");
        self.base_timestamp = Some(base);
        self
    }

    /// Maximum timestamp, else the greatest of the records.
    #[must_use]
    pub fn max_timestamp(mut self, max: Timestamp) -> Self {
        self.max_timestamp = Some(max);
        self
    }

    /// Last offset delta, else that of the last record.
    #[must_use]
    pub fn last_offset_delta(mut self, delta: i32) -> Self {
        self.last_offset_delta = Some(delta);
        self
    }

    /// Announced number of records, else that of the records.
    #[must_use]
    pub fn record_count(mut self, count: i32) -> Self {
        self.record_count = Some(count);
        self
    }

    /// Adds a record; see [`Self::push`].
    #[must_use]
    pub fn record(mut self, record: &NewRecord<'_>) -> Self {
        self.push(record);
        self
    }

    /// Adds a record with the next offset.
    pub fn push(&mut self, record: &NewRecord<'_>) {
        self.push_at(self.next_offset_delta, record);
    }

    /// Adds a record with this offset delta (compaction leaves gaps).
    pub fn push_at(&mut self, offset_delta: i32, record: &NewRecord<'_>) {
        let base = *self.base_timestamp.get_or_insert(record.timestamp);
        self.max_pushed = self.max_pushed.max(record.timestamp.0);
        let body = &mut self.scratch;
        body.clear();
        body.push(0);
        write_i64(body, record.timestamp.0.wrapping_sub(base.0));
        write_i32(body, offset_delta);
        write_nullable(body, record.key);
        write_nullable(body, record.value);
        write_i32(body, length(record.headers.len()));
        for (key, value) in record.headers {
            write_nullable(body, Some(key));
            write_nullable(body, *value);
        }
        write_i32(&mut self.records, length(body.len()));
        self.records.extend_from_slice(body);
        self.pushed += 1;
        self.next_offset_delta = offset_delta.wrapping_add(1);
    }

    /// Adds bytes to the records as they are, without counting them.
    pub fn push_raw(&mut self, bytes: &[u8]) {
        self.records.extend_from_slice(bytes);
    }

    /// Number of records so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pushed as usize
    }

    /// Whether there is no record yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pushed == 0
    }

    /// Bytes of the batch if it were built now and not compressed.
    #[must_use]
    pub fn uncompressed_size(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// Compresses the records and writes the batch.
    ///
    /// # Errors
    /// [`Error::Compress`], from the compressor.
    pub fn build(&self) -> Result<Vec<u8>, Error> {
        if self.compression == Compression::None {
            return Ok(self.build_from(&self.records));
        }
        Ok(self.build_from(&codec::compress(self.compression, &self.records)?))
    }

    /// Writes the batch around records that are compressed already.
    #[must_use]
    pub fn build_from(&self, records: &[u8]) -> Vec<u8> {
        let mut batch = vec![0; HEADER_LEN];
        batch.reserve_exact(records.len());
        batch.extend_from_slice(records);
        self.header().write(&mut batch);
        batch
    }

    fn header(&self) -> Fields {
        Fields {
            last_offset_delta: self
                .last_offset_delta
                .unwrap_or(self.next_offset_delta.wrapping_sub(1)),
            base_timestamp: self.base_timestamp.unwrap_or(Timestamp::NONE).0,
            max_timestamp: self.max_timestamp.map_or(self.max_pushed, |max| max.0),
            record_count: self.record_count.unwrap_or(self.pushed),
            ..self.fields
        }
    }

    fn attribute(mut self, bit: i16, on: bool) -> Self {
        if on {
            self.fields.attributes |= bit;
        } else {
            self.fields.attributes &= !bit;
        }
        self
    }
}

/// Corrects the checksum of `batch`, which is exactly one batch, after a
/// change to its bytes.
///
/// # Panics
/// If `batch` is shorter than a header.
pub fn reseal(batch: &mut [u8]) {
    header::seal(batch);
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            write_i32(out, length(bytes.len()));
            out.extend_from_slice(bytes);
        }
        None => write_i32(out, -1),
    }
}

fn length(len: usize) -> i32 {
    i32::try_from(len).expect("a record is below 2 GiB")
}
