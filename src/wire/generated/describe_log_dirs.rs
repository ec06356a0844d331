//! DescribeLogDirs (35). Generated from `schema/describe_log_dirs.txt`: see `mod.rs`.

use super::ApiKey;
use crate::wire::error::WireError;
use crate::wire::message::{Message, Request, Response};
use crate::wire::reader::Reader;
use crate::wire::writer::{Writer, array_len_size, string_size};

/// First version with tagged fields and compact lengths.
const FLEXIBLE_FROM: i16 = 2;

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsRequest {
    pub topics: Option<Vec<DescribableLogDirTopic>>,
}

impl Default for DescribeLogDirsRequest {
    fn default() -> Self {
        Self { topics: Some(Vec::new()) }
    }
}

impl Message for DescribeLogDirsRequest {
    const KEY: ApiKey = ApiKey::DescribeLogDirs;
    const NAME: &'static str = "DescribeLogDirsRequest";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topics =
            reader.nullable_array(flexible, DescribableLogDirTopic::SIZE_MIN, |reader| {
                DescribableLogDirTopic::read(reader, version)
            })?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        writer.array_len(self.topics.as_ref().map(Vec::len), flexible)?;
        for element in self.topics.iter().flatten() {
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
        size += array_len_size(self.topics.as_ref().map(Vec::len), flexible)
            + self.topics.iter().flatten().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Request for DescribeLogDirsRequest {
    type Response = DescribeLogDirsResponse;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribableLogDirTopic {
    pub topic: String,
    pub partitions: Vec<i32>,
}

impl DescribableLogDirTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.topic = reader.string(flexible, "DescribableLogDirTopic.topic", version)?;
        message.partitions =
            reader.array(flexible, 4, "DescribableLogDirTopic.partitions", version, |reader| {
                reader.int32()
            })?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.topic, flexible)?;
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
            writer.int32(*element);
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
        size += string_size(Some(self.topic.len()), flexible);
        size += array_len_size(Some(self.partitions.len()), flexible) + 4 * self.partitions.len();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub results: Vec<DescribeLogDirsResult>,
}

impl Message for DescribeLogDirsResponse {
    const KEY: ApiKey = ApiKey::DescribeLogDirs;
    const NAME: &'static str = "DescribeLogDirsResponse";

    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        Self::check_version(version)?;
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.throttle_time_ms = reader.int32()?;
        if version >= 3 {
            message.error_code = reader.int16()?;
        }
        message.results = reader.array(
            flexible,
            DescribeLogDirsResult::SIZE_MIN,
            "DescribeLogDirsResponse.results",
            version,
            |reader| DescribeLogDirsResult::read(reader, version),
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
        if version >= 3 {
            writer.int16(self.error_code);
        }
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
        if version >= 3 {
            size += 2;
        }
        size += array_len_size(Some(self.results.len()), flexible)
            + self.results.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

impl Response for DescribeLogDirsResponse {}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeLogDirsResult {
    pub error_code: i16,
    pub log_dir: String,
    pub topics: Vec<DescribeLogDirsTopic>,
    pub total_bytes: i64,
    pub usable_bytes: i64,
    pub is_cordoned: bool,
}

impl Default for DescribeLogDirsResult {
    fn default() -> Self {
        Self {
            error_code: 0,
            log_dir: String::new(),
            topics: Vec::new(),
            total_bytes: -1,
            usable_bytes: -1,
            is_cordoned: false,
        }
    }
}

impl DescribeLogDirsResult {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 5;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.error_code = reader.int16()?;
        message.log_dir = reader.string(flexible, "DescribeLogDirsResult.log_dir", version)?;
        message.topics = reader.array(
            flexible,
            DescribeLogDirsTopic::SIZE_MIN,
            "DescribeLogDirsResult.topics",
            version,
            |reader| DescribeLogDirsTopic::read(reader, version),
        )?;
        if version >= 4 {
            message.total_bytes = reader.int64()?;
        }
        if version >= 4 {
            message.usable_bytes = reader.int64()?;
        }
        if version >= 5 {
            message.is_cordoned = reader.bool()?;
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
        writer.string(&self.log_dir, flexible)?;
        writer.array_len(Some(self.topics.len()), flexible)?;
        for element in &self.topics {
            element.write(writer, version)?;
        }
        if version >= 4 {
            writer.int64(self.total_bytes);
        }
        if version >= 4 {
            writer.int64(self.usable_bytes);
        }
        if version >= 5 {
            writer.bool(self.is_cordoned);
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
        size += string_size(Some(self.log_dir.len()), flexible);
        size += array_len_size(Some(self.topics.len()), flexible)
            + self.topics.iter().map(|element| element.size(version)).sum::<usize>();
        if version >= 4 {
            size += 8;
        }
        if version >= 4 {
            size += 8;
        }
        if version >= 5 {
            size += 1;
        }
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsTopic {
    pub name: String,
    pub partitions: Vec<DescribeLogDirsPartition>,
}

impl DescribeLogDirsTopic {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 3;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.name = reader.string(flexible, "DescribeLogDirsTopic.name", version)?;
        message.partitions = reader.array(
            flexible,
            DescribeLogDirsPartition::SIZE_MIN,
            "DescribeLogDirsTopic.partitions",
            version,
            |reader| DescribeLogDirsPartition::read(reader, version),
        )?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.string(&self.name, flexible)?;
        writer.array_len(Some(self.partitions.len()), flexible)?;
        for element in &self.partitions {
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
        size += string_size(Some(self.name.len()), flexible);
        size += array_len_size(Some(self.partitions.len()), flexible)
            + self.partitions.iter().map(|element| element.size(version)).sum::<usize>();
        size += usize::from(flexible);
        size
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeLogDirsPartition {
    pub partition_index: i32,
    pub partition_size: i64,
    pub offset_lag: i64,
    pub is_future_key: bool,
}

impl DescribeLogDirsPartition {
    /// The least number of bytes that one takes on the wire.
    pub const SIZE_MIN: usize = 21;

    /// Reads the fields that `version` has; the others keep their defaults.
    pub fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        let mut message = Self::default();
        message.partition_index = reader.int32()?;
        message.partition_size = reader.int64()?;
        message.offset_lag = reader.int64()?;
        message.is_future_key = reader.bool()?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(message)
    }

    /// Appends the fields that `version` has.
    pub fn write(&self, writer: &mut Writer<'_>, version: i16) -> Result<(), WireError> {
        let flexible = version >= FLEXIBLE_FROM;
        writer.int32(self.partition_index);
        writer.int64(self.partition_size);
        writer.int64(self.offset_lag);
        writer.bool(self.is_future_key);
        if flexible {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// Bytes that `write` appends for `version` when it succeeds.
    pub fn size(&self, version: i16) -> usize {
        let flexible = version >= FLEXIBLE_FROM;
        let mut size = 0;
        size += 4;
        size += 8;
        size += 8;
        size += 1;
        size += usize::from(flexible);
        size
    }
}
