//! The walk over the records of a produced batch: what Kafka's `LogValidator`
//! asks of each record, without making records of them.
//!
//! One piece of code walks both forms: bytes in place, and bytes that a
//! decompressor hands out through a small window. Nothing is allocated unless
//! a record is refused.

use std::io::Read;

use super::codec::{Compression, Decoder, decompress_error};
use super::error::{Error, Fault};
use super::varint::{read_i32, read_i64};

/// Bytes of decompressed records held at a time.
pub(super) const WINDOW_LEN: usize = 32 * 1024;
/// Refused records that are named; the rest is counted.
pub(super) const REFUSED_MAX: usize = 100;

/// What is asked of each record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checks {
    pub(super) count: i32,
    pub(super) base_timestamp: i64,
    /// A compacted topic.
    pub(super) key_required: bool,
    /// Bounds of a timestamp, both included; -1 passes always.
    pub(super) timestamp_min: i64,
    pub(super) timestamp_max: i64,
}

/// What the walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The greatest timestamp, -1 if none is above that.
    pub(super) max_timestamp: i64,
    /// Number of records refused.
    pub(super) refused_count: usize,
    /// The first of them.
    pub(super) refused: Vec<(i32, Refusal)>,
}

/// Why a well-formed record is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    NullKey,
    Timestamp(i64),
}

/// Where the bytes of records come from.
trait Source {
    /// Position in the records, whether or not these bytes exist.
    fn at(&self) -> usize;
    /// Whether that many bytes can follow, as far as that is known.
    fn enter(&self, length: usize) -> Result<(), Fault>;
    /// Moves on; missing bytes are noticed here or by the next call.
    fn skip(&mut self, length: usize) -> Result<(), Fault>;
    fn read_i32(&mut self) -> Result<i32, Fault>;
    fn read_i64(&mut self) -> Result<i64, Fault>;
    fn is_at_end(&mut self) -> Result<bool, Fault>;
}

/// Walks over records that lie in memory as a whole.
pub(super) fn walk_in_place(bytes: &[u8], checks: &Checks) -> Result<Walked, Error> {
    match max_if_flawless(bytes, checks) {
        Some(max_timestamp) => Ok(Walked { max_timestamp, ..Walked::default() }),
        // Something is wrong: the exact walk says what and where.
        None => walk(&mut InPlace::new(bytes), checks),
    }
}

/// The greatest timestamp if [`walk`] would find nothing to complain about.
///
/// A record is found from the length of the one before it, never from where
/// the fields of that ended, and the comparison of the two is collected and
/// looked at once: so a core can read several records at a time, where a branch
/// on the comparison would make each wait for the one before. `benches/record.rs`
/// measures it.
fn max_if_flawless(bytes: &[u8], checks: &Checks) -> Option<i64> {
    let mut max_timestamp = -1;
    let mut start = 0;
    let mut differences = 0;
    let mut refused = false;
    for index in 0..checks.count {
        let mut at = start;
        let length = usize::try_from(read_i32(bytes, &mut at).ok()?).ok()?;
        let end = at + length;
        if end > bytes.len() {
            return None;
        }
        start = end;
        at += 1; // attributes
        let timestamp = checks.base_timestamp.wrapping_add(read_i64(bytes, &mut at).ok()?);
        let offset_delta = read_i32(bytes, &mut at).ok()?;
        let key_length = read_i32(bytes, &mut at).ok()?;
        at += key_length.max(0) as usize;
        let value_length = read_i32(bytes, &mut at).ok()?;
        at += value_length.max(0) as usize;
        let header_count = read_i32(bytes, &mut at).ok()?;
        if header_count != 0 {
            let mut source = InPlace { bytes, at };
            walk_headers(&mut source, header_count, end).ok()?;
            at = source.at;
        }
        differences |= (at ^ end) | (offset_delta ^ index) as usize;
        let in_range = (checks.timestamp_min <= timestamp) & (timestamp <= checks.timestamp_max);
        refused |= !in_range & (timestamp != -1);
        refused |= checks.key_required & (key_length < 0);
        max_timestamp = max_timestamp.max(timestamp);
    }
    (differences == 0 && !refused && start == bytes.len()).then_some(max_timestamp)
}

/// Walks over all records of `source`.
fn walk(source: &mut impl Source, checks: &Checks) -> Result<Walked, Error> {
    let mut walked = Walked { max_timestamp: -1, ..Walked::default() };
    for index in 0..checks.count {
        let (timestamp, has_key) = walk_record(source, index, checks.base_timestamp)
            .map_err(|fault| Error::Record { index, at: source.at(), fault })?;
        walked.max_timestamp = walked.max_timestamp.max(timestamp);
        let in_range = (checks.timestamp_min <= timestamp && timestamp <= checks.timestamp_max)
            || timestamp == -1;
        if !in_range || (checks.key_required && !has_key) {
            // Kafka looks at the key first.
            let missing_key = checks.key_required && !has_key;
            let why = if missing_key { Refusal::NullKey } else { Refusal::Timestamp(timestamp) };
            refuse(&mut walked, index, why);
        }
    }
    let fault = match source.is_at_end() {
        Ok(true) => return Ok(walked),
        Ok(false) => Fault::TrailingBytes,
        Err(fault) => fault,
    };
    Err(Error::Record { index: checks.count, at: source.at(), fault })
}

