//! Settings of the log layer, as plain values. Defaults are those of the
//! design; the broker fills them from its flags and from topic configs.
//!
//! Knows no file and no state.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::io::Pool;
pub use crate::model::DurabilityClass;
use crate::model::{LeaderEpoch, LogId, PartitionIndex, ShardId, TopicId};

/// Bytes of a block: alignment of every direct write.
pub const BLOCK: u64 = 4096;
/// Groups that may be in flight at once, at most; a property of the format,
/// because replay judges by it what a hole means.
pub const MAX_IN_FLIGHT: usize = 4;
/// Bytes of one journal group in the ordinary case; a single larger frame
/// makes a group of its own.
pub const GROUP_BYTES: usize = 256 * 1024;
/// A batch above this size never travels through the journal.
pub const MAX_JOURNALED_BATCH: usize = 1024 * 1024;
/// Reclaim copies the tail of a log with at most this many bytes above its
/// floor to the journal's head instead of syncing its segment.
pub const SMALL_TAIL_BYTES: u64 = 64 * 1024;
/// Partitions of one round that may bypass the journal: each costs a sync.
pub const MAX_BYPASS_PER_ROUND: usize = 4;

/// Bytes of a reserve of the needed size for each log: its last block, and one
/// of each index.
pub const RESERVE_BYTES_PER_LOG: u64 = 3 * BLOCK;
/// What such a reserve has in any case: large appends under way, a small
/// journal file for groups that were accepted and find none, the first journal
/// files of the next start, the checkpoint.
pub const RESERVE_FIXED_BYTES: u64 = 40 << 20;

/// Sizes of one journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalConfig {
    /// Bytes of the file that a start has to make before it can acknowledge.
    pub first_file_bytes: u64,
    /// Bytes of every other file.
    pub file_bytes: u64,
    /// Bytes of all files together, at most.
    pub cap_bytes: u64,
    /// Groups in flight, 1 to [`MAX_IN_FLIGHT`].
    pub in_flight: usize,
}

impl JournalConfig {
    /// Direct, synchronous, pre-written files.
    pub const DISK: Self = Self {
        first_file_bytes: 4 << 20,
        file_bytes: 32 << 20,
        cap_bytes: 256 << 20,
        in_flight: 1,
    };
    /// A 64 MiB ring of eight files that is rewritten in place.
    pub const OS: Self =
        Self { first_file_bytes: 8 << 20, file_bytes: 8 << 20, cap_bytes: 64 << 20, in_flight: 1 };
}

/// Disk space that is kept for the day on which the disk is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReserveSize {
    /// As large as the journals are, a 64th more for index entries,
    /// [`RESERVE_BYTES_PER_LOG`] for each log and [`RESERVE_FIXED_BYTES`].
    AsNeeded,
    /// So many bytes; 0 for none.
    Fixed(u64),
}

/// Memory of the log layer of one shard, from the shard's budget.
#[derive(Clone, Debug)]
pub struct LogPools {
    /// Tail chunks: what producers wrote last, for readers and write-behind.
    pub tail: Pool,
    /// Journal groups.
    pub journal: Pool,
    /// Cold reads, index reads and recovery.
    pub cold: Pool,
    /// Housekeeping, so that readers cannot hold it up: new journal files, write
    /// behind, reclaim, truncations.
    pub upkeep: Pool,
}

/// Settings of a shard's log layer.
#[derive(Clone, Debug)]
pub struct LogSetConfig {
    /// The data directory; must exist.
    pub data_dir: PathBuf,
    /// The shard, for the names of its journal files only.
    pub shard: ShardId,
    /// Memory.
    pub pools: LogPools,
    /// The journal of class `disk`.
    pub disk: JournalConfig,
    /// The journal of class `os`.
    pub os: JournalConfig,
    /// Largest tail chunk in bytes.
    pub tail_chunk_bytes: usize,
    /// A batch of at least this size bypasses the journal, in bytes.
    pub bypass_bytes: usize,
    /// Bytes that bypasses of all logs may have waiting and under way, before
    /// appends of that kind wait; a single larger one is taken all the same.
    pub bypass_bytes_max: u64,
    /// Bytes that may be queued and in flight in one journal before appends wait.
    pub journal_queue_bytes: u64,
    /// Space kept for a full disk.
    pub reserve: ReserveSize,
    /// A log with this many unwritten bytes is written behind.
    pub write_behind_bytes: u64,
    /// Open files kept by the LRU; as many again may be in use by cold reads
    /// after it let go of them.
    pub open_files: usize,
    /// One background unlink per this time.
    pub unlink_every: Duration,
    /// How long a full disk is left alone before the next try.
    pub no_space_retry: Duration,
}

impl LogSetConfig {
    /// The design's defaults.
    #[must_use]
    pub fn new(data_dir: PathBuf, shard: ShardId, pools: LogPools) -> Self {
        Self {
            data_dir,
            shard,
            pools,
            disk: JournalConfig::DISK,
            os: JournalConfig::OS,
            tail_chunk_bytes: 1 << 20,
            bypass_bytes: 256 * 1024,
            bypass_bytes_max: 16 << 20,
            journal_queue_bytes: 1 << 20,
            reserve: ReserveSize::AsNeeded,
            write_behind_bytes: 1 << 20,
            open_files: 512,
            unlink_every: Duration::from_millis(2),
            no_space_retry: Duration::from_secs(1),
        }
    }

    pub(crate) fn journal(&self, class: DurabilityClass) -> &JournalConfig {
        match class {
            DurabilityClass::Disk => &self.disk,
            DurabilityClass::Os => &self.os,
        }
    }

    /// Where journals and checkpoints live: a name that no topic directory
    /// can have, since these end in `-` and a number.
    #[must_use]
    pub fn journal_dir(&self) -> PathBuf {
        self.data_dir.join("journal")
    }
}

/// Topic settings that concern the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// `segment.bytes`.
    pub segment_bytes: u64,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `retention.ms`; negative keeps segments whatever their age.
    pub retention_ms: i64,
    /// `retention.bytes`; negative keeps segments however many there are.
    pub retention_bytes: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay: Duration,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3600 * 1000,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: -1,
            retention_bytes: -1,
            file_delete_delay: Duration::from_secs(60),
        }
    }
}

/// A log that the metadata image knows.
#[derive(Clone, Debug)]
pub struct KnownLog {
    /// The incarnation.
    pub log_id: LogId,
    /// Name of the topic, for its directory.
    pub topic: Arc<str>,
    /// Index of the partition, for its directory.
    pub partition: PartitionIndex,
    /// The topic's id, for `partition.metadata`.
    pub topic_id: TopicId,
    /// What its acknowledgements mean.
    pub class: DurabilityClass,
    /// The epoch of the leadership that starts now; `None` takes the log's
    /// latest plus one (the metadata log, which cannot ask itself).
    pub epoch_to_start: Option<LeaderEpoch>,
    /// Topic settings.
    pub config: LogConfig,
}

impl KnownLog {
    /// Name of the directory, as Kafka makes it.
    #[must_use]
    pub fn dir_name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }
}
