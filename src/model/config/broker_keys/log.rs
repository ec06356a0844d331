//! Logs: segments, retention, compaction, and the defaults of topics.

use crate::model::config::key::{Check, Key, Kind};
use crate::model::config::topic_keys::{CLEANUP, COMPRESSION, NEVER, TIMESTAMP};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "auto.create.topics.enable",
        Kind::Boolean,
        Some("true"),
        "Whether a topic that a producer or consumer asks for is made when it does not exist.",
    )
    .high()
    .enforced(),
    Key::new(
        "compression.gzip.level",
        Kind::Int,
        Some("-1"),
        "Topics' default for compression.gzip.level.",
    )
    .check(Check::RangeOr(1, 9, -1))
    .dynamic(),
    Key::new(
        "compression.lz4.level",
        Kind::Int,
        Some("9"),
        "Topics' default for compression.lz4.level.",
    )
    .range(1, 17)
    .dynamic(),
    Key::new(
        "compression.type",
        Kind::String,
        Some("producer"),
        "Topics' default for compression.type.",
    )
    .check(COMPRESSION)
    .high()
    .dynamic()
    .enforced(),
    Key::new(
        "compression.zstd.level",
        Kind::Int,
        Some("3"),
        "Topics' default for compression.zstd.level.",
    )
    .range(-131072, 22)
    .dynamic(),
    Key::new(
        "cordoned.log.dirs",
        Kind::List,
        Some(""),
        "Log directories that take no new partitions.",
    )
    .per_broker(),
    Key::new(
        "default.replication.factor",
        Kind::Int,
        Some("1"),
        "Copies of a topic's partitions when its creator leaves it open.",
    )
    .enforced(),
    Key::new(
        "delete.records.purgatory.purge.interval.requests",
        Kind::Int,
        Some("1"),
        "Tunes a queue of Kafka's.",
    )
    .not_applicable(),
    Key::new("delete.topic.enable", Kind::Boolean, Some("true"), "Whether topics can be deleted.")
        .high()
        .enforced(),
    Key::new(
        "errors.deadletterqueue.auto.create.topics.enable",
        Kind::Boolean,
        Some("false"),
        "Whether the topics for failed records of share groups are made when needed.",
    )
    .dynamic(),
    Key::new(
        "errors.deadletterqueue.topic.name.prefix",
        Kind::String,
        Some("dlq."),
        "How names of topics for failed records begin.",
    )
    .dynamic(),
    Key::new(
        "fetch.purgatory.purge.interval.requests",
        Kind::Int,
        Some("1000"),
        "Tunes a queue of Kafka's.",
    )
    .not_applicable(),
    Key::new(
        "follower.fetch.last.tiered.offset.enable",
        Kind::Boolean,
        Some("false"),
        "Whether new followers begin at the end of the tiered data.",
    )
    .dynamic()
    .not_applicable(),
    Key::new(
        "log.cleaner.backoff.ms",
        Kind::Long,
        Some("15000"),
        "Rest of compaction when it finds nothing to do.",
    )
    .at_least(0)
    .dynamic(),
    Key::new(
        "log.cleaner.dedupe.buffer.size",
        Kind::Long,
        Some("134217728"),
        "Memory for compaction's keys.",
    )
    .dynamic(),
    Key::new(
        "log.cleaner.delete.retention.ms",
        Kind::Long,
        Some("86400000"),
        "Topics' default for delete.retention.ms.",
    )
    .at_least(0)
    .dynamic(),
    Key::new("log.cleaner.enable", Kind::Boolean, Some("true"), "Whether compaction runs."),
    Key::new(
        "log.cleaner.io.buffer.load.factor",
        Kind::Double,
        Some("0.9"),
        "How full compaction's table of keys may get.",
    )
    .dynamic(),
    Key::new(
        "log.cleaner.io.buffer.size",
        Kind::Int,
        Some("524288"),
        "Memory for compaction's reads and writes.",
    )
    .at_least(0)
    .dynamic(),
    Key::new(
        "log.cleaner.io.max.bytes.per.second",
        Kind::Double,
        Some("1.7976931348623157E308"),
        "Most that compaction reads and writes per second.",
    )
    .dynamic(),
    Key::new(
        "log.cleaner.max.compaction.lag.ms",
        Kind::Long,
        NEVER,
        "Topics' default for max.compaction.lag.ms.",
    )
    .at_least(1)
    .dynamic(),
    Key::new(
        "log.cleaner.min.cleanable.ratio",
        Kind::Double,
        Some("0.5"),
        "Topics' default for min.cleanable.dirty.ratio.",
    )
    .check(Check::Fraction)
    .dynamic(),
    Key::new(
        "log.cleaner.min.compaction.lag.ms",
        Kind::Long,
        Some("0"),
        "Topics' default for min.compaction.lag.ms.",
    )
    .at_least(0)
    .dynamic(),
    Key::new("log.cleaner.threads", Kind::Int, Some("1"), "Threads of compaction.")
        .at_least(0)
        .dynamic()
        .not_applicable(),
    Key::new(
        "log.cleanup.policy",
        Kind::List,
        Some("delete"),
        "Topics' default for cleanup.policy.",
    )
    .check(CLEANUP)
    .dynamic()
    .enforced(),
    Key::new(
        "log.dir",
        Kind::List,
        Some("/var/lib/millstream"),
        "The data directory, when log.dirs is not given. Set by the flag --data-dir.",
    )
    .high()
    .enforced(),
    Key::new(
        "log.dir.failure.timeout.ms",
        Kind::Long,
        Some("30000"),
        "Wait before a broker stops that cannot report a failed directory.",
    )
    .at_least(1)
    .low()
    .not_applicable(),
    Key::new("log.dirs", Kind::List, None, "The data directory; set by the flag --data-dir.")
        .high()
        .enforced()
        .synonyms(&[("log.dirs", 1), ("log.dir", 1)]),
    Key::new(
        "log.flush.interval.messages",
        Kind::Long,
        NEVER,
        "Topics' default for flush.messages.",
    )
    .at_least(1)
    .high()
    .dynamic()
    .not_applicable(),
    Key::new("log.flush.interval.ms", Kind::Long, None, "Topics' default for flush.ms.")
        .high()
        .dynamic()
        .not_applicable()
        .synonyms(&[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)]),
    Key::new(
        "log.flush.offset.checkpoint.interval.ms",
        Kind::Int,
        Some("60000"),
        "How often recovery points are written. Here checkpoints follow the journal.",
    )
    .at_least(0)
    .high()
    .not_applicable(),
    Key::new(
        "log.flush.scheduler.interval.ms",
        Kind::Long,
        NEVER,
        "How often Kafka looks for logs to sync.",
    )
    .high()
    .not_applicable(),
    Key::new(
        "log.flush.start.offset.checkpoint.interval.ms",
        Kind::Int,
        Some("60000"),
        "How often log starts are written. Here checkpoints follow the journal.",
    )
    .at_least(0)
    .high()
    .not_applicable(),
    Key::new(
        "log.index.interval.bytes",
        Kind::Int,
        Some("4096"),
        "Topics' default for index.interval.bytes.",
    )
    .at_least(0)
    .dynamic()
    .enforced(),
    Key::new(
        "log.index.size.max.bytes",
        Kind::Int,
        Some("10485760"),
        "Topics' default for segment.index.bytes.",
    )
    .at_least(4)
    .dynamic()
    .enforced(),
    Key::new(
        "log.local.retention.bytes",
        Kind::Long,
        Some("-2"),
        "Topics' default for local.retention.bytes.",
    )
    .at_least(-2)
    .dynamic()
    .not_applicable(),
    Key::new(
        "log.local.retention.ms",
        Kind::Long,
        Some("-2"),
        "Topics' default for local.retention.ms.",
    )
    .at_least(-2)
    .dynamic()
    .not_applicable(),
    Key::new(
        "log.message.timestamp.after.max.ms",
        Kind::Long,
        Some("3600000"),
        "Topics' default for message.timestamp.after.max.ms.",
    )
    .at_least(0)
    .dynamic()
    .enforced(),
    Key::new(
        "log.message.timestamp.before.max.ms",
        Kind::Long,
        NEVER,
        "Topics' default for message.timestamp.before.max.ms.",
    )
    .at_least(0)
    .dynamic()
    .enforced(),
    Key::new(
        "log.message.timestamp.type",
        Kind::String,
        Some("CreateTime"),
        "Topics' default for message.timestamp.type.",
    )
    .check(TIMESTAMP)
    .dynamic()
    .enforced(),
    Key::new("log.preallocate", Kind::Boolean, Some("false"), "Topics' default for preallocate.")
        .dynamic()
        .not_applicable(),
    Key::new(
        "log.remote.copy.lag.bytes",
        Kind::Long,
        Some("-1"),
        "Topics' default for remote.copy.lag.bytes.",
    )
    .at_least(-1)
    .dynamic()
    .not_applicable(),
    Key::new(
        "log.remote.copy.lag.ms",
        Kind::Long,
        Some("0"),
        "Topics' default for remote.copy.lag.ms.",
    )
    .at_least(-1)
    .dynamic()
    .not_applicable(),
    Key::new("log.retention.bytes", Kind::Long, Some("-1"), "Topics' default for retention.bytes.")
        .high()
        .dynamic()
        .enforced(),
    Key::new(
        "log.retention.check.interval.ms",
        Kind::Long,
        Some("300000"),
        "How often segments are looked at that may go.",
    )
    .at_least(1)
    .enforced(),
    Key::new(
        "log.retention.hours",
        Kind::Int,
        Some("168"),
        "Topics' default for retention.ms, in hours.",
    )
    .at_least(-1)
    .high()
    .enforced()
    .synonyms(&[
        ("log.retention.ms", 1),
        ("log.retention.minutes", 1),
        ("log.retention.hours", 1),
    ]),
    Key::new(
        "log.retention.minutes",
        Kind::Int,
        None,
        "Topics' default for retention.ms, in minutes; stands before log.retention.hours.",
    )
    .at_least(-1)
    .high()
    .enforced()
    .synonyms(&[
        ("log.retention.ms", 1),
        ("log.retention.minutes", 1),
        ("log.retention.hours", 1),
    ]),
    Key::new(
        "log.retention.ms",
        Kind::Long,
        None,
        "Topics' default for retention.ms; stands before log.retention.minutes.",
    )
    .at_least(-1)
    .high()
    .enforced()
    .dynamic()
    .synonyms(&[
        ("log.retention.ms", 1),
        ("log.retention.minutes", 1),
        ("log.retention.hours", 1),
    ]),
    Key::new("log.roll.hours", Kind::Int, Some("168"), "Topics' default for segment.ms, in hours.")
        .at_least(1)
        .high()
        .enforced()
        .synonyms(&[("log.roll.ms", 1), ("log.roll.hours", 1)]),
    Key::new(
        "log.roll.jitter.hours",
        Kind::Int,
        Some("0"),
        "Topics' default for segment.jitter.ms, in hours.",
    )
    .at_least(0)
    .high()
    .synonyms(&[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 1)]),
    Key::new(
        "log.roll.jitter.ms",
        Kind::Long,
        None,
        "Topics' default for segment.jitter.ms; stands before log.roll.jitter.hours.",
    )
    .high()
    .dynamic()
    .synonyms(&[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 1)]),
    Key::new(
        "log.roll.ms",
        Kind::Long,
        None,
        "Topics' default for segment.ms; stands before log.roll.hours.",
    )
    .high()
    .dynamic()
    .enforced()
    .synonyms(&[("log.roll.ms", 1), ("log.roll.hours", 1)]),
    Key::new(
        "log.segment.bytes",
        Kind::Int,
        Some("1073741824"),
        "Topics' default for segment.bytes.",
    )
    .at_least(1048576)
    .high()
    .dynamic()
    .enforced(),
    Key::new(
        "log.segment.delete.delay.ms",
        Kind::Long,
        Some("60000"),
        "Topics' default for file.delete.delay.ms.",
    )
    .at_least(0)
    .high()
    .dynamic()
    .enforced(),
    Key::new(
        "max.decompressed.message.bytes",
        Kind::Int,
        Some("2147483639"),
        "Topics' default for max.decompressed.message.bytes.",
    )
    .range(1, 2147483639)
    .dynamic()
    .enforced(),
    Key::new(
        "message.max.bytes",
        Kind::Int,
        Some("1048588"),
        "Topics' default for max.message.bytes.",
    )
    .at_least(0)
    .high()
    .dynamic()
    .enforced(),
    Key::new(
        "min.insync.replicas",
        Kind::Int,
        Some("1"),
        "Topics' default for min.insync.replicas.",
    )
    .at_least(1)
    .high()
    .dynamic()
    .enforced(),
    Key::new(
        "num.partitions",
        Kind::Int,
        Some("1"),
        "Partitions of a topic when its creator leaves it open.",
    )
    .at_least(1)
    .enforced(),
    Key::new(
        "num.recovery.threads.per.data.dir",
        Kind::Int,
        Some("2"),
        "Threads of recovery. Here each shard recovers its own.",
    )
    .at_least(1)
    .high()
    .dynamic()
    .not_applicable(),
    Key::new(
        "producer.purgatory.purge.interval.requests",
        Kind::Int,
        Some("1000"),
        "Tunes a queue of Kafka's.",
    )
    .not_applicable(),
    Key::new(
        "unclean.leader.election.enable",
        Kind::Boolean,
        Some("false"),
        "Topics' default for unclean.leader.election.enable.",
    )
    .high()
    .dynamic(),
];
