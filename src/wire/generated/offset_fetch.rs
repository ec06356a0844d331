//! OffsetFetch (9). Generated from `schema/offset_fetch.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 6;

#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchRequest {
    pub group_id: String,
    pub topics: Option<Vec<OffsetFetchRequestTopic>>,
    pub groups: Vec<OffsetFetchRequestGroup>,
    pub require_stable: bool,
}

impl Default for OffsetFetchRequest {
    fn default() -> Self {
        Self {
            group_id: String::new(),
            topics: Some(Vec::new()),
            groups: Vec::new(),
            require_stable: false,
        }
    }
}

impl Message for OffsetFetchRequest {
    const KEY: ApiKey = ApiKey::OffsetFetch;
    const NAME: &'static str = "OffsetFetchRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 7 {
            message.group_id = reader.string(flexible, "OffsetFetchRequest.group_id", version)?;
        }
        if version <= 7 {
            message.topics = if version >= 2 {
                reader.nullable_array(flexible, OffsetFetchRequestTopic::SIZE_MIN, |reader| {
                    OffsetFetchRequestTopic::read(reader, version)
                })?
            } else {
                Some(reader.array(
                    flexible,
                    OffsetFetchRequestTopic::SIZE_MIN,
                    "OffsetFetchRequest.topics",
                    version,
                    |reader| OffsetFetchRequestTopic::read(reader, version),
                )?)
            };
        }
        if version >= 8 {
            message.groups = reader.array(
                flexible,
                OffsetFetchRequestGroup::SIZE_MIN,
                "OffsetFetchRequest.groups",
                version,
                |reader| OffsetFetchRequestGroup::read(reader, version),
            )?;
        }
        if version >= 7 {
            message.require_stable = reader.bool()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 7 {
            writer.string(&self.group_id, flexible)?;
        } else if !self.group_id.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetFetchRequest.group_id",
                version,
            });
        }
        if version <= 7 {
            if self.topics.is_none() && version < 2 {
                return Err(WireError::UnexpectedNull {
                    field: "OffsetFetchRequest.topics",
                    version,
                });
            }
            writer.array_len(self.topics.as_ref().map(Vec::len), flexible)?;
            for element in self.topics.iter().flatten() {
                element.write(writer, version)?;
            }
        } else if !self.topics.as_ref().is_some_and(|value| value.is_empty()) {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetFetchRequest.topics",
                version,
            });
        }
        if version >= 8 {
            writer.array_len(Some(self.groups.len()), flexible)?;
            for element in &self.groups {
                element.write(writer, version)?;
            }
        } else if !self.groups.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetFetchRequest.groups",
                version,
            });
        }
        if version >= 7 {
            writer.bool(self.require_stable);
        } else if self.require_stable {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetFetchRequest.require_stable",
                version,
            });
        }
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        if version <= 7 {
            size += string_size(Some(self.group_id.len()), flexible);
        }
        if version <= 7 {
            size += array_len_size(self.topics.as_ref().map(Vec::len), flexible)
                + self.topics.iter().flatten().map(|element| element.size(version)).sum::<usize>();
        }
        if version >= 8 {
            size += array_len_size(Some(self.groups.len()), flexible)
                + self.groups.iter().map(|element| element.size(version)).sum::<usize>();
        }
        if version >= 7 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for OffsetFetchRequest {
    type Response = OffsetFetchResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchRequestTopic {
    pub name: String,
    pub partition_indexes: Vec<i32>,
}

impl OffsetFetchRequestTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "OffsetFetchRequestTopic.name", version)?;
        message.partition_indexes = reader.array(
            flexible,
            4,
            "OffsetFetchRequestTopic.partition_indexes",
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
        writer.string(&self.name, flexible)?;
        writer.array_len(Some(self.partition_indexes.len()), flexible)?;
        for element in &self.partition_indexes {
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
        size += string_size(Some(self.name.len()), flexible);
        size += array_len_size(Some(self.partition_indexes.len()), flexible)
            + 4 * self.partition_indexes.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct OffsetFetchRequestGroup {
    pub group_id: String,
    pub member_id: Option<String>,
    pub member_epoch: i32,
    pub topics: Option<Vec<OffsetFetchRequestTopics>>,
}

impl Default for OffsetFetchRequestGroup {
    fn default() -> Self {
        Self {
            group_id: String::new(),
            member_id: None,
            member_epoch: -1,
            topics: Some(Vec::new()),
        }
    }
}

impl OffsetFetchRequestGroup {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "OffsetFetchRequestGroup.group_id", version)?;
        if version >= 9 {
            message.member_id = reader.nullable_string(flexible)?;
        }
        if version >= 9 {
            message.member_epoch = reader.int32()?;
        }
        message.topics =
            reader.nullable_array(flexible, OffsetFetchRequestTopics::SIZE_MIN, |reader| {
                OffsetFetchRequestTopics::read(reader, version)
            })?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.group_id, flexible)?;
        if version >= 9 {
            writer.nullable_string(self.member_id.as_deref(), flexible)?;
        }
        if version >= 9 {
            writer.int32(self.member_epoch);
        }
        writer.array_len(self.topics.as_ref().map(Vec::len), flexible)?;
        for element in self.topics.iter().flatten() {
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
        size += string_size(Some(self.group_id.len()), flexible);
        if version >= 9 {
            size += string_size(self.member_id.as_ref().map(String::len), flexible);
        }
        if version >= 9 {
            size += 4;
        }
        size += array_len_size(self.topics.as_ref().map(Vec::len), flexible)
            + self.topics.iter().flatten().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchRequestTopics {
    pub name: String,
    pub topic_id: [u8; 16],
    pub partition_indexes: Vec<i32>,
}

impl OffsetFetchRequestTopics {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 9 {
            message.name = reader.string(flexible, "OffsetFetchRequestTopics.name", version)?;
        }
        if version >= 10 {
            message.topic_id = reader.uuid()?;
        }
        message.partition_indexes = reader.array(
            flexible,
            4,
            "OffsetFetchRequestTopics.partition_indexes",
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
        if version <= 9 {
            writer.string(&self.name, flexible)?;
        }
        if version >= 10 {
            writer.uuid(self.topic_id);
        }
        writer.array_len(Some(self.partition_indexes.len()), flexible)?;
        for element in &self.partition_indexes {
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
        if version <= 9 {
            size += string_size(Some(self.name.len()), flexible);
        }
        if version >= 10 {
            size += 16;
        }
        size += array_len_size(Some(self.partition_indexes.len()), flexible)
            + 4 * self.partition_indexes.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetFetchResponseTopic>,
    pub error_code: i16,
    pub groups: Vec<OffsetFetchResponseGroup>,
}

impl Message for OffsetFetchResponse {
    const KEY: ApiKey = ApiKey::OffsetFetch;
    const NAME: &'static str = "OffsetFetchResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 3 {
            message.throttle_time_ms = reader.int32()?;
        }
        if version <= 7 {
            message.topics = reader.array(
                flexible,
                OffsetFetchResponseTopic::SIZE_MIN,
                "OffsetFetchResponse.topics",
                version,
                |reader| OffsetFetchResponseTopic::read(reader, version),
            )?;
        }
        if (2..=7).contains(&version) {
            message.error_code = reader.int16()?;
        }
        if version >= 8 {
            message.groups = reader.array(
                flexible,
                OffsetFetchResponseGroup::SIZE_MIN,
                "OffsetFetchResponse.groups",
                version,
                |reader| OffsetFetchResponseGroup::read(reader, version),
            )?;
        }
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
        if version <= 7 {
            writer.array_len(Some(self.topics.len()), flexible)?;
            for element in &self.topics {
                element.write(writer, version)?;
            }
        } else if !self.topics.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetFetchResponse.topics",
                version,
            });
        }
        if (2..=7).contains(&version) {
            writer.int16(self.error_code);
        }
        if version >= 8 {
            writer.array_len(Some(self.groups.len()), flexible)?;
            for element in &self.groups {
                element.write(writer, version)?;
            }
        } else if !self.groups.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "OffsetFetchResponse.groups",
                version,
            });
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
        if version <= 7 {
            size += array_len_size(Some(self.topics.len()), flexible)
                + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        }
        if (2..=7).contains(&version) {
            size += 2;
        }
        if version >= 8 {
            size += array_len_size(Some(self.groups.len()), flexible)
                + self.groups.iter().map(|element| element.size(version)).sum::<usize>();
        }
        size += usize::from(flexible);
        size
    }
}

