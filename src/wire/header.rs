//! Request and response headers.
//!
//! The first eight bytes of a request are the same in every version, so that
//! a broker can read the key, the version and the correlation id before it
//! knows whether it can read the rest (checklist 2, 6, 7, 12).

use std::borrow::Cow;

use super::error::WireError;
use super::generated::ApiKey;
use super::reader::Reader;
use super::writer::{Writer, string_size};

/// The part of a request header that all versions share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestPrefix {
    /// Number of the API; may be one that we do not know.
    pub api_key: i16,
    /// Version of the body.
    pub api_version: i16,
    /// Number that the response repeats.
    pub correlation_id: i32,
}

impl RequestPrefix {
    /// Reads the eight bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            api_key: reader.int16()?,
            api_version: reader.int16()?,
            correlation_id: reader.int32()?,
        })
    }

    /// The API, when we know it.
    pub fn key(self) -> Result<ApiKey, WireError> {
        ApiKey::from_code(self.api_key).ok_or(WireError::UnknownApiKey(self.api_key))
    }
}

/// A whole request header; the client id is borrowed from the frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestHeader<'a> {
    /// The API.
    pub key: ApiKey,
    /// Version of the body.
    pub version: i16,
    /// Number that the response repeats.
    pub correlation_id: i32,
    /// What the client calls itself. Null and absent both mean empty to
    /// Kafka's quotas and metrics; the difference is kept here.
    pub client_id: Option<Cow<'a, str>>,
}

impl<'a> RequestHeader<'a> {
    /// Reads a header from the start of a frame. The version is not judged
    /// beyond choosing the header's own version: ask [`ApiKey::check_version`]
    /// with the [`RequestPrefix`] first when an unknown version must be
    /// answered rather than refused.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let prefix = RequestPrefix::read(reader)?;
        Self::read_after(prefix, reader)
    }

    /// Reads what follows the prefix.
    pub fn read_after(prefix: RequestPrefix, reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let key = prefix.key()?;
        // The client id keeps its two-byte length in header version 2.
        let client_id = reader.str_lossy(false)?;
        if key.request_header_version(prefix.api_version) >= 2 {
            reader.skip_tagged_fields()?;
        }
        Ok(Self {
            key,
            version: prefix.api_version,
            correlation_id: prefix.correlation_id,
            client_id,
        })
    }

    /// Appends the header.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.int16(self.key.code());
        writer.int16(self.version);
        writer.int32(self.correlation_id);
        writer.nullable_string(self.client_id.as_deref(), false)?;
        if self.key.request_header_version(self.version) >= 2 {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends.
    #[must_use]
    pub fn size(&self) -> usize {
        let tags = usize::from(self.key.request_header_version(self.version) >= 2);
        8 + string_size(self.client_id.as_deref().map(str::len), false) + tags
    }
}

/// A response header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponseHeader {
    /// The number of the request that this answers.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header in front of a response to (`key`, `version`).
    pub fn read(reader: &mut Reader<'_>, key: ApiKey, version: i16) -> Result<Self, WireError> {
        let correlation_id = reader.int32()?;
        if key.response_header_version(version) >= 1 {
            reader.skip_tagged_fields()?;
        }
        Ok(Self { correlation_id })
    }

    /// Appends the header in front of a response to (`key`, `version`).
    pub fn write(self, writer: &mut Writer<'_>, key: ApiKey, version: i16) {
        writer.int32(self.correlation_id);
        if key.response_header_version(version) >= 1 {
            writer.uvarint(0);
        }
    }

    /// Bytes that `write` appends.
    #[must_use]
    pub fn size(key: ApiKey, version: i16) -> usize {
        if key.response_header_version(version) >= 1 { 5 } else { 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_id_keeps_its_short_length_in_flexible_headers() {
        for version in [8, 9] {
            for client_id in [None, Some(Cow::Borrowed("")), Some(Cow::Borrowed("me"))] {
                let header =
                    RequestHeader { key: ApiKey::Metadata, version, correlation_id: 7, client_id };
                let mut out = Vec::new();
                header.write(&mut Writer::new(&mut out)).unwrap();
                assert_eq!(out.len(), header.size());
                let mut reader = Reader::new(&out);
                assert_eq!(RequestHeader::read(&mut reader).unwrap(), header);
                reader.finish().unwrap();
            }
        }
    }

    #[test]
    fn api_versions_answers_with_the_oldest_header() {
        assert_eq!(ApiKey::ApiVersions.response_header_version(4), 0);
        assert_eq!(ApiKey::ApiVersions.request_header_version(4), 2);
        assert_eq!(ApiKey::Metadata.response_header_version(9), 1);
        assert_eq!(ApiKey::Metadata.response_header_version(8), 0);
    }

    #[test]
    fn short_headers_and_unknown_keys_are_errors() {
        let whole = [0, 3, 0, 9, 0, 0, 0, 1, 0, 1, b'x', 0];
        for end in 0..whole.len() {
            let cut = RequestHeader::read(&mut Reader::new(&whole[..end]));
            assert!(matches!(cut, Err(WireError::Truncated { .. })), "cut at {end}: {cut:?}");
        }
        let unknown = [0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
        assert_eq!(
            RequestHeader::read(&mut Reader::new(&unknown)),
            Err(WireError::UnknownApiKey(0x7fff))
        );
    }
}
