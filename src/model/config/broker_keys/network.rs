//! Connections, requests and threads.

use crate::model::config::key::{Check, Key, Kind};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "advertised.listeners",
        Kind::List,
        None,
        "Addresses that clients are told to use, per listener. Set by the flag --advertise.",
    )
    .high()
    .enforced(),
    Key::new(
        "alter.config.policy.class.name",
        Kind::Class,
        None,
        "Java class that judges changes of configs.",
    )
    .low()
    .not_applicable(),
    Key::new(
        "authorizer.class.name",
        Kind::String,
        Some(""),
        "Java class that authorizes requests.",
    )
    .low()
    .not_applicable(),
    Key::new(
        "background.threads",
        Kind::Int,
        Some("10"),
        "Threads for background work. Work here runs on the shards.",
    )
    .at_least(1)
    .high()
    .dynamic()
    .not_applicable(),
    Key::new(
        "config.providers",
        Kind::List,
        Some(""),
        "Sources of values that are named instead of written.",
    )
    .low()
    .dynamic()
    .not_applicable(),
    Key::new(
        "connection.failed.authentication.delay.ms",
        Kind::Int,
        Some("100"),
        "Wait before a connection that failed to authenticate is closed.",
    )
    .at_least(0)
    .low(),
    Key::new(
        "connections.max.idle.ms",
        Kind::Long,
        Some("600000"),
        "Idle time after which a connection is closed; negative is never.",
    )
    .enforced(),
    Key::new(
        "connections.max.reauth.ms",
        Kind::Long,
        Some("0"),
        "Longest life of a session before the client must authenticate again; 0 is without limit.",
    ),
    Key::new(
        "create.topic.policy.class.name",
        Kind::Class,
        None,
        "Java class that judges new topics.",
    )
    .low()
    .not_applicable(),
    Key::new(
        "early.start.listeners",
        Kind::List,
        None,
        "Listeners that accept before the authorizer is ready.",
    )
    .high(),
    Key::new(
        "fetch.max.bytes",
        Kind::Int,
        Some("57671680"),
        "Most bytes of records in one fetch response.",
    )
    .at_least(1024)
    .enforced(),
    Key::new(
        "inter.broker.listener.name",
        Kind::String,
        None,
        "Listener over which brokers talk to each other.",
    ),
    Key::new(
        "listener.security.protocol.map",
        Kind::String,
        Some("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"),
        "Security protocol of each listener name.",
    )
    .low()
    .per_broker(),
    Key::new(
        "listeners",
        Kind::List,
        Some("PLAINTEXT://:9092"),
        "Addresses to listen on, as NAME://host:port. Set by the flag --listen.",
    )
    .high()
    .per_broker()
    .enforced(),
    Key::new(
        "max.connection.creation.rate",
        Kind::Int,
        Some("2147483647"),
        "Most new connections per second.",
    )
    .at_least(0)
    .dynamic(),
    Key::new(
        "max.connections",
        Kind::Int,
        Some("2147483647"),
        "Most connections at a time, within what the open-files limit leaves beside the logs; \
         further ones wait until one closes.",
    )
    .at_least(0)
    .dynamic()
    .enforced(),
    Key::new(
        "max.connections.per.ip",
        Kind::Int,
        Some("2147483647"),
        "Most connections from one address; further ones are closed at once.",
    )
    .at_least(0)
    .dynamic()
    .enforced(),
    Key::new(
        "max.connections.per.ip.overrides",
        Kind::String,
        Some(""),
        "Most connections for single addresses or host names, as address:number.",
    )
    .dynamic()
    .enforced(),
    Key::new(
        "max.incremental.fetch.session.cache.slots",
        Kind::Int,
        Some("1000"),
        "Fetch sessions kept at a time; the least used one makes way.",
    )
    .at_least(0)
    .enforced(),
    Key::new(
        "max.request.partition.size.limit",
        Kind::Int,
        Some("2000"),
        "Most partitions in one page of DescribeTopicPartitions.",
    )
    .at_least(1)
    .enforced(),
    Key::new(
        "num.io.threads",
        Kind::Int,
        Some("8"),
        "Threads that serve requests. Here shards do, see millstream.shards.",
    )
    .at_least(1)
    .high()
    .dynamic()
    .not_applicable(),
    Key::new(
        "num.network.threads",
        Kind::Int,
        Some("3"),
        "Threads that serve sockets. Here shards do, see millstream.shards.",
    )
    .at_least(1)
    .high()
    .dynamic()
    .not_applicable(),
    Key::new(
        "principal.builder.class",
        Kind::Class,
        Some("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
        "Java class that derives a principal from a connection.",
    )
    .per_broker()
    .not_applicable(),
    Key::new(
        "queued.max.request.bytes",
        Kind::Long,
        Some("-1"),
        "Most bytes of requests waiting. Here pools bound them, see millstream.memory.",
    )
    .not_applicable(),
    Key::new(
        "queued.max.requests",
        Kind::Int,
        Some("500"),
        "Most requests waiting. Here pools bound them, see millstream.memory.",
    )
    .at_least(1)
    .high()
    .not_applicable(),
    Key::new(
        "request.timeout.ms",
        Kind::Int,
        Some("30000"),
        "Longest time that a broker waits for another one.",
    )
    .high(),
    Key::new(
        "security.inter.broker.protocol",
        Kind::String,
        Some("PLAINTEXT"),
        "Security protocol between brokers.",
    )
    .check(Check::OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])),
    Key::new("security.providers", Kind::String, None, "Java security providers.")
        .low()
        .not_applicable(),
    Key::new(
        "socket.connection.setup.timeout.max.ms",
        Kind::Long,
        Some("30000"),
        "Longest wait for a connection to another broker.",
    ),
    Key::new(
        "socket.connection.setup.timeout.ms",
        Kind::Long,
        Some("10000"),
        "First wait for a connection to another broker.",
    ),
    Key::new(
        "socket.listen.backlog.size",
        Kind::Int,
        Some("50"),
        "Connections that the kernel keeps until they are accepted. Here it is always 4096.",
    )
    .at_least(1),
    Key::new(
        "socket.receive.buffer.bytes",
        Kind::Int,
        Some("102400"),
        "Receive buffer of a socket; -1 leaves it to the kernel.",
    )
    .high(),
    Key::new(
        "socket.request.max.bytes",
        Kind::Int,
        Some("104857600"),
        "Largest request; a connection that announces more is closed.",
    )
    .at_least(1)
    .high()
    .enforced(),
    Key::new(
        "socket.send.buffer.bytes",
        Kind::Int,
        Some("102400"),
        "Send buffer of a socket; -1 leaves it to the kernel.",
    )
    .high(),
];
