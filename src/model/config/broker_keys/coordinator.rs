//! Groups, offsets, producers and transactions.

use crate::model::config::key::{Check, Key, Kind};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "add.partitions.to.txn.retry.backoff.max.ms",
        Kind::Int,
        Some("100"),
        "Longest wait between tries to add partitions to a transaction.",
    )
    .at_least(0)
    .high(),
    Key::new(
        "add.partitions.to.txn.retry.backoff.ms",
        Kind::Int,
        Some("20"),
        "First wait between tries to add partitions to a transaction.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "group.consumer.assignment.interval.ms",
        Kind::Int,
        Some("1000"),
        "Shortest time between two assignments of a consumer group.",
    )
    .at_least(0)
    .dynamic(),
    Key::new(
        "group.consumer.assignors",
        Kind::List,
        Some("uniform,range"),
        "Assignors that consumer groups may use, the default first.",
    ),
    Key::new(
        "group.consumer.heartbeat.interval.ms",
        Kind::Int,
        Some("5000"),
        "How often members of consumer groups report.",
    )
    .at_least(1),
    Key::new(
        "group.consumer.max.assignment.interval.ms",
        Kind::Int,
        Some("15000"),
        "Upper bound for a group's own consumer.assignment.interval.ms.",
    )
    .at_least(0),
    Key::new(
        "group.consumer.max.heartbeat.interval.ms",
        Kind::Int,
        Some("15000"),
        "Upper bound for a group's own consumer.heartbeat.interval.ms.",
    )
    .at_least(1),
    Key::new(
        "group.consumer.max.session.timeout.ms",
        Kind::Int,
        Some("60000"),
        "Upper bound for a group's own consumer.session.timeout.ms.",
    )
    .at_least(1),
    Key::new(
        "group.consumer.max.size",
        Kind::Int,
        Some("2147483647"),
        "Most members of a consumer group.",
    )
    .at_least(1),
    Key::new(
        "group.consumer.migration.policy",
        Kind::String,
        Some("bidirectional"),
        "Which way groups may change between the classic and the consumer protocol while in use.",
    )
    .check(Check::OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"])),
    Key::new(
        "group.consumer.min.assignment.interval.ms",
        Kind::Int,
        Some("0"),
        "Lower bound for a group's own consumer.assignment.interval.ms.",
    )
    .at_least(0),
    Key::new(
        "group.consumer.min.heartbeat.interval.ms",
        Kind::Int,
        Some("5000"),
        "Lower bound for a group's own consumer.heartbeat.interval.ms.",
    )
    .at_least(1),
    Key::new(
        "group.consumer.min.session.timeout.ms",
        Kind::Int,
        Some("45000"),
        "Lower bound for a group's own consumer.session.timeout.ms.",
    )
    .at_least(1),
    Key::new(
        "group.consumer.session.timeout.ms",
        Kind::Int,
        Some("45000"),
        "Silence after which a member of a consumer group is out.",
    )
    .at_least(1),
    Key::new(
        "group.coordinator.append.linger.ms",
        Kind::Int,
        Some("-1"),
        "How long a coordinator gathers records into one batch; -1 adapts.",
    )
    .at_least(-1),
    Key::new(
        "group.coordinator.background.threads",
        Kind::Int,
        Some("2"),
        "Threads for assignments. Here coordinators live on the shards.",
    )
    .at_least(1)
    .high()
    .not_applicable(),
    Key::new(
        "group.coordinator.cached.buffer.max.bytes",
        Kind::Int,
        Some("1048588"),
        "Largest buffer that a coordinator keeps for its next batch.",
    )
    .at_least(524288)
    .dynamic(),
    Key::new(
        "group.coordinator.rebalance.protocols",
        Kind::List,
        Some("classic,consumer,streams"),
        "Group protocols that are served.",
    )
    .check(Check::ListOf(&["consumer", "classic", "share", "streams"])),
    Key::new(
        "group.coordinator.threads",
        Kind::Int,
        Some("4"),
        "Threads of coordinators. Here coordinators live on the shards.",
    )
    .at_least(1)
    .high()
    .not_applicable(),
    Key::new(
        "group.initial.rebalance.delay.ms",
        Kind::Int,
        Some("3000"),
        "How long a new classic group waits for more members before it assigns.",
    ),
    Key::new(
        "group.max.session.timeout.ms",
        Kind::Int,
        Some("1800000"),
        "Longest session timeout that a classic member may ask for.",
    ),
    Key::new("group.max.size", Kind::Int, Some("2147483647"), "Most members of a classic group.")
        .at_least(1),
    Key::new(
        "group.min.session.timeout.ms",
        Kind::Int,
        Some("6000"),
        "Shortest session timeout that a classic member may ask for.",
    ),
    Key::new(
        "offset.metadata.max.bytes",
        Kind::Int,
        Some("4096"),
        "Longest text that may be committed with an offset.",
    )
    .high(),
    Key::new(
        "offsets.commit.timeout.ms",
        Kind::Int,
        Some("5000"),
        "Longest time that a commit of offsets waits to be durable.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "offsets.load.buffer.size",
        Kind::Int,
        Some("5242880"),
        "Bytes read at a time when a coordinator loads offsets.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "offsets.retention.check.interval.ms",
        Kind::Long,
        Some("600000"),
        "How often offsets are looked at that may go.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "offsets.retention.minutes",
        Kind::Int,
        Some("10080"),
        "How long offsets stay after their group is empty.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "offsets.topic.compression.codec",
        Kind::Int,
        Some("0"),
        "Compression of the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    .high(),
    Key::new(
        "offsets.topic.num.partitions",
        Kind::Int,
        Some("50"),
        "Partitions of the offsets topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "offsets.topic.replication.factor",
        Kind::Short,
        Some("3"),
        "Copies of the offsets topic's partitions.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "offsets.topic.segment.bytes",
        Kind::Int,
        Some("104857600"),
        "Segment size of the offsets topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "producer.id.expiration.ms",
        Kind::Int,
        Some("86400000"),
        "Idle time after which a partition forgets an idempotent producer.",
    )
    .at_least(1)
    .low()
    .dynamic()
    .enforced(),
    Key::new(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Kind::Int,
        Some("10000"),
        "How often transactions are looked at that took too long.",
    )
    .at_least(1)
    .low(),
    Key::new(
        "transaction.max.timeout.ms",
        Kind::Int,
        Some("900000"),
        "Longest timeout that a transaction may ask for.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "transaction.partition.verification.enable",
        Kind::Boolean,
        Some("true"),
        "Whether a partition asks the coordinator before it takes a transaction's first batch.",
    )
    .low()
    .dynamic(),
    Key::new(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Kind::Int,
        Some("3600000"),
        "How often transactional ids are looked at that may go.",
    )
    .at_least(1)
    .low(),
    Key::new(
        "transaction.state.log.load.buffer.size",
        Kind::Int,
        Some("5242880"),
        "Bytes read at a time when a coordinator loads transactions.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "transaction.state.log.min.isr",
        Kind::Int,
        Some("2"),
        "min.insync.replicas of the transaction topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "transaction.state.log.num.partitions",
        Kind::Int,
        Some("50"),
        "Partitions of the transaction topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "transaction.state.log.replication.factor",
        Kind::Short,
        Some("3"),
        "Copies of the transaction topic's partitions.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "transaction.state.log.segment.bytes",
        Kind::Int,
        Some("104857600"),
        "Segment size of the transaction topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "transaction.two.phase.commit.enable",
        Kind::Boolean,
        Some("false"),
        "Whether producers may prepare a transaction and finish it from outside.",
    )
    .low(),
    Key::new(
        "transactional.id.expiration.ms",
        Kind::Int,
        Some("604800000"),
        "Idle time after which a transactional id is forgotten.",
    )
    .at_least(1)
    .high(),
];
