//! Offset and time index in Kafka's format: 8-byte entries (relative offset of
//! a batch's last record, position of the batch) and 12-byte entries (largest
//! timestamp so far, relative offset of the batch that has it), big-endian.
//!
//! Pure: the open segment's builder keeps only what is not yet in the files;
//! searching works on bytes that the caller has read.

use crate::model::{Offset, Timestamp};

/// Bytes of an offset index entry.
pub(crate) const OFFSET_ENTRY: usize = 8;
/// Bytes of a time index entry.
pub(crate) const TIME_ENTRY: usize = 12;

/// An entry of the offset index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OffsetEntry {
    /// Last offset of the batch, relative to the segment's base.
    pub(crate) relative: u32,
    /// Byte position of the batch.
    pub(crate) position: u32,
}

/// An entry of the time index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: Timestamp,
    /// Relative to the segment's base.
    pub(crate) relative: u32,
}

impl OffsetEntry {
    pub(crate) fn encode(self) -> [u8; OFFSET_ENTRY] {
        let mut out = [0; OFFSET_ENTRY];
        out[..4].copy_from_slice(&self.relative.to_be_bytes());
        out[4..].copy_from_slice(&self.position.to_be_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self { relative: word(0), position: word(4) }
    }
}

impl TimeEntry {
    pub(crate) fn encode(self) -> [u8; TIME_ENTRY] {
        let mut out = [0; TIME_ENTRY];
        out[..8].copy_from_slice(&self.timestamp.0.to_be_bytes());
        out[8..].copy_from_slice(&self.relative.to_be_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut long = [0; 8];
        long.copy_from_slice(&bytes[..8]);
        let relative = u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Self { timestamp: Timestamp(i64::from_be_bytes(long)), relative }
    }
}

/// A batch, as indexing sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedBatch {
    pub(crate) last_offset: Offset,
    pub(crate) max_timestamp: Timestamp,
    pub(crate) position: u64,
    pub(crate) len: u64,
}

/// Builds both indexes of an open segment.
#[derive(Clone, Debug)]
pub(crate) struct IndexBuilder {
    base: Offset,
    interval: u64,
    since_last: u64,
    largest: Option<(Timestamp, Offset)>,
    last_time: Option<TimeEntry>,
    /// Entries in the files or handed out for them.
    offset_flushed: u64,
    time_flushed: u64,
    /// Last entries handed out.
    flushed_time: Option<TimeEntry>,
    flushed_offset: Option<OffsetEntry>,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
}

/// Bytes for the index files, each with the position where they go.
#[derive(Debug, Default)]
pub(crate) struct IndexBytes {
    pub(crate) offset: (u64, Vec<u8>),
    pub(crate) time: (u64, Vec<u8>),
}

impl IndexBuilder {
    /// For an empty segment.
    pub(crate) fn new(base: Offset, interval: u64) -> Self {
        Self {
            base,
            interval,
            since_last: 0,
            largest: None,
            last_time: None,
            offset_flushed: 0,
            time_flushed: 0,
            flushed_time: None,
            flushed_offset: None,
            offsets: Vec::new(),
            times: Vec::new(),
        }
    }

    /// For a segment whose files already hold this many entries, the last time
    /// entry among them given.
    pub(crate) fn resume(
        base: Offset,
        interval: u64,
        entries: (u64, u64),
        last: (Option<OffsetEntry>, Option<TimeEntry>),
    ) -> Self {
        let (last_offset, last_time) = last;
        Self {
            flushed_time: last_time,
            flushed_offset: last_offset,
            offset_flushed: entries.0,
            time_flushed: entries.1,
            largest: last_time.map(|e| (e.timestamp, base.plus(i64::from(e.relative)))),
            last_time,
            ..Self::new(base, interval)
        }
    }

