//! ApiVersions (18). Generated from `schema/api_versions.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size, tagged_size, uvarint_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 3;

#[derive(Clone, Debug, PartialEq)]
pub struct ApiVersionsRequest {
    pub client_software_name: String,
    pub client_software_version: String,
    pub cluster_id: Option<String>,
    pub node_id: i32,
}

impl Default for ApiVersionsRequest {
    fn default() -> Self {
        Self {
            client_software_name: String::new(),
            client_software_version: String::new(),
            cluster_id: None,
            node_id: -1,
        }
    }
}

impl Message for ApiVersionsRequest {
    const KEY: ApiKey = ApiKey::ApiVersions;
    const NAME: &'static str = "ApiVersionsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 3 {
            message.client_software_name =
                reader.string(flexible, "ApiVersionsRequest.client_software_name", version)?;
        }
        if version >= 3 {
            message.client_software_version =
                reader.string(flexible, "ApiVersionsRequest.client_software_version", version)?;
        }
        if version >= 5 {
            message.cluster_id = reader.nullable_string(flexible)?;
        }
        if version >= 5 {
            message.node_id = reader.int32()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        if version >= 3 {
            writer.string(&self.client_software_name, flexible)?;
        }
        if version >= 3 {
            writer.string(&self.client_software_version, flexible)?;
        }
        if version >= 5 {
            writer.nullable_string(self.cluster_id.as_deref(), flexible)?;
        }
        if version >= 5 {
            writer.int32(self.node_id);
        }
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        if version >= 3 {
            size += string_size(Some(self.client_software_name.len()), flexible);
        }
        if version >= 3 {
            size += string_size(Some(self.client_software_version.len()), flexible);
        }
        if version >= 5 {
            size += string_size(self.cluster_id.as_ref().map(String::len), flexible);
        }
        if version >= 5 {
            size += 4;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for ApiVersionsRequest {
    type Response = ApiVersionsResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApiVersionsResponse {
    pub error_code: i16,
    pub api_keys: Vec<ApiVersion>,
    pub throttle_time_ms: i32,
    pub supported_features: Vec<SupportedFeatureKey>,
    pub finalized_features_epoch: i64,
    pub finalized_features: Vec<FinalizedFeatureKey>,
    pub zk_migration_ready: bool,
}

impl Default for ApiVersionsResponse {
    fn default() -> Self {
        Self {
            error_code: 0,
            api_keys: Vec::new(),
            throttle_time_ms: 0,
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
        }
    }
}

impl Message for ApiVersionsResponse {
    const KEY: ApiKey = ApiKey::ApiVersions;
    const NAME: &'static str = "ApiVersionsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.api_keys = reader.array(
            flexible,
            ApiVersion::SIZE_MIN,
            "ApiVersionsResponse.api_keys",
            version,
            |reader| ApiVersion::read(reader, version),
        )?;
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        if flexible {
            reader.tagged_fields(|tag, reader| {
                match tag {
                    0 if version >= 3 => {
                        message.supported_features = reader.array(
                            flexible,
                            SupportedFeatureKey::SIZE_MIN,
                            "ApiVersionsResponse.supported_features",
                            version,
                            |reader| SupportedFeatureKey::read(reader, version),
                        )?
                    }
                    1 if version >= 3 => message.finalized_features_epoch = reader.int64()?,
                    2 if version >= 3 => {
                        message.finalized_features = reader.array(
                            flexible,
                            FinalizedFeatureKey::SIZE_MIN,
                            "ApiVersionsResponse.finalized_features",
                            version,
                            |reader| FinalizedFeatureKey::read(reader, version),
                        )?
                    }
                    3 if version >= 3 => message.zk_migration_ready = reader.bool()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int16(self.error_code);
        writer.array_len(Some(self.api_keys.len()), flexible)?;
        for element in &self.api_keys {
            element.write(writer, version)?;
        }
        if version >= 1 {
            writer.int32(self.throttle_time_ms);
        }
        if flexible {
            let mut count = 0;
            if version >= 3 && !self.supported_features.is_empty() {
                count += 1;
            }
            if version >= 3 && self.finalized_features_epoch != -1 {
                count += 1;
            }
            if version >= 3 && !self.finalized_features.is_empty() {
                count += 1;
            }
            if version >= 3 && self.zk_migration_ready {
                count += 1;
            }
            writer.uvarint(count);
            if version >= 3 && !self.supported_features.is_empty() {
                writer.tag(
                    0,
                    array_len_size(Some(self.supported_features.len()), flexible)
                        + self
                            .supported_features
                            .iter()
                            .map(|element| element.size(version))
                            .sum::<usize>(),
                )?;
                writer.array_len(Some(self.supported_features.len()), flexible)?;
                for element in &self.supported_features {
                    element.write(writer, version)?;
                }
            }
            if version >= 3 && self.finalized_features_epoch != -1 {
                writer.tag(1, 8)?;
                writer.int64(self.finalized_features_epoch);
            }
            if version >= 3 && !self.finalized_features.is_empty() {
                writer.tag(
                    2,
                    array_len_size(Some(self.finalized_features.len()), flexible)
                        + self
                            .finalized_features
                            .iter()
                            .map(|element| element.size(version))
                            .sum::<usize>(),
                )?;
                writer.array_len(Some(self.finalized_features.len()), flexible)?;
                for element in &self.finalized_features {
                    element.write(writer, version)?;
                }
            }
            if version >= 3 && self.zk_migration_ready {
                writer.tag(3, 1)?;
                writer.bool(self.zk_migration_ready);
            }
        }
        Ok(())
    }

    fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 2;
        size += array_len_size(Some(self.api_keys.len()), flexible)
            + self.api_keys.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 1 {
            size += 4;
        }
        if flexible {
            let mut count = 0;
            if version >= 3 && !self.supported_features.is_empty() {
                count += 1;
                size += tagged_size(
                    0,
                    array_len_size(Some(self.supported_features.len()), flexible)
                        + self
                            .supported_features
                            .iter()
                            .map(|element| element.size(version))
                            .sum::<usize>(),
                );
            }
            if version >= 3 && self.finalized_features_epoch != -1 {
                count += 1;
                size += tagged_size(1, 8);
            }
            if version >= 3 && !self.finalized_features.is_empty() {
                count += 1;
                size += tagged_size(
                    2,
                    array_len_size(Some(self.finalized_features.len()), flexible)
                        + self
                            .finalized_features
                            .iter()
                            .map(|element| element.size(version))
                            .sum::<usize>(),
                );
            }
            if version >= 3 && self.zk_migration_ready {
                count += 1;
                size += tagged_size(3, 1);
            }
            size += uvarint_size(count);
        }
        size
    }
}

impl Response for ApiVersionsResponse {}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiVersion {
    pub api_key: i16,
    pub min_version: i16,
    pub max_version: i16,
}

impl ApiVersion {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.api_key = reader.int16()?;
        message.min_version = reader.int16()?;
        message.max_version = reader.int16()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int16(self.api_key);
        writer.int16(self.min_version);
        writer.int16(self.max_version);
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
        size += 2;
        size += 2;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SupportedFeatureKey {
    pub name: String,
    pub min_version: i16,
    pub max_version: i16,
}

impl SupportedFeatureKey {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "SupportedFeatureKey.name", version)?;
        message.min_version = reader.int16()?;
        message.max_version = reader.int16()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.int16(self.min_version);
        writer.int16(self.max_version);
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
        size += 2;
        size += 2;
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinalizedFeatureKey {
    pub name: String,
    pub max_version_level: i16,
    pub min_version_level: i16,
}

impl FinalizedFeatureKey {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 6;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "FinalizedFeatureKey.name", version)?;
        message.max_version_level = reader.int16()?;
        message.min_version_level = reader.int16()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.int16(self.max_version_level);
        writer.int16(self.min_version_level);
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
        size += 2;
        size += 2;
        size += usize::from(flexible);
        size
    }
}