#[cold]
fn refuse(walked: &mut Walked, index: i32, why: Refusal) {
    walked.refused_count += 1;
    if walked.refused.len() < REFUSED_MAX {
        walked.refused.push((index, why));
    }
}

/// The record's timestamp, and whether it has a key.
#[inline]
fn walk_record(source: &mut impl Source, index: i32, base: i64) -> Result<(i64, bool), Fault> {
    let length = source.read_i32()?;
    let body = usize::try_from(length).map_err(|_| Fault::NegativeLength(length))?;
    source.enter(body)?;
    let end = source.at() + body;
    source.skip(1)?; // attributes, unused so far
    let timestamp = base.wrapping_add(source.read_i64()?);
    let offset_delta = source.read_i32()?;
    if offset_delta != index {
        return Err(Fault::OffsetDelta(offset_delta));
    }
    let has_key = skip_nullable(source)?;
    skip_nullable(source)?;
    let header_count = source.read_i32()?;
    if header_count != 0 {
        walk_headers(source, header_count, end)?;
    }
    if source.at() != end {
        return Err(Fault::Length(end as i64 - source.at() as i64));
    }
    Ok((timestamp, has_key))
}

fn walk_headers(source: &mut impl Source, count: i32, end: usize) -> Result<(), Fault> {
    // A header takes two bytes at least, which bounds the loop.
    let room = end.saturating_sub(source.at()) / 2;
    if usize::try_from(count).map_or(true, |count| count > room) {
        return Err(Fault::HeaderCount(count));
    }
    for _ in 0..count {
        let key_length = source.read_i32()?;
        source.skip(usize::try_from(key_length).map_err(|_| Fault::HeaderKey(key_length))?)?;
        skip_nullable(source)?;
    }
    Ok(())
}

/// Whether there is something, be it empty.
#[inline]
fn skip_nullable(source: &mut impl Source) -> Result<bool, Fault> {
    let length = source.read_i32()?;
    if length > 0 {
        source.skip(length as usize)?;
    }
    Ok(length >= 0)
}

/// Records that lie in memory as a whole.
struct InPlace<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> InPlace<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Source for InPlace<'_> {
    #[inline]
    fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn enter(&self, length: usize) -> Result<(), Fault> {
        if length > self.bytes.len() - self.at { Err(Fault::Truncated) } else { Ok(()) }
    }

    /// Unchecked on purpose: a read behind the end fails, and a record that
    /// ends elsewhere than its length says is refused.
    #[inline]
    fn skip(&mut self, length: usize) -> Result<(), Fault> {
        self.at += length;
        Ok(())
    }

    #[inline]
    fn read_i32(&mut self) -> Result<i32, Fault> {
        read_i32(self.bytes, &mut self.at)
    }

    #[inline]
    fn read_i64(&mut self) -> Result<i64, Fault> {
        read_i64(self.bytes, &mut self.at)
    }

    fn is_at_end(&mut self) -> Result<bool, Fault> {
        Ok(self.at >= self.bytes.len())
    }
}

/// Records that come out of a decompressor, seen through a window.
pub(super) struct Streamed<'a, 'z, 'w> {
    reader: Decoder<'a, 'z>,
    codec: Compression,
    limit: usize,
    window: &'w mut [u8],
    /// The unread part of the window.
    start: usize,
    end: usize,
    /// Position in the records of the window's first byte.
    base: usize,
    /// The reader said that it is at its end; it must not be asked again.
    done: bool,
    /// Why the reader stopped before its end; more telling than the fault.
    error: Option<Error>,
}

impl<'a, 'z, 'w> Streamed<'a, 'z, 'w> {
    /// At most `limit` bytes of `reader` are read, through `window`.
    pub(super) fn new(
        reader: Decoder<'a, 'z>,
        codec: Compression,
        limit: usize,
        window: &'w mut [u8],
    ) -> Self {
        assert!(window.len() >= 16, "a window holds a varint");
        Self { reader, codec, limit, window, start: 0, end: 0, base: 0, done: false, error: None }
    }

    /// Walks, and prefers the decompressor's own error.
    /// The outcome, and the bytes that were decompressed for it.
    pub(super) fn walk(mut self, checks: &Checks) -> (Result<Walked, Error>, usize) {
        let walked = walk(&mut self, checks);
        let bytes = self.base + self.end;
        (self.error.map_or(walked, Err), bytes)
    }

    /// Makes `wanted` unread bytes available, fewer only at the end.
    #[inline]
    fn want(&mut self, wanted: usize) -> Result<(), Fault> {
        if self.end - self.start >= wanted || self.done { Ok(()) } else { self.refill(wanted) }
    }

