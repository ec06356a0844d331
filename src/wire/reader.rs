//! Reads primitive protocol types from a borrowed frame.
//!
//! Owned by whoever decodes one frame; never allocates by itself except in
//! the functions that return owned values, and those check lengths against
//! the remaining bytes first. It does not know messages or versions: the
//! generated code passes `flexible` where the encoding differs (KIP-482).

use std::borrow::Cow;

use bytes::Bytes;

use super::error::WireError;

/// Memory that the arrays of one decoded message may take together, in bytes.
///
/// A hostile frame of empty elements is up to 60 times larger in memory than
/// on the wire; this keeps the sum below the default frame limit.
pub const DECODE_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Position in a frame, and what may still be allocated for it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    source: Option<&'a Bytes>,
    budget: usize,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident -> $ty:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Result<$ty, WireError> {
            Ok(<$ty>::from_be_bytes(self.fixed()?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// Reads `bytes`; owned byte fields are copied out.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, source: None, budget: DECODE_BYTES_MAX }
    }

    /// Reads `source`; owned byte fields (records) are slices of it, not copies.
    #[must_use]
    pub fn of_bytes(source: &'a Bytes) -> Self {
        Self { bytes: source, position: 0, source: Some(source), budget: DECODE_BYTES_MAX }
    }

    /// The same reader with another memory budget for arrays, in bytes.
    #[must_use]
    pub fn with_budget(mut self, bytes_max: usize) -> Self {
        self.budget = bytes_max;
        self
    }

    /// Bytes read so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Everything not read yet, without moving.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Succeeds only when every byte was read.
    pub fn finish(&self) -> Result<(), WireError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(WireError::TrailingBytes(left)),
        }
    }

    /// The next `count` bytes, borrowed from the frame.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let remaining = self.remaining();
        if count > remaining {
            return Err(WireError::Truncated { needed: count, remaining });
        }
        let start = self.position;
        self.position += count;
        Ok(&self.bytes[start..start + count])
    }

    /// Moves on by `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), WireError> {
        self.take(count).map(|_| ())
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        match self.rest().first_chunk::<N>() {
            Some(chunk) => {
                self.position += N;
                Ok(*chunk)
            }
            None => Err(WireError::Truncated { needed: N, remaining: self.remaining() }),
        }
    }

    fixed! {
        /// One signed byte.
        int8 -> i8;
        /// Two bytes, signed.
        int16 -> i16;
        /// Two bytes, unsigned.
        uint16 -> u16;
        /// Four bytes, signed.
        int32 -> i32;
        /// Four bytes, unsigned.
        uint32 -> u32;
        /// Eight bytes, signed.
        int64 -> i64;
        /// Eight bytes, IEEE 754.
        float64 -> f64;
    }

    /// One byte; as in Kafka, anything but 0 is true.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, WireError> {
        Ok(self.int8()? != 0)
    }

    /// The byte in front of a structure that may be null: below 0 is null.
    pub fn present(&mut self) -> Result<bool, WireError> {
        Ok(self.int8()? >= 0)
    }

    /// Sixteen bytes; all zero stands for "no id".
    #[inline]
    pub fn uuid(&mut self) -> Result<[u8; 16], WireError> {
        self.fixed()
    }

    /// Unsigned base-128 integer of at most 32 bits, in at most 5 bytes.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, WireError> {
        // Counts and lengths are mostly below 128.
        match self.rest().first() {
            Some(byte) if *byte < 0x80 => {
                self.position += 1;
                Ok(u32::from(*byte))
            }
            _ => self.long_uvarint(),
        }
    }

    fn long_uvarint(&mut self) -> Result<u32, WireError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            if shift == 28 && byte > 0x0f {
                return Err(WireError::BadVarint);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::BadVarint)
    }

    /// Unsigned base-128 integer of at most 64 bits, in at most 10 bytes.
    pub fn uvarlong(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.fixed()?;
            if shift == 63 && byte > 0x01 {
                return Err(WireError::BadVarint);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::BadVarint)
    }

    /// Zigzag-coded signed integer of at most 32 bits.
    pub fn varint(&mut self) -> Result<i32, WireError> {
        let raw = self.uvarint()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// Zigzag-coded signed integer of at most 64 bits.
    pub fn varlong(&mut self) -> Result<i64, WireError> {
        let raw = self.uvarlong()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// Length of a string: `None` is null.
    #[inline]
    fn string_len(&mut self, flexible: bool) -> Result<Option<usize>, WireError> {
        if flexible {
            return self.compact_len();
        }
        match self.int16()? {
            -1 => Ok(None),
            length => usize::try_from(length)
                .map(Some)
                .map_err(|_| WireError::BadLength(i64::from(length))),
        }
    }

    /// Length of a byte field or array: `None` is null.
    #[inline]
    fn long_len(&mut self, flexible: bool) -> Result<Option<usize>, WireError> {
        if flexible {
            return self.compact_len();
        }
        match self.int32()? {
            -1 => Ok(None),
            length => usize::try_from(length)
                .map(Some)
                .map_err(|_| WireError::BadLength(i64::from(length))),
        }
    }

    #[inline]
    fn compact_len(&mut self) -> Result<Option<usize>, WireError> {
        Ok(match self.uvarint()? {
            0 => None,
            plus_one => Some(plus_one as usize - 1),
        })
    }

    /// A string's raw bytes, borrowed; `None` is null. Not checked for UTF-8.
    #[inline]
    pub fn str_bytes(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, WireError> {
        match self.string_len(flexible)? {
            None => Ok(None),
            Some(length) => self.take(length).map(Some),
        }
    }

    /// A string, borrowed when it is UTF-8. Otherwise each bad sequence
    /// becomes U+FFFD, as in Kafka, whose Java strings do the same.
    #[inline]
    pub fn str_lossy(&mut self, flexible: bool) -> Result<Option<Cow<'a, str>>, WireError> {
        Ok(self.str_bytes(flexible)?.map(String::from_utf8_lossy))
    }

    /// An owned string that cannot be null; `field` and `version` name it in the error.
    pub fn string(
        &mut self,
        flexible: bool,
        field: &'static str,
        version: i16,
    ) -> Result<String, WireError> {
        self.nullable_string(flexible)?.ok_or(WireError::UnexpectedNull { field, version })
    }

    /// An owned string or null.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<String>, WireError> {
        Ok(self.str_lossy(flexible)?.map(Cow::into_owned))
    }

    /// A byte field, borrowed; `None` is null.
    #[inline]
    pub fn byte_slice(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, WireError> {
        match self.long_len(flexible)? {
            None => Ok(None),
            Some(length) => self.take(length).map(Some),
        }
    }

    /// A byte field that cannot be null.
    pub fn bytes(
        &mut self,
        flexible: bool,
        field: &'static str,
        version: i16,
    ) -> Result<Bytes, WireError> {
        self.nullable_bytes(flexible)?.ok_or(WireError::UnexpectedNull { field, version })
    }

    /// A byte field or null: a slice of the source when there is one, else a copy.
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, WireError> {
        let source = self.source;
        Ok(self.byte_slice(flexible)?.map(|slice| match source {
            Some(source) => source.slice_ref(slice),
            None => Bytes::copy_from_slice(slice),
        }))
    }

    /// Number of array elements, `None` for null, refused when `element_min`
    /// bytes each (at least 1) cannot fit in the remaining bytes.
    #[inline]
    pub fn array_len(
        &mut self,
        flexible: bool,
        element_min: usize,
    ) -> Result<Option<usize>, WireError> {
        let Some(count) = self.long_len(flexible)? else { return Ok(None) };
        let remaining = self.remaining();
        if count > remaining / element_min.max(1) {
            return Err(WireError::ArrayTooLong { count, remaining });
        }
        Ok(Some(count))
    }

    /// An array that cannot be null; the parameters are as in `nullable_array`.
    pub fn array<T>(
        &mut self,
        flexible: bool,
        element_min: usize,
        field: &'static str,
        version: i16,
        read: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        self.nullable_array(flexible, element_min, read)?
            .ok_or(WireError::UnexpectedNull { field, version })
    }

    /// An array or null, each element read by `read`; `element_min` is the
    /// least number of bytes that one element takes on the wire.
    pub fn nullable_array<T>(
        &mut self,
        flexible: bool,
        element_min: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Option<Vec<T>>, WireError> {
        let Some(count) = self.array_len(flexible, element_min)? else { return Ok(None) };
        let needed = count.saturating_mul(size_of::<T>());
        self.budget = self
            .budget
            .checked_sub(needed)
            .ok_or(WireError::OverBudget { needed, left: self.budget })?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(read(self)?);
        }
        Ok(Some(elements))
    }

    /// Reads a section of tagged fields (KIP-482). `known` gets each tag with
    /// a reader over exactly its payload and says whether it read it; unknown
    /// tags are skipped.
    pub fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, WireError>,
    ) -> Result<(), WireError> {
        let count = self.uvarint()?;
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let payload = self.take(size)?;
            let mut inner =
                Reader { bytes: payload, position: 0, source: self.source, budget: self.budget };
            if known(tag, &mut inner)? {
                self.budget = inner.budget;
                if inner.remaining() > 0 {
                    return Err(WireError::TaggedFieldSize { tag, left: inner.remaining() });
                }
            }
        }
        Ok(())
    }

    /// Skips a section of tagged fields of which none is known.
    #[inline]
    pub fn skip_tagged_fields(&mut self) -> Result<(), WireError> {
        if self.rest().first() == Some(&0) {
            self.position += 1;
            return Ok(());
        }
        self.tagged_fields(|_, _| Ok(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::writer::Writer;

    fn uvarint(bytes: &[u8]) -> Result<u32, WireError> {
        let mut reader = Reader::new(bytes);
        let value = reader.uvarint()?;
        reader.finish()?;
        Ok(value)
    }

    #[test]
    fn varints_keep_to_their_width() {
        assert_eq!(uvarint(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
        assert_eq!(uvarint(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err(WireError::BadVarint));
        assert_eq!(uvarint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), Err(WireError::BadVarint));
        assert_eq!(uvarint(&[0x80]), Err(WireError::Truncated { needed: 1, remaining: 0 }));
        // Longer than needed is legal, within five bytes.
        assert_eq!(uvarint(&[0x81, 0x80, 0x00]), Ok(1));
        let mut long = [0xff; 10];
        long[9] = 0x01;
        assert_eq!(Reader::new(&long).uvarlong(), Ok(u64::MAX));
        long[9] = 0x02;
        assert_eq!(Reader::new(&long).uvarlong(), Err(WireError::BadVarint));
        assert_eq!(Reader::new(&[0xff; 11]).uvarlong(), Err(WireError::BadVarint));
    }

    #[test]
    fn signed_varints_come_back() {
        for value in [0, 1, -1, 63, -64, 64, 300, -300, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            Writer::new(&mut out).varlong(value);
            assert_eq!(Reader::new(&out).varlong(), Ok(value));
            let Ok(value) = i32::try_from(value) else { continue };
            let mut out = Vec::new();
            Writer::new(&mut out).varint(value);
            assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
        for value in [i32::MAX, i32::MIN] {
            let mut out = Vec::new();
            Writer::new(&mut out).varint(value);
            assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
    }

    #[test]
    fn lengths_below_null_are_refused() {
        assert_eq!(Reader::new(&[0xff, 0xff]).nullable_string(false), Ok(None));
        assert_eq!(
            Reader::new(&[0xff, 0xfe]).nullable_string(false),
            Err(WireError::BadLength(-2))
        );
        assert_eq!(
            Reader::new(&[0xff, 0xff, 0xff, 0xfe]).nullable_bytes(false),
            Err(WireError::BadLength(-2))
        );
    }

    #[test]
    fn an_array_is_judged_by_the_bytes_that_remain() {
        let three_of_four = [0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert_eq!(
            Reader::new(&three_of_four).nullable_array(false, 4, Reader::int32),
            Err(WireError::ArrayTooLong { count: 3, remaining: 11 })
        );
        let budget = Reader::new(&[0, 0, 0, 1, 0, 0, 0, 5]).with_budget(3).nullable_array(
            false,
            4,
            Reader::int32,
        );
        assert_eq!(budget, Err(WireError::OverBudget { needed: 4, left: 3 }));
    }

    #[test]
    fn a_known_tag_must_use_its_whole_payload() {
        let section = [1, 0, 3, 0, 5, 9];
        let read = |take: usize| {
            Reader::new(&section).tagged_fields(|_, inner| inner.skip(take).map(|()| true))
        };
        assert_eq!(read(3), Ok(()));
        assert_eq!(read(2), Err(WireError::TaggedFieldSize { tag: 0, left: 1 }));
        assert!(matches!(read(4), Err(WireError::Truncated { .. })));
        assert_eq!(Reader::new(&section).skip_tagged_fields(), Ok(()));
    }
}