impl Response for OffsetFetchResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponseTopic {
    pub name: String,
    pub partitions: Vec<OffsetFetchResponsePartition>,
}

impl OffsetFetchResponseTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "OffsetFetchResponseTopic.name", version)?;
        message.partitions = reader.array(
            flexible,
            OffsetFetchResponsePartition::SIZE_MIN,
            "OffsetFetchResponseTopic.partitions",
            version,
            |reader| OffsetFetchResponsePartition::read(reader, version),
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
pub struct OffsetFetchResponsePartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    pub committed_leader_epoch: i32,
    pub metadata: Option<String>,
    pub error_code: i16,
}

impl Default for OffsetFetchResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            metadata: Some(String::new()),
            error_code: 0,
        }
    }
}

impl OffsetFetchResponsePartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 16;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.committed_offset = reader.int64()?;
        if version >= 5 {
            message.committed_leader_epoch = reader.int32()?;
        }
        message.metadata = reader.nullable_string(flexible)?;
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
        writer.int64(self.committed_offset);
        if version >= 5 {
            writer.int32(self.committed_leader_epoch);
        }
        writer.nullable_string(self.metadata.as_deref(), flexible)?;
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
        size += 8;
        if version >= 5 {
            size += 4;
        }
        size += string_size(self.metadata.as_ref().map(String::len), flexible);
        size += 2;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponseGroup {
    pub group_id: String,
    pub topics: Vec<OffsetFetchResponseTopics>,
    pub error_code: i16,
}

