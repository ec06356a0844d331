//! Share groups and streams groups.

use crate::model::config::key::{Key, Kind};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "group.share.assignment.interval.ms",
        Kind::Int,
        Some("1000"),
        "Shortest time between two assignments of a share group.",
    )
    .at_least(0)
    .dynamic(),
    Key::new(
        "group.share.assignors",
        Kind::List,
        Some("simple"),
        "Assignors that share groups may use.",
    ),
    Key::new(
        "group.share.delivery.count.limit",
        Kind::Int,
        Some("5"),
        "Most times that a record is given to a share group.",
    )
    .range(2, 10),
    Key::new(
        "group.share.heartbeat.interval.ms",
        Kind::Int,
        Some("5000"),
        "How often members of share groups report.",
    )
    .at_least(1),
    Key::new(
        "group.share.max.assignment.interval.ms",
        Kind::Int,
        Some("15000"),
        "Upper bound for a group's own share.assignment.interval.ms.",
    )
    .at_least(0),
    Key::new(
        "group.share.max.delivery.count.limit",
        Kind::Int,
        Some("10"),
        "Upper bound for a group's own share.delivery.count.limit.",
    )
    .range(5, 25),
    Key::new(
        "group.share.max.heartbeat.interval.ms",
        Kind::Int,
        Some("15000"),
        "Upper bound for a group's own share.heartbeat.interval.ms.",
    )
    .at_least(1),
    Key::new(
        "group.share.max.partition.max.record.locks",
        Kind::Int,
        Some("4000"),
        "Upper bound for a group's own share.partition.max.record.locks.",
    )
    .range(2000, 10000),
    Key::new(
        "group.share.max.record.lock.duration.ms",
        Kind::Int,
        Some("60000"),
        "Upper bound for a group's own share.record.lock.duration.ms.",
    )
    .range(30000, 3600000),
    Key::new(
        "group.share.max.session.timeout.ms",
        Kind::Int,
        Some("60000"),
        "Upper bound for a group's own share.session.timeout.ms.",
    )
    .at_least(1),
    Key::new(
        "group.share.max.share.sessions",
        Kind::Int,
        Some("2000"),
        "Most share sessions of a broker.",
    )
    .at_least(1),
    Key::new("group.share.max.size", Kind::Int, Some("200"), "Most members of a share group.")
        .range(1, 1000),
    Key::new(
        "group.share.min.assignment.interval.ms",
        Kind::Int,
        Some("0"),
        "Lower bound for a group's own share.assignment.interval.ms.",
    )
    .at_least(0),
    Key::new(
        "group.share.min.delivery.count.limit",
        Kind::Int,
        Some("2"),
        "Lower bound for a group's own share.delivery.count.limit.",
    )
    .range(2, 5),
    Key::new(
        "group.share.min.heartbeat.interval.ms",
        Kind::Int,
        Some("5000"),
        "Lower bound for a group's own share.heartbeat.interval.ms.",
    )
    .at_least(1),
    Key::new(
        "group.share.min.partition.max.record.locks",
        Kind::Int,
        Some("100"),
        "Lower bound for a group's own share.partition.max.record.locks.",
    )
    .range(100, 2000),
    Key::new(
        "group.share.min.record.lock.duration.ms",
        Kind::Int,
        Some("15000"),
        "Lower bound for a group's own share.record.lock.duration.ms.",
    )
    .range(1000, 30000),
    Key::new(
        "group.share.min.session.timeout.ms",
        Kind::Int,
        Some("45000"),
        "Lower bound for a group's own share.session.timeout.ms.",
    )
    .at_least(1),
    Key::new(
        "group.share.partition.max.record.locks",
        Kind::Int,
        Some("2000"),
        "Most records of a partition that a share group has in flight.",
    )
    .range(100, 10000),
    Key::new(
        "group.share.record.lock.duration.ms",
        Kind::Int,
        Some("30000"),
        "How long a record given to a share group is kept from others.",
    )
    .range(1000, 3600000),
    Key::new(
        "group.share.session.timeout.ms",
        Kind::Int,
        Some("45000"),
        "Silence after which a member of a share group is out.",
    )
    .at_least(1),
    Key::new(
        "group.streams.assignment.interval.ms",
        Kind::Int,
        Some("1000"),
        "Shortest time between two assignments of a streams group.",
    )
    .at_least(0)
    .dynamic(),
    Key::new(
        "group.streams.assignors",
        Kind::List,
        Some("sticky"),
        "Assignors that streams groups may use.",
    ),
    Key::new(
        "group.streams.heartbeat.interval.ms",
        Kind::Int,
        Some("5000"),
        "How often members of streams groups report.",
    )
    .at_least(1),
    Key::new(
        "group.streams.initial.rebalance.delay.ms",
        Kind::Int,
        Some("3000"),
        "How long a new streams group waits for more members before it assigns.",
    )
    .at_least(0),
    Key::new(
        "group.streams.max.assignment.interval.ms",
        Kind::Int,
        Some("15000"),
        "Upper bound for a group's own streams.assignment.interval.ms.",
    )
    .at_least(0),
    Key::new(
        "group.streams.max.heartbeat.interval.ms",
        Kind::Int,
        Some("15000"),
        "Upper bound for a group's own streams.heartbeat.interval.ms.",
    )
    .at_least(1),
    Key::new(
        "group.streams.max.session.timeout.ms",
        Kind::Int,
        Some("60000"),
        "Upper bound for a group's own streams.session.timeout.ms.",
    )
    .at_least(1),
    Key::new(
        "group.streams.max.size",
        Kind::Int,
        Some("2147483647"),
        "Most members of a streams group.",
    )
    .at_least(1),
    Key::new(
        "group.streams.max.standby.replicas",
        Kind::Int,
        Some("2"),
        "Upper bound for a group's own streams.num.standby.replicas.",
    )
    .at_least(0),
    Key::new(
        "group.streams.min.assignment.interval.ms",
        Kind::Int,
        Some("0"),
        "Lower bound for a group's own streams.assignment.interval.ms.",
    )
    .at_least(0),
    Key::new(
        "group.streams.min.heartbeat.interval.ms",
        Kind::Int,
        Some("5000"),
        "Lower bound for a group's own streams.heartbeat.interval.ms.",
    )
    .at_least(1),
    Key::new(
        "group.streams.min.session.timeout.ms",
        Kind::Int,
        Some("45000"),
        "Lower bound for a group's own streams.session.timeout.ms.",
    )
    .at_least(1),
    Key::new(
        "group.streams.num.standby.replicas",
        Kind::Int,
        Some("0"),
        "Standby copies of each task of a streams group.",
    )
    .at_least(0),
    Key::new(
        "group.streams.rack.aware.assignment.tags",
        Kind::List,
        Some(""),
        "Client tags over which standby copies are spread.",
    )
    .low(),
    Key::new(
        "group.streams.session.timeout.ms",
        Kind::Int,
        Some("45000"),
        "Silence after which a member of a streams group is out.",
    )
    .at_least(1),
    Key::new(
        "share.coordinator.append.linger.ms",
        Kind::Int,
        Some("-1"),
        "How long a share coordinator gathers records into one batch; -1 adapts.",
    )
    .at_least(-1),
    Key::new(
        "share.coordinator.cached.buffer.max.bytes",
        Kind::Int,
        Some("1048588"),
        "Largest buffer that a share coordinator keeps for its next batch.",
    )
    .at_least(524288)
    .dynamic(),
    Key::new(
        "share.coordinator.load.buffer.size",
        Kind::Int,
        Some("5242880"),
        "Bytes read at a time when a share coordinator loads its state.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "share.coordinator.snapshot.update.records.per.snapshot",
        Kind::Int,
        Some("500"),
        "Changes between two snapshots of a share partition's state.",
    )
    .range(0, 500),
    Key::new(
        "share.coordinator.state.topic.compression.codec",
        Kind::Int,
        Some("0"),
        "Compression of the share state topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    .high(),
    Key::new(
        "share.coordinator.state.topic.min.isr",
        Kind::Short,
        Some("2"),
        "min.insync.replicas of the share state topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "share.coordinator.state.topic.num.partitions",
        Kind::Int,
        Some("50"),
        "Partitions of the share state topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "share.coordinator.state.topic.replication.factor",
        Kind::Short,
        Some("3"),
        "Copies of the share state topic's partitions.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "share.coordinator.state.topic.segment.bytes",
        Kind::Int,
        Some("104857600"),
        "Segment size of the share state topic.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "share.coordinator.threads",
        Kind::Int,
        Some("1"),
        "Threads of share coordinators. Here coordinators live on the shards.",
    )
    .at_least(1)
    .not_applicable(),
    Key::new(
        "share.coordinator.write.timeout.ms",
        Kind::Int,
        Some("5000"),
        "Longest time that a share coordinator's write waits to be durable.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "share.fetch.purgatory.purge.interval.requests",
        Kind::Int,
        Some("1000"),
        "Tunes a queue of Kafka's.",
    )
    .not_applicable(),
];
