//! Kafka's `.snapshot` file, version 1: producer state in the log directory.
//!
//! Layout, big endian: version i16, CRC-32C u32 of all that follows, count
//! i32, then per producer: id i64, epoch i16, last sequence i32, last offset
//! i64, offset delta i32, timestamp i64, coordinator epoch i32, first offset
//! of the open transaction i64 (-1: none). Kafka reads ours, we read Kafka's.
//! Only the newest batch of a producer survives in it, as in Kafka.

use super::entry::{BatchMeta, NO_SEQUENCE, ProducerEntry};
use crate::model::{Offset, ProducerEpoch, ProducerId, Timestamp};

/// The version written, and the only one that 4.x reads.
const VERSION: i16 = 1;
const CRC_AT: usize = 2;
const BODY_AT: usize = 6;
const ENTRY_LEN: usize = 46;

/// Why bytes are not a producer snapshot.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The version is not one that we read.
    #[error("producer snapshot has version {0}, only version 1 can be read")]
    Version(i16),
    /// Fewer or more bytes than the header says.
    #[error("producer snapshot of {len} bytes cannot hold {count} producers")]
    Length {
        /// Bytes given.
        len: usize,
        /// Producers announced; -1 when not even the header is there.
        count: i32,
    },
    /// The checksum is wrong.
    #[error("producer snapshot is corrupt: its CRC is {stored:08x}, its bytes give {computed:08x}")]
    Crc {
        /// CRC in the header.
        stored: u32,
        /// CRC of the bytes.
        computed: u32,
    },
}

/// The bytes of a snapshot with these producers, in this order.
#[must_use]
pub fn encode(entries: &[&ProducerEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(BODY_AT + 4 + entries.len() * ENTRY_LEN);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    let count = i32::try_from(entries.len()).expect("fewer producers than 2^31 fit in memory");
    out.extend_from_slice(&count.to_be_bytes());
    for entry in entries {
        let last = entry.last_batch();
        out.extend_from_slice(&entry.producer_id.0.to_be_bytes());
        out.extend_from_slice(&entry.epoch.0.to_be_bytes());
        out.extend_from_slice(&last.map_or(NO_SEQUENCE, |b| b.last_sequence).to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |b| b.last_offset.0).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, |b| b.offset_delta).to_be_bytes());
        out.extend_from_slice(&entry.last_timestamp.0.to_be_bytes());
        out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        out.extend_from_slice(&entry.txn_first_offset.map_or(-1, |o| o.0).to_be_bytes());
    }
    let crc = crc32c::crc32c(&out[BODY_AT..]);
    out[CRC_AT..BODY_AT].copy_from_slice(&crc.to_be_bytes());
    out
}

/// The producers in a snapshot.
///
/// # Errors
/// When version, length or CRC are wrong.
pub fn decode(bytes: &[u8]) -> Result<Vec<ProducerEntry>, SnapshotError> {
    let short = SnapshotError::Length { len: bytes.len(), count: -1 };
    let (version, rest) = bytes.split_first_chunk::<2>().ok_or_else(|| short.clone())?;
    let version = i16::from_be_bytes(*version);
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let (stored, body) = rest.split_first_chunk::<4>().ok_or_else(|| short.clone())?;
    let (stored, computed) = (u32::from_be_bytes(*stored), crc32c::crc32c(body));
    if stored != computed {
        return Err(SnapshotError::Crc { stored, computed });
    }
    let (count, entries) = body.split_first_chunk::<4>().ok_or(short)?;
    let count = i32::from_be_bytes(*count);
    let (entries, tail) = entries.as_chunks::<ENTRY_LEN>();
    if usize::try_from(count) != Ok(entries.len()) || !tail.is_empty() {
        return Err(SnapshotError::Length { len: bytes.len(), count });
    }
    Ok(entries.iter().map(decode_entry).collect())
}

fn decode_entry(bytes: &[u8; ENTRY_LEN]) -> ProducerEntry {
    let mut entry = ProducerEntry::empty(ProducerId(i64_at(bytes, 0)));
    entry.epoch = ProducerEpoch(i16::from_be_bytes([bytes[8], bytes[9]]));
    entry.last_timestamp = Timestamp(i64_at(bytes, 26));
    entry.coordinator_epoch = i32_at(bytes, 34);
    let txn_first_offset = i64_at(bytes, 38);
    entry.txn_first_offset = (txn_first_offset >= 0).then_some(Offset(txn_first_offset));
    let last_offset = i64_at(bytes, 14);
    if last_offset >= 0 {
        entry.push(BatchMeta {
            last_offset: Offset(last_offset),
            timestamp: entry.last_timestamp,
            last_sequence: i32_at(bytes, 10),
            offset_delta: i32_at(bytes, 22),
        });
    }
    entry
}

fn i64_at(bytes: &[u8; ENTRY_LEN], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn i32_at(bytes: &[u8; ENTRY_LEN], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
