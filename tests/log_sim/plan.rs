//! What a seed decides about a history: sizes, settings, and the batches.

use std::path::PathBuf;
use std::time::Duration;

use millstream::io::Pool;
use millstream::io::sim::{Crash, Rng};
use millstream::log::{
    DurabilityClass, JournalConfig, LogConfig, LogPools, LogSetConfig, ReserveSize,
};
use millstream::model::{ProducerEpoch, ProducerId, ShardId, Timestamp};
use millstream::record::{BatchBuilder, Compression, NewRecord};

/// What the producers send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mix {
    Small,
    Large,
    Mixed,
}

/// What goes wrong besides the crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    None,
    /// An I/O error somewhere: the process must end as the error calls for, and
    /// lose nothing.
    IoError,
    /// Closed segments rot: their readers are told, and nothing else suffers.
    Rot,
    /// The disk is full for a while: appends are refused, nothing is lost.
    Full,
    /// Opens fail for want of descriptors for a while, as above.
    NoDescriptors,
    /// Allocations find no space for a while although the file system has said
    /// that there is some: others may take it in between. As above.
    NoAllocations,
}

impl Trouble {
    /// Whether it goes away while the process runs.
    pub(crate) fn passes(self) -> bool {
        matches!(self, Self::Full | Self::NoDescriptors | Self::NoAllocations)
    }
}

/// The settings of one history.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) mix: Mix,
    pub(crate) trouble: Trouble,
    pub(crate) incarnations: usize,
    pub(crate) ops: usize,
    pub(crate) logs: usize,
    /// Logs in a thousand that are of class `os`.
    pub(crate) os_share: u32,
    pub(crate) bypass_bytes: usize,
    pub(crate) tail_chunk_bytes: usize,
    pub(crate) write_behind_bytes: u64,
    pub(crate) journal_bytes: u64,
    pub(crate) journal_files: u64,
    pub(crate) in_flight: usize,
    pub(crate) reserve: u64,
    pub(crate) log: LogConfig,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mix = [Mix::Small, Mix::Large, Mix::Mixed, Mix::Mixed][rng.index(4)];
        let trouble = match rng.below(40) {
            0..6 => Trouble::IoError,
            6 | 7 => Trouble::Full,
            8 => Trouble::NoDescriptors,
            9..11 => Trouble::Rot,
            11 => Trouble::NoAllocations,
            _ => Trouble::None,
        };
        // What rots must have been closed.
        let segment_sizes = if trouble == Trouble::Rot { 2 } else { 3 };
        Self {
            mix,
            trouble,
            incarnations: rng.within(2..=5) as usize,
            ops: rng.within(20..=120) as usize,
            logs: rng.within(1..=4) as usize,
            os_share: [0, 0, 300, 1000][rng.index(4)],
            bypass_bytes: [8 << 10, 16 << 10, 64 << 10][rng.index(3)],
            tail_chunk_bytes: [64 << 10, 256 << 10, 1 << 20][rng.index(3)],
            write_behind_bytes: [8 << 10, 64 << 10, 512 << 10][rng.index(3)],
            // A group of 256 KiB and the header must fit.
            journal_bytes: [320 << 10, 512 << 10, 1 << 20][rng.index(3)],
            journal_files: rng.within(3..=4),
            in_flight: rng.within(1..=4) as usize,
            reserve: [0, 256 << 10, 4 << 20][rng.index(3)],
            log: LogConfig {
                segment_bytes: [32 << 10, 128 << 10, 1 << 20][rng.index(segment_sizes)],
                segment_ms: [1_000, 7 * 24 * 3_600_000][rng.index(2)],
                index_interval_bytes: [1024, 4096][rng.index(2)],
                ..LogConfig::default()
            },
        }
    }

    pub(crate) fn settings(&self) -> LogSetConfig {
        let pool = |name, mib: usize| Pool::new(name, mib << 20).expect("address space is free");
        let pools = LogPools {
            tail: pool("tail", 8),
            journal: pool("journal", 4),
            cold: pool("cold", 3),
            upkeep: pool("upkeep", 1),
        };
        let journal = JournalConfig {
            first_file_bytes: self.journal_bytes,
            file_bytes: self.journal_bytes,
            cap_bytes: self.journal_bytes * self.journal_files,
            in_flight: self.in_flight,
        };
        LogSetConfig {
            disk: journal,
            os: journal,
            tail_chunk_bytes: self.tail_chunk_bytes,
            bypass_bytes: self.bypass_bytes,
            write_behind_bytes: self.write_behind_bytes,
            open_files: 8,
            unlink_every: Duration::from_micros(100),
            reserve: ReserveSize::Fixed(self.reserve),
            no_space_retry: Duration::from_millis(5),
            ..LogSetConfig::new(data_dir(), ShardId(0), pools)
        }
    }

    pub(crate) fn class(&self, rng: &mut Rng) -> DurabilityClass {
        if rng.chance(self.os_share) { DurabilityClass::Os } else { DurabilityClass::Disk }
    }

    /// Bytes of payload for the next batch.
    pub(crate) fn payload(&self, rng: &mut Rng) -> usize {
        let large = match self.mix {
            Mix::Small => 20,
            Mix::Mixed => 150,
            Mix::Large => 500,
        };
        if rng.chance(large) {
            self.bypass_bytes + rng.index(self.bypass_bytes)
        } else {
            [20, 200, 3000][rng.index(3)] + rng.index(500)
        }
    }
}

/// The one data directory of every history.
pub(crate) fn data_dir() -> PathBuf {
    PathBuf::from("/data")
}

/// Process deaths and power cuts in equal parts.
pub(crate) fn crash_kind(rng: &mut Rng) -> Crash {
    if rng.chance(500) { Crash::Power } else { Crash::Process }
}

/// How many steps an incarnation may live; `None` lets it end by itself.
pub(crate) fn lifetime(rng: &mut Rng) -> Option<u64> {
    match rng.below(8) {
        0 => None,
        1 => Some(rng.within(1..=60)),
        2 => Some(rng.within(1..=400)),
        3 | 4 => Some(rng.within(100..=2_000)),
        _ => Some(rng.within(300..=8_000)),
    }
}

/// A batch of about `payload` bytes; returns its bytes and the timestamps of
/// its records.
pub(crate) fn batch(
    rng: &mut Rng,
    payload: usize,
    now: i64,
    producer: Option<(ProducerId, ProducerEpoch, i32)>,
) -> (Vec<u8>, Vec<i64>) {
    let records = rng.within(1..=5) as usize;
    let mut builder = BatchBuilder::new(Compression::None);
    if let Some((id, epoch, sequence)) = producer {
        builder = builder.producer(id, epoch, sequence);
    }
    let mut stamps = Vec::new();
    for _ in 0..records {
        let mut value = vec![0u8; payload / records + 1];
        for word in value.chunks_mut(8) {
            let bits = rng.next_u64().to_le_bytes();
            word.copy_from_slice(&bits[..word.len()]);
        }
        let stamp = now + rng.within(0..=2_000) as i64 - 1_000;
        stamps.push(stamp);
        builder.push(&NewRecord {
            timestamp: Timestamp(stamp),
            key: None,
            value: Some(&value),
            headers: &[],
        });
    }
    (builder.build().expect("nothing to compress"), stamps)
}
