//! DeleteGroups (42). Generated from `schema/delete_groups.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 2;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteGroupsRequest {
    pub groups_names: Vec<String>,
}

impl Message for DeleteGroupsRequest {
    const KEY: ApiKey = ApiKey::DeleteGroups;
    const NAME: &'static str = "DeleteGroupsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.groups_names =
            reader.array(flexible, 1, "DeleteGroupsRequest.groups_names", version, |reader| {
                reader.string(flexible, "DeleteGroupsRequest.groups_names", version)
            })?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.array_len(Some(self.groups_names.len()), flexible)?;
        for element in &self.groups_names {
            writer.string(element, flexible)?;
        }
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += array_len_size(Some(self.groups_names.len()), flexible)
            + self
                .groups_names
                .iter()
                .map(|element| string_size(Some(element.len()), flexible))
                .sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Request for DeleteGroupsRequest {
    type Response = DeleteGroupsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteGroupsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DeletableGroupResult>,
}

impl Message for DeleteGroupsResponse {
    const KEY: ApiKey = ApiKey::DeleteGroups;
    const NAME: &'static str = "DeleteGroupsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.results = reader.array(
            flexible,
            DeletableGroupResult::SIZE_MIN,
            "DeleteGroupsResponse.results",
            version,
            |reader| DeletableGroupResult::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.throttle_time_ms);
        writer.array_len(Some(self.results.len()), flexible)?;
        for element in &self.results {
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
        size += 4;
        size += array_len_size(Some(self.results.len()), flexible)
            + self.results.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for DeleteGroupsResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletableGroupResult {
    pub group_id: String,
    pub error_code: i16,
    pub error_message: Option<String>,
}

impl DeletableGroupResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 4;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.group_id = reader.string(flexible, "DeletableGroupResult.group_id", version)?;
        message.error_code = reader.int16()?;
        if version >= 3 {
            message.error_message = reader.nullable_string(flexible)?;
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
        writer.int16(self.error_code);
        if version >= 3 {
            writer.nullable_string(self.error_message.as_deref(), flexible)?;
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
        size += 2;
        if version >= 3 {
            size += string_size(self.error_message.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}
