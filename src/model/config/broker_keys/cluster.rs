//! Nodes, replication and the metadata log.

use crate::model::config::key::{Check, Key, Kind};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "auto.leader.rebalance.enable",
        Kind::Boolean,
        Some("true"),
        "Whether leadership goes back to preferred replicas by itself.",
    )
    .high(),
    Key::new(
        "broker.heartbeat.interval.ms",
        Kind::Int,
        Some("2000"),
        "How often a broker reports to the controller.",
    ),
    Key::new("broker.id", Kind::Int, Some("1"), "The node's id by its older name.")
        .high()
        .enforced(),
    Key::new(
        "broker.rack",
        Kind::String,
        None,
        "Where the node stands; replicas spread over racks.",
    )
    .enforced(),
    Key::new(
        "broker.session.timeout.ms",
        Kind::Int,
        Some("9000"),
        "Silence after which the controller takes a broker for dead.",
    ),
    Key::new(
        "controlled.shutdown.enable",
        Kind::Boolean,
        Some("true"),
        "Whether leaders move away before a broker stops.",
    ),
    Key::new("controller.listener.names", Kind::List, None, "Listeners of the controller.").high(),
    Key::new(
        "controller.quorum.bootstrap.servers",
        Kind::List,
        Some(""),
        "Addresses to find the controllers by.",
    )
    .high(),
    Key::new(
        "controller.quorum.election.backoff.max.ms",
        Kind::Int,
        Some("1000"),
        "Longest wait after a failed election.",
    )
    .at_least(0)
    .high(),
    Key::new(
        "controller.quorum.election.timeout.ms",
        Kind::Int,
        Some("1000"),
        "Longest wait for votes before another election.",
    )
    .at_least(0)
    .high(),
    Key::new(
        "controller.quorum.fetch.timeout.ms",
        Kind::Int,
        Some("2000"),
        "Silence of the leading controller before an election.",
    )
    .at_least(0)
    .high(),
    Key::new(
        "controller.quorum.request.timeout.ms",
        Kind::Int,
        Some("2000"),
        "Longest wait for a controller's answer.",
    )
    .at_least(0),
    Key::new(
        "controller.quorum.retry.backoff.ms",
        Kind::Int,
        Some("20"),
        "Wait between tries to reach a controller.",
    )
    .at_least(0)
    .low(),
    Key::new("controller.quorum.voters", Kind::List, Some(""), "The controllers, as id@host:port.")
        .high(),
    Key::new(
        "controller.socket.timeout.ms",
        Kind::Int,
        Some("30000"),
        "Longest wait on a controller's socket.",
    ),
    Key::new(
        "initial.broker.registration.timeout.ms",
        Kind::Int,
        Some("60000"),
        "Longest wait of a starting broker for its registration.",
    ),
    Key::new(
        "leader.imbalance.check.interval.seconds",
        Kind::Long,
        Some("300"),
        "How often leadership is compared with the preferred replicas.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "metadata.log.dir",
        Kind::String,
        None,
        "Directory of the metadata log, when not the data directory.",
    )
    .high(),
    Key::new(
        "metadata.log.max.record.bytes.between.snapshots",
        Kind::Long,
        Some("20971520"),
        "Bytes of metadata records after which a snapshot is made.",
    )
    .at_least(1)
    .high(),
    Key::new(
        "metadata.log.max.snapshot.interval.ms",
        Kind::Long,
        Some("3600000"),
        "Longest time between two snapshots of the metadata.",
    )
    .at_least(0)
    .high(),
    Key::new(
        "metadata.log.segment.bytes",
        Kind::Int,
        Some("1073741824"),
        "Segment size of the metadata log.",
    )
    .at_least(8388608)
    .high(),
    Key::new(
        "metadata.log.segment.ms",
        Kind::Long,
        Some("604800000"),
        "Age at which a segment of the metadata log is closed.",
    )
    .high(),
    Key::new(
        "metadata.max.idle.interval.ms",
        Kind::Int,
        Some("500"),
        "Longest silence of the metadata log.",
    )
    .at_least(0)
    .low(),
    Key::new(
        "metadata.max.retention.bytes",
        Kind::Long,
        Some("104857600"),
        "Size of the metadata log beyond which old parts go.",
    )
    .high(),
    Key::new(
        "metadata.max.retention.ms",
        Kind::Long,
        Some("604800000"),
        "Age beyond which old parts of the metadata log go.",
    )
    .high(),
    Key::new("node.id", Kind::Int, Some("1"), "The node's id.").at_least(0).high().enforced(),
    Key::new(
        "num.replica.alter.log.dirs.threads",
        Kind::Int,
        None,
        "Threads that move replicas between directories.",
    )
    .high()
    .not_applicable(),
    Key::new("num.replica.fetchers", Kind::Int, Some("1"), "Threads that fetch from one leader.")
        .at_least(1)
        .high()
        .dynamic()
        .not_applicable(),
    Key::new(
        "process.roles",
        Kind::List,
        None,
        "What this process is: broker, controller, or both.",
    )
    .check(Check::ListOf(&["broker", "controller"]))
    .high(),
    Key::new(
        "replica.fetch.backoff.ms",
        Kind::Int,
        Some("1000"),
        "Rest of a follower after a failed fetch.",
    )
    .at_least(0),
    Key::new(
        "replica.fetch.max.bytes",
        Kind::Int,
        Some("1048576"),
        "Bytes that a follower asks for per partition.",
    )
    .at_least(0),
    Key::new("replica.fetch.min.bytes", Kind::Int, Some("1"), "Bytes that a follower waits for.")
        .high(),
    Key::new(
        "replica.fetch.response.max.bytes",
        Kind::Int,
        Some("10485760"),
        "Bytes that a follower asks for in all.",
    )
    .at_least(0),
    Key::new(
        "replica.fetch.wait.max.ms",
        Kind::Int,
        Some("500"),
        "Longest wait of a follower's fetch.",
    )
    .high(),
    Key::new(
        "replica.high.watermark.checkpoint.interval.ms",
        Kind::Long,
        Some("5000"),
        "How often high watermarks are written. Here the journal has them.",
    )
    .high()
    .not_applicable(),
    Key::new(
        "replica.lag.time.max.ms",
        Kind::Long,
        Some("30000"),
        "Time without catching up after which a follower is not in sync.",
    )
    .high(),
    Key::new(
        "replica.selector.class",
        Kind::String,
        None,
        "Java class that chooses the replica a consumer reads from.",
    )
    .not_applicable(),
    Key::new(
        "replica.socket.receive.buffer.bytes",
        Kind::Int,
        Some("65536"),
        "Receive buffer of a follower's socket.",
    )
    .high(),
    Key::new(
        "replica.socket.timeout.ms",
        Kind::Int,
        Some("30000"),
        "Longest wait of a follower on its socket.",
    )
    .high(),
];
