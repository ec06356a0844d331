//! Heartbeat (12). Generated from `schema/heartbeat.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
}

impl Message for HeartbeatRequest {
    const KEY: ApiKey = ApiKey::Heartbeat;
    const NAME: &'static str = "HeartbeatRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "HeartbeatRequest.group_id", version)?;
        message.generation_id = reader.int32()?;
        message.member_id = reader.string(flexible, "HeartbeatRequest.member_id", version)?;
        if version >= 3 {
            message.group_instance_id = reader.nullable_string(flexible)?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.group_id, flexible)?;
        writer.int32(self.generation_id);
        writer.string(&self.member_id, flexible)?;
        if version >= 3 {
            writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        } else if self.group_instance_id.is_some() {
            return Err(WireError::FieldNotInVersion {
                field: "HeartbeatRequest.group_instance_id",
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
        size += string_size(Some(self.group_id.len()), flexible);
        size += 4;
        size += string_size(Some(self.member_id.len()), flexible);
        if version >= 3 {
            size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for HeartbeatRequest {
    type Response = HeartbeatResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeartbeatResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
}

impl Message for HeartbeatResponse {
    const KEY: ApiKey = ApiKey::Heartbeat;
    const NAME: &'static str = "HeartbeatResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.error_code = reader.int16()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 1 {
            writer.int32(self.throttle_time_ms);
        }
        writer.int16(self.error_code);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        if version >= 1 {
            size += 4;
        }
        size += 2;
        size += usize::from(flexible);
        size
    }
}

impl Response for HeartbeatResponse {}
