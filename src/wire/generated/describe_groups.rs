//! DescribeGroups (15). Generated from `schema/describe_groups.txt`: see `mod.rs`.

use bytes::Bytes;

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, bytes_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 5;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeGroupsRequest {
    pub groups: Vec<String>,
    pub include_authorized_operations: bool,
}

impl Message for DescribeGroupsRequest {
    const KEY: ApiKey = ApiKey::DescribeGroups;
    const NAME: &'static str = "DescribeGroupsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.groups =
            reader.array(flexible, 1, "DescribeGroupsRequest.groups", version, |reader| {
                reader.string(flexible, "DescribeGroupsRequest.groups", version)
            })?;
        if version >= 3 {
            message.include_authorized_operations = reader.bool()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.array_len(Some(self.groups.len()), flexible)?;
        for element in &self.groups {
            writer.string(element, flexible)?;
        }
        if version >= 3 {
            writer.bool(self.include_authorized_operations);
        } else if self.include_authorized_operations {
            return Err(WireError::FieldNotInVersion {
                field: "DescribeGroupsRequest.include_authorized_operations",
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
        size += array_len_size(Some(self.groups.len()), flexible)
            + self
                .groups
                .iter()
                .map(|element| string_size(Some(element.len()), flexible))
                .sum::<usize>();
        if version >= 3 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for DescribeGroupsRequest {
    type Response = DescribeGroupsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeGroupsResponse {
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribedGroup>,
}

impl Message for DescribeGroupsResponse {
    const KEY: ApiKey = ApiKey::DescribeGroups;
    const NAME: &'static str = "DescribeGroupsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.groups = reader.array(
            flexible,
            DescribedGroup::SIZE_MIN,
            "DescribeGroupsResponse.groups",
            version,
            |reader| DescribedGroup::read(reader, version),
        )?;
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
        writer.array_len(Some(self.groups.len()), flexible)?;
        for element in &self.groups {
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
        if version >= 1 {
            size += 4;
        }
        size += array_len_size(Some(self.groups.len()), flexible)
            + self.groups.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for DescribeGroupsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribedGroup {
    pub error_code: i16,
    pub error_message: Option<String>,
    pub group_id: String,
    pub group_state: String,
    pub protocol_type: String,
    pub protocol_data: String,
    pub members: Vec<DescribedGroupMember>,
    pub authorized_operations: i32,
}

impl Default for DescribedGroup {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: None,
            group_id: String::new(),
            group_state: String::new(),
            protocol_type: String::new(),
            protocol_data: String::new(),
            members: Vec::new(),
            authorized_operations: i32::MIN,
        }
    }
}

impl DescribedGroup {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 12;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        if version >= 6 {
            message.error_message = reader.nullable_string(flexible)?;
        }
        message.group_id = reader.string(flexible, "DescribedGroup.group_id", version)?;
        message.group_state = reader.string(flexible, "DescribedGroup.group_state", version)?;
        message.protocol_type = reader.string(flexible, "DescribedGroup.protocol_type", version)?;
        message.protocol_data = reader.string(flexible, "DescribedGroup.protocol_data", version)?;
        message.members = reader.array(
            flexible,
            DescribedGroupMember::SIZE_MIN,
            "DescribedGroup.members",
            version,
            |reader| DescribedGroupMember::read(reader, version),
        )?;
        if version >= 3 {
            message.authorized_operations = reader.int32()?;
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
        if version >= 6 {
            writer.nullable_string(self.error_message.as_deref(), flexible)?;
        } else if self.error_message.is_some() {
            return Err(WireError::FieldNotInVersion {
                field: "DescribedGroup.error_message",
                version,
            });
        }
        writer.string(&self.group_id, flexible)?;
        writer.string(&self.group_state, flexible)?;
        writer.string(&self.protocol_type, flexible)?;
        writer.string(&self.protocol_data, flexible)?;
        writer.array_len(Some(self.members.len()), flexible)?;
        for element in &self.members {
            element.write(writer, version)?;
        }
        if version >= 3 {
            writer.int32(self.authorized_operations);
        } else if self.authorized_operations != i32::MIN {
            return Err(WireError::FieldNotInVersion {
                field: "DescribedGroup.authorized_operations",
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
        if version >= 6 {
            size += string_size(self.error_message.as_ref().map(String::len), flexible);
        }
        size += string_size(Some(self.group_id.len()), flexible);
        size += string_size(Some(self.group_state.len()), flexible);
        size += string_size(Some(self.protocol_type.len()), flexible);
        size += string_size(Some(self.protocol_data.len()), flexible);
        size += array_len_size(Some(self.members.len()), flexible)
            + self.members.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 3 {
            size += 4;
        }
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedGroupMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub member_metadata: Bytes,
    pub member_assignment: Bytes,
}

impl DescribedGroupMember {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 7;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.member_id = reader.string(flexible, "DescribedGroupMember.member_id", version)?;
        if version >= 4 {
            message.group_instance_id = reader.nullable_string(flexible)?;
        }
        message.client_id = reader.string(flexible, "DescribedGroupMember.client_id", version)?;
        message.client_host =
            reader.string(flexible, "DescribedGroupMember.client_host", version)?;
        message.member_metadata =
            reader.bytes(flexible, "DescribedGroupMember.member_metadata", version)?;
        message.member_assignment =
            reader.bytes(flexible, "DescribedGroupMember.member_assignment", version)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.member_id, flexible)?;
        if version >= 4 {
            writer.nullable_string(self.group_instance_id.as_deref(), flexible)?;
        }
        writer.string(&self.client_id, flexible)?;
        writer.string(&self.client_host, flexible)?;
        writer.bytes(&self.member_metadata, flexible)?;
        writer.bytes(&self.member_assignment, flexible)?;
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
        if version >= 4 {
            size += string_size(self.group_instance_id.as_ref().map(String::len), flexible);
        }
        size += string_size(Some(self.client_id.len()), flexible);
        size += string_size(Some(self.client_host.len()), flexible);
        size += bytes_size(Some(self.member_metadata.len()), flexible);
        size += bytes_size(Some(self.member_assignment.len()), flexible);
        size += usize::from(flexible);
        size
    }
}
