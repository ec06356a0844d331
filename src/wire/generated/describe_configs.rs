//! DescribeConfigs (32). Generated from `schema/describe_configs.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeConfigsRequest {
    pub resources: Vec<DescribeConfigsResource>,
    pub include_synonyms: bool,
    pub include_documentation: bool,
}

impl Message for DescribeConfigsRequest {
    const KEY: ApiKey = ApiKey::DescribeConfigs;
    const NAME: &'static str = "DescribeConfigsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.resources = reader.array(
            flexible,
            DescribeConfigsResource::SIZE_MIN,
            "DescribeConfigsRequest.resources",
            version,
            |reader| DescribeConfigsResource::read(reader, version),
        )?;
        message.include_synonyms = reader.bool()?;
        if version >= 3 {
            message.include_documentation = reader.bool()?;
        }
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
        writer.bool(self.include_synonyms);
        if version >= 3 {
            writer.bool(self.include_documentation);
        } else if self.include_documentation {
            return Err(WireError::FieldNotInVersion {
                field: "DescribeConfigsRequest.include_documentation",
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
        size += array_len_size(Some(self.resources.len()), flexible)
            + self.resources.iter().map(|element| element.size(version)).sum::<usize>();
        size += 1;
        if version >= 3 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for DescribeConfigsRequest {
    type Response = DescribeConfigsResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResource {
    pub resource_type: i8,
    pub resource_name: String,
    pub configuration_keys: Option<Vec<String>>,
}

impl Default for DescribeConfigsResource {
    fn default() -> Self {
        Self {
            resource_type: 0,
            resource_name: String::new(),
            configuration_keys: Some(Vec::new()),
        }
    }
}

impl DescribeConfigsResource {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 4;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.resource_type = reader.int8()?;
        message.resource_name =
            reader.string(flexible, "DescribeConfigsResource.resource_name", version)?;
        message.configuration_keys = reader.nullable_array(flexible, 1, |reader| {
            reader.string(flexible, "DescribeConfigsResource.configuration_keys", version)
        })?;
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
        writer.array_len(self.configuration_keys.as_ref().map(Vec::len), flexible)?;
        for element in self.configuration_keys.iter().flatten() {
            writer.string(element, flexible)?;
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
        size += array_len_size(self.configuration_keys.as_ref().map(Vec::len), flexible)
            + self
                .configuration_keys
                .iter()
                .flatten()
                .map(|element| string_size(Some(element.len()), flexible))
                .sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeConfigsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DescribeConfigsResult>,
}

impl Message for DescribeConfigsResponse {
    const KEY: ApiKey = ApiKey::DescribeConfigs;
    const NAME: &'static str = "DescribeConfigsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.results = reader.array(
            flexible,
            DescribeConfigsResult::SIZE_MIN,
            "DescribeConfigsResponse.results",
            version,
            |reader| DescribeConfigsResult::read(reader, version),
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

impl Response for DescribeConfigsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResult {
    pub error_code: i16,
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
    pub configs: Vec<DescribeConfigsResourceResult>,
}

impl Default for DescribeConfigsResult {
    fn default() -> Self {
        Self {
            error_code: 0,
            error_message: Some(String::new()),
            resource_type: 0,
            resource_name: String::new(),
            configs: Vec::new(),
        }
    }
}

impl DescribeConfigsResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 7;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.error_message = reader.nullable_string(flexible)?;
        message.resource_type = reader.int8()?;
        message.resource_name =
            reader.string(flexible, "DescribeConfigsResult.resource_name", version)?;
        message.configs = reader.array(
            flexible,
            DescribeConfigsResourceResult::SIZE_MIN,
            "DescribeConfigsResult.configs",
            version,
            |reader| DescribeConfigsResourceResult::read(reader, version),
        )?;
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
        size += 2;
        size += string_size(self.error_message.as_ref().map(String::len), flexible);
        size += 1;
        size += string_size(Some(self.resource_name.len()), flexible);
        size += array_len_size(Some(self.configs.len()), flexible)
            + self.configs.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsResourceResult {
    pub name: String,
    pub value: Option<String>,
    pub read_only: bool,
    pub config_source: i8,
    pub is_sensitive: bool,
    pub synonyms: Vec<DescribeConfigsSynonym>,
    pub config_type: i8,
    pub documentation: Option<String>,
}

impl Default for DescribeConfigsResourceResult {
    fn default() -> Self {
        Self {
            name: String::new(),
            value: Some(String::new()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
            synonyms: Vec::new(),
            config_type: 0,
            documentation: Some(String::new()),
        }
    }
}

impl DescribeConfigsResourceResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 9;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "DescribeConfigsResourceResult.name", version)?;
        message.value = reader.nullable_string(flexible)?;
        message.read_only = reader.bool()?;
        message.config_source = reader.int8()?;
        message.is_sensitive = reader.bool()?;
        message.synonyms = reader.array(
            flexible,
            DescribeConfigsSynonym::SIZE_MIN,
            "DescribeConfigsResourceResult.synonyms",
            version,
            |reader| DescribeConfigsSynonym::read(reader, version),
        )?;
        if version >= 3 {
            message.config_type = reader.int8()?;
        }
        if version >= 3 {
            message.documentation = reader.nullable_string(flexible)?;
        }
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
        writer.bool(self.read_only);
        writer.int8(self.config_source);
        writer.bool(self.is_sensitive);
        writer.array_len(Some(self.synonyms.len()), flexible)?;
        for element in &self.synonyms {
            element.write(writer, version)?;
        }
        if version >= 3 {
            writer.int8(self.config_type);
        }
        if version >= 3 {
            writer.nullable_string(self.documentation.as_deref(), flexible)?;
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
        size += string_size(Some(self.name.len()), flexible);
        size += string_size(self.value.as_ref().map(String::len), flexible);
        size += 1;
        size += 1;
        size += 1;
        size += array_len_size(Some(self.synonyms.len()), flexible)
            + self.synonyms.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 3 {
            size += 1;
        }
        if version >= 3 {
            size += string_size(self.documentation.as_ref().map(String::len), flexible);
        }
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeConfigsSynonym {
    pub name: String,
    pub value: Option<String>,
    pub source: i8,
}

impl Default for DescribeConfigsSynonym {
    fn default() -> Self {
        Self { name: String::new(), value: Some(String::new()), source: 0 }
    }
}

impl DescribeConfigsSynonym {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 4;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "DescribeConfigsSynonym.name", version)?;
        message.value = reader.nullable_string(flexible)?;
        message.source = reader.int8()?;
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
        writer.int8(self.source);
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
        size += 1;
        size += usize::from(flexible);
        size
    }
}
