//! DescribeTopicPartitions (75). Generated from `schema/describe_topic_partitions.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 0;

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsRequest {
    pub topics: Vec<TopicRequest>,
    pub response_partition_limit: i32,
    pub cursor: Option<Cursor>,
}

impl Default for DescribeTopicPartitionsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), response_partition_limit: 2000, cursor: None }
    }
}

impl Message for DescribeTopicPartitionsRequest {
    const KEY: ApiKey = ApiKey::DescribeTopicPartitions;
    const NAME: &'static str = "DescribeTopicPartitionsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topics = reader.array(
            flexible,
            TopicRequest::SIZE_MIN,
            "DescribeTopicPartitionsRequest.topics",
            version,
            |reader| TopicRequest::read(reader, version),
        )?;
        message.response_partition_limit = reader.int32()?;
        message.cursor =
            if reader.present()? { Some(Cursor::read(reader, version)?) } else { None };
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
        writer.int32(self.response_partition_limit);
        writer.present(self.cursor.is_some());
        if let Some(value) = &self.cursor {
            value.write(writer, version)?;
        }
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
        size += 1 + self.cursor.as_ref().map_or(0, |value| value.size(version));
        size += usize::from(flexible);
        size
    }
}

impl Request for DescribeTopicPartitionsRequest {
    type Response = DescribeTopicPartitionsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicRequest {
    pub name: String,
}

impl TopicRequest {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 2;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "TopicRequest.name", version)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
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
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cursor {
    pub topic_name: String,
    pub partition_index: i32,
}

impl Cursor {
    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topic_name = reader.string(flexible, "Cursor.topic_name", version)?;
        message.partition_index = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.topic_name, flexible)?;
        writer.int32(self.partition_index);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.topic_name.len()), flexible);
        size += 4;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeTopicPartitionsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    pub next_cursor: Option<NextCursor>,
}

impl Message for DescribeTopicPartitionsResponse {
    const KEY: ApiKey = ApiKey::DescribeTopicPartitions;
    const NAME: &'static str = "DescribeTopicPartitionsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.topics = reader.array(
            flexible,
            DescribeTopicPartitionsResponseTopic::SIZE_MIN,
            "DescribeTopicPartitionsResponse.topics",
            version,
            |reader| DescribeTopicPartitionsResponseTopic::read(reader, version),
        )?;
        message.next_cursor =
            if reader.present()? { Some(NextCursor::read(reader, version)?) } else { None };
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
        writer.present(self.next_cursor.is_some());
        if let Some(value) = &self.next_cursor {
            value.write(writer, version)?;
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
        size += 1 + self.next_cursor.as_ref().map_or(0, |value| value.size(version));
        size += usize::from(flexible);
        size
    }
}

impl Response for DescribeTopicPartitionsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsResponseTopic {
    pub error_code: i16,
    pub name: Option<String>,
    pub topic_id: [u8; 16],
    pub is_internal: bool,
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    pub topic_authorized_operations: i32,
}

impl Default for DescribeTopicPartitionsResponseTopic {
    fn default() -> Self {
        Self {
            error_code: 0,
            name: Some(String::new()),
            topic_id: [0; 16],
            is_internal: false,
            partitions: Vec::new(),
            topic_authorized_operations: i32::MIN,
        }
    }
}

impl DescribeTopicPartitionsResponseTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 26;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.name = reader.nullable_string(flexible)?;
        message.topic_id = reader.uuid()?;
        message.is_internal = reader.bool()?;
        message.partitions = reader.array(
            flexible,
            DescribeTopicPartitionsResponsePartition::SIZE_MIN,
            "DescribeTopicPartitionsResponseTopic.partitions",
            version,
            |reader| DescribeTopicPartitionsResponsePartition::read(reader, version),
        )?;
        message.topic_authorized_operations = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int16(self.error_code);
        writer.nullable_string(self.name.as_deref(), flexible)?;
        writer.uuid(self.topic_id);
        writer.bool(self.is_internal);
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
            element.write(writer, version)?;
        }
        writer.int32(self.topic_authorized_operations);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 2;
        size += string_size(self.name.as_ref().map(String::len), flexible);
        size += 16;
        size += 1;
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += 4;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeTopicPartitionsResponsePartition {
    pub error_code: i16,
    pub partition_index: i32,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub replica_nodes: Vec<i32>,
    pub isr_nodes: Vec<i32>,
    pub eligible_leader_replicas: Option<Vec<i32>>,
    pub last_known_elr: Option<Vec<i32>>,
    pub offline_replicas: Vec<i32>,
}

impl Default for DescribeTopicPartitionsResponsePartition {
    fn default() -> Self {
        Self {
            error_code: 0,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            offline_replicas: Vec::new(),
        }
    }
}

impl DescribeTopicPartitionsResponsePartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 20;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.partition_index = reader.int32()?;
        message.leader_id = reader.int32()?;
        message.leader_epoch = reader.int32()?;
        message.replica_nodes = reader.array(
            flexible,
            4,
            "DescribeTopicPartitionsResponsePartition.replica_nodes",
            version,
            |reader| reader.int32(),
        )?;
        message.isr_nodes = reader.array(
            flexible,
            4,
            "DescribeTopicPartitionsResponsePartition.isr_nodes",
            version,
            |reader| reader.int32(),
        )?;
        message.eligible_leader_replicas =
            reader.nullable_array(flexible, 4, |reader| reader.int32())?;
        message.last_known_elr = reader.nullable_array(flexible, 4, |reader| reader.int32())?;
        message.offline_replicas = reader.array(
            flexible,
            4,
            "DescribeTopicPartitionsResponsePartition.offline_replicas",
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
        writer.int16(self.error_code);
        writer.int32(self.partition_index);
        writer.int32(self.leader_id);
        writer.int32(self.leader_epoch);
        writer.array_len(Some(self.replica_nodes.len()), flexible)?;
        for element in &self.replica_nodes {
            writer.int32(*element);
        }
        writer.array_len(Some(self.isr_nodes.len()), flexible)?;
        for element in &self.isr_nodes {
            writer.int32(*element);
        }
        writer.array_len(self.eligible_leader_replicas.as_ref().map(Vec::len), flexible)?;
        for element in self.eligible_leader_replicas.iter().flatten() {
            writer.int32(*element);
        }
        writer.array_len(self.last_known_elr.as_ref().map(Vec::len), flexible)?;
        for element in self.last_known_elr.iter().flatten() {
            writer.int32(*element);
        }
        writer.array_len(Some(self.offline_replicas.len()), flexible)?;
        for element in &self.offline_replicas {
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
        size += 2;
        size += 4;
        size += 4;
        size += 4;
        size +=
            array_len_size(Some(self.replica_nodes.len()), flexible) + 4 * self.replica_nodes.len();
        size += array_len_size(Some(self.isr_nodes.len()), flexible) + 4 * self.isr_nodes.len();
        size += array_len_size(self.eligible_leader_replicas.as_ref().map(Vec::len), flexible)
            + 4 * self.eligible_leader_replicas.as_ref().map_or(0, Vec::len);
        size += array_len_size(self.last_known_elr.as_ref().map(Vec::len), flexible)
            + 4 * self.last_known_elr.as_ref().map_or(0, Vec::len);
        size += array_len_size(Some(self.offline_replicas.len()), flexible)
            + 4 * self.offline_replicas.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextCursor {
    pub topic_name: String,
    pub partition_index: i32,
}

impl NextCursor {
    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topic_name = reader.string(flexible, "NextCursor.topic_name", version)?;
        message.partition_index = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.topic_name, flexible)?;
        writer.int32(self.partition_index);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.topic_name.len()), flexible);
        size += 4;
        size += usize::from(flexible);
        size
    }
}
