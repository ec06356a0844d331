//! Keys that only this broker has.

use crate::model::config::key::{Check, Key, Kind};
use crate::model::config::topic_keys::DURABILITY;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "millstream.addressing",
        Kind::String,
        Some("process"),
        "What clients see as a broker: the whole process, or each of its shards.",
    )
    .check(Check::OneOf(&["process"]))
    .enforced(),
    Key::new(
        "millstream.durability",
        Kind::String,
        Some("disk"),
        "Topics' default for millstream.durability.",
    )
    .check(DURABILITY)
    .high()
    .enforced(),
    Key::new(
        "millstream.fetch.partitions.max",
        Kind::Int,
        Some("500000"),
        "Partitions that all fetch sessions of a shard may hold together, and as many that its \
         fetches in flight may name; each takes about 400 bytes. Beyond it consumers are answered \
         without a session, and their fetches wait for each other.",
    )
    .range(100_000, 100_000_000)
    .enforced(),
    Key::new(
        "millstream.journal.queue.bytes",
        Kind::Long,
        Some("1048576"),
        "Bytes queued and in flight in a shard's journal of class disk before more appends wait: \
         no partition waits behind more of others' bytes.",
    )
    .range(65_536, 1 << 30)
    .enforced(),
    Key::new(
        "millstream.memory",
        Kind::String,
        Some("512m"),
        "Memory of one shard for buffers, split into pools; nothing is buffered beyond it. Set by \
         the flag --memory.",
    )
    .check(Check::Size(64 << 20))
    .high()
    .enforced(),
    Key::new(
        "millstream.reserve.bytes",
        Kind::Long,
        Some("-1"),
        "Disk space that a shard keeps for the day on which the disk is full, to write what it has \
         accepted and to delete. While it cannot be kept, producers are refused. -1: as much as \
         emptying the journals may take. 0: none.",
    )
    .range(-1, 1 << 40)
    .enforced(),
    Key::new(
        "millstream.metadata.changes.max",
        Kind::Int,
        Some("1000"),
        "Creations and deletions of topics, of records, and the like, that may be in progress, with those that \
         their clients no longer wait for. More are answered THROTTLING_QUOTA_EXCEEDED (89), old \
         versions REQUEST_TIMED_OUT (7), which clients retry.",
    )
    .range(1, 1_000_000)
    .enforced(),
    Key::new(
        "millstream.shards",
        Kind::Int,
        Some("1"),
        "Pinned threads, each with its own partitions. More than one comes later. Set by the flag \
         --shards.",
    )
    .range(1, 1)
    .high()
    .enforced(),
    Key::new(
        "millstream.spin.us",
        Kind::Int,
        Some("50"),
        "How long a shard without work looks again before it sleeps, in microseconds: less saves \
         CPU, more saves latency. Set by the flag --spin.",
    )
    .range(0, 10_000)
    .enforced(),
];
