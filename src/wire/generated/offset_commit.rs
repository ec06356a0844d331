//! OffsetCommit (8). Generated from `schema/offset_commit.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitRequest {
    pub group_id: String,
    pub generation_id_or_member_epoch: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub retention_time_ms: i64,
    pub topics: Vec<OffsetCommitRequestTopic>,
}

impl Default for OffsetCommitRequest {
    fn default() -> Self {
        Self {
            group_id: String::new(),
            generation_id_or_member_epoch: -1,
            member_id: String::new(),
            group_instance_id: None,
            retention_time_ms: -1,
            topics: Vec::new(),
        }
    }
}

impl Message for OffsetCommitRequest {
    const KEY: ApiKey = ApiKey::OffsetCommit;
    const NAME: &'static str = "OffsetCommitRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "OffsetCommitRequest.group_id", version)?;
        message.generation_id_or_member_epoch = reader.int32()?;
        message.member_id = reader.string(flexible, "OffsetCommitRequest.member_id", version)?;
        if version >= 7 {
            message.group_instance_id = reader.nullable_string(flexible)?;
        }
        if version <= 4 {
            message.retention_time_ms = reader.int64()?;
        }
        message.topics = reader.array(
            flexible,
            OffsetCommitRequestTopic::SIZE_MIN,
            "OffsetCommitRequest.topics",
            version,
            |reader| OffsetCommitRequestTopic::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.group_id, flexible)?;
        writer.int32(self.generation_id_or_member_epoch);
        writer.string(&self.member_id, flexible)?;
        if version >= 7 {
            writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        } else if self.group_instance_id.is_some() {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetCommitRequest.group_instance_id",
                version,
            });
        }
        if version <= 4 {
            writer.int64(self.retention_time_ms);
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
        size += string_size(Some(self.group_id.len()), flexible);
        size += 4;
        size += string_size(Some(self.member_id.len()), flexible);
        if version >= 7 {
            size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        }
        if version <= 4 {
            size += 8;
        }
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Request for OffsetCommitRequest {
    type Response = OffsetCommitResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitRequestTopic {
    pub name: String,
    pub topic_id: [u8; 16],
    pub partitions: Vec<OffsetCommitRequestPartition>,
}

impl OffsetCommitRequestTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 9 {
            message.name = reader.string(flexible, "OffsetCommitRequestTopic.name", version)?;
        }
        if version >= 10 {
            message.topic_id = reader.uuid()?;
        }
        message.partitions = reader.array(
            flexible,
            OffsetCommitRequestPartition::SIZE_MIN,
            "OffsetCommitRequestTopic.partitions",
            version,
            |reader| OffsetCommitRequestPartition::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 9 {
            writer.string(&self.name, flexible)?;
        }
        if version >= 10 {
            writer.uuid(self.topic_id);
        }
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
        if version <= 9 {
            size += string_size(Some(self.name.len()), flexible);
        }
        if version >= 10 {
            size += 16;
        }
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct OffsetCommitRequestPartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    pub committed_leader_epoch: i32,
    pub committed_metadata: Option<String>,
}

impl Default for OffsetCommitRequestPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            committed_metadata: Some(String::new()),
        }
    }
}

impl OffsetCommitRequestPartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 14;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.committed_offset = reader.int64()?;
        if version >= 6 {
            message.committed_leader_epoch = reader.int32()?;
        }
        message.committed_metadata = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.partition_index);
        writer.int64(self.committed_offset);
        if version >= 6 {
            writer.int32(self.committed_leader_epoch);
        }
        writer.nullable_string(self.committed_metadata.as_deref(), flexible)?;
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
        size += 8;
        if version >= 6 {
            size += 4;
        }
        size += string_size(self.committed_metadata.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetCommitResponseTopic>,
}

impl Message for OffsetCommitResponse {
    const KEY: ApiKey = ApiKey::OffsetCommit;
    const NAME: &'static str = "OffsetCommitResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 3 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.topics = reader.array(
            flexible,
            OffsetCommitResponseTopic::SIZE_MIN,
            "OffsetCommitResponse.topics",
            version,
            |reader| OffsetCommitResponseTopic::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 3 {
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
        if version >= 3 {
            size += 4;
        }
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for OffsetCommitResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitResponseTopic {
    pub name: String,
    pub topic_id: [u8; 16],
    pub partitions: Vec<OffsetCommitResponsePartition>,
}

impl OffsetCommitResponseTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 9 {
            message.name = reader.string(flexible, "OffsetCommitResponseTopic.name", version)?;
        }
        if version >= 10 {
            message.topic_id = reader.uuid()?;
        }
        message.partitions = reader.array(
            flexible,
            OffsetCommitResponsePartition::SIZE_MIN,
            "OffsetCommitResponseTopic.partitions",
            version,
            |reader| OffsetCommitResponsePartition::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 9 {
            writer.string(&self.name, flexible)?;
        }
        if version >= 10 {
            writer.uuid(self.topic_id);
        }
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
        if version <= 9 {
            size += string_size(Some(self.name.len()), flexible);
        }
        if version >= 10 {
            size += 16;
        }
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetCommitResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}

impl OffsetCommitResponsePartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.error_code = reader.int16()?;
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
        size += usize::from(flexible);
        size
    }
}
