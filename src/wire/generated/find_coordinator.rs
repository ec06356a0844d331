//! FindCoordinator (10). Generated from `schema/find_coordinator.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 3;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindCoordinatorRequest {
    pub key: String,
    pub key_type: i8,
    pub coordinator_keys: Vec<String>,
}

impl Message for FindCoordinatorRequest {
    const KEY: ApiKey = ApiKey::FindCoordinator;
    const NAME: &'static str = "FindCoordinatorRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version <= 3 {
            message.key = reader.string(flexible, "FindCoordinatorRequest.key", version)?;
        }
        if version >= 1 {
            message.key_type = reader.int8()?;
        }
        if version >= 4 {
            message.coordinator_keys = reader.array(
                flexible,
                1,
                "FindCoordinatorRequest.coordinator_keys",
                version,
                |reader| {
                    reader.string(flexible, "FindCoordinatorRequest.coordinator_keys", version)
                },
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
        if version <= 3 {
            writer.string(&self.key, flexible)?;
        } else if !self.key.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorRequest.key",
                version,
            });
        }
        if version >= 1 {
            writer.int8(self.key_type);
        } else if self.key_type != 0 {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorRequest.key_type",
                version,
            });
        }
        if version >= 4 {
            writer.array_len(Some(self.coordinator_keys.len()), flexible)?;
            for element in &self.coordinator_keys {
                writer.string(element, flexible)?;
            }
        } else if !self.coordinator_keys.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorRequest.coordinator_keys",
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
        if version <= 3 {
            size += string_size(Some(self.key.len()), flexible);
        }
        if version >= 1 {
            size += 1;
        }
        if version >= 4 {
            size += array_len_size(Some(self.coordinator_keys.len()), flexible)
                + self
                    .coordinator_keys
                    .iter()
                    .map(|element| string_size(Some(element.len()), flexible))
                    .sum::<usize>();
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for FindCoordinatorRequest {
    type Response = FindCoordinatorResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct FindCoordinatorResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<String>,
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    pub coordinators: Vec<Coordinator>,
}

impl Default for FindCoordinatorResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(String::new()),
            node_id: 0,
            host: String::new(),
            port: 0,
            coordinators: Vec::new(),
        }
    }
}

impl Message for FindCoordinatorResponse {
    const KEY: ApiKey = ApiKey::FindCoordinator;
    const NAME: &'static str = "FindCoordinatorResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        if version >= 1 {
            message.throttle_time_ms = reader.int32()?;
        }
        if version <= 3 {
            message.error_code = reader.int16()?;
        }
        if (1..=3).contains(&version) {
            message.error_message = reader.nullable_string(flexible)?;
        }
        if version <= 3 {
            message.node_id = reader.int32()?;
        }
        if version <= 3 {
            message.host = reader.string(flexible, "FindCoordinatorResponse.host", version)?;
        }
        if version <= 3 {
            message.port = reader.int32()?;
        }
        if version >= 4 {
            message.coordinators = reader.array(
                flexible,
                Coordinator::SIZE_MIN,
                "FindCoordinatorResponse.coordinators",
                version,
                |reader| Coordinator::read(reader, version),
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
        if version <= 3 {
            writer.int16(self.error_code);
        } else if self.error_code != 0 {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorResponse.error_code",
                version,
            });
        }
        if (1..=3).contains(&version) {
            writer.nullable_string(self.error_message.as_deref(), flexible)?;
        }
        if version <= 3 {
            writer.int32(self.node_id);
        } else if self.node_id != 0 {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorResponse.node_id",
                version,
            });
        }
        if version <= 3 {
            writer.string(&self.host, flexible)?;
        } else if !self.host.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorResponse.host",
                version,
            });
        }
        if version <= 3 {
            writer.int32(self.port);
        } else if self.port != 0 {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorResponse.port",
                version,
            });
        }
        if version >= 4 {
            writer.array_len(Some(self.coordinators.len()), flexible)?;
            for element in &self.coordinators {
                element.write(writer, version)?;
            }
        } else if !self.coordinators.is_empty() {
            return Err(WireError::FieldNotInVersion {
                field: "FindCoordinatorResponse.coordinators",
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
        if version <= 3 {
            size += 2;
        }
        if (1..=3).contains(&version) {
            size += string_size(self.error_message.as_ref().map(String::len), flexible);
        }
        if version <= 3 {
            size += 4;
        }
        if version <= 3 {
            size += string_size(Some(self.host.len()), flexible);
        }
        if version <= 3 {
            size += 4;
        }
        if version >= 4 {
            size += array_len_size(Some(self.coordinators.len()), flexible)
                + self.coordinators.iter().map(|element| element.size(version)).sum::<usize>();
        }
        size += usize::from(flexible);
        size
    }
}

impl Response for FindCoordinatorResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct Coordinator {
    pub key: String,
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    pub error_code: i16,
    pub error_message: Option<String>,
}

impl Default for Coordinator {
    fn default() -> Self {
        Self {
            key: String::new(),
            node_id: 0,
            host: String::new(),
            port: 0,
            error_code: 0,
            error_message: Some(String::new()),
        }
    }
}

impl Coordinator {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 14;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.key = reader.string(flexible, "Coordinator.key", version)?;
        message.node_id = reader.int32()?;
        message.host = reader.string(flexible, "Coordinator.host", version)?;
        message.port = reader.int32()?;
        message.error_code = reader.int16()?;
        message.error_message = reader.nullable_string(flexible)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.key, flexible)?;
        writer.int32(self.node_id);
        writer.string(&self.host, flexible)?;
        writer.int32(self.port);
        writer.int16(self.error_code);
        writer.nullable_string(self.error_message.as_deref(), flexible)?;
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += string_size(Some(self.key.len()), flexible);
        size += 4;
        size += string_size(Some(self.host.len()), flexible);
        size += 4;
        size += 2;
        size += string_size(self.error_message.as_ref().map(String::len), flexible);
        size += usize::from(flexible);
        size
    }
}
