//! The fixed part of a batch, read and patched in place.
//!
//! Positions are those of Kafka's `DefaultRecordBatch`. The checksum covers
//! everything from the attributes on, so that a broker can set the base offset
//! and the leader epoch without touching it.

use crate::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};

use super::codec::{self, Compression};
use super::crc::crc32c;
use super::error::Error;
use super::iter::{Record, RecordIter};

/// Bytes of a batch before its records.
pub const HEADER_LEN: usize = 61;
/// Bytes that the length field does not count: itself and the base offset.
pub const LOG_OVERHEAD: usize = 12;
/// The smallest value of the length field.
pub(super) const LENGTH_MIN: i32 = (HEADER_LEN - LOG_OVERHEAD) as i32;

const LENGTH: usize = 8;
const EPOCH: usize = 12;
const MAGIC: usize = 16;
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const BASE_TIMESTAMP: usize = 27;
const MAX_TIMESTAMP: usize = 35;
const PRODUCER_ID: usize = 43;
const PRODUCER_EPOCH: usize = 51;
const BASE_SEQUENCE: usize = 53;
const RECORD_COUNT: usize = 57;
const _: () = assert!(RECORD_COUNT + 4 == HEADER_LEN);

pub(super) const COMPRESSION_MASK: i16 = 0b111;
pub(super) const LOG_APPEND_TIME_BIT: i16 = 1 << 3;
pub(super) const TRANSACTIONAL_BIT: i16 = 1 << 4;
pub(super) const CONTROL_BIT: i16 = 1 << 5;
const DELETE_HORIZON_BIT: i16 = 1 << 6;

/// Where the timestamps of a batch come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TimestampType {
    /// Each record has the producer's.
    #[default]
    CreateTime,
    /// All records have the broker's, which is the batch's maximum (KIP-32).
    LogAppendTime,
}

