//! Fetch (1). Generated from `schema/fetch.txt`: see `mod.rs`.

use bytes::Bytes;

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{
    Writer, array_len_size, bytes_size, string_size, tagged_size, uvarint_size,
};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 12;

#[derive(Clone, Debug, PartialEq)]
pub struct FetchRequest {
    pub cluster_id: Option<String>,
    pub replica_id: i32,
    pub replica_state: ReplicaState,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub isolation_level: i8,
    pub session_id: i32,
    pub session_epoch: i32,
    pub topics: Vec<FetchTopic>,
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    pub rack_id: String,
}

impl Default for FetchRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: -1,
            replica_state: ReplicaState::default(),
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: i32::MAX,
            isolation_level: 0,
            session_id: 0,
            session_epoch: -1,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
            rack_id: String::new(),
        }
    }
}

impl Message for FetchRequest {
    const KEY: ApiKey = ApiKey::Fetch;
    const NAME: &'static str = "FetchRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 14 {
            message.replica_id = reader.int32()?;
        }
        message.max_wait_ms = reader.int32()?;
        message.min_bytes = reader.int32()?;
        message.max_bytes = reader.int32()?;
        message.isolation_level = reader.int8()?;
        if version >= 7 {
            message.session_id = reader.int32()?;
        }
        if version >= 7 {
            message.session_epoch = reader.int32()?;
        }
        message.topics = reader.array(
            flexible,
            FetchTopic::SIZE_MIN,
            "FetchRequest.topics",
            version,
            |reader| FetchTopic::read(reader, version),
        )?;
        if version >= 7 {
            message.forgotten_topics_data = reader.array(
                flexible,
                ForgottenTopic::SIZE_MIN,
                "FetchRequest.forgotten_topics_data",
                version,
                |reader| ForgottenTopic::read(reader, version),
            )?;
        }
        if version >= 11 {
            message.rack_id = reader.string(flexible, "FetchRequest.rack_id", version)?;
        }
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 12 => message.cluster_id = reader.nullable_string(flexible)?,
                    1 if version >= 15 => {
                        message.replica_state = ReplicaState::read(reader, version)?
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 14 {
            writer.int32(self.replica_id);
        } else if self.replica_id != -1 {
            return Err(WireError::FieldNotInVersion { field: "FetchRequest.replica_id", version });
        }
        writer.int32(self.max_wait_ms);
        writer.int32(self.min_bytes);
        writer.int32(self.max_bytes);
        writer.int8(self.isolation_level);
        if version >= 7 {
            writer.int32(self.session_id);
        }
        if version >= 7 {
            writer.int32(self.session_epoch);
        }
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
            element.write(writer, version)?;
        }
        if version >= 7 {
            writer.array_len(Some(self.forgotten_topics_data.len()), flexible)?;
            for element in &self.forgotten_topics_data {
                element.write(writer, version)?;
            }
        } else if !self.forgotten_topics_data.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "FetchRequest.forgotten_topics_data",
                version,
            });
        }
        if version >= 11 {
            writer.string(&self.rack_id, flexible)?;
        }
        if version < 15 && self.replica_state != ReplicaState::default() {
            return Err(WireError::FieldNotInVersion {
                field: "FetchRequest.replica_state",
                version,
            });
        }
        if flexible {
            let mut count = 0;
            if version >= 12 && self.cluster_id.is_some() {
                count += 1;
            }
            if version >= 15 && self.replica_state != ReplicaState::default() {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 12 && self.cluster_id.is_some() {
                writer.tag(0, string_size(self.cluster_id.as_ref().map(String::len), flexible))?;
                writer.nullable_string(self.cluster_id.as_deref(), flexible)?;
            }
            if version >= 15 && self.replica_state != ReplicaState::default() {
                writer.tag(1, self.replica_state.size(version))?;
                self.replica_state.write(writer, version)?;
            }
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        if version <= 14 {
            size += 4;
        }
        size += 4;
        size += 4;
        size += 4;
        size += 1;
        if version >= 7 {
            size += 4;
        }
        if version >= 7 {
            size += 4;
        }
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 7 {
            size += array_len_size(Some(self.forgotten_topics_data.len()), flexible)
                + self
                    .forgotten_topics_data
                    .iter()
                    .map(|element| element.size(version))
                    .sum::<usize>();
        }
        if version >= 11 {
            size += string_size(Some(self.rack_id.len()), flexible);
        }
        if flexible {
            let mut count = 0;
            if version >= 12 && self.cluster_id.is_some() {
                count += 1;
                size += tagged_size(
                    0,
                    string_size(self.cluster_id.as_ref().map(String::len), flexible),
                );
            }
            if version >= 15 && self.replica_state != ReplicaState::default() {
                count += 1;
                size += tagged_size(1, self.replica_state.size(version));
            }
            size += uvarint_size(count);
        }
        size
    }
}

