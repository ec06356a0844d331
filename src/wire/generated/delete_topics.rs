//! DeleteTopics (20). Generated from `schema/delete_topics.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteTopicsRequest {
    pub topics: Vec<DeleteTopicState>,
    pub topic_names: Vec<String>,
    pub timeout_ms: i32,
}

impl Message for DeleteTopicsRequest {
    const KEY: ApiKey = ApiKey::DeleteTopics;
    const NAME: &'static str = "DeleteTopicsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 6 {
            message.topics = reader.array(
                flexible,
                DeleteTopicState::SIZE_MIN,
                "DeleteTopicsRequest.topics",
                version,
                |reader| DeleteTopicState::read(reader, version),
            )?;
        }
        if version <= 5 {
            message.topic_names = reader.array(
                flexible,
                1,
                "DeleteTopicsRequest.topic_names",
                version,
                |reader| reader.string(flexible, "DeleteTopicsRequest.topic_names", version),
            )?;
        }
        message.timeout_ms = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 6 {
            writer.array_len(Some(self.topics.len()), flexible)?;
            for element in &self.topics {
                element.write(writer, version)?;
            }
        } else if !self.topics.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "DeleteTopicsRequest.topics",
                version,
            });
        }
        if version <= 5 {
            writer.array_len(Some(self.topic_names.len()), flexible)?;
            for element in &self.topic_names {
                writer.string(element, flexible)?;
            }
        }
        writer.int32(self.timeout_ms);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        if version >= 6 {
            size += array_len_size(Some(self.topics.len()), flexible)
                + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        }
        if version <= 5 {
            size += array_len_size(Some(self.topic_names.len()), flexible)
                + self
                    .topic_names
                    .iter()
                    .map(|element| string_size(Some(element.len()), flexible))
                    .sum::<usize>();
        }
        size += 4;
        size += usize::from(flexible);
        size
    }
}

impl Request for DeleteTopicsRequest {
    type Response = DeleteTopicsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteTopicState {
    pub name: Option<String>,
    pub topic_id: [u8; 16],
}

impl DeleteTopicState {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 18;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.nullable_string(flexible)?;
        message.topic_id = reader.uuid()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.nullable_string(self.name.as_deref(), flexible)?;
        writer.uuid(self.topic_id);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(self.name.as_ref().map(String::len), flexible);
        size += 16;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteTopicsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<DeletableTopicResult>,
}

impl Message for DeleteTopicsResponse {
    const KEY: ApiKey = ApiKey::DeleteTopics;
    const NAME: &'static str = "DeleteTopicsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.responses = reader.array(
            flexible,
            DeletableTopicResult::SIZE_MIN,
            "DeleteTopicsResponse.responses",
            version,
            |reader| DeletableTopicResult::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.throttle_time_ms);
        writer.array_len(Some(self.responses.len()), flexible)?;
        for element in &self.responses {
            element.write(writer, version)?;
        }
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 4;
        size += array_len_size(Some(self.responses.len()), flexible)
            + self.responses.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for DeleteTopicsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct DeletableTopicResult {
    pub name: Option<String>,
    pub topic_id: [u8; 16],
    pub error_code: i16,
    pub error_message: Option<String>,
}

impl Default for DeletableTopicResult {
    fn default() -> Self {
        Self { name: Some(String::new()), topic_id: [0; 16], error_code: 0, error_message: None }
    }
}

impl DeletableTopicResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 4;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = if version >= 6 {
            reader.nullable_string(flexible)?
        } else {
            Some(reader.string(flexible, "DeletableTopicResult.name", version)?)
        };
        if version >= 6 {
            message.topic_id = reader.uuid()?;
        }
        message.error_code = reader.int16()?;
        if version >= 5 {
            message.error_message = reader.nullable_string(flexible)?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if self.name.is_none() && version < 6 {
            return Err(WireError::UnexpectedNull { field: "DeletableTopicResult.name", version });
        }
        writer.nullable_string(self.name.as_deref(), flexible)?;
        if version >= 6 {
            writer.uuid(self.topic_id);
        }
        writer.int16(self.error_code);
        if version >= 5 {
            writer.nullable_string(self.error_message.as_deref(), flexible)?;
        }
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(self.name.as_ref().map(String::len), flexible);
        if version >= 6 {
            size += 16;
        }
        size += 2;
        if version >= 5 {
            size += string_size(self.error_message.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}
