//! DescribeCluster (60). Generated from `schema/describe_cluster.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 0;

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClusterRequest {
    pub include_cluster_authorized_operations: bool,
    pub endpoint_type: i8,
    pub include_fenced_brokers: bool,
}

impl Default for DescribeClusterRequest {
    fn default() -> Self {
        Self {
            include_cluster_authorized_operations: false,
            endpoint_type: 1,
            include_fenced_brokers: false,
        }
    }
}

impl Message for DescribeClusterRequest {
    const KEY: ApiKey = ApiKey::DescribeCluster;
    const NAME: &'static str = "DescribeClusterRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.include_cluster_authorized_operations = reader.bool()?;
        if version >= 1 {
            message.endpoint_type = reader.int8()?;
        }
        if version >= 2 {
            message.include_fenced_brokers = reader.bool()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.bool(self.include_cluster_authorized_operations);
        if version >= 1 {
            writer.int8(self.endpoint_type);
        } else if self.endpoint_type != 1 {
            return Err(WireError::FieldNotInVersion {
                field: "DescribeClusterRequest.endpoint_type",
                version,
            });
        }
        if version >= 2 {
            writer.bool(self.include_fenced_brokers);
        } else if self.include_fenced_brokers {
            return Err(WireError::FieldNotInVersion {
                field: "DescribeClusterRequest.include_fenced_brokers",
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
        size += 1;
        if version >= 1 {
            size += 1;
        }
        if version >= 2 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for DescribeClusterRequest {
    type Response = DescribeClusterResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClusterResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<String>,
    pub endpoint_type: i8,
    pub cluster_id: String,
    pub controller_id: i32,
    pub brokers: Vec<DescribeClusterBroker>,
    pub cluster_authorized_operations: i32,
}

impl Default for DescribeClusterResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: None,
            endpoint_type: 1,
            cluster_id: String::new(),
            controller_id: -1,
            brokers: Vec::new(),
            cluster_authorized_operations: i32::MIN,
        }
    }
}

impl Message for DescribeClusterResponse {
    const KEY: ApiKey = ApiKey::DescribeCluster;
    const NAME: &'static str = "DescribeClusterResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.error_code = reader.int16()?;
        message.error_message = reader.nullable_string(flexible)?;
        if version >= 1 {
            message.endpoint_type = reader.int8()?;
        }
        message.cluster_id =
            reader.string(flexible, "DescribeClusterResponse.cluster_id", version)?;
        message.controller_id = reader.int32()?;
        message.brokers = reader.array(
            flexible,
            DescribeClusterBroker::SIZE_MIN,
            "DescribeClusterResponse.brokers",
            version,
            |reader| DescribeClusterBroker::read(reader, version),
        )?;
        message.cluster_authorized_operations = reader.int32()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.throttle_time_ms);
        writer.int16(self.error_code);
        writer.nullable_string(self.error_message.as_deref(), flexible)?;
        if version >= 1 {
            writer.int8(self.endpoint_type);
        } else if self.endpoint_type != 1 {
            return Err(WireError::FieldNotInVersion {
                field: "DescribeClusterResponse.endpoint_type",
                version,
            });
        }
        writer.string(&self.cluster_id, flexible)?;
        writer.int32(self.controller_id);
        writer.array_len(Some(self.brokers.len()), flexible)?;
        for element in &self.brokers {
            element.write(writer, version)?;
        }
        writer.int32(self.cluster_authorized_operations);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 4;
        size += 2;
        size += string_size(self.error_message.as_ref().map(String::len), flexible);
        if version >= 1 {
            size += 1;
        }
        size += string_size(Some(self.cluster_id.len()), flexible);
        size += 4;
        size += array_len_size(Some(self.brokers.len()), flexible)
            + self.brokers.iter().map(|element| element.size(version)).sum::<usize>();
        size += 4;
        size += usize::from(flexible);
        size
    }
}

impl Response for DescribeClusterResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeClusterBroker {
    pub broker_id: i32,
    pub host: String,
    pub port: i32,
    pub rack: Option<String>,
    pub is_fenced: bool,
}

impl DescribeClusterBroker {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 11;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.broker_id = reader.int32()?;
        message.host = reader.string(flexible, "DescribeClusterBroker.host", version)?;
        message.port = reader.int32()?;
        message.rack = reader.nullable_string(flexible)?;
        if version >= 2 {
            message.is_fenced = reader.bool()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.broker_id);
        writer.string(&self.host, flexible)?;
        writer.int32(self.port);
        writer.nullable_string(self.rack.as_deref(), flexible)?;
        if version >= 2 {
            writer.bool(self.is_fenced);
        } else if self.is_fenced {
            return Err(WireError::FieldNotInVersion {
                field: "DescribeClusterBroker.is_fenced",
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
        size += string_size(Some(self.host.len()), flexible);
        size += 4;
        size += string_size(self.rack.as_ref().map(String::len), flexible);
        if version >= 2 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}