impl Request for FetchRequest {
    type Response = FetchResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaState {
    pub replica_id: i32,
    pub replica_epoch: i64,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self { replica_id: -1, replica_epoch: -1 }
    }
}

impl ReplicaState {
    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.replica_id = reader.int32()?;
        message.replica_epoch = reader.int64()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.replica_id);
        writer.int64(self.replica_epoch);
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
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchTopic {
    pub topic: String,
    pub topic_id: [u8; 16],
    pub partitions: Vec<FetchPartition>,
}

impl FetchTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 12 {
            message.topic = reader.string(flexible, "FetchTopic.topic", version)?;
        }
        if version >= 13 {
            message.topic_id = reader.uuid()?;
        }
        message.partitions = reader.array(
            flexible,
            FetchPartition::SIZE_MIN,
            "FetchTopic.partitions",
            version,
            |reader| FetchPartition::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 12 {
            writer.string(&self.topic, flexible)?;
        }
        if version >= 13 {
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
        if version <= 12 {
            size += string_size(Some(self.topic.len()), flexible);
        }
        if version >= 13 {
            size += 16;
        }
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FetchPartition {
    pub partition: i32,
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    pub last_fetched_epoch: i32,
    pub log_start_offset: i64,
    pub partition_max_bytes: i32,
    pub replica_directory_id: [u8; 16],
    pub high_watermark: i64,
}

impl Default for FetchPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            fetch_offset: 0,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 0,
            replica_directory_id: [0; 16],
            high_watermark: i64::MAX,
        }
    }
}

impl FetchPartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 16;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition = reader.int32()?;
        if version >= 9 {
            message.current_leader_epoch = reader.int32()?;
        }
        message.fetch_offset = reader.int64()?;
        if version >= 12 {
            message.last_fetched_epoch = reader.int32()?;
        }
        if version >= 5 {
            message.log_start_offset = reader.int64()?;
        }
        message.partition_max_bytes = reader.int32()?;
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 17 => message.replica_directory_id = reader.uuid()?,
                    1 if version >= 18 => message.high_watermark = reader.int64()?,
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
        writer.int32(self.partition);
        if version >= 9 {
            writer.int32(self.current_leader_epoch);
        }
        writer.int64(self.fetch_offset);
        if version >= 12 {
            writer.int32(self.last_fetched_epoch);
        } else if self.last_fetched_epoch != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "FetchPartition.last_fetched_epoch",
                version,
            });
        }
        if version >= 5 {
            writer.int64(self.log_start_offset);
        }
        writer.int32(self.partition_max_bytes);
        if flexible {
            let mut count = 0;
            if version >= 17 && self.replica_directory_id != [0; 16] {
                count += 1;
            }
            if version >= 18 && self.high_watermark != i64::MAX {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 17 && self.replica_directory_id != [0; 16] {
                writer.tag(0, 16)?;
                writer.uuid(self.replica_directory_id);
            }
            if version >= 18 && self.high_watermark != i64::MAX {
                writer.tag(1, 8)?;
                writer.int64(self.high_watermark);
            }
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 4;
        if version >= 9 {
            size += 4;
        }
        size += 8;
        if version >= 12 {
            size += 4;
        }
        if version >= 5 {
            size += 8;
        }
        size += 4;
        if flexible {
            let mut count = 0;
            if version >= 17 && self.replica_directory_id != [0; 16] {
                count += 1;
                size += tagged_size(0, 16);
            }
            if version >= 18 && self.high_watermark != i64::MAX {
                count += 1;
                size += tagged_size(1, 8);
            }
            size += uvarint_size(count);
        }
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForgottenTopic {
    pub topic: String,
    pub topic_id: [u8; 16],
    pub partitions: Vec<i32>,
}

impl ForgottenTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 12 {
            message.topic = reader.string(flexible, "ForgottenTopic.topic", version)?;
        }
        if version >= 13 {
            message.topic_id = reader.uuid()?;
        }
        message.partitions =
            reader.array(flexible, 4, "ForgottenTopic.partitions", version, |reader| {
                reader.int32()
            })?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 12 {
            writer.string(&self.topic, flexible)?;
        }
        if version >= 13 {
            writer.uuid(self.topic_id);
        }
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
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
        if version <= 12 {
            size += string_size(Some(self.topic.len()), flexible);
        }
        if version >= 13 {
            size += 16;
        }
        size += array_len_size(Some(self.partitions.len()), flexible) + 4 * self.partitions.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub session_id: i32,
    pub responses: Vec<FetchableTopicResponse>,
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Message for FetchResponse {
    const KEY: ApiKey = ApiKey::Fetch;
    const NAME: &'static str = "FetchResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        if version >= 7 {
            message.error_code = reader.int16()?;
        }
        if version >= 7 {
            message.session_id = reader.int32()?;
        }
        message.responses = reader.array(
            flexible,
            FetchableTopicResponse::SIZE_MIN,
            "FetchResponse.responses",
            version,
            |reader| FetchableTopicResponse::read(reader, version),
        )?;
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 16 => {
                        message.node_endpoints = reader.array(
                            flexible,
                            NodeEndpoint::SIZE_MIN,
                            "FetchResponse.node_endpoints",
                            version,
                            |reader| NodeEndpoint::read(reader, version),
                        )?
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.throttle_time_ms);
        if version >= 7 {
            writer.int16(self.error_code);
        }
        if version >= 7 {
            writer.int32(self.session_id);
        } else if self.session_id != 0 {
            return Err(WireError::FieldNotInVersion {
                field: "FetchResponse.session_id",
                version,
            });
        }
        writer.array_len(Some(self.responses.len()), flexible)?;
        for element in &self.responses {
            element.write(writer, version)?;
        }
        if version < 16 && !self.node_endpoints.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "FetchResponse.node_endpoints",
                version,
            });
        }
        if flexible {
            let mut count = 0;
            if version >= 16 && !self.node_endpoints.is_empty() {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 16 && !self.node_endpoints.is_empty() {
                writer.tag(
                    0,
                    array_len_size(Some(self.node_endpoints.len()), flexible)
                        + self
                            .node_endpoints
                            .iter()
                            .map(|element| element.size(version))
                            .sum::<usize>(),
                )?;
                writer.array_len(Some(self.node_endpoints.len()), flexible)?;
                for element in &self.node_endpoints {
                    element.write(writer, version)?;
                }
            }
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 4;
        if version >= 7 {
            size += 2;
        }
        if version >= 7 {
            size += 4;
        }
        size += array_len_size(Some(self.responses.len()), flexible)
            + self.responses.iter().map(|element| element.size(version)).sum::<usize>();
        if flexible {
            let mut count = 0;
            if version >= 16 && !self.node_endpoints.is_empty() {
                count += 1;
                size += tagged_size(
                    0,
                    array_len_size(Some(self.node_endpoints.len()), flexible)
                        + self
                            .node_endpoints
                            .iter()
                            .map(|element| element.size(version))
                            .sum::<usize>(),
                );
            }
            size += uvarint_size(count);
        }
        size
    }
}

