//! The machine of one partition: offsets, leader epoch, idempotent producers,
//! acknowledgements, fetch bounds and waiters.
//!
//! Pure: events come in (`admit`, `appended`, `durable`, `truncate`), effects
//! go out in an [`Effects`] that the caller reuses. The owning shard stands
//! between this machine and the log; nobody else may append or truncate.
//!
//! An append has two stages. `admit` gives offsets and changes nothing, so
//! that the log may still refuse the bytes; `appended` takes them in and
//! leaves an acknowledgement waiting; later it ends as [`AppendOutcome`], and
//! it can fail although offsets were given.

mod acks;
mod fetch;
mod machine;
mod offsets;
pub mod producers;
mod replicator;
mod waiters;

pub use acks::{AckToken, Acks, AppendOutcome, Completed};
pub use fetch::{FetchBounds, Isolation, ListOffset, OffsetSpec};
pub use machine::{Admission, Admitted, Effects, Partition, PartitionInit, producer_batch};
pub use offsets::Offsets;
pub use replicator::{Local, Replicator};
pub use waiters::{FetchToken, Interest, Wake};

#[cfg(test)]
mod tests;
