//! Metadata (3). Generated from `schema/metadata.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 9;

#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRequest {
    pub topics: Option<Vec<MetadataRequestTopic>>,
    pub allow_auto_topic_creation: bool,
    pub include_cluster_authorized_operations: bool,
    pub include_topic_authorized_operations: bool,
}

impl Default for MetadataRequest {
    fn default() -> Self {
        Self {
            topics: Some(Vec::new()),
            allow_auto_topic_creation: true,
            include_cluster_authorized_operations: false,
            include_topic_authorized_operations: false,
        }
    }
}

impl Message for MetadataRequest {
    const KEY: ApiKey = ApiKey::Metadata;
    const NAME: &'static str = "MetadataRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topics = if version >= 1 {
            reader.nullable_array(flexible, MetadataRequestTopic::SIZE_MIN, |reader| {
                MetadataRequestTopic::read(reader, version)
            })?
        } else {
            Some(reader.array(
                flexible,
                MetadataRequestTopic::SIZE_MIN,
                "MetadataRequest.topics",
                version,
                |reader| MetadataRequestTopic::read(reader, version),
            )?)
        };
        if version >= 4 {
            message.allow_auto_topic_creation = reader.bool()?;
        }
        if (8..=10).contains(&version) {
            message.include_cluster_authorized_operations = reader.bool()?;
        }
        if version >= 8 {
            message.include_topic_authorized_operations = reader.bool()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if self.topics.is_none() && version < 1 {
            return Err(WireError::UnexpectedNull { field: "MetadataRequest.topics", version });
        }
        writer.array_len(self.topics.as_ref().map(Vec::len), flexible)?;
        for element in self.topics.iter().flatten() {
            element.write(writer, version)?;
        }
        if version >= 4 {
            writer.bool(self.allow_auto_topic_creation);
        } else if !self.allow_auto_topic_creation {
            return Err(WireError::FieldNotInVersion {
                field: "MetadataRequest.allow_auto_topic_creation",
                version,
            });
        }
        if (8..=10).contains(&version) {
            writer.bool(self.include_cluster_authorized_operations);
        } else if self.include_cluster_authorized_operations {
            return Err(WireError::FieldNotInVersion {
                field: "MetadataRequest.include_cluster_authorized_operations",
                version,
            });
        }
        if version >= 8 {
            writer.bool(self.include_topic_authorized_operations);
        } else if self.include_topic_authorized_operations {
            return Err(WireError::FieldNotInVersion {
                field: "MetadataRequest.include_topic_authorized_operations",
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
        size += array_len_size(self.topics.as_ref().map(Vec::len), flexible)
            + self.topics.iter().flatten().map(|element| element.size(version)).sum::<usize>();
        if version >= 4 {
            size += 1;
        }
        if (8..=10).contains(&version) {
            size += 1;
        }
        if version >= 8 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for MetadataRequest {
    type Response = MetadataResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRequestTopic {
    pub topic_id: [u8; 16],
    pub name: Option<String>,
}

impl Default for MetadataRequestTopic {
    fn default() -> Self {
        Self { topic_id: [0; 16], name: Some(String::new()) }
    }
}

impl MetadataRequestTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 2;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 10 {
            message.topic_id = reader.uuid()?;
        }
        message.name = if version >= 10 {
            reader.nullable_string(flexible)?
        } else {
            Some(reader.string(flexible, "MetadataRequestTopic.name", version)?)
        };
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 10 {
            writer.uuid(self.topic_id);
        }
        if self.name.is_none() && version < 10 {
            return Err(WireError::UnexpectedNull { field: "MetadataRequestTopic.name", version });
        }
        writer.nullable_string(self.name.as_deref(), flexible)?;
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        if version >= 10 {
            size += 16;
        }
        size += string_size(self.name.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponse {
    pub throttle_time_ms: i32,
    pub brokers: Vec<MetadataResponseBroker>,
    pub cluster_id: Option<String>,
    pub controller_id: i32,
    pub topics: Vec<MetadataResponseTopic>,
    pub cluster_authorized_operations: i32,
    pub error_code: i16,
}

impl Default for MetadataResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            brokers: Vec::new(),
            cluster_id: None,
            controller_id: -1,
            topics: Vec::new(),
            cluster_authorized_operations: i32::MIN,
            error_code: 0,
        }
    }
}

impl Message for MetadataResponse {
    const KEY: ApiKey = ApiKey::Metadata;
    const NAME: &'static str = "MetadataResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 3 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.brokers = reader.array(
            flexible,
            MetadataResponseBroker::SIZE_MIN,
            "MetadataResponse.brokers",
            version,
            |reader| MetadataResponseBroker::read(reader, version),
        )?;
        if version >= 2 {
            message.cluster_id = reader.nullable_string(flexible)?;
        }
        if version >= 1 {
            message.controller_id = reader.int32()?;
        }
        message.topics = reader.array(
            flexible,
            MetadataResponseTopic::SIZE_MIN,
            "MetadataResponse.topics",
            version,
            |reader| MetadataResponseTopic::read(reader, version),
        )?;
        if (8..=10).contains(&version) {
            message.cluster_authorized_operations = reader.int32()?;
        }
        if version >= 13 {
            message.error_code = reader.int16()?;
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
        writer.array_len(Some(self.brokers.len()), flexible)?;
        for element in &self.brokers {
            element.write(writer, version)?;
        }
        if version >= 2 {
            writer.nullable_string(self.cluster_id.as_deref(), flexible)?;
        }
        if version >= 1 {
            writer.int32(self.controller_id);
        }
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
            element.write(writer, version)?;
        }
        if (8..=10).contains(&version) {
            writer.int32(self.cluster_authorized_operations);
        } else if self.cluster_authorized_operations != i32::MIN {
            return Err(WireError::FieldNotInVersion {
                field: "MetadataResponse.cluster_authorized_operations",
                version,
            });
        }
        if version >= 13 {
            writer.int16(self.error_code);
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
        size += array_len_size(Some(self.brokers.len()), flexible)
            + self.brokers.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 2 {
            size += string_size(self.cluster_id.as_ref().map(String::len), flexible);
        }
        if version >= 1 {
            size += 4;
        }
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        if (8..=10).contains(&version) {
            size += 4;
        }
        if version >= 13 {
            size += 2;
        }
        size += usize::from(flexible);
        size
    }
}

impl Response for MetadataResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataResponseBroker {
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    pub rack: Option<String>,
}

impl MetadataResponseBroker {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 10;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.node_id = reader.int32()?;
        message.host = reader.string(flexible, "MetadataResponseBroker.host", version)?;
        message.port = reader.int32()?;
        if version >= 1 {
            message.rack = reader.nullable_string(flexible)?;
        }
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
        if version >= 1 {
            writer.nullable_string(self.rack.as_deref(), flexible)?;
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
        size += string_size(Some(self.host.len()), flexible);
        size += 4;
        if version >= 1 {
            size += string_size(self.rack.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponseTopic {
    pub error_code: i16,
    pub name: Option<String>,
    pub topic_id: [u8; 16],
    pub is_internal: bool,
    pub partitions: Vec<MetadataResponsePartition>,
    pub topic_authorized_operations: i32,
}

impl Default for MetadataResponseTopic {
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

impl MetadataResponseTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 8;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.name = if version >= 12 {
            reader.nullable_string(flexible)?
        } else {
            Some(reader.string(flexible, "MetadataResponseTopic.name", version)?)
        };
        if version >= 10 {
            message.topic_id = reader.uuid()?;
        }
        if version >= 1 {
            message.is_internal = reader.bool()?;
        }
        message.partitions = reader.array(
            flexible,
            MetadataResponsePartition::SIZE_MIN,
            "MetadataResponseTopic.partitions",
            version,
            |reader| MetadataResponsePartition::read(reader, version),
        )?;
        if version >= 8 {
            message.topic_authorized_operations = reader.int32()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int16(self.error_code);
        if self.name.is_none() && version < 12 {
            return Err(WireError::UnexpectedNull { field: "MetadataResponseTopic.name", version });
        }
        writer.nullable_string(self.name.as_deref(), flexible)?;
        if version >= 10 {
            writer.uuid(self.topic_id);
        }
        if version >= 1 {
            writer.bool(self.is_internal);
        }
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
            element.write(writer, version)?;
        }
        if version >= 8 {
            writer.int32(self.topic_authorized_operations);
        } else if self.topic_authorized_operations != i32::MIN {
            return Err(WireError::FieldNotInVersion {
                field: "MetadataResponseTopic.topic_authorized_operations",
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
        size += 2;
        size += string_size(self.name.as_ref().map(String::len), flexible);
        if version >= 10 {
            size += 16;
        }
        if version >= 1 {
            size += 1;
        }
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 8 {
            size += 4;
        }
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MetadataResponsePartition {
    pub error_code: i16,
    pub partition_index: i32,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub replica_nodes: Vec<i32>,
    pub isr_nodes: Vec<i32>,
    pub offline_replicas: Vec<i32>,
}

impl Default for MetadataResponsePartition {
    fn default() -> Self {
        Self {
            error_code: 0,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            offline_replicas: Vec::new(),
        }
    }
}

impl MetadataResponsePartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 18;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.partition_index = reader.int32()?;
        message.leader_id = reader.int32()?;
        if version >= 7 {
            message.leader_epoch = reader.int32()?;
        }
        message.replica_nodes = reader.array(
            flexible,
            4,
            "MetadataResponsePartition.replica_nodes",
            version,
            |reader| reader.int32(),
        )?;
        message.isr_nodes = reader.array(
            flexible,
            4,
            "MetadataResponsePartition.isr_nodes",
            version,
            |reader| reader.int32(),
        )?;
        if version >= 5 {
            message.offline_replicas = reader.array(
                flexible,
                4,
                "MetadataResponsePartition.offline_replicas",
                version,
                |reader| reader.int32(),
            )?;
        }
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
        if version >= 7 {
            writer.int32(self.leader_epoch);
        }
        writer.array_len(Some(self.replica_nodes.len()), flexible)?;
        for element in &self.replica_nodes {
            writer.int32(*element);
        }
        writer.array_len(Some(self.isr_nodes.len()), flexible)?;
        for element in &self.isr_nodes {
            writer.int32(*element);
        }
        if version >= 5 {
            writer.array_len(Some(self.offline_replicas.len()), flexible)?;
            for element in &self.offline_replicas {
                writer.int32(*element);
            }
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
        if version >= 7 {
            size += 4;
        }
        size +=
            array_len_size(Some(self.replica_nodes.len()), flexible) + 4 * self.replica_nodes.len();
        size += array_len_size(Some(self.isr_nodes.len()), flexible) + 4 * self.isr_nodes.len();
        if version >= 5 {
            size += array_len_size(Some(self.offline_replicas.len()), flexible)
                + 4 * self.offline_replicas.len();
        }
        size += usize::from(flexible);
        size
    }
}
