//! InitProducerId (22). Generated from `schema/init_producer_id.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 2;

#[derive(Clone, Debug, PartialEq)]
pub struct InitProducerIdRequest {
    pub transactional_id: Option<String>,
    pub transaction_timeout_ms: i32,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub enable2_pc: bool,
    pub keep_prepared_txn: bool,
}

impl Default for InitProducerIdRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(String::new()),
            transaction_timeout_ms: 0,
            producer_id: -1,
            producer_epoch: -1,
            enable2_pc: false,
            keep_prepared_txn: false,
        }
    }
}

impl Message for InitProducerIdRequest {
    const KEY: ApiKey = ApiKey::InitProducerId;
    const NAME: &'static str = "InitProducerIdRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.transactional_id = reader.nullable_string(flexible)?;
        message.transaction_timeout_ms = reader.int32()?;
        if version >= 3 {
            message.producer_id = reader.int64()?;
        }
        if version >= 3 {
            message.producer_epoch = reader.int16()?;
        }
        if version >= 6 {
            message.enable2_pc = reader.bool()?;
        }
        if version >= 6 {
            message.keep_prepared_txn = reader.bool()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.nullable_string(self.transactional_id.as_deref(), flexible)?;
        writer.int32(self.transaction_timeout_ms);
        if version >= 3 {
            writer.int64(self.producer_id);
        } else if self.producer_id != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "InitProducerIdRequest.producer_id",
                version,
            });
        }
        if version >= 3 {
            writer.int16(self.producer_epoch);
        } else if self.producer_epoch != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "InitProducerIdRequest.producer_epoch",
                version,
            });
        }
        if version >= 6 {
            writer.bool(self.enable2_pc);
        } else if self.enable2_pc {
            return Err(WireError::FieldNotInVersion {
                field: "InitProducerIdRequest.enable2_pc",
                version,
            });
        }
        if version >= 6 {
            writer.bool(self.keep_prepared_txn);
        } else if self.keep_prepared_txn {
            return Err(WireError::FieldNotInVersion {
                field: "InitProducerIdRequest.keep_prepared_txn",
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
        size += string_size(self.transactional_id.as_ref().map(String::len), flexible);
        size += 4;
        if version >= 3 {
            size += 8;
        }
        if version >= 3 {
            size += 2;
        }
        if version >= 6 {
            size += 1;
        }
        if version >= 6 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

impl Request for InitProducerIdRequest {
    type Response = InitProducerIdResponse;
}

#[derive(Clone, Debug, PartialEq)]
pub struct InitProducerIdResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub ongoing_txn_producer_id: i64,
    pub ongoing_txn_producer_epoch: i16,
}

impl Default for InitProducerIdResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            producer_id: -1,
            producer_epoch: 0,
            ongoing_txn_producer_id: -1,
            ongoing_txn_producer_epoch: -1,
        }
    }
}

impl Message for InitProducerIdResponse {
    const KEY: ApiKey = ApiKey::InitProducerId;
    const NAME: &'static str = "InitProducerIdResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        message.error_code = reader.int16()?;
        message.producer_id = reader.int64()?;
        message.producer_epoch = reader.int16()?;
        if version >= 6 {
            message.ongoing_txn_producer_id = reader.int64()?;
        }
        if version >= 6 {
            message.ongoing_txn_producer_epoch = reader.int16()?;
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.throttle_time_ms);
        writer.int16(self.error_code);
        writer.int64(self.producer_id);
        writer.int16(self.producer_epoch);
        if version >= 6 {
            writer.int64(self.ongoing_txn_producer_id);
        } else if self.ongoing_txn_producer_id != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "InitProducerIdResponse.ongoing_txn_producer_id",
                version,
            });
        }
        if version >= 6 {
            writer.int16(self.ongoing_txn_producer_epoch);
        } else if self.ongoing_txn_producer_epoch != -1 {
            return Err(WireError::FieldNotInVersion {
                field: "InitProducerIdResponse.ongoing_txn_producer_epoch",
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
        size += 4;
        size += 2;
        size += 8;
        size += 2;
        if version >= 6 {
            size += 8;
        }
        if version >= 6 {
            size += 2;
        }
        size += usize::from(flexible);
        size
    }
}

impl Response for InitProducerIdResponse {}