    /// Notes an appended batch, in Kafka's order: the entry of a batch comes
    /// before its own bytes count.
    pub(crate) fn add(&mut self, batch: &IndexedBatch) {
        if self.largest.is_none_or(|(ts, _)| batch.max_timestamp > ts) {
            self.largest = Some((batch.max_timestamp, batch.last_offset));
        }
        if self.since_last > self.interval {
            self.offsets.push(OffsetEntry {
                relative: self.relative(batch.last_offset),
                position: u32::try_from(batch.position).expect("segments are below 4 GiB"),
            });
            self.add_time();
            self.since_last = 0;
        }
        self.since_last += batch.len;
    }

    fn relative(&self, offset: Offset) -> u32 {
        u32::try_from(offset.0 - self.base.0).expect("the segment rolls before this overflows")
    }

    /// Kafka appends a time entry only when timestamp and offset both grew.
    fn add_time(&mut self) {
        let Some((timestamp, offset)) = self.largest else { return };
        let entry = TimeEntry { timestamp, relative: self.relative(offset) };
        let last = self.last_time.map_or(Timestamp::NONE, |last| last.timestamp);
        if timestamp > last {
            self.times.push(entry);
            self.last_time = Some(entry);
        }
    }

    /// Forgets batches from `position` on, which begin at `end`. The caller adds
    /// the batches between the last entry's and `position` again.
    pub(crate) fn truncate(&mut self, position: u64, end: Offset) {
        self.offsets.retain(|e| u64::from(e.position) < position);
        let base = self.base;
        self.times.retain(|e| base.plus(i64::from(e.relative)) < end);
        self.last_time = self.times.last().copied().or(self.flushed_time);
        self.largest = self.last_time.map(|e| (e.timestamp, base.plus(i64::from(e.relative))));
        self.since_last = 0;
    }

    /// The last entry, pending or not.
    pub(crate) fn last_entry(&self) -> Option<OffsetEntry> {
        self.offsets.last().copied().or(self.flushed_offset)
    }

    /// Adds the last time entry of a segment that closes.
    pub(crate) fn close(&mut self) {
        self.add_time();
    }

    /// Largest timestamp so far.
    pub(crate) fn max_timestamp(&self) -> Timestamp {
        self.largest.map_or(Timestamp::NONE, |(ts, _)| ts)
    }

    /// Entries of the offset index, written or not.
    pub(crate) fn offset_entries(&self) -> u64 {
        self.offset_flushed + self.offsets.len() as u64
    }

    /// Entries in the files or handed out for them: (offset, time).
    pub(crate) fn flushed(&self) -> (u64, u64) {
        (self.offset_flushed, self.time_flushed)
    }

    /// Entries of the offset index not yet handed out.
    pub(crate) fn pending(&self) -> &[OffsetEntry] {
        &self.offsets
    }

    /// Entries of the time index not yet handed out.
    pub(crate) fn pending_times(&self) -> &[TimeEntry] {
        &self.times
    }

    /// The pending entries of batches below `position` (all of them when
    /// `None`) as the files want them; `written` says that they are there.
    pub(crate) fn pending_bytes(&self, position: Option<u64>) -> IndexBytes {
        let below = |p: u32| position.is_none_or(|limit| u64::from(p) < limit);
        let n = self.offsets.partition_point(|e| below(e.position));
        let bound = self.offsets.get(n).map_or(u32::MAX, |next| next.relative);
        let ready = &self.offsets[..n];
        let m = match position {
            None => self.times.len(),
            Some(_) => self.times.partition_point(|e| {
                e.relative < bound && ready.last().is_some_and(|last| e.relative <= last.relative)
            }),
        };
        IndexBytes {
            offset: (
                self.offset_flushed * OFFSET_ENTRY as u64,
                ready.iter().flat_map(|e| e.encode()).collect(),
            ),
            time: (
                self.time_flushed * TIME_ENTRY as u64,
                self.times[..m].iter().flat_map(|e| e.encode()).collect(),
            ),
        }
    }