impl Response for FetchResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FetchableTopicResponse {
    pub topic: String,
    pub topic_id: [u8; 16],
    pub partitions: Vec<PartitionData>,
}

impl FetchableTopicResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 12 {
            message.topic = reader.string(flexible, "FetchableTopicResponse.topic", version)?;
        }
        if version >= 13 {
            message.topic_id = reader.uuid()?;
        }
        message.partitions = reader.array(
            flexible,
            PartitionData::SIZE_MIN,
            "FetchableTopicResponse.partitions",
            version,
            |reader| PartitionData::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if version <= 12 {
            writer.string(&self.topic, flexible)?;
        }
        if version >= 13 {
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
        if version <= 12 {
            size += string_size(Some(self.topic.len()), flexible);
        }
        if version >= 13 {
            size += 16;
        }
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionData {
    pub partition_index: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    pub diverging_epoch: EpochEndOffset,
    pub current_leader: LeaderIdAndEpoch,
    pub snapshot_id: SnapshotId,
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    pub preferred_read_replica: i32,
    pub records: Option<Bytes>,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: 0,
            high_watermark: 0,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: EpochEndOffset::default(),
            current_leader: LeaderIdAndEpoch::default(),
            snapshot_id: SnapshotId::default(),
            aborted_transactions: Some(Vec::new()),
            preferred_read_replica: -1,
            records: None,
        }
    }
}