impl OffsetFetchResponseGroup {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 5;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "OffsetFetchResponseGroup.group_id", version)?;
        message.topics = reader.array(
            flexible,
            OffsetFetchResponseTopics::SIZE_MIN,
            "OffsetFetchResponseGroup.topics",
            version,
            |reader| OffsetFetchResponseTopics::read(reader, version),
        )?;
        message.error_code = reader.int16()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.group_id, flexible)?;
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
            element.write(writer, version)?;
        }
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
        size += string_size(Some(self.group_id.len()), flexible);
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        size += 2;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetFetchResponseTopics {
    pub name: String,
    pub topic_id: [u8; 16],
    pub partitions: Vec<OffsetFetchResponsePartitions>,
}

impl OffsetFetchResponseTopics {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 9 {
            message.name = reader.string(flexible, "OffsetFetchResponseTopics.name", version)?;
        }
        if version >= 10 {
            message.topic_id = reader.uuid()?;
        }
        message.partitions = reader.array(
            flexible,
            OffsetFetchResponsePartitions::SIZE_MIN,
            "OffsetFetchResponseTopics.partitions",
            version,
            |reader| OffsetFetchResponsePartitions::read(reader, version),
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
pub struct OffsetFetchResponsePartitions {
    pub partition_index: i32,
    pub committed_offset: i64,
    pub committed_leader_epoch: i32,
    pub metadata: Option<String>,
    pub error_code: i16,
}

impl Default for OffsetFetchResponsePartitions {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            metadata: Some(String::new()),
            error_code: 0,
        }
    }
}

impl OffsetFetchResponsePartitions {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 20;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.committed_offset = reader.int64()?;
        message.committed_leader_epoch = reader.int32()?;
        message.metadata = reader.nullable_string(flexible)?;
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
        writer.int64(self.committed_offset);
        writer.int32(self.committed_leader_epoch);
        writer.nullable_string(self.metadata.as_deref(), flexible)?;
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
        size += 8;
        size += 4;
        size += string_size(self.metadata.as_ref().map(String::len), flexible);
        size += 2;
        size += usize::from(flexible);
        size
    }
}
