//! Records of one batch, read in order from their decompressed bytes. Nothing
//! is copied; keys, values and headers are as the producer wrote them, so that
//! repeated header keys and keys that are not UTF-8 survive.

use super::error::{Error, Fault};
use super::varint::{read_i32, read_i64};

/// One record, borrowed from its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Unused so far; kept as sent.
    pub attributes: i8,
    /// Relative to the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Relative to the batch's base offset.
    pub offset_delta: i32,
    /// Null and empty are different keys.
    pub key: Option<&'a [u8]>,
    /// Null is a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    headers: &'a [u8],
    header_count: i32,
}

impl<'a> Record<'a> {
    /// Number of headers.
    #[must_use]
    pub fn header_count(&self) -> usize {
        self.header_count as usize
    }

    /// The headers in the order sent.
    #[must_use]
    pub fn headers(&self) -> HeaderIter<'a> {
        HeaderIter { bytes: self.headers, at: 0, left: self.header_count }
    }
}

/// One header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    /// Text by convention, bytes in fact; may repeat within a record.
    pub key: &'a [u8],
    /// May be null.
    pub value: Option<&'a [u8]>,
}

/// Iterates over the headers of a record, whose bytes are known to be sound.
#[derive(Clone, Debug)]
pub struct HeaderIter<'a> {
    bytes: &'a [u8],
    at: usize,
    left: i32,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let sound = "RecordIter checked the headers";
        let key = nullable(self.bytes, &mut self.at).expect(sound).expect(sound);
        let value = nullable(self.bytes, &mut self.at).expect(sound);
        Some(Header { key, value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for HeaderIter<'_> {}

/// Reads `count` records from decompressed bytes, checking every length. After
/// the last one the bytes must be at their end. After an error there is
/// nothing more.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    bytes: &'a [u8],
    at: usize,
    index: i32,
    count: i32,
}

impl<'a> RecordIter<'a> {
    /// Over `bytes`, which should hold `count` records (none if negative).
    #[must_use]
    pub fn new(bytes: &'a [u8], count: i32) -> Self {
        Self { bytes, at: 0, index: 0, count: count.max(0) }
    }

    /// Position in the bytes behind the last record returned.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    fn read(&mut self) -> Result<Record<'a>, Fault> {
        let length = read_i32(self.bytes, &mut self.at)?;
        let length_checked = usize::try_from(length).map_err(|_| Fault::NegativeLength(length))?;
        let start = self.at;
        // Nothing in the record may reach beyond its own end.
        let end = start.checked_add(length_checked).ok_or(Fault::Truncated)?;
        let bytes = self.bytes.get(..end).ok_or(Fault::Truncated)?;
        let at = &mut self.at;
        let attributes = *bytes.get(*at).ok_or(Fault::Truncated)? as i8;
        *at += 1;
        let timestamp_delta = read_i64(bytes, at)?;
        let offset_delta = read_i32(bytes, at)?;
        let key = nullable(bytes, at)?;
        let value = nullable(bytes, at)?;
        let header_count = read_i32(bytes, at)?;
        let headers_start = *at;
        // A header takes two bytes at least.
        if header_count < 0 || header_count as usize > (end - headers_start) / 2 {
            return Err(Fault::HeaderCount(header_count));
        }
        for _ in 0..header_count {
            let key_start = *at;
            if nullable(bytes, at)?.is_none() {
                return Err(Fault::HeaderKey(read_i32(bytes, &mut key_start.clone())?));
            }
            nullable(bytes, at)?;
        }
        if *at != end {
            return Err(Fault::Length(end as i64 - *at as i64));
        }
        let headers = &bytes[headers_start..];
        Ok(Record { attributes, timestamp_delta, offset_delta, key, value, headers, header_count })
    }

    fn fail(&mut self, at: usize, fault: Fault) -> Option<Result<Record<'a>, Error>> {
        let index = self.index;
        self.index = self.count;
        self.at = self.bytes.len();
        Some(Err(Error::Record { index, at, fault }))
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.count {
            if self.at < self.bytes.len() {
                return self.fail(self.at, Fault::TrailingBytes);
            }
            return None;
        }
        match self.read() {
            Ok(record) => {
                self.index += 1;
                Some(Ok(record))
            }
            Err(fault) => self.fail(self.at, fault),
        }
    }
}

/// A length and that many bytes; a negative length is null, as in Java.
#[inline]
fn nullable<'a>(bytes: &'a [u8], at: &mut usize) -> Result<Option<&'a [u8]>, Fault> {
    let length = read_i32(bytes, at)?;
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let field = at.checked_add(length).and_then(|end| bytes.get(*at..end));
    let field = field.ok_or(Fault::Truncated)?;
    *at += length;
    Ok(Some(field))
}
