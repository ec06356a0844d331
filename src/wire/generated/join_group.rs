//! JoinGroup (11). Generated from `schema/join_group.txt`: see `mod.rs`.

use bytes::Bytes;

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, bytes_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 6;

#[derive(Clone, Debug, PartialEq)]
pub struct JoinGroupRequest {
    pub group_id: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub protocol_type: String,
    pub protocols: Vec<JoinGroupRequestProtocol>,
    pub reason: Option<String>,
}

impl Default for JoinGroupRequest {
    fn default() -> Self {
        Self {
            group_id: String::new(),
            session_timeout_ms: 0,
            rebalance_timeout_ms: -1,
            member_id: String::new(),
            group_instance_id: None,
            protocol_type: String::new(),
            protocols: Vec::new(),
            reason: None,
        }
    }
}

impl Message for JoinGroupRequest {
    const KEY: ApiKey = ApiKey::JoinGroup;
    const NAME: &'static str = "JoinGroupRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "JoinGroupRequest.group_id", version)?;
        message.session_timeout_ms = reader.int32()?;
        if version >= 1 {
            message.rebalance_timeout_ms = reader.int32()?;
        }
        message.member_id = reader.string(flexible, "JoinGroupRequest.member_id", version)?;
        if version >= 5 {
            message.group_instance_id = reader.nullable_string(flexible)?;
        }
        message.protocol_type =
            reader.string(flexible, "JoinGroupRequest.protocol_type", version)?;
        message.protocols = reader.array(
            flexible,
            JoinGroupRequestProtocol::SIZE_MIN,
            "JoinGroupRequest.protocols",
            version,
            |reader| JoinGroupRequestProtocol::read(reader, version),
        )?;
        if version >= 8 {
            message.reason = reader.nullable_string(flexible)?;
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
        writer.int32(self.session_timeout_ms);
        if version >= 1 {
            writer.int32(self.rebalance_timeout_ms);
        }
        writer.string(&self.member_id, flexible)?;
        if version >= 5 {
            writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        } else if self.group_instance_id.is_some() {
            return Err(WireError::FieldNotInVersion {
                field: "JoinGroupRequest.group_instance_id",
                version,
            });
        }
        writer.string(&self.protocol_type, flexible)?;
        writer.array_len(Some(self.protocols.len()), flexible)?;
        for element in &self.protocols {
            element.write(writer, version)?;
        }
        if version >= 8 {
            writer.nullable_string(self.reason.as_deref(), flexible)?;
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
        if version >= 1 {
            size += 4;
        }
        size += string_size(Some(self.member_id.len()), flexible);
        if version >= 5 {
            size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        }
        size += string_size(Some(self.protocol_type.len()), flexible);
        size += array_len_size(Some(self.protocols.len()), flexible)
            + self.protocols.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 8 {
            size += string_size(self.reason.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for JoinGroupRequest {
    type Response = JoinGroupResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinGroupRequestProtocol {
    pub name: String,
    pub metadata: Bytes,
}

impl JoinGroupRequestProtocol {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "JoinGroupRequestProtocol.name", version)?;
        message.metadata = reader.bytes(flexible, "JoinGroupRequestProtocol.metadata", version)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.bytes(&self.metadata, flexible)?;
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
        size += bytes_size(Some(self.metadata.len()), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinGroupResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub generation_id: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: String,
    pub skip_assignment: bool,
    pub member_id: String,
    pub members: Vec<JoinGroupResponseMember>,
}

impl Default for JoinGroupResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            generation_id: -1,
            protocol_type: None,
            protocol_name: Some(String::new()),
            leader: String::new(),
            skip_assignment: false,
            member_id: String::new(),
            members: Vec::new(),
        }
    }
}

impl Message for JoinGroupResponse {
    const KEY: ApiKey = ApiKey::JoinGroup;
    const NAME: &'static str = "JoinGroupResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 2 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.error_code = reader.int16()?;
        message.generation_id = reader.int32()?;
        if version >= 7 {
            message.protocol_type = reader.nullable_string(flexible)?;
        }
        message.protocol_name = if version >= 7 {
            reader.nullable_string(flexible)?
        } else {
            Some(reader.string(flexible, "JoinGroupResponse.protocol_name", version)?)
        };
        message.leader = reader.string(flexible, "JoinGroupResponse.leader", version)?;
        if version >= 9 {
            message.skip_assignment = reader.bool()?;
        }
        message.member_id = reader.string(flexible, "JoinGroupResponse.member_id", version)?;
        message.members = reader.array(
            flexible,
            JoinGroupResponseMember::SIZE_MIN,
            "JoinGroupResponse.members",
            version,
            |reader| JoinGroupResponseMember::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 2 {
            writer.int32(self.throttle_time_ms);
        }
        writer.int16(self.error_code);
        writer.int32(self.generation_id);
        if version >= 7 {
            writer.nullable_string(self.protocol_type.as_deref(), flexible)?;
        }
        if self.protocol_name.is_none() && version < 7 {
            return Err(WireError::UnexpectedNull {
                field: "JoinGroupResponse.protocol_name",
                version,
            });
        }
        writer.nullable_string(self.protocol_name.as_deref(), flexible)?;
        writer.string(&self.leader, flexible)?;
        if version >= 9 {
            writer.bool(self.skip_assignment);
        } else if self.skip_assignment {
            return Err(WireError::FieldNotInVersion {
                field: "JoinGroupResponse.skip_assignment",
                version,
            });
        }
        writer.string(&self.member_id, flexible)?;
        writer.array_len(Some(self.members.len()), flexible)?;
        for element in &self.members {
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
        if version >= 2 {
            size += 4;
        }
        size += 2;
        size += 4;
        if version >= 7 {
            size += string_size(self.protocol_type.as_ref().map(String::len), flexible);
        }
        size += string_size(self.protocol_name.as_ref().map(String::len), flexible);
        size += string_size(Some(self.leader.len()), flexible);
        if version >= 9 {
            size += 1;
        }
        size += string_size(Some(self.member_id.len()), flexible);
        size += array_len_size(Some(self.members.len()), flexible)
            + self.members.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for JoinGroupResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinGroupResponseMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub metadata: Bytes,
}

impl JoinGroupResponseMember {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 4;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.member_id =
            reader.string(flexible, "JoinGroupResponseMember.member_id", version)?;
        if version >= 5 {
            message.group_instance_id = reader.nullable_string(flexible)?;
        }
        message.metadata = reader.bytes(flexible, "JoinGroupResponseMember.metadata", version)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.member_id, flexible)?;
        if version >= 5 {
            writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        }
        writer.bytes(&self.metadata, flexible)?;
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
        if version >= 5 {
            size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        }
        size += bytes_size(Some(self.metadata.len()), flexible);
        size += usize::from(flexible);
        size
    }
}
