//! AlterConfigs (33). Generated from `schema/alter_configs.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 2;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterConfigsRequest {
    pub resources: Vec<AlterConfigsResource>,
    pub validate_only: bool,
}

impl Message for AlterConfigsRequest {
    const KEY: ApiKey = ApiKey::AlterConfigs;
    const NAME: &'static str = "AlterConfigsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.resources = reader.array(
            flexible,
            AlterConfigsResource::SIZE_MIN,
            "AlterConfigsRequest.resources",
            version,
            |reader| AlterConfigsResource::read(reader, version),
        )?;
        message.validate_only = reader.bool()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.array_len(Some(self.resources.len()), flexible)?;
        for element in &self.resources {
            element.write(writer, version)?;
        }
        writer.bool(self.validate_only);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += array_len_size(Some(self.resources.len()), flexible)
            + self.resources.iter().map(|element| element.size(version)).sum::<usize>();
        size += 1;
        size += usize::from(flexible);
        size
    }
}

impl Request for AlterConfigsRequest {
    type Response = AlterConfigsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterConfigsResource {
    pub resource_type: i8,
    pub resource_name: String,
    pub configs: Vec<AlterableConfig>,
}

impl AlterConfigsResource {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 4;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.resource_type = reader.int8()?;
        message.resource_name =
            reader.string(flexible, "AlterConfigsResource.resource_name", version)?;
        message.configs = reader.array(
            flexible,
            AlterableConfig::SIZE_MIN,
            "AlterConfigsResource.configs",
            version,
            |reader| AlterableConfig::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int8(self.resource_type);
        writer.string(&self.resource_name, flexible)?;
        writer.array_len(Some(self.configs.len()), flexible)?;
        for element in &self.configs {
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
        size += 1;
        size += string_size(Some(self.resource_name.len()), flexible);
        size += array_len_size(Some(self.configs.len()), flexible)
            + self.configs.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterableConfig {
    pub name: String,
    pub value: Option<String>,
}

impl Default for AlterableConfig {
    fn default() -> Self {
        Self { name: String::new(), value: Some(String::new()) }
    }
}

impl AlterableConfig {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "AlterableConfig.name", version)?;
        message.value = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.nullable_string(self.value.as_deref(), flexible)?;
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
        size += string_size(self.value.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterConfigsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<AlterConfigsResourceResponse>,
}

impl Message for AlterConfigsResponse {
    const KEY: ApiKey = ApiKey::AlterConfigs;
    const NAME: &'static str = "AlterConfigsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.responses = reader.array(
            flexible,
            AlterConfigsResourceResponse::SIZE_MIN,
            "AlterConfigsResponse.responses",
            version,
            |reader| AlterConfigsResourceResponse::read(reader, version),
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
        writer.array_len(Some(self.responses.len()), flexible)?;
        for element in &self.responses {
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
        size += array_len_size(Some(self.responses.len()), flexible)
            + self.responses.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for AlterConfigsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterConfigsResourceResponse {
    pub error_code: i16,
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
}

impl Default for AlterConfigsResourceResponse {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: Some(String::new()),
            resource_type: 0,
            resource_name: String::new(),
        }
    }
}

impl AlterConfigsResourceResponse {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.error_message = reader.nullable_string(flexible)?;
        message.resource_type = reader.int8()?;
        message.resource_name =
            reader.string(flexible, "AlterConfigsResourceResponse.resource_name", version)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int16(self.error_code);
        writer.nullable_string(self.error_message.as_deref(), flexible)?;
        writer.int8(self.resource_type);
        writer.string(&self.resource_name, flexible)?;
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
        size += string_size(self.error_message.as_ref().map(String::len), flexible);
        size += 1;
        size += string_size(Some(self.resource_name.len()), flexible);
        size += usize::from(flexible);
        size
    }
}
