//! ListGroups (16). Generated from `schema/list_groups.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 3;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListGroupsRequest {
    pub states_filter: Vec<String>,
    pub types_filter: Vec<String>,
}

impl Message for ListGroupsRequest {
    const KEY: ApiKey = ApiKey::ListGroups;
    const NAME: &'static str = "ListGroupsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 4 {
            message.states_filter = reader.array(
                flexible,
                1,
                "ListGroupsRequest.states_filter",
                version,
                |reader| reader.string(flexible, "ListGroupsRequest.states_filter", version),
            )?;
        }
        if version >= 5 {
            message.types_filter =
                reader.array(flexible, 1, "ListGroupsRequest.types_filter", version, |reader| {
                    reader.string(flexible, "ListGroupsRequest.types_filter", version)
                })?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 4 {
            writer.array_len(Some(self.states_filter.len()), flexible)?;
            for element in &self.states_filter {
                writer.string(element, flexible)?;
            }
        } else if !self.states_filter.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "ListGroupsRequest.states_filter",
                version,
            });
        }
        if version >= 5 {
            writer.array_len(Some(self.types_filter.len()), flexible)?;
            for element in &self.types_filter {
                writer.string(element, flexible)?;
            }
        } else if !self.types_filter.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "ListGroupsRequest.types_filter",
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
        if version >= 4 {
            size += array_len_size(Some(self.states_filter.len()), flexible)
                + self
                    .states_filter
                    .iter()
                    .map(|element| string_size(Some(element.len()), flexible))
                    .sum::<usize>();
        }
        if version >= 5 {
            size += array_len_size(Some(self.types_filter.len()), flexible)
                + self
                    .types_filter
                    .iter()
                    .map(|element| string_size(Some(element.len()), flexible))
                    .sum::<usize>();
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for ListGroupsRequest {
    type Response = ListGroupsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListGroupsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub groups: Vec<ListedGroup>,
}

impl Message for ListGroupsResponse {
    const KEY: ApiKey = ApiKey::ListGroups;
    const NAME: &'static str = "ListGroupsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        message.error_code = reader.int16()?;
        message.groups = reader.array(
            flexible,
            ListedGroup::SIZE_MIN,
            "ListGroupsResponse.groups",
            version,
            |reader| ListedGroup::read(reader, version),
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
        writer.int16(self.error_code);
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
        size += 2;
        size += array_len_size(Some(self.groups.len()), flexible)
            + self.groups.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for ListGroupsResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedGroup {
    pub group_id: String,
    pub protocol_type: String,
    pub group_state: String,
    pub group_type: String,
}

impl ListedGroup {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "ListedGroup.group_id", version)?;
        message.protocol_type = reader.string(flexible, "ListedGroup.protocol_type", version)?;
        if version >= 4 {
            message.group_state = reader.string(flexible, "ListedGroup.group_state", version)?;
        }
        if version >= 5 {
            message.group_type = reader.string(flexible, "ListedGroup.group_type", version)?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.group_id, flexible)?;
        writer.string(&self.protocol_type, flexible)?;
        if version >= 4 {
            writer.string(&self.group_state, flexible)?;
        }
        if version >= 5 {
            writer.string(&self.group_type, flexible)?;
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
        size += string_size(Some(self.group_id.len()), flexible);
        size += string_size(Some(self.protocol_type.len()), flexible);
        if version >= 4 {
            size += string_size(Some(self.group_state.len()), flexible);
        }
        if version >= 5 {
            size += string_size(Some(self.group_type.len()), flexible);
        }
        size += usize::from(flexible);
        size
    }
}
