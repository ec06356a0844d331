//! The log: a journal per shard and class that makes appends durable, segment
//! files in Kafka's format that are written behind, indexes, reclaim,
//! checkpoint and recovery. Rules and their reasons: `docs/internals/recovery.md`;
//! bytes: `docs/formats.md`.
//!
//! Owned by one shard, generic over the environment. Refuses to know: requests,
//! producers' state, replication, what a record means (but for its timestamp).

mod ahead;
mod append;
mod behind;
mod checkpoint;
mod close;
mod complete;
pub mod config;
mod damage;
pub mod epoch_cache;
pub mod error;
mod files_lru;
mod finish;
pub mod fuzzing;
mod journal;
mod lifecycle;
mod read;
mod rebuild;
mod reclaim;
mod recovery;
mod reopen;
mod rescan;
mod rest;
mod retention;
mod rewrite;
mod scan;
mod segment;
mod segment_io;
mod set;
mod signal;
mod snapshots;
mod sound;
mod space;
mod state;
mod tails;
mod timestamps;
mod together;
mod truncate;
mod unsynced;

#[cfg(test)]
mod tests;

pub use config::{
    DurabilityClass, JournalConfig, KnownLog, LogConfig, LogPools, LogSetConfig, ReserveSize,
};
pub use epoch_cache::{EpochCache, EpochEntry};
pub use error::{AppendError, Error, FatalReason, Result};
pub use recovery::Recovery;
pub use set::{
    Appended, ColdRead, LogHandle, LogSet, ReadOutcome, Recovered, RecoveredBatch, Slices,
    TimestampOffset,
};