    /// The entries that `bytes` holds are in the files.
    pub(crate) fn written(&mut self, bytes: &IndexBytes) {
        let n = bytes.offset.1.len() / OFFSET_ENTRY;
        let m = bytes.time.1.len() / TIME_ENTRY;
        self.flushed_offset = self.offsets.drain(..n).next_back().or(self.flushed_offset);
        self.flushed_time = self.times.drain(..m).next_back().or(self.flushed_time);
        self.offset_flushed += n as u64;
        self.time_flushed += m as u64;
    }

    /// Both in one, for callers that write at once.
    pub(crate) fn take(&mut self, position: Option<u64>) -> IndexBytes {
        let bytes = self.pending_bytes(position);
        self.written(&bytes);
        bytes
    }
}

/// The longest prefix of `bytes` that can be an offset index of batches below
/// `limit` bytes.
pub(crate) fn valid_offsets(bytes: &[u8], limit: u64) -> Vec<OffsetEntry> {
    let mut out: Vec<OffsetEntry> = Vec::new();
    for entry in bytes.chunks_exact(OFFSET_ENTRY).map(OffsetEntry::decode) {
        let grows = match out.last() {
            Some(last) => entry.relative > last.relative && entry.position > last.position,
            None => entry.position > 0,
        };
        if !grows || u64::from(entry.position) >= limit {
            break;
        }
        out.push(entry);
    }
    out
}

/// The longest prefix of `bytes` that can be a time index up to the relative
/// offset `limit`.
pub(crate) fn valid_times(bytes: &[u8], limit: u32) -> Vec<TimeEntry> {
    let mut out: Vec<TimeEntry> = Vec::new();
    for entry in bytes.chunks_exact(TIME_ENTRY).map(TimeEntry::decode) {
        let grows = match out.last() {
            Some(last) => entry.timestamp > last.timestamp && entry.relative > last.relative,
            None => true,
        };
        if !grows || entry.relative > limit {
            break;
        }
        out.push(entry);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_entry_points_at_its_batch(
            batches in proptest::collection::vec((1u64..9000, 1i64..50, 0i64..1000), 1..200),
            cut in 0u64..200_000,
        ) {
            let mut builder = IndexBuilder::new(Offset(100), 4096);
            let (mut position, mut offset) = (0u64, 100i64);
            let mut placed = Vec::new();
            for (len, count, ts) in batches {
                builder.add(&IndexedBatch {
                    last_offset: Offset(offset + count - 1),
                    max_timestamp: Timestamp(ts),
                    position,
                    len,
                });
                placed.push((position, offset + count - 1, ts));
                position += len;
                offset += count;
            }
            let first = builder.take(Some(cut));
            builder.close();
            let rest = builder.take(None);
            prop_assert_eq!(rest.offset.0, first.offset.1.len() as u64);
            prop_assert_eq!(rest.time.0, first.time.1.len() as u64);
            let offsets = [first.offset.1, rest.offset.1].concat();
            let times = [first.time.1, rest.time.1].concat();
            let parsed = valid_offsets(&offsets, position);
            prop_assert_eq!(parsed.len() * OFFSET_ENTRY, offsets.len());
            let mut before = 0u64;
            for entry in parsed {
                let at = placed.iter().find(|p| p.0 == u64::from(entry.position)).unwrap();
                prop_assert_eq!(at.1, 100 + i64::from(entry.relative));
                prop_assert!(at.0 - before > 4096);
                before = at.0;
            }
            let parsed = valid_times(&times, u32::MAX);
            prop_assert_eq!(parsed.len() * TIME_ENTRY, times.len());
            for entry in &parsed {
                let offset = 100 + i64::from(entry.relative);
                let largest = placed.iter().filter(|p| p.1 <= offset).map(|p| p.2).max();
                prop_assert_eq!(Some(entry.timestamp.0), largest);
            }
            let max = placed.iter().map(|p| p.2).max();
            prop_assert_eq!(parsed.last().map(|e| e.timestamp.0), max);
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = valid_offsets(&bytes, 1 << 20);
            let _ = valid_times(&bytes, 1 << 20);
        }
    }
}
