//! A topic's configuration, resolved to numbers for the hot path.

use std::collections::BTreeMap;

use super::config::BrokerConfig;

/// What an acknowledgement survives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum DurabilityClass {
    /// The loss of power: the journal is synchronous.
    #[default]
    Disk,
    /// The death of the process, as Kafka's default does.
    Os,
}

/// What becomes of a topic's old records; both may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CleanupPolicy {
    /// Old segments go.
    pub delete: bool,
    /// Older records of the same key go.
    pub compact: bool,
}

/// `compression.type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum CompressionType {
    /// As the producer sent it.
    Producer,
    Uncompressed,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Everything that a partition asks of its topic's configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicConfig {
    /// Largest batch, after compression, in bytes.
    pub max_message_bytes: i32,
    /// Largest batch, after decompression, in bytes.
    pub max_decompressed_bytes: i32,
    /// A segment is closed at this size.
    pub segment_bytes: i32,
    /// A segment is closed at this age in milliseconds.
    pub segment_ms: i64,
    /// Spread of `segment_ms`, so that not all segments close at once.
    pub segment_jitter_ms: i64,
    /// Size of an index file in bytes; a segment is closed when it is full.
    pub segment_index_bytes: i32,
    /// Bytes between two index entries.
    pub index_interval_bytes: i32,
    /// The broker's clock instead of the producer's.
    pub log_append_time: bool,
    /// How much older than the broker's clock a timestamp may be, in ms.
    pub timestamp_before_max_ms: i64,
    /// How much newer than the broker's clock a timestamp may be, in ms.
    pub timestamp_after_max_ms: i64,
    /// How batches are stored.
    pub compression: CompressionType,
    /// Level for gzip.
    pub gzip_level: i32,
    /// Level for lz4.
    pub lz4_level: i32,
    /// Level for zstd.
    pub zstd_level: i32,
    /// What becomes of old records.
    pub cleanup: CleanupPolicy,
    /// Age after which segments go, in ms; -1 for never.
    pub retention_ms: i64,
    /// Size of a partition beyond which segments go, in bytes; -1 for never.
    pub retention_bytes: i64,
    /// Time between a segment's deletion and that of its files, in ms.
    pub file_delete_delay_ms: i64,
    /// Replicas that must have a batch before `acks=all` is answered.
    pub min_insync_replicas: i32,
    /// What an acknowledgement survives.
    pub durability: DurabilityClass,
}

impl TopicConfig {
    /// The configuration of a topic with these values of its own.
    ///
    /// Values must have been validated; one that cannot be read counts as not
    /// set, since a record in the metadata log must not stop a broker.
    #[must_use]
    pub fn resolve(broker: &BrokerConfig, own: &BTreeMap<String, String>) -> Self {
        let _ = (broker, own);
        todo!()
    }
}
