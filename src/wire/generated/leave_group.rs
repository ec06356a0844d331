//! LeaveGroup (13). Generated from `schema/leave_group.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaveGroupRequest {
    pub group_id: String,
    pub member_id: String,
    pub members: Vec<MemberIdentity>,
}

impl Message for LeaveGroupRequest {
    const KEY: ApiKey = ApiKey::LeaveGroup;
    const NAME: &'static str = "LeaveGroupRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "LeaveGroupRequest.group_id", version)?;
        if version <= 2 {
            message.member_id = reader.string(flexible, "LeaveGroupRequest.member_id", version)?;
        }
        if version >= 3 {
            message.members = reader.array(
                flexible,
                MemberIdentity::SIZE_MIN,
                "LeaveGroupRequest.members",
                version,
                |reader| MemberIdentity::read(reader, version),
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
        writer.string(&self.group_id, flexible)?;
        if version <= 2 {
            writer.string(&self.member_id, flexible)?;
        } else if !self.member_id.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "LeaveGroupRequest.member_id",
                version,
            });
        }
        if version >= 3 {
            writer.array_len(Some(self.members.len()), flexible)?;
            for element in &self.members {
                element.write(writer, version)?;
            }
        } else if !self.members.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "LeaveGroupRequest.members",
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
        if version <= 2 {
            size += string_size(Some(self.member_id.len()), flexible);
        }
        if version >= 3 {
            size += array_len_size(Some(self.members.len()), flexible)
                + self.members.iter().map(|element| element.size(version)).sum::<usize>();
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for LeaveGroupRequest {
    type Response = LeaveGroupResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberIdentity {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub reason: Option<String>,
}

impl MemberIdentity {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.member_id = reader.string(flexible, "MemberIdentity.member_id", version)?;
        message.group_instance_id = reader.nullable_string(flexible)?;
        if version >= 5 {
            message.reason = reader.nullable_string(flexible)?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.member_id, flexible)?;
        writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        if version >= 5 {
            writer.nullable_string(self.reason.as_deref(), flexible)?;
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
        size += string_size(Some(self.member_id.len()), flexible);
        size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        if version >= 5 {
            size += string_size(self.reason.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaveGroupResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub members: Vec<MemberResponse>,
}

impl Message for LeaveGroupResponse {
    const KEY: ApiKey = ApiKey::LeaveGroup;
    const NAME: &'static str = "LeaveGroupResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.error_code = reader.int16()?;
        if version >= 3 {
            message.members = reader.array(
                flexible,
                MemberResponse::SIZE_MIN,
                "LeaveGroupResponse.members",
                version,
                |reader| MemberResponse::read(reader, version),
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
        if version >= 1 {
            writer.int32(self.throttle_time_ms);
        }
        writer.int16(self.error_code);
        if version >= 3 {
            writer.array_len(Some(self.members.len()), flexible)?;
            for element in &self.members {
                element.write(writer, version)?;
            }
        } else if !self.members.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "LeaveGroupResponse.members",
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
        if version >= 1 {
            size += 4;
        }
        size += 2;
        if version >= 3 {
            size += array_len_size(Some(self.members.len()), flexible)
                + self.members.iter().map(|element| element.size(version)).sum::<usize>();
        }
        size += usize::from(flexible);
        size
    }
}

impl Response for LeaveGroupResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct MemberResponse {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub error_code: i16,
}

impl Default for MemberResponse {
    fn default() -> Self {
        Self { member_id: String::new(), group_instance_id: Some(String::new()), error_code: 0 }
    }
}

impl MemberResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 5;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.member_id = reader.string(flexible, "MemberResponse.member_id", version)?;
        message.group_instance_id = reader.nullable_string(flexible)?;
        message.error_code = reader.int16()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.member_id, flexible)?;
        writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
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
        size += string_size(Some(self.member_id.len()), flexible);
        size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        size += 2;
        size += usize::from(flexible);
        size
    }
}
