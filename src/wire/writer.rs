//! Writes primitive protocol types to the end of a byte vector.
//!
//! Owned by whoever encodes one message. Sizes are computed by the functions
//! at the end of this file, which mirror the writers one to one.

use super::error::WireError;

/// Appends to a vector that the caller keeps and may reuse.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident($ty:ty);)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $ty) {
            self.out.extend_from_slice(&value.to_be_bytes());
        }
    )*};
}

impl<'a> Writer<'a> {
    /// Appends to `out`; what is there already stays.
    #[must_use]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Length of the vector so far, in bytes.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Overwrites four bytes at `position` with `value`, for lengths that
    /// are known only after what they count.
    ///
    /// # Panics
    /// When the four bytes were not written before.
    pub fn patch_int32(&mut self, position: usize, value: i32) {
        self.out[position..position + 4].copy_from_slice(&value.to_be_bytes());
    }

    fixed! {
        /// One signed byte.
        int8(i8);
        /// Two bytes, signed.
        int16(i16);
        /// Two bytes, unsigned.
        uint16(u16);
        /// Four bytes, signed.
        int32(i32);
        /// Four bytes, unsigned.
        uint32(u32);
        /// Eight bytes, signed.
        int64(i64);
        /// Eight bytes, IEEE 754.
        float64(f64);
    }

    /// One byte, 0 or 1.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    /// The byte in front of a structure that may be null.
    pub fn present(&mut self, present: bool) {
        self.int8(if present { 1 } else { -1 });
    }

    /// Sixteen bytes.
    #[inline]
    pub fn uuid(&mut self, value: [u8; 16]) {
        self.raw(&value);
    }

    /// Unsigned base-128 integer.
    #[inline]
    pub fn uvarint(&mut self, value: u32) {
        self.uvarlong(u64::from(value));
    }

    /// Unsigned base-128 integer of up to 64 bits.
    #[inline]
    pub fn uvarlong(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// Zigzag-coded signed integer.
    #[inline]
    pub fn varint(&mut self, value: i32) {
        self.uvarint(((value << 1) ^ (value >> 31)).cast_unsigned());
    }

    /// Zigzag-coded signed integer of up to 64 bits.
    #[inline]
    pub fn varlong(&mut self, value: i64) {
        self.uvarlong(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn compact_len(&mut self, length: usize) -> Result<(), WireError> {
        let plus_one = u32::try_from(length)
            .ok()
            .filter(|length| *length < i32::MAX.cast_unsigned())
            .ok_or(WireError::TooLong(length))?
            + 1;
        self.uvarint(plus_one);
        Ok(())
    }

    /// A string, or null when the field may be null at this version.
    pub fn string(&mut self, value: &str, flexible: bool) -> Result<(), WireError> {
        if flexible {
            self.compact_len(value.len())?;
        } else {
            self.int16(i16::try_from(value.len()).map_err(|_| WireError::TooLong(value.len()))?);
        }
        self.raw(value.as_bytes());
        Ok(())
    }

    /// A string or null.
    pub fn nullable_string(
        &mut self,
        value: Option<&str>,
        flexible: bool,
    ) -> Result<(), WireError> {
        match value {
            Some(value) => self.string(value, flexible),
            None if flexible => {
                self.uvarint(0);
                Ok(())
            }
            None => {
                self.int16(-1);
                Ok(())
            }
        }
    }

    /// Only the length of a byte field; `None` is null. The caller provides
    /// the bytes elsewhere (records are sent from where they lie).
    pub fn bytes_len(&mut self, length: Option<usize>, flexible: bool) -> Result<(), WireError> {
        self.array_len(length, flexible)
    }

    /// A byte field.
    pub fn bytes(&mut self, value: &[u8], flexible: bool) -> Result<(), WireError> {
        self.bytes_len(Some(value.len()), flexible)?;
        self.raw(value);
        Ok(())
    }

    /// A byte field or null.
    pub fn nullable_bytes(
        &mut self,
        value: Option<&[u8]>,
        flexible: bool,
    ) -> Result<(), WireError> {
        match value {
            Some(value) => self.bytes(value, flexible),
            None => self.bytes_len(None, flexible),
        }
    }

    /// Number of array elements; `None` is null.
    #[inline]
    pub fn array_len(&mut self, count: Option<usize>, flexible: bool) -> Result<(), WireError> {
        match count {
            Some(count) if flexible => self.compact_len(count)?,
            Some(count) => self.int32(i32::try_from(count).map_err(|_| WireError::TooLong(count))?),
            None if flexible => self.uvarint(0),
            None => self.int32(-1),
        }
        Ok(())
    }

    /// Start of one tagged field (KIP-482): its tag and its payload's size.
    pub fn tag(&mut self, tag: u32, size: usize) -> Result<(), WireError> {
        self.uvarint(tag);
        self.uvarint(u32::try_from(size).map_err(|_| WireError::TooLong(size))?);
        Ok(())
    }
}

/// Bytes that `uvarint` writes for `value`.
#[inline]
#[must_use]
pub const fn uvarint_size(value: u32) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        0x20_0000..=0xfff_ffff => 4,
        _ => 5,
    }
}

#[inline]
const fn compact_len_size(length: usize) -> usize {
    uvarint_size(if length >= u32::MAX as usize { u32::MAX } else { length as u32 + 1 })
}

/// Bytes that a string of `length` bytes takes; `None` is null.
#[inline]
#[must_use]
pub const fn string_size(length: Option<usize>, flexible: bool) -> usize {
    match length {
        Some(length) if flexible => compact_len_size(length) + length,
        Some(length) => 2 + length,
        None if flexible => 1,
        None => 2,
    }
}

/// Bytes that a byte field of `length` bytes takes; `None` is null.
#[inline]
#[must_use]
pub const fn bytes_size(length: Option<usize>, flexible: bool) -> usize {
    let payload = match length {
        Some(length) => length,
        None => 0,
    };
    array_len_size(length, flexible) + payload
}

/// Bytes that the length of an array of `count` elements takes; `None` is null.
#[inline]
#[must_use]
pub const fn array_len_size(count: Option<usize>, flexible: bool) -> usize {
    match count {
        Some(count) if flexible => compact_len_size(count),
        None if flexible => 1,
        _ => 4,
    }
}

/// Bytes of one tagged field whose payload takes `size` bytes.
#[inline]
#[must_use]
pub const fn tagged_size(tag: u32, size: usize) -> usize {
    uvarint_size(tag) + uvarint_size(size as u32) + size
}
