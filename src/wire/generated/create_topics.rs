//! CreateTopics (19). Generated from `schema/create_topics.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size, tagged_size, uvarint_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 5;

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTopicsRequest {
    pub topics: Vec<CreatableTopic>,
    pub timeout_ms: i32,
    pub validate_only: bool,
}

impl Default for CreateTopicsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), timeout_ms: 60000, validate_only: false }
    }
}

impl Message for CreateTopicsRequest {
    const KEY: ApiKey = ApiKey::CreateTopics;
    const NAME: &'static str = "CreateTopicsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topics = reader.array(
            flexible,
            CreatableTopic::SIZE_MIN,
            "CreateTopicsRequest.topics",
            version,
            |reader| CreatableTopic::read(reader, version),
        )?;
        message.timeout_ms = reader.int32()?;
        message.validate_only = reader.bool()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
            element.write(writer, version)?;
        }
        writer.int32(self.timeout_ms);
        writer.bool(self.validate_only);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        size += 4;
        size += 1;
        size += usize::from(flexible);
        size
    }
}

impl Request for CreateTopicsRequest {
    type Response = CreateTopicsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatableTopic {
    pub name: String,
    pub num_partitions: i32,
    pub replication_factor: i16,
    pub assignments: Vec<CreatableReplicaAssignment>,
    pub configs: Vec<CreatableTopicConfig>,
}

impl CreatableTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 10;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "CreatableTopic.name", version)?;
        message.num_partitions = reader.int32()?;
        message.replication_factor = reader.int16()?;
        message.assignments = reader.array(
            flexible,
            CreatableReplicaAssignment::SIZE_MIN,
            "CreatableTopic.assignments",
            version,
            |reader| CreatableReplicaAssignment::read(reader, version),
        )?;
        message.configs = reader.array(
            flexible,
            CreatableTopicConfig::SIZE_MIN,
            "CreatableTopic.configs",
            version,
            |reader| CreatableTopicConfig::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.int32(self.num_partitions);
        writer.int16(self.replication_factor);
        writer.array_len(Some(self.assignments.len()), flexible)?;
        for element in &self.assignments {
            element.write(writer, version)?;
        }
        writer.array_len(Some(self.configs.len()), flexible)?;
        for element in &self.configs {
            element.write(writer, version)?;
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
        size += string_size(Some(self.name.len()), flexible);
        size += 4;
        size += 2;
        size += array_len_size(Some(self.assignments.len()), flexible)
            + self.assignments.iter().map(|element| element.size(version)).sum::<usize>();
        size += array_len_size(Some(self.configs.len()), flexible)
            + self.configs.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatableReplicaAssignment {
    pub partition_index: i32,
    pub broker_ids: Vec<i32>,
}

impl CreatableReplicaAssignment {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.broker_ids = reader.array(
            flexible,
            4,
            "CreatableReplicaAssignment.broker_ids",
            version,
            |reader| reader.int32(),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.partition_index);
        writer.array_len(Some(self.broker_ids.len()), flexible)?;
        for element in &self.broker_ids {
            writer.int32(*element);
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
        size += 4;
        size += array_len_size(Some(self.broker_ids.len()), flexible) + 4 * self.broker_ids.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicConfig {
    pub name: String,
    pub value: Option<String>,
}

impl Default for CreatableTopicConfig {
    fn default() -> Self {
        Self { name: String::new(), value: Some(String::new()) }
    }
}

impl CreatableTopicConfig {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "CreatableTopicConfig.name", version)?;
        message.value = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.nullable_string(self.value.as_deref(), flexible)?;
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.name.len()), flexible);
        size += string_size(self.value.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateTopicsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<CreatableTopicResult>,
}

impl Message for CreateTopicsResponse {
    const KEY: ApiKey = ApiKey::CreateTopics;
    const NAME: &'static str = "CreateTopicsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.topics = reader.array(
            flexible,
            CreatableTopicResult::SIZE_MIN,
            "CreateTopicsResponse.topics",
            version,
            |reader| CreatableTopicResult::read(reader, version),
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
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
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
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for CreateTopicsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicResult {
    pub name: String,
    pub topic_id: [u8; 16],
    pub error_code: i16,
    pub error_message: Option<String>,
    pub topic_config_error_code: i16,
    pub num_partitions: i32,
    pub replication_factor: i16,
    pub configs: Option<Vec<CreatableTopicConfigs>>,
}

impl Default for CreatableTopicResult {
    fn default() -> Self {
        Self {
            name: String::new(),
            topic_id: [0; 16],
            error_code: 0,
            error_message: Some(String::new()),
            topic_config_error_code: 0,
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
        }
    }
}

impl CreatableTopicResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "CreatableTopicResult.name", version)?;
        if version >= 7 {
            message.topic_id = reader.uuid()?;
        }
        message.error_code = reader.int16()?;
        message.error_message = reader.nullable_string(flexible)?;
        if version >= 5 {
            message.num_partitions = reader.int32()?;
        }
        if version >= 5 {
            message.replication_factor = reader.int16()?;
        }
        if version >= 5 {
            message.configs =
                reader.nullable_array(flexible, CreatableTopicConfigs::SIZE_MIN, |reader| {
                    CreatableTopicConfigs::read(reader, version)
                })?;
        }
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 5 => message.topic_config_error_code = reader.int16()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        if version >= 7 {
            writer.uuid(self.topic_id);
        }
        writer.int16(self.error_code);
        writer.nullable_string(self.error_message.as_deref(), flexible)?;
        if version >= 5 {
            writer.int32(self.num_partitions);
        }
        if version >= 5 {
            writer.int16(self.replication_factor);
        }
        if version >= 5 {
            writer.array_len(self.configs.as_ref().map(Vec::len), flexible)?;
            for element in self.configs.iter().flatten() {
                element.write(writer, version)?;
            }
        }
        if flexible {
            let mut count = 0;
            if version >= 5 && self.topic_config_error_code != 0 {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 5 && self.topic_config_error_code != 0 {
                writer.tag(0, 2)?;
                writer.int16(self.topic_config_error_code);
            }
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.name.len()), flexible);
        if version >= 7 {
            size += 16;
        }
        size += 2;
        size += string_size(self.error_message.as_ref().map(String::len), flexible);
        if version >= 5 {
            size += 4;
        }
        if version >= 5 {
            size += 2;
        }
        if version >= 5 {
            size += array_len_size(self.configs.as_ref().map(Vec::len), flexible)
                + self.configs.iter().flatten().map(|element| element.size(version)).sum::<usize>();
        }
        if flexible {
            let mut count = 0;
            if version >= 5 && self.topic_config_error_code != 0 {
                count += 1;
                size += tagged_size(0, 2);
            }
            size += uvarint_size(count);
        }
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatableTopicConfigs {
    pub name: String,
    pub value: Option<String>,
    pub read_only: bool,
    pub config_source: i8,
    pub is_sensitive: bool,
}

impl Default for CreatableTopicConfigs {
    fn default() -> Self {
        Self {
            name: String::new(),
            value: Some(String::new()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
        }
    }
}

impl CreatableTopicConfigs {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "CreatableTopicConfigs.name", version)?;
        message.value = reader.nullable_string(flexible)?;
        message.read_only = reader.bool()?;
        message.config_source = reader.int8()?;
        message.is_sensitive = reader.bool()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.nullable_string(self.value.as_deref(), flexible)?;
        writer.bool(self.read_only);
        writer.int8(self.config_source);
        writer.bool(self.is_sensitive);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.name.len()), flexible);
        size += string_size(self.value.as_ref().map(String::len), flexible);
        size += 1;
        size += 1;
        size += 1;
        size += usize::from(flexible);
        size
    }
}