    #[inline(never)]
    fn refill(&mut self, wanted: usize) -> Result<(), Fault> {
        self.window.copy_within(self.start..self.end, 0);
        self.base += self.start;
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted {
            match self.reader.read(&mut self.window[self.end..]) {
                Ok(0) => {
                    self.done = true;
                    return Ok(());
                }
                Ok(count) => self.end += count,
                Err(error) => {
                    self.error = Some(decompress_error(self.codec, self.limit, &error));
                    return Err(Fault::Truncated);
                }
            }
            if self.base + self.end > self.limit {
                let (codec, limit) = (self.codec, self.limit);
                self.error = Some(Error::DecompressedTooLarge { codec, limit });
                return Err(Fault::Truncated);
            }
        }
        Ok(())
    }
}

impl Source for Streamed<'_, '_, '_> {
    #[inline]
    fn at(&self) -> usize {
        self.base + self.start
    }

    #[inline]
    fn enter(&self, _length: usize) -> Result<(), Fault> {
        Ok(())
    }

    #[inline]
    fn skip(&mut self, mut length: usize) -> Result<(), Fault> {
        while length > self.end - self.start {
            length -= self.end - self.start;
            self.start = self.end;
            self.want(1)?;
            if self.start == self.end {
                return Err(Fault::Truncated);
            }
        }
        self.start += length;
        Ok(())
    }

    #[inline]
    fn read_i32(&mut self) -> Result<i32, Fault> {
        self.want(10)?;
        read_i32(&self.window[..self.end], &mut self.start)
    }

    #[inline]
    fn read_i64(&mut self) -> Result<i64, Fault> {
        self.want(10)?;
        read_i64(&self.window[..self.end], &mut self.start)
    }

    fn is_at_end(&mut self) -> Result<bool, Fault> {
        self.want(1)?;
        Ok(self.start == self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::codec::Contexts;
    use crate::record::{BatchBuilder, BatchView, NewRecord};

    const ANY: Checks = Checks {
        count: 0,
        base_timestamp: 0,
        key_required: false,
        timestamp_min: i64::MIN,
        timestamp_max: i64::MAX,
    };

    fn records(sizes: &[usize]) -> (Vec<u8>, i32) {
        let mut builder = BatchBuilder::new(Compression::None);
        let value = vec![b'v'; sizes.iter().copied().max().unwrap_or(0)];
        for size in sizes {
            let headers = [(&b"h"[..], Some(&value[..size / 2])), (&b"h"[..], None)];
            builder.push(&NewRecord {
                key: Some(&value[..size / 3]),
                value: Some(&value[..*size]),
                headers: &headers,
                ..NewRecord::default()
            });
        }
        let batch = builder.build().unwrap();
        let view = BatchView::parse(&batch).unwrap().0;
        (view.records().to_vec(), view.record_count())
    }

    /// Windows of any size see what the walk in place sees, faults included.
    #[test]
    fn both_sources_agree() {
        let (bytes, count) = records(&[0, 1, 50, 700, 64, 20_000, 3]);
        let checks = Checks { count, ..ANY };
        let mut contexts = Contexts::default();
        let cuts = (0..2000).chain((2000..bytes.len()).step_by(997)).chain([bytes.len()]);
        for cut in cuts {
            let part = &bytes[..cut];
            let in_place = walk(&mut InPlace::new(part), &checks).is_ok();
            assert_eq!(max_if_flawless(part, &checks).is_some(), in_place, "cut at {cut}");
            assert_eq!(in_place, cut == bytes.len(), "cut at {cut}");
            for window in [16, 17, 100, 4096] {
                let mut window = vec![0; window];
                let reader = contexts.decoder(Compression::None, part, usize::MAX);
                let streamed = Streamed::new(reader, Compression::None, usize::MAX, &mut window);
                assert_eq!(streamed.walk(&checks).0.is_ok(), in_place, "cut at {cut}");
            }
        }
    }

    #[test]
    fn refusals_are_counted_and_the_first_named() {
        let (bytes, count) = records(&vec![5; 300]);
        let checks = Checks { count, timestamp_min: 1, timestamp_max: 2, ..ANY };
        let walked = walk_in_place(&bytes, &checks).unwrap();
        assert_eq!(walked.refused_count, 300);
        assert_eq!(walked.refused.len(), REFUSED_MAX);
        assert_eq!(walked.refused[7], (7, Refusal::Timestamp(0)));
    }

    #[test]
    fn the_limit_stops_a_stream() {
        let (bytes, count) = records(&[1000; 100]);
        let checks = Checks { count, ..ANY };
        let mut contexts = Contexts::default();
        for (limit, fits) in [(bytes.len(), true), (bytes.len() - 1, false), (10, false)] {
            let mut window = [0; 512];
            let reader = contexts.decoder(Compression::None, &bytes, limit);
            let walked = Streamed::new(reader, Compression::None, limit, &mut window).walk(&checks);
            assert_eq!(walked.0.is_ok(), fits, "{limit}");
        }
    }
}
