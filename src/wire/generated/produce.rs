//! Produce (0). Generated from `schema/produce.txt`: see `mod.rs`.

use bytes::Bytes;

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{
    Writer, array_len_size, bytes_size, string_size, tagged_size, uvarint_size,
};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 9;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProduceRequest {
    pub transactional_id: Option<String>,
    pub acks: i16,
    pub timeout_ms: i32,
    pub topic_data: Vec<TopicProduceData>,
}

impl Message for ProduceRequest {
    const KEY: ApiKey = ApiKey::Produce;
    const NAME: &'static str = "ProduceRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.transactional_id = reader.nullable_string(flexible)?;
        message.acks = reader.int16()?;
        message.timeout_ms = reader.int32()?;
        message.topic_data = reader.array(
            flexible,
            TopicProduceData::SIZE_MIN,
            "ProduceRequest.topic_data",
            version,
            |reader| TopicProduceData::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.nullable_string(self.transactional_id.as_deref(), flexible)?;
        writer.int16(self.acks);
        writer.int32(self.timeout_ms);
        writer.array_len(Some(self.topic_data.len()), flexible)?;
        for element in &self.topic_data {
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
        size += string_size(self.transactional_id.as_ref().map(String::len), flexible);
        size += 2;
        size += 4;
        size += array_len_size(Some(self.topic_data.len()), flexible)
            + self.topic_data.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Request for ProduceRequest {
    type Response = ProduceResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicProduceData {
    pub name: String,
    pub topic_id: [u8; 16],
    pub partition_data: Vec<PartitionProduceData>,
}

impl TopicProduceData {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 12 {
            message.name = reader.string(flexible, "TopicProduceData.name", version)?;
        }
        if version >= 13 {
            message.topic_id = reader.uuid()?;
        }
        message.partition_data = reader.array(
            flexible,
            PartitionProduceData::SIZE_MIN,
            "TopicProduceData.partition_data",
            version,
            |reader| PartitionProduceData::read(reader, version),
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
            writer.string(&self.name, flexible)?;
        }
        if version >= 13 {
            writer.uuid(self.topic_id);
        }
        writer.array_len(Some(self.partition_data.len()), flexible)?;
        for element in &self.partition_data {
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
            size += string_size(Some(self.name.len()), flexible);
        }
        if version >= 13 {
            size += 16;
        }
        size += array_len_size(Some(self.partition_data.len()), flexible)
            + self.partition_data.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionProduceData {
    pub index: i32,
    pub records: Option<Bytes>,
}

impl PartitionProduceData {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.index = reader.int32()?;
        message.records = reader.nullable_bytes(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.index);
        writer.nullable_bytes(self.records.as_deref(), flexible)?;
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
        size += bytes_size(self.records.as_ref().map(Bytes::len), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProduceResponse {
    pub responses: Vec<TopicProduceResponse>,
    pub throttle_time_ms: i32,
    pub node_endpoints: Vec<NodeEndpoint>,
}

impl Message for ProduceResponse {
    const KEY: ApiKey = ApiKey::Produce;
    const NAME: &'static str = "ProduceResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.responses = reader.array(
            flexible,
            TopicProduceResponse::SIZE_MIN,
            "ProduceResponse.responses",
            version,
            |reader| TopicProduceResponse::read(reader, version),
        )?;
        message.throttle_time_ms = reader.int32()?;
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 10 => {
                        message.node_endpoints = reader.array(
                            flexible,
                            NodeEndpoint::SIZE_MIN,
                            "ProduceResponse.node_endpoints",
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
        writer.array_len(Some(self.responses.len()), flexible)?;
        for element in &self.responses {
            element.write(writer, version)?;
        }
        writer.int32(self.throttle_time_ms);
        if version < 10 && !self.node_endpoints.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "ProduceResponse.node_endpoints",
                version,
            });
        }
        if flexible {
            let mut count = 0;
            if version >= 10 && !self.node_endpoints.is_empty() {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 10 && !self.node_endpoints.is_empty() {
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
        size += array_len_size(Some(self.responses.len()), flexible)
            + self.responses.iter().map(|element| element.size(version)).sum::<usize>();
        size += 4;
        if flexible {
            let mut count = 0;
            if version >= 10 && !self.node_endpoints.is_empty() {
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

impl Response for ProduceResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicProduceResponse {
    pub name: String,
    pub topic_id: [u8; 16],
    pub partition_responses: Vec<PartitionProduceResponse>,
}

impl TopicProduceResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 12 {
            message.name = reader.string(flexible, "TopicProduceResponse.name", version)?;
        }
        if version >= 13 {
            message.topic_id = reader.uuid()?;
        }
        message.partition_responses = reader.array(
            flexible,
            PartitionProduceResponse::SIZE_MIN,
            "TopicProduceResponse.partition_responses",
            version,
            |reader| PartitionProduceResponse::read(reader, version),
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
            writer.string(&self.name, flexible)?;
        }
        if version >= 13 {
            writer.uuid(self.topic_id);
        }
        writer.array_len(Some(self.partition_responses.len()), flexible)?;
        for element in &self.partition_responses {
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
            size += string_size(Some(self.name.len()), flexible);
        }
        if version >= 13 {
            size += 16;
        }
        size += array_len_size(Some(self.partition_responses.len()), flexible)
            + self.partition_responses.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionProduceResponse {
    pub index: i32,
    pub error_code: i16,
    pub base_offset: i64,
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    pub error_message: Option<String>,
    pub current_leader: LeaderIdAndEpoch,
}

impl Default for PartitionProduceResponse {
    fn default() -> Self {
        Self {
            index: 0,
            error_code: 0,
            base_offset: 0,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: LeaderIdAndEpoch::default(),
        }
    }
}

impl PartitionProduceResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 22;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.index = reader.int32()?;
        message.error_code = reader.int16()?;
        message.base_offset = reader.int64()?;
        message.log_append_time_ms = reader.int64()?;
        if version >= 5 {
            message.log_start_offset = reader.int64()?;
        }
        if version >= 8 {
            message.record_errors = reader.array(
                flexible,
                BatchIndexAndErrorMessage::SIZE_MIN,
                "PartitionProduceResponse.record_errors",
                version,
                |reader| BatchIndexAndErrorMessage::read(reader, version),
            )?;
        }
        if version >= 8 {
            message.error_message = reader.nullable_string(flexible)?;
        }
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 10 => {
                        message.current_leader = LeaderIdAndEpoch::read(reader, version)?
                    }
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
        writer.int32(self.index);
        writer.int16(self.error_code);
        writer.int64(self.base_offset);
        writer.int64(self.log_append_time_ms);
        if version >= 5 {
            writer.int64(self.log_start_offset);
        }
        if version >= 8 {
            writer.array_len(Some(self.record_errors.len()), flexible)?;
            for element in &self.record_errors {
                element.write(writer, version)?;
            }
        }
        if version >= 8 {
            writer.nullable_string(self.error_message.as_deref(), flexible)?;
        }
        if version < 10 && self.current_leader != LeaderIdAndEpoch::default() {
            return Err(WireError::FieldNotInVersion {
                field: "PartitionProduceResponse.current_leader",
                version,
            });
        }
        if flexible {
            let mut count = 0;
            if version >= 10 && self.current_leader != LeaderIdAndEpoch::default() {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 10 && self.current_leader != LeaderIdAndEpoch::default() {
                writer.tag(0, self.current_leader.size(version))?;
                self.current_leader.write(writer, version)?;
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
        if version >= 8 {
            size += array_len_size(Some(self.record_errors.len()), flexible)
                + self.record_errors.iter().map(|element| element.size(version)).sum::<usize>();
        }
        if version >= 8 {
            size += string_size(self.error_message.as_ref().map(String::len), flexible);
        }
        if flexible {
            let mut count = 0;
            if version >= 10 && self.current_leader != LeaderIdAndEpoch::default() {
                count += 1;
                size += tagged_size(0, self.current_leader.size(version));
            }
            size += uvarint_size(count);
        }
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchIndexAndErrorMessage {
    pub batch_index: i32,
    pub batch_index_error_message: Option<String>,
}

impl BatchIndexAndErrorMessage {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.batch_index = reader.int32()?;
        message.batch_index_error_message = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.batch_index);
        writer.nullable_string(self.batch_index_error_message.as_deref(), flexible)?;
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
        size += string_size(self.batch_index_error_message.as_ref().map(String::len), flexible);
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