/// One whole batch of format 2, borrowed. Reading a field is a load; nothing
/// is checked but the length, the magic and that the bytes are there.
#[derive(Clone, Copy)]
pub struct BatchView<'a> {
    /// Exactly this batch, at least [`HEADER_LEN`] long.
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// The batch at the start of `bytes`, and how many bytes follow it.
    ///
    /// # Errors
    /// [`Error::Incomplete`], [`Error::LengthTooSmall`] or
    /// [`Error::UnsupportedMagic`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, usize), Error> {
        let available = bytes.len();
        if available < MAGIC + 1 {
            return Err(Error::Incomplete { needed: HEADER_LEN, available });
        }
        // The magic comes first: older formats have smaller headers, and
        // "magic 1" says more than "too small".
        let magic = bytes[MAGIC] as i8;
        if magic != 2 {
            return Err(Error::UnsupportedMagic { magic });
        }
        let length = i32::from_be_bytes(array(bytes, LENGTH));
        if length < LENGTH_MIN {
            return Err(Error::LengthTooSmall { length });
        }
        let needed = length as usize + LOG_OVERHEAD;
        match bytes.split_at_checked(needed) {
            Some((batch, rest)) => Ok((Self { bytes: batch }, rest.len())),
            None => Err(Error::Incomplete { needed, available }),
        }
    }

    /// The whole batch.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Total length in bytes, header and length field included.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Offset of the first record; 0 as producers send it.
    #[must_use]
    pub fn base_offset(&self) -> Offset {
        Offset(i64::from_be_bytes(self.field(0)))
    }

    /// Offset of the last record that the batch ever had (compaction may have
    /// removed it).
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset().0.wrapping_add(i64::from(self.last_offset_delta())))
    }

    /// Epoch of the leader that appended it.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        LeaderEpoch(i32::from_be_bytes(self.field(EPOCH)))
    }

    /// The format, which is 2.
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.bytes[MAGIC] as i8
    }

    /// The checksum that the batch carries.
    #[must_use]
    pub fn crc(&self) -> u32 {
        u32::from_be_bytes(self.field(CRC))
    }

    /// Whether the carried checksum is that of the bytes. Reads all of them.
    #[must_use]
    pub fn verify_crc(&self) -> bool {
        self.crc() == self.compute_crc()
    }

    /// The checksum that the bytes should carry. Reads all of them.
    #[must_use]
    pub fn compute_crc(&self) -> u32 {
        crc32c(&self.bytes[ATTRIBUTES..])
    }

    /// All attribute bits, unknown ones included.
    #[must_use]
    pub fn attributes(&self) -> i16 {
        i16::from_be_bytes(self.field(ATTRIBUTES))
    }

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`] for the ids 5 to 7.
    pub fn compression(&self) -> Result<Compression, Error> {
        Compression::from_id((self.attributes() & COMPRESSION_MASK) as u8)
    }

    /// Whose timestamps the records have.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes() & LOG_APPEND_TIME_BIT == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes() & TRANSACTIONAL_BIT != 0
    }

    /// Whether the records are for the protocol, not for applications.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes() & CONTROL_BIT != 0
    }

    /// Whether the base timestamp is a delete horizon instead (KIP-534).
    #[must_use]
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes() & DELETE_HORIZON_BIT != 0
    }

    /// Last offset minus base offset.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        i32::from_be_bytes(self.field(LAST_OFFSET_DELTA))
    }

    /// What the records' timestamp deltas are relative to.
    #[must_use]
    pub fn base_timestamp(&self) -> Timestamp {
        Timestamp(i64::from_be_bytes(self.field(BASE_TIMESTAMP)))
    }

    /// The greatest timestamp of the records, or the append time of all.
    #[must_use]
    pub fn max_timestamp(&self) -> Timestamp {
        Timestamp(i64::from_be_bytes(self.field(MAX_TIMESTAMP)))
    }

    /// The idempotent producer, or [`ProducerId::NONE`].
    #[must_use]
    pub fn producer_id(&self) -> ProducerId {
        ProducerId(i64::from_be_bytes(self.field(PRODUCER_ID)))
    }

    /// The producer's epoch, or [`ProducerEpoch::NONE`].
    #[must_use]
    pub fn producer_epoch(&self) -> ProducerEpoch {
        ProducerEpoch(i16::from_be_bytes(self.field(PRODUCER_EPOCH)))
    }

    /// Sequence number of the first record, or -1.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        i32::from_be_bytes(self.field(BASE_SEQUENCE))
    }

    /// Announced number of records. Unchecked: negative in hostile bytes.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        i32::from_be_bytes(self.field(RECORD_COUNT))
    }

    /// The records as they stand in the batch, compressed or not.
    #[must_use]
    pub fn records(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// The records, decompressed to at most `limit` bytes; borrowed when they
    /// are not compressed.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`], or those of [`codec::decompress`].
    pub fn decompressed(&self, limit: usize) -> Result<std::borrow::Cow<'a, [u8]>, Error> {
        codec::decompress(self.compression()?, self.records(), limit)
    }

    /// Iterates over `decompressed`, the records of this batch.
    #[must_use]
    pub fn iter<'r>(&self, decompressed: &'r [u8]) -> RecordIter<'r> {
        RecordIter::new(decompressed, self.record_count())
    }

    /// Absolute offset of one of this batch's records.
    #[must_use]
    pub fn offset_of(&self, record: &Record<'_>) -> Offset {
        Offset(self.base_offset().0.wrapping_add(i64::from(record.offset_delta)))
    }

    /// Timestamp of one of this batch's records.
    #[must_use]
    pub fn timestamp_of(&self, record: &Record<'_>) -> Timestamp {
        match self.timestamp_type() {
            TimestampType::CreateTime => {
                Timestamp(self.base_timestamp().0.wrapping_add(record.timestamp_delta))
            }
            TimestampType::LogAppendTime => self.max_timestamp(),
        }
    }

    /// What the layers above need to know about the batch.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`].
    pub fn summary(&self) -> Result<BatchSummary, Error> {
        Ok(BatchSummary {
            record_count: self.record_count(),
            last_offset_delta: self.last_offset_delta(),
            base_timestamp: self.base_timestamp(),
            max_timestamp: self.max_timestamp(),
            timestamp_type: self.timestamp_type(),
            producer_id: self.producer_id(),
            producer_epoch: self.producer_epoch(),
            base_sequence: self.base_sequence(),
            is_transactional: self.is_transactional(),
            is_control: self.is_control(),
            compression: self.compression()?,
            size: self.bytes.len(),
        })
    }

    #[inline]
    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        array(self.bytes, at)
    }
}

impl std::fmt::Debug for BatchView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchView")
            .field("base_offset", &self.base_offset().0)
            .field("leader_epoch", &self.leader_epoch().0)
            .field("attributes", &self.attributes())
            .field("record_count", &self.record_count())
            .field("size", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("parse() checked that the header is there")
}

/// The facts of one batch that partition and log work with. Copied out of the
/// header, so that nobody has to hold on to the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchSummary {
    /// Number of records.
    pub record_count: i32,
    /// Last offset minus base offset: offsets used, less one.
    pub last_offset_delta: i32,
    /// Base of the records' timestamps.
    pub base_timestamp: Timestamp,
    /// Greatest timestamp, or the append time of all records.
    pub max_timestamp: Timestamp,
    /// Whose timestamps they are.
    pub timestamp_type: TimestampType,
    /// Idempotent producer, or [`ProducerId::NONE`].
    pub producer_id: ProducerId,
    /// Its epoch, or [`ProducerEpoch::NONE`].
    pub producer_epoch: ProducerEpoch,
    /// Sequence number of the first record, or -1.
    pub base_sequence: i32,
    /// Part of a transaction.
    pub is_transactional: bool,
    /// Records for the protocol, not for applications.
    pub is_control: bool,
    /// How the records are compressed.
    pub compression: Compression,
    /// Bytes of the whole batch.
    pub size: usize,
}

