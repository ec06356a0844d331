//! How a metadata record is laid out in bytes, apart from what it means.
//!
//! `type version field*`, where a field is `tag length bytes`; all numbers
//! are unsigned LEB128, signed ones zigzag. Rules for change:
//! - a reader refuses a record type that it does not know, unless the type is
//!   at least [`IGNORABLE_TYPES`]: such records may be skipped;
//! - a reader refuses a version above its own: versions rise when a field
//!   changes its meaning;
//! - a reader refuses a field that it does not know, unless the tag is at
//!   least [`IGNORABLE_TAGS`]: such fields may be dropped without harm;
//! - writers use new types, versions and fields only when the cluster's
//!   feature level allows.

/// Record types from here on may be skipped by readers that know them not.
pub(super) const IGNORABLE_TYPES: u64 = 1 << 14;
/// Field tags from here on may be skipped by readers that know them not.
pub(super) const IGNORABLE_TAGS: u64 = 64;

/// Why bytes are not a metadata record that this version can read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside a number or field.
    #[error("metadata record ends at byte {0} inside a field")]
    Truncated(usize),
    /// A type from a newer version.
    #[error(
        "metadata record type {0} is not known to this version; run the version that wrote it, \
         or a newer one"
    )]
    UnknownType(u64),
    /// A version from a newer version.
    #[error(
        "metadata record {record} has version {version}, this version reads up to {supported}; \
         run the version that wrote it, or a newer one"
    )]
    UnknownVersion {
        /// Name of the record.
        record: &'static str,
        /// Version in the bytes.
        version: u64,
        /// Newest version that can be read.
        supported: u64,
    },
    /// A field from a newer version that must not be dropped.
    #[error(
        "metadata record {record} has field {tag}, which is not known to this version and must \
         not be dropped; run the version that wrote it, or a newer one"
    )]
    UnknownField {
        /// Name of the record.
        record: &'static str,
        /// The field's tag.
        tag: u64,
    },
    /// A field is absent that every version writes.
    #[error("metadata record {record} lacks field {tag}")]
    MissingField {
        /// Name of the record.
        record: &'static str,
        /// The field's tag.
        tag: u64,
    },
    /// A field's bytes are no value of its type.
    #[error("metadata record {record} has a field {tag} that cannot be read")]
    BadField {
        /// Name of the record.
        record: &'static str,
        /// The field's tag.
        tag: u64,
    },
}

/// Writes one record, or one nested group of fields.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn record(kind: u64, version: u64) -> Self {
        let mut writer = Self::default();
        writer.number(kind);
        writer.number(version);
        writer
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn bytes(&mut self, tag: u64, value: &[u8]) -> &mut Self {
        self.number(tag);
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn str(&mut self, tag: u64, value: &str) -> &mut Self {
        self.bytes(tag, value.as_bytes())
    }

    pub(super) fn opt_str(&mut self, tag: u64, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.str(tag, value);
        }
        self
    }

    pub(super) fn u64(&mut self, tag: u64, value: u64) -> &mut Self {
        let mut inner = Self::default();
        inner.number(value);
        self.bytes(tag, &inner.0)
    }

    pub(super) fn i64(&mut self, tag: u64, value: i64) -> &mut Self {
        self.u64(tag, (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned())
    }

    pub(super) fn group(&mut self, tag: u64, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(tag, &inner.0)
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes one unsigned LEB128 number from the front.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        value |= part.checked_shl(7 * at as u32).filter(|v| v >> (7 * at) == part)?;
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

/// Type, version and fields of one record.
pub(super) fn open(bytes: &[u8]) -> Result<(u64, u64, &[u8]), DecodeError> {
    let mut rest = bytes;
    let mut number =
        || take_number(&mut rest).ok_or(DecodeError::Truncated(bytes.len() - rest.len()));
    let kind = number()?;
    let version = number()?;
    Ok((kind, version, rest))
}

/// The fields of one record or group, to be asked for by tag.
pub(super) struct Fields<'a> {
    record: &'static str,
    fields: Vec<(u64, &'a [u8])>,
    /// Tags that somebody asked for.
    known: Vec<u64>,
}

impl<'a> Fields<'a> {
    pub(super) fn parse(record: &'static str, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let short = DecodeError::Truncated(at);
            let tag = take_number(&mut rest).ok_or_else(|| short.clone())?;
            let len = take_number(&mut rest).ok_or_else(|| short.clone())?;
            let len = usize::try_from(len).map_err(|_| short.clone())?;
            let (value, after) = rest.split_at_checked(len).ok_or(short)?;
            fields.push((tag, value));
            rest = after;
        }
        Ok(Self { record, fields, known: Vec::new() })
    }

    /// All values of a repeated field.
    pub(super) fn each(&mut self, tag: u64) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.known.push(tag);
        let values: Vec<_> =
            self.fields.iter().filter(|(t, _)| *t == tag).map(|(_, value)| *value).collect();
        values.into_iter()
    }

    /// The value of an optional field; the last one when it is repeated.
    pub(super) fn maybe(&mut self, tag: u64) -> Option<&'a [u8]> {
        self.each(tag).last()
    }

    pub(super) fn bytes(&mut self, tag: u64) -> Result<&'a [u8], DecodeError> {
        self.maybe(tag).ok_or(DecodeError::MissingField { record: self.record, tag })
    }

    pub(super) fn array<const N: usize>(&mut self, tag: u64) -> Result<[u8; N], DecodeError> {
        self.bytes(tag)?.try_into().map_err(|_| self.bad(tag))
    }

    pub(super) fn str(&mut self, tag: u64) -> Result<String, DecodeError> {
        let bytes = self.bytes(tag)?;
        self.utf8(tag, bytes)
    }

    pub(super) fn opt_str(&mut self, tag: u64) -> Result<Option<String>, DecodeError> {
        self.maybe(tag).map(|bytes| self.utf8(tag, bytes)).transpose()
    }

    pub(super) fn u64(&mut self, tag: u64) -> Result<u64, DecodeError> {
        let mut bytes = self.bytes(tag)?;
        take_number(&mut bytes).filter(|_| bytes.is_empty()).ok_or_else(|| self.bad(tag))
    }

    pub(super) fn i64(&mut self, tag: u64) -> Result<i64, DecodeError> {
        let raw = self.u64(tag)?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A number of a narrower type.
    pub(super) fn int<T: TryFrom<i64>>(&mut self, tag: u64) -> Result<T, DecodeError> {
        let wide = self.i64(tag)?;
        T::try_from(wide).map_err(|_| self.bad(tag))
    }

    /// Refuses fields that nobody asked for and that may not be dropped.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        let unknown = |tag: &u64| *tag < IGNORABLE_TAGS && !self.known.contains(tag);
        match self.fields.iter().map(|(tag, _)| *tag).find(unknown) {
            Some(tag) => Err(DecodeError::UnknownField { record: self.record, tag }),
            None => Ok(()),
        }
    }

    fn utf8(&self, tag: u64, bytes: &[u8]) -> Result<String, DecodeError> {
        String::from_utf8(bytes.to_vec()).map_err(|_| self.bad(tag))
    }

    const fn bad(&self, tag: u64) -> DecodeError {
        DecodeError::BadField { record: self.record, tag }
    }
}
