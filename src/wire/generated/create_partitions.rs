//! CreatePartitions (37). Generated from `schema/create_partitions.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 2;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsRequest {
    pub topics: Vec<CreatePartitionsTopic>,
    pub timeout_ms: i32,
    pub validate_only: bool,
}

impl Message for CreatePartitionsRequest {
    const KEY: ApiKey = ApiKey::CreatePartitions;
    const NAME: &'static str = "CreatePartitionsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topics = reader.array(
            flexible,
            CreatePartitionsTopic::SIZE_MIN,
            "CreatePartitionsRequest.topics",
            version,
            |reader| CreatePartitionsTopic::read(reader, version),
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

impl Request for CreatePartitionsRequest {
    type Response = CreatePartitionsResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatePartitionsTopic {
    pub name: String,
    pub count: i32,
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
}

impl Default for CreatePartitionsTopic {
    fn default() -> Self {
        Self { name: String::new(), count: 0, assignments: Some(Vec::new()) }
    }
}

impl CreatePartitionsTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 7;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "CreatePartitionsTopic.name", version)?;
        message.count = reader.int32()?;
        message.assignments =
            reader.nullable_array(flexible, CreatePartitionsAssignment::SIZE_MIN, |reader| {
                CreatePartitionsAssignment::read(reader, version)
            })?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.int32(self.count);
        writer.array_len(self.assignments.as_ref().map(Vec::len), flexible)?;
        for element in self.assignments.iter().flatten() {
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
        size += array_len_size(self.assignments.as_ref().map(Vec::len), flexible)
            + self.assignments.iter().flatten().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsAssignment {
    pub broker_ids: Vec<i32>,
}

impl CreatePartitionsAssignment {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 2;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.broker_ids = reader.array(
            flexible,
            4,
            "CreatePartitionsAssignment.broker_ids",
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
        size += array_len_size(Some(self.broker_ids.len()), flexible) + 4 * self.broker_ids.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<CreatePartitionsTopicResult>,
}

impl Message for CreatePartitionsResponse {
    const KEY: ApiKey = ApiKey::CreatePartitions;
    const NAME: &'static str = "CreatePartitionsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.results = reader.array(
            flexible,
            CreatePartitionsTopicResult::SIZE_MIN,
            "CreatePartitionsResponse.results",
            version,
            |reader| CreatePartitionsTopicResult::read(reader, version),
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
        writer.array_len(Some(self.results.len()), flexible)?;
        for element in &self.results {
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
        size += array_len_size(Some(self.results.len()), flexible)
            + self.results.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for CreatePartitionsResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreatePartitionsTopicResult {
    pub name: String,
    pub error_code: i16,
    pub error_message: Option<String>,
}

impl CreatePartitionsTopicResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 5;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "CreatePartitionsTopicResult.name", version)?;
        message.error_code = reader.int16()?;
        message.error_message = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.int16(self.error_code);
        writer.nullable_string(self.error_message.as_deref(), flexible)?;
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
        size += 2;
        size += string_size(self.error_message.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}