impl BatchSummary {
    /// Sequence number of the last record, wrapping from 2^31-1 to 0; -1
    /// without a producer id.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        (i64::from(self.base_sequence) + i64::from(self.last_offset_delta)).rem_euclid(1 << 31)
            as i32
    }
}

/// Iterates over the batches in `bytes`, which may end inside one.
#[must_use]
pub fn batches(bytes: &[u8]) -> BatchIter<'_> {
    BatchIter { rest: bytes }
}

/// See [`batches`]. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct BatchIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = Result<BatchView<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match BatchView::parse(self.rest) {
            Ok((batch, rest_len)) => {
                self.rest = &self.rest[self.rest.len() - rest_len..];
                Some(Ok(batch))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// Sets the two fields that the owner of the partition assigns. Both lie
/// outside the checksum.
///
/// # Panics
/// If `batch` is shorter than a header.
pub fn patch_base(batch: &mut [u8], base_offset: Offset, epoch: LeaderEpoch) {
    put(batch, 0, base_offset.0.to_be_bytes());
    put(batch, EPOCH, epoch.0.to_be_bytes());
}

/// Makes `now` the timestamp of all records of `batch`, which is exactly one
/// batch, and corrects its checksum.
///
/// # Panics
/// If `batch` is shorter than a header.
pub fn patch_log_append_time(batch: &mut [u8], now: Timestamp) {
    patch_max_timestamp(batch, TimestampType::LogAppendTime, now);
}

/// Sets timestamp type and maximum of `batch`, which is exactly one batch, and
/// corrects its checksum.
///
/// # Panics
/// If `batch` is shorter than a header.
pub fn patch_max_timestamp(batch: &mut [u8], kind: TimestampType, max: Timestamp) {
    let attributes = i16::from_be_bytes(array(batch, ATTRIBUTES));
    let attributes = match kind {
        TimestampType::CreateTime => attributes & !LOG_APPEND_TIME_BIT,
        TimestampType::LogAppendTime => attributes | LOG_APPEND_TIME_BIT,
    };
    put(batch, ATTRIBUTES, attributes.to_be_bytes());
    put(batch, MAX_TIMESTAMP, max.0.to_be_bytes());
    seal(batch);
}

/// Corrects the checksum.
pub(super) fn seal(batch: &mut [u8]) {
    let crc = crc32c(&batch[ATTRIBUTES..]);
    put(batch, CRC, crc.to_be_bytes());
}

fn put<const N: usize>(batch: &mut [u8], at: usize, value: [u8; N]) {
    batch[at..at + N].copy_from_slice(&value);
}

/// Every field of a header, for those who write one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) base_offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) magic: i8,
    pub(super) attributes: i16,
    pub(super) last_offset_delta: i32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    pub(super) base_sequence: i32,
    pub(super) record_count: i32,
}

impl Fields {
    /// Writes the header over the first [`HEADER_LEN`] bytes of `batch`, whose
    /// length becomes the length field, and computes the checksum.
    pub(super) fn write(&self, batch: &mut [u8]) {
        put(batch, 0, self.base_offset.to_be_bytes());
        let length = i32::try_from(batch.len() - LOG_OVERHEAD).expect("a batch is below 2 GiB");
        put(batch, LENGTH, length.to_be_bytes());
        put(batch, EPOCH, self.leader_epoch.to_be_bytes());
        put(batch, MAGIC, self.magic.to_be_bytes());
        put(batch, ATTRIBUTES, self.attributes.to_be_bytes());
        put(batch, LAST_OFFSET_DELTA, self.last_offset_delta.to_be_bytes());
        put(batch, BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(batch, MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(batch, PRODUCER_ID, self.producer_id.to_be_bytes());
        put(batch, PRODUCER_EPOCH, self.producer_epoch.to_be_bytes());
        put(batch, BASE_SEQUENCE, self.base_sequence.to_be_bytes());
        put(batch, RECORD_COUNT, self.record_count.to_be_bytes());
        seal(batch);
    }
}

/// A copy of `batch` with other records and compression, sealed.
pub(super) fn with_records(batch: &BatchView<'_>, codec: Compression, records: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + records.len());
    out.extend_from_slice(&batch.bytes[..HEADER_LEN]);
    out.extend_from_slice(records);
    let length = i32::try_from(out.len() - LOG_OVERHEAD).expect("a batch is below 2 GiB");
    put(&mut out, LENGTH, length.to_be_bytes());
    let attributes = batch.attributes() & !COMPRESSION_MASK | i16::from(codec.id());
    put(&mut out, ATTRIBUTES, attributes.to_be_bytes());
    seal(&mut out);
    out
}