impl PartitionData {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 30;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.error_code = reader.int16()?;
        message.high_watermark = reader.int64()?;
        message.last_stable_offset = reader.int64()?;
        if version >= 5 {
            message.log_start_offset = reader.int64()?;
        }
        message.aborted_transactions =
            reader.nullable_array(flexible, AbortedTransaction::SIZE_MIN, |reader| {
                AbortedTransaction::read(reader, version)
            })?;
        if version >= 11 {
            message.preferred_read_replica = reader.int32()?;
        }
        message.records = reader.nullable_bytes(flexible)?;
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 12 => {
                        message.diverging_epoch = EpochEndOffset::read(reader, version)?
                    }
                    1 if version >= 12 => {
                        message.current_leader = LeaderIdAndEpoch::read(reader, version)?
                    }
                    2 if version >= 12 => message.snapshot_id = SnapshotId::read(reader, version)?,
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
        writer.int32(self.partition_index);
        writer.int16(self.error_code);
        writer.int64(self.high_watermark);
        writer.int64(self.last_stable_offset);
        if version >= 5 {
            writer.int64(self.log_start_offset);
        }
        writer.array_len(self.aborted_transactions.as_ref().map(Vec::len), flexible)?;
        for element in self.aborted_transactions.iter().flatten() {
            element.write(writer, version)?;
        }
        if version >= 11 {
            writer.int32(self.preferred_read_replica);
        } else if self.preferred_read_replica != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "PartitionData.preferred_read_replica",
                version,
            });
        }
        writer.nullable_bytes(self.records.as_deref(), flexible)?;
        if version < 12 && self.diverging_epoch != EpochEndOffset::default() {
            return Err(WireError::FieldNotInVersion {
                field: "PartitionData.diverging_epoch",
                version,
            });
        }
        if version < 12 && self.current_leader != LeaderIdAndEpoch::default() {
            return Err(WireError::FieldNotInVersion {
                field: "PartitionData.current_leader",
                version,
            });
        }
        if version < 12 && self.snapshot_id != SnapshotId::default() {
            return Err(WireError::FieldNotInVersion {
                field: "PartitionData.snapshot_id",
                version,
            });
        }
        if flexible {
            let mut count = 0;
            if version >= 12 && self.diverging_epoch != EpochEndOffset::default() {
                count += 1;
            }
            if version >= 12 && self.current_leader != LeaderIdAndEpoch::default() {
                count += 1;
            }
            if version >= 12 && self.snapshot_id != SnapshotId::default() {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 12 && self.diverging_epoch != EpochEndOffset::default() {
                writer.tag(0, self.diverging_epoch.size(version))?;
                self.diverging_epoch.write(writer, version)?;
            }
            if version >= 12 && self.current_leader != LeaderIdAndEpoch::default() {
                writer.tag(1, self.current_leader.size(version))?;
                self.current_leader.write(writer, version)?;
            }
            if version >= 12 && self.snapshot_id != SnapshotId::default() {
                writer.tag(2, self.snapshot_id.size(version))?;
                self.snapshot_id.write(writer, version)?;
            }
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
        if version >= 5 {
            size += 8;
        }
        size += array_len_size(self.aborted_transactions.as_ref().map(Vec::len), flexible)
            + self
                .aborted_transactions
                .iter()
                .flatten()
                .map(|element| element.size(version))
                .sum::<usize>();
        if version >= 11 {
            size += 4;
        }
        size += bytes_size(self.records.as_ref().map(Bytes::len), flexible);
        if flexible {
            let mut count = 0;
            if version >= 12 && self.diverging_epoch != EpochEndOffset::default() {
                count += 1;
                size += tagged_size(0, self.diverging_epoch.size(version));
            }
            if version >= 12 && self.current_leader != LeaderIdAndEpoch::default() {
                count += 1;
                size += tagged_size(1, self.current_leader.size(version));
            }
            if version >= 12 && self.snapshot_id != SnapshotId::default() {
                count += 1;
                size += tagged_size(2, self.snapshot_id.size(version));
            }
            size += uvarint_size(count);
        }
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct EpochEndOffset {
    pub epoch: i32,
    pub end_offset: i64,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self { epoch: -1, end_offset: -1 }
    }
}

impl EpochEndOffset {
    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.epoch = reader.int32()?;
        message.end_offset = reader.int64()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.epoch);
        writer.int64(self.end_offset);
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
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeaderIdAndEpoch {
    pub leader_id: i32,
    pub leader_epoch: i32,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1 }
    }
}

impl LeaderIdAndEpoch {
    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.leader_id = reader.int32()?;
        message.leader_epoch = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.leader_id);
        writer.int32(self.leader_epoch);
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
        size += 4;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotId {
    pub end_offset: i64,
    pub epoch: i32,
}

impl Default for SnapshotId {
    fn default() -> Self {
        Self { end_offset: -1, epoch: -1 }
    }
}

impl SnapshotId {
    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.end_offset = reader.int64()?;
        message.epoch = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int64(self.end_offset);
        writer.int32(self.epoch);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 8;
        size += 4;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

impl AbortedTransaction {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 16;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.producer_id = reader.int64()?;
        message.first_offset = reader.int64()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int64(self.producer_id);
        writer.int64(self.first_offset);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 8;
        size += 8;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeEndpoint {
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    pub rack: Option<String>,
}

impl NodeEndpoint {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 11;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.node_id = reader.int32()?;
        message.host = reader.string(flexible, "NodeEndpoint.host", version)?;
        message.port = reader.int32()?;
        message.rack = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.node_id);
        writer.string(&self.host, flexible)?;
        writer.int32(self.port);
        writer.nullable_string(self.rack.as_deref(), flexible)?;
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
        size += string_size(Some(self.host.len()), flexible);
        size += 4;
        size += string_size(self.rack.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}
