//! SyncGroup (14). Generated from `schema/sync_group.txt`: see `mod.rs`.

use bytes::Bytes;

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, bytes_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncGroupRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignments: Vec<SyncGroupRequestAssignment>,
}

impl Message for SyncGroupRequest {
    const KEY: ApiKey = ApiKey::SyncGroup;
    const NAME: &'static str = "SyncGroupRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "SyncGroupRequest.group_id", version)?;
        message.generation_id = reader.int32()?;
        message.member_id = reader.string(flexible, "SyncGroupRequest.member_id", version)?;
        if version >= 3 {
            message.group_instance_id = reader.nullable_string(flexible)?;
        }
        if version >= 5 {
            message.protocol_type = reader.nullable_string(flexible)?;
        }
        if version >= 5 {
            message.protocol_name = reader.nullable_string(flexible)?;
        }
        message.assignments = reader.array(
            flexible,
            SyncGroupRequestAssignment::SIZE_MIN,
            "SyncGroupRequest.assignments",
            version,
            |reader| SyncGroupRequestAssignment::read(reader, version),
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
        writer.int32(self.generation_id);
        writer.string(&self.member_id, flexible)?;
        if version >= 3 {
            writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        } else if self.group_instance_id.is_some() {
            return Err(WireError::FieldNotInVersion {
                field: "SyncGroupRequest.group_instance_id",
                version,
            });
        }
        if version >= 5 {
            writer.nullable_string(self.protocol_type.as_deref(), flexible)?;
        }
        if version >= 5 {
            writer.nullable_string(self.protocol_name.as_deref(), flexible)?;
        }
        writer.array_len(Some(self.assignments.len()), flexible)?;
        for element in &self.assignments {
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
        if version >= 3 {
            size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        }
        if version >= 5 {
            size += string_size(self.protocol_type.as_ref().map(String::len), flexible);
        }
        if version >= 5 {
            size += string_size(self.protocol_name.as_ref().map(String::len), flexible);
        }
        size += array_len_size(Some(self.assignments.len()), flexible)
            + self.assignments.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Request for SyncGroupRequest {
    type Response = SyncGroupResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncGroupRequestAssignment {
    pub member_id: String,
    pub assignment: Bytes,
}

impl SyncGroupRequestAssignment {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.member_id =
            reader.string(flexible, "SyncGroupRequestAssignment.member_id", version)?;
        message.assignment =
            reader.bytes(flexible, "SyncGroupRequestAssignment.assignment", version)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.member_id, flexible)?;
        writer.bytes(&self.assignment, flexible)?;
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.member_id.len()), flexible);
        size += bytes_size(Some(self.assignment.len()), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncGroupResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignment: Bytes,
}

impl Message for SyncGroupResponse {
    const KEY: ApiKey = ApiKey::SyncGroup;
    const NAME: &'static str = "SyncGroupResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.error_code = reader.int16()?;
        if version >= 5 {
            message.protocol_type = reader.nullable_string(flexible)?;
        }
        if version >= 5 {
            message.protocol_name = reader.nullable_string(flexible)?;
        }
        message.assignment = reader.bytes(flexible, "SyncGroupResponse.assignment", version)?;
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
        if version >= 5 {
            writer.nullable_string(self.protocol_type.as_deref(), flexible)?;
        }
        if version >= 5 {
            writer.nullable_string(self.protocol_name.as_deref(), flexible)?;
        }
        writer.bytes(&self.assignment, flexible)?;
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
        if version >= 5 {
            size += string_size(self.protocol_type.as_ref().map(String::len), flexible);
        }
        if version >= 5 {
            size += string_size(self.protocol_name.as_ref().map(String::len), flexible);
        }
        size += bytes_size(Some(self.assignment.len()), flexible);
        size += usize::from(flexible);
        size
    }
}

impl Response for SyncGroupResponse {}
