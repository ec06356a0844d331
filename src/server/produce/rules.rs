//! What a topic's configuration and a request's version ask of a batch.

use crate::model::{CompressionType, Timestamp, TopicConfig};
use crate::record::{Compression, ProduceRules, TargetCompression, TimestampType};

/// First version whose batches may be compressed with zstd (KIP-110).
const ZSTD_FROM: i16 = 7;

pub(super) fn rules(config: &TopicConfig, version: i16, now: Timestamp) -> ProduceRules {
    let bytes = |value: i32| usize::try_from(value).unwrap_or(0);
    let codec = |codec| TargetCompression::Codec(codec);
    ProduceRules {
        max_message_bytes: bytes(config.max_message_bytes),
        segment_bytes: bytes(config.segment_bytes),
        compression: match config.compression {
            CompressionType::Producer => TargetCompression::Producer,
            CompressionType::Uncompressed => codec(Compression::None),
            CompressionType::Gzip => codec(Compression::Gzip),
            CompressionType::Snappy => codec(Compression::Snappy),
            CompressionType::Lz4 => codec(Compression::Lz4),
            CompressionType::Zstd => codec(Compression::Zstd),
        },
        timestamp_type: if config.log_append_time {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        },
        timestamp_before_max_ms: config.timestamp_before_max_ms,
        timestamp_after_max_ms: config.timestamp_after_max_ms,
        compacted: config.cleanup.compact,
        allow_zstd: version >= ZSTD_FROM,
        decompressed_bytes_max: bytes(config.max_decompressed_bytes),
        now,
    }
}
