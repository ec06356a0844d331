//! ListOffsets (2). Generated from `schema/list_offsets.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 6;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsRequest {
    pub replica_id: i32,
    pub isolation_level: i8,
    pub topics: Vec<ListOffsetsTopic>,
    pub timeout_ms: i32,
}

impl Message for ListOffsetsRequest {
    const KEY: ApiKey = ApiKey::ListOffsets;
    const NAME: &'static str = "ListOffsetsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.replica_id = reader.int32()?;
        if version >= 2 {
            message.isolation_level = reader.int8()?;
        }
        message.topics = reader.array(
            flexible,
            ListOffsetsTopic::SIZE_MIN,
            "ListOffsetsRequest.topics",
            version,
            |reader| ListOffsetsTopic::read(reader, version),
        )?;
        if version >= 10 {
            message.timeout_ms = reader.int32()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.replica_id);
        if version >= 2 {
            writer.int8(self.isolation_level);
        } else if self.isolation_level != 0 {
            return Err(WireError::FieldNotInVersion {
                field: "ListOffsetsRequest.isolation_level",
                version,
            });
        }
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
            element.write(writer, version)?;
        }
        if version >= 10 {
            writer.int32(self.timeout_ms);
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
        if version >= 2 {
            size += 1;
        }
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 10 {
            size += 4;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for ListOffsetsRequest {
    type Response = ListOffsetsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsTopic {
    pub name: String,
    pub partitions: Vec<ListOffsetsPartition>,
}

impl ListOffsetsTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "ListOffsetsTopic.name", version)?;
        message.partitions = reader.array(
            flexible,
            ListOffsetsPartition::SIZE_MIN,
            "ListOffsetsTopic.partitions",
            version,
            |reader| ListOffsetsPartition::read(reader, version),
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
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
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
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListOffsetsPartition {
    pub partition_index: i32,
    pub current_leader_epoch: i32,
    pub timestamp: i64,
}

impl Default for ListOffsetsPartition {
    fn default() -> Self {
        Self { partition_index: 0, current_leader_epoch: -1, timestamp: 0 }
    }
}

impl ListOffsetsPartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 12;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        if version >= 4 {
            message.current_leader_epoch = reader.int32()?;
        }
        message.timestamp = reader.int64()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.partition_index);
        if version >= 4 {
            writer.int32(self.current_leader_epoch);
        }
        writer.int64(self.timestamp);
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
        if version >= 4 {
            size += 4;
        }
        size += 8;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<ListOffsetsTopicResponse>,
}

impl Message for ListOffsetsResponse {
    const KEY: ApiKey = ApiKey::ListOffsets;
    const NAME: &'static str = "ListOffsetsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 2 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.topics = reader.array(
            flexible,
            ListOffsetsTopicResponse::SIZE_MIN,
            "ListOffsetsResponse.topics",
            version,
            |reader| ListOffsetsTopicResponse::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 2 {
            writer.int32(self.throttle_time_ms);
        }
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
        if version >= 2 {
            size += 4;
        }
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for ListOffsetsResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOffsetsTopicResponse {
    pub name: String,
    pub partitions: Vec<ListOffsetsPartitionResponse>,
}

impl ListOffsetsTopicResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "ListOffsetsTopicResponse.name", version)?;
        message.partitions = reader.array(
            flexible,
            ListOffsetsPartitionResponse::SIZE_MIN,
            "ListOffsetsTopicResponse.partitions",
            version,
            |reader| ListOffsetsPartitionResponse::read(reader, version),
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
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
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
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListOffsetsPartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    pub timestamp: i64,
    pub offset: i64,
    pub leader_epoch: i32,
}

impl Default for ListOffsetsPartitionResponse {
    fn default() -> Self {
        Self { partition_index: 0, error_code: 0, timestamp: -1, offset: -1, leader_epoch: -1 }
    }
}

impl ListOffsetsPartitionResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 22;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.error_code = reader.int16()?;
        message.timestamp = reader.int64()?;
        message.offset = reader.int64()?;
        if version >= 4 {
            message.leader_epoch = reader.int32()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.partition_index);
        writer.int16(self.error_code);
        writer.int64(self.timestamp);
        writer.int64(self.offset);
        if version >= 4 {
            writer.int32(self.leader_epoch);
        } else if self.leader_epoch != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "ListOffsetsPartitionResponse.leader_epoch",
                version,
            });
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
        size += 2;
        size += 8;
        size += 8;
        if version >= 4 {
            size += 4;
        }
        size += usize::from(flexible);
        size
    }
}
