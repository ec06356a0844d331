//! Keys of a topic: every one of Kafka 4.4, and ours.

use super::key::{Check, Key, Kind};

/// Words for `cleanup.policy`.
pub(super) const CLEANUP: Check = Check::ListOf(&["compact", "delete"]);
/// Words for `compression.type`.
pub(super) const COMPRESSION: Check =
    Check::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]);
/// Words for `message.timestamp.type`.
pub(super) const TIMESTAMP: Check = Check::OneOf(&["CreateTime", "LogAppendTime"]);
/// Words for `millstream.durability`.
pub(super) const DURABILITY: Check = Check::OneOf(&["disk", "os"]);
/// There is no tiered storage, so nobody can ask for it.
const NO_TIERED: Check = Check::OneOf(&["false"]);

/// Longest time and largest size.
pub(super) const NEVER: Option<&str> = Some("9223372036854775807");
const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// Sorted by name; everything about a topic can change at run time.
pub(super) const KEYS: &[Key] = &[
    Key::new(
        "cleanup.policy",
        Kind::List,
        Some("delete"),
        "What happens to old records: `delete` drops whole segments by age and size, `compact` \
         keeps the newest record of each key; both may be given. A compacted topic refuses \
         records without a key; compaction itself does not exist yet, so without `delete` it \
         keeps everything.",
    )
    .check(CLEANUP)
    .dynamic()
    .enforced()
    .synonyms(&[("log.cleanup.policy", 1)]),
    Key::new(
        "compression.gzip.level",
        Kind::Int,
        Some("-1"),
        "Level when `compression.type` is gzip; -1 is the library's default.",
    )
    .check(Check::RangeOr(1, 9, -1))
    .dynamic()
    .synonyms(&[("compression.gzip.level", 1)]),
    Key::new(
        "compression.lz4.level",
        Kind::Int,
        Some("9"),
        "Level when `compression.type` is lz4.",
    )
    .range(1, 17)
    .dynamic()
    .synonyms(&[("compression.lz4.level", 1)]),
    Key::new(
        "compression.type",
        Kind::String,
        Some("producer"),
        "How batches are stored: `producer` keeps what the producer chose, every other value \
         compresses again.",
    )
    .check(COMPRESSION)
    .dynamic()
    .enforced()
    .synonyms(&[("compression.type", 1)]),
    Key::new(
        "compression.zstd.level",
        Kind::Int,
        Some("3"),
        "Level when `compression.type` is zstd.",
    )
    .range(-131_072, 22)
    .dynamic()
    .synonyms(&[("compression.zstd.level", 1)]),
    Key::new(
        "delete.retention.ms",
        Kind::Long,
        Some("86400000"),
        "How long a compacted topic keeps the mark of a deleted key, so that a reader from the \
         start can see it.",
    )
    .at_least(0)
    .dynamic()
    .synonyms(&[("log.cleaner.delete.retention.ms", 1)]),
    Key::new(
        "errors.deadletterqueue.group.enable",
        Kind::Boolean,
        Some("false"),
        "Whether share groups may use this topic for records that they could not process.",
    )
    .dynamic(),
    Key::new(
        "file.delete.delay.ms",
        Kind::Long,
        Some("60000"),
        "Time between the end of a segment and the removal of its files; a full disk does not \
         wait for it.",
    )
    .at_least(0)
    .dynamic()
    .enforced()
    .synonyms(&[("log.segment.delete.delay.ms", 1)]),
    Key::new(
        "flush.messages",
        Kind::Long,
        NEVER,
        "Records after which Kafka forces a sync. Here `millstream.durability` decides when a \
         record is safe.",
    )
    .at_least(1)
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.flush.interval.messages", 1)]),
    Key::new(
        "flush.ms",
        Kind::Long,
        NEVER,
        "Time after which Kafka forces a sync. Here `millstream.durability` decides when a record \
         is safe.",
    )
    .at_least(0)
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)]),
    Key::new(
        "follower.replication.throttled.replicas",
        Kind::List,
        Some(""),
        "Replicas whose fetching is throttled: `partition:broker` pairs, or `*` for all.",
    )
    .check(Check::ThrottledReplicas)
    .dynamic(),
    Key::new(
        "index.interval.bytes",
        Kind::Int,
        Some("4096"),
        "Bytes of a segment between two entries of its offset index.",
    )
    .at_least(0)
    .dynamic()
    .enforced()
    .synonyms(&[("log.index.interval.bytes", 1)]),
    Key::new(
        "leader.replication.throttled.replicas",
        Kind::List,
        Some(""),
        "Replicas whose leader is throttled towards followers: `partition:broker` pairs, or `*` \
         for all.",
    )
    .check(Check::ThrottledReplicas)
    .dynamic(),
    Key::new(
        "local.retention.bytes",
        Kind::Long,
        Some("-2"),
        "Bytes of a tiered partition that stay on local disks; -2 is `retention.bytes`.",
    )
    .at_least(-2)
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.local.retention.bytes", 1)]),
    Key::new(
        "local.retention.ms",
        Kind::Long,
        Some("-2"),
        "Time that segments of a tiered partition stay on local disks; -2 is `retention.ms`.",
    )
    .at_least(-2)
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.local.retention.ms", 1)]),
    Key::new(
        "max.compaction.lag.ms",
        Kind::Long,
        NEVER,
        "Longest time that a record of a compacted topic stays out of compaction.",
    )
    .at_least(1)
    .dynamic()
    .synonyms(&[("log.cleaner.max.compaction.lag.ms", 1)]),
    Key::new(
        "max.decompressed.message.bytes",
        Kind::Int,
        Some("2147483639"),
        "Largest batch after decompression.",
    )
    .range(1, 2_147_483_639)
    .dynamic()
    .enforced()
    .synonyms(&[("max.decompressed.message.bytes", 1)]),
    Key::new("max.message.bytes", Kind::Int, Some("1048588"), "Largest batch, after compression.")
        .at_least(0)
        .dynamic()
        .enforced()
        .synonyms(&[("message.max.bytes", 1)]),
    Key::new(
        "message.timestamp.after.max.ms",
        Kind::Long,
        Some("3600000"),
        "How far a record's timestamp may lie in the future of the broker's clock; not asked \
         with LogAppendTime.",
    )
    .at_least(0)
    .dynamic()
    .enforced()
    .synonyms(&[("log.message.timestamp.after.max.ms", 1)]),
    Key::new(
        "message.timestamp.before.max.ms",
        Kind::Long,
        NEVER,
        "How far a record's timestamp may lie in the past of the broker's clock; not asked with \
         LogAppendTime.",
    )
    .at_least(0)
    .dynamic()
    .enforced()
    .synonyms(&[("log.message.timestamp.before.max.ms", 1)]),
    Key::new(
        "message.timestamp.type",
        Kind::String,
        Some("CreateTime"),
        "Whose clock gives records their timestamps: the producer's, or the broker's at the \
         append.",
    )
    .check(TIMESTAMP)
    .dynamic()
    .enforced()
    .synonyms(&[("log.message.timestamp.type", 1)]),
    Key::new(
        "millstream.durability",
        Kind::String,
        Some("disk"),
        "What an acknowledgement survives: `disk` the loss of power, `os` the death of the \
         process only, as Kafka's default does.",
    )
    .check(DURABILITY)
    .dynamic()
    .enforced()
    .synonyms(&[("millstream.durability", 1)]),
    Key::new(
        "min.cleanable.dirty.ratio",
        Kind::Double,
        Some("0.5"),
        "Share of a compacted log that must be new before compaction looks at it again.",
    )
    .check(Check::Fraction)
    .dynamic()
    .synonyms(&[("log.cleaner.min.cleanable.ratio", 1)]),
    Key::new(
        "min.compaction.lag.ms",
        Kind::Long,
        Some("0"),
        "Shortest time that a record of a compacted topic stays out of compaction.",
    )
    .at_least(0)
    .dynamic()
    .synonyms(&[("log.cleaner.min.compaction.lag.ms", 1)]),
    Key::new(
        "min.insync.replicas",
        Kind::Int,
        Some("1"),
        "Replicas that must have a batch before `acks=all` is answered; never more than there \
         are.",
    )
    .at_least(1)
    .dynamic()
    .enforced()
    .synonyms(&[("min.insync.replicas", 1)]),
    Key::new(
        "preallocate",
        Kind::Boolean,
        Some("false"),
        "Whether Kafka reserves the space of a segment at its start. Journals are always \
         reserved here.",
    )
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.preallocate", 1)]),
    Key::new(
        "remote.copy.lag.bytes",
        Kind::Long,
        Some("-1"),
        "Bytes that tiered storage leaves uncopied; -1 is no lag by size.",
    )
    .at_least(-1)
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.remote.copy.lag.bytes", 1)]),
    Key::new(
        "remote.copy.lag.ms",
        Kind::Long,
        Some("0"),
        "Age below which tiered storage leaves segments uncopied; -1 is the local retention.",
    )
    .at_least(-1)
    .dynamic()
    .not_applicable()
    .synonyms(&[("log.remote.copy.lag.ms", 1)]),
    Key::new(
        "remote.log.copy.disable",
        Kind::Boolean,
        Some("false"),
        "Whether a tiered topic stops copying to remote storage.",
    )
    .dynamic()
    .not_applicable(),
    Key::new(
        "remote.log.delete.on.disable",
        Kind::Boolean,
        Some("false"),
        "Whether remote data goes when tiering is switched off for a topic.",
    )
    .dynamic()
    .not_applicable(),
    Key::new(
        "remote.storage.enable",
        Kind::Boolean,
        Some("false"),
        "Whether the topic is tiered. This broker has no tiered storage, so only `false` is \
         taken.",
    )
    .check(NO_TIERED)
    .dynamic()
    .enforced(),
    Key::new(
        "retention.bytes",
        Kind::Long,
        Some("-1"),
        "Size of a partition beyond which its oldest segments go; -1 is without limit.",
    )
    .dynamic()
    .enforced()
    .synonyms(&[("log.retention.bytes", 1)]),
    Key::new(
        "retention.ms",
        Kind::Long,
        Some("604800000"),
        "Age beyond which segments go; -1 is for ever. A segment is as old as its newest \
         record; one whose records have no timestamps has no age.",
    )
    .at_least(-1)
    .dynamic()
    .enforced()
    .synonyms(&[
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ]),
    Key::new(
        "segment.bytes",
        Kind::Int,
        Some("1073741824"),
        "Size at which a segment is closed and a new one begins; no batch may be larger.",
    )
    .at_least(1 << 20)
    .dynamic()
    .enforced()
    .synonyms(&[("log.segment.bytes", 1)]),
    Key::new(
        "segment.index.bytes",
        Kind::Int,
        Some("10485760"),
        "Largest index of a segment; the segment is closed when one is full.",
    )
    .at_least(4)
    .dynamic()
    .enforced()
    .synonyms(&[("log.index.size.max.bytes", 1)]),
    Key::new(
        "segment.jitter.ms",
        Kind::Long,
        Some("0"),
        "Most that is taken off `segment.ms` at random, so that segments do not all close at \
         once.",
    )
    .at_least(0)
    .dynamic()
    .synonyms(&[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)]),
    Key::new(
        "segment.ms",
        Kind::Long,
        Some("604800000"),
        "Age at which a segment is closed though it is not full, so that retention can take it.",
    )
    .at_least(1)
    .dynamic()
    .enforced()
    .synonyms(&[("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)]),
    Key::new(
        "unclean.leader.election.enable",
        Kind::Boolean,
        Some("false"),
        "Whether a replica that lacks committed records may lead when no other is left.",
    )
    .dynamic()
    .synonyms(&[("unclean.leader.election.enable", 1)]),
];
