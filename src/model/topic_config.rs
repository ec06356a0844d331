//! A topic's configuration, resolved to numbers for the hot path.

use std::collections::BTreeMap;

use super::config::{BrokerConfig, topic_key};

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
    /// The configuration of a topic with these values of its own, on a broker
    /// with these settings.
    ///
    /// An own value that cannot be read counts as not set: a record of the
    /// metadata log must not stop a broker.
    #[must_use]
    pub fn resolve(broker: &BrokerConfig, own: &BTreeMap<String, String>) -> Self {
        let long = |key| broker.topic_number(key, own);
        let int = |key| i32::try_from(long(key)).expect("the table bounds int keys");
        let text = |name| {
            let key = topic_key(name).expect("a key of the table");
            broker.topic_value(key, own).expect("the table has a default")
        };
        let cleanup = text("cleanup.policy");
        Self {
            max_message_bytes: int("max.message.bytes"),
            max_decompressed_bytes: int("max.decompressed.message.bytes"),
            segment_bytes: int("segment.bytes"),
            segment_ms: long("segment.ms"),
            segment_jitter_ms: long("segment.jitter.ms"),
            segment_index_bytes: int("segment.index.bytes"),
            index_interval_bytes: int("index.interval.bytes"),
            log_append_time: text("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms: long("message.timestamp.before.max.ms"),
            timestamp_after_max_ms: long("message.timestamp.after.max.ms"),
            compression: CompressionType::from_config(&text("compression.type")),
            gzip_level: int("compression.gzip.level"),
            lz4_level: int("compression.lz4.level"),
            zstd_level: int("compression.zstd.level"),
            cleanup: CleanupPolicy {
                delete: cleanup.split(',').any(|word| word == "delete"),
                compact: cleanup.split(',').any(|word| word == "compact"),
            },
            retention_ms: long("retention.ms"),
            retention_bytes: long("retention.bytes"),
            file_delete_delay_ms: long("file.delete.delay.ms"),
            min_insync_replicas: int("min.insync.replicas"),
            durability: DurabilityClass::from_name(&text("millstream.durability"))
                .unwrap_or_default(),
        }
    }
}

impl Default for TopicConfig {
    /// A topic without configs of its own on a broker without settings.
    fn default() -> Self {
        Self::resolve(&BrokerConfig::default(), &BTreeMap::new())
    }
}

impl DurabilityClass {
    /// Both classes, in the order of [`Self::index`].
    pub const ALL: [Self; 2] = [Self::Disk, Self::Os];

    /// From its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// For a table with an entry for each.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name in file names, configs and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Os => "os",
        }
    }
}

impl CompressionType {
    fn from_config(word: &str) -> Self {
        match word {
            "uncompressed" => Self::Uncompressed,
            "gzip" => Self::Gzip,
            "snappy" => Self::Snappy,
            "lz4" => Self::Lz4,
            "zstd" => Self::Zstd,
            _ => Self::Producer,
        }
    }
}
