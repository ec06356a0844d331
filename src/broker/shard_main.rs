//! What a shard does from its start to its end: recovery, then the pump, then
//! a clean close of its logs.

use std::net::TcpListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::io::Env;
use crate::log::{LogPools, LogSetConfig, ReserveSize};
use crate::model::config::BrokerConfig;
use crate::model::registration::{Listener, NodeRegistration};
use crate::model::{NodeId, ShardId};
use crate::server::{Context, ContextParts, Dispatcher};
use crate::shard::runtime::Runtime;
use crate::shard::{
    Fatal, FatalReason, FrameMemory, Limits, Mailbox, Owner, PeerLimits, Pump, PumpParts, Stopper,
    stop_pair,
};

use super::configuration::LISTENER;
use super::memory::Pools;
use super::recover::{Started, recover};
use super::{Advertised, StartError};

/// Kafka's number of the protocol without encryption and authentication.
const PLAINTEXT: i16 = 0;

/// Time between two looks for producers that have been idle too long.
const PRODUCER_SWEEP: Duration = Duration::from_secs(60);

/// What the process gives a shard.
pub(super) struct Part {
    pub(super) data_dir: PathBuf,
    pub(super) config: BrokerConfig,
    pub(super) pools: Pools,
    /// Files of logs kept open.
    pub(super) log_files: usize,
    pub(super) connections_max: usize,
    pub(super) peers: PeerLimits,
    pub(super) listener: TcpListener,
    pub(super) advertised: Advertised,
    pub(super) spin_max: Duration,
    pub(super) on_ready: Box<dyn FnOnce(Stopper) + Send>,
}

/// Arms the bug that a test build was told to have, on this shard's thread.
#[cfg(feature = "planted-bugs")]
fn plant() -> Result<(), StartError> {
    use crate::model::planted;
    let Ok(name) = std::env::var("MILLSTREAM_PLANTED_BUG") else { return Ok(()) };
    let Some((bug, _)) = planted::ALL.iter().find(|(_, known)| *known == name) else {
        return Err(StartError::Usage(format!("MILLSTREAM_PLANTED_BUG={name}: no such bug")));
    };
    tracing::warn!("this test build has the bug {name}");
    planted::arm(Some(*bug));
    Ok(())
}

/// Runs the shard to its end.
pub(super) async fn run(runtime: Runtime, part: Part) -> Result<(), StartError> {
    #[cfg(feature = "planted-bugs")]
    plant()?;
    let env = runtime.env().clone();
    let mailbox = Mailbox::new(runtime.ring().bell());
    let node = registration(&part, env.random(), env.random());
    let log_config = log_config(&part);
    let begun = env.monotonic();
    let starting = recover(&env, log_config, &part.config, node, mailbox.clone());
    let Started { owner, metadata, registration } = runtime.drive(starting).await?;
    let (logs, took) = (owner.log_count(), env.monotonic().saturating_sub(begun));
    tracing::info!(logs, ?took, "the data directory is recovered");
    let bell = runtime.ring().bell();
    owner.logs().set_notifier(Rc::new(move || bell.ring()));
    register(&runtime, &owner, &metadata, registration).await?;

    let number = |key| usize::try_from(part.config.number(key)).unwrap_or(0);
    let context = Context::new(ContextParts {
        owner: owner.clone(),
        metadata,
        listener: LISTENER.into(),
        fetch_bytes_max: number("fetch.max.bytes").min(part.pools.fetch_max()),
        fetch_sessions_max: number("max.incremental.fetch.session.cache.slots"),
        fetch_partitions_max: number("millstream.fetch.partitions.max"),
        commands_max: number("millstream.metadata.changes.max"),
        kept_pool: part.pools.receive.clone(),
    });
    let (stop, stopper) = stop_pair(runtime.ring())
        .map_err(|e| StartError::Environment(format!("cannot prepare the stop: {e}")))?;
    let sweep = sweep_producers(&env, &owner, &part.config);
    let retention = part.config.number("log.retention.check.interval.ms").unsigned_abs();
    let retention = owner.keep_retention(Duration::from_millis(retention));
    let pump = Pump::new(PumpParts {
        runtime: runtime.clone(),
        handler: Dispatcher::new(context.clone()),
        round_end: owner.clone(),
        mailbox,
        limits: limits(&part),
        frame_memory: FrameMemory {
            pool: part.pools.receive.clone(),
            reserve: part.pools.frames.clone(),
        },
        send_pool: part.pools.send.clone(),
        stop,
    });
    (part.on_ready)(stopper);
    let counters = pump.run(part.listener).await.map_err(StartError::Fatal)?;
    let (requests, connections) = (counters.requests, counters.accepted);
    tracing::info!(requests, connections, "no longer serving, closing the logs");
    tracing::debug!("{counters:?}, {:?}, {:?}", context.counters, runtime.ring().counters());
    drop((sweep, retention));
    runtime.drive(owner.logs().close()).await.map_err(|error| {
        let reason = error.fatal_reason().map_or(FatalReason::ShardPanic, FatalReason::Log);
        StartError::Fatal(Fatal::new(reason, error.to_string()))
    })
}

/// Appends this start's registration; no pump runs yet, so rounds are ended here.
async fn register<E: Env>(
    runtime: &Runtime,
    owner: &Rc<Owner<E>>,
    metadata: &Rc<crate::shard::Metadata<E>>,
    registration: Vec<crate::cluster::MetadataRecord>,
) -> Result<(), StartError> {
    use crate::shard::RoundEnd;
    let env = runtime.env().clone();
    let rounds = async {
        loop {
            owner.end_round();
            if let Some(fatal) = owner.fatal() {
                return Err(StartError::Fatal(fatal));
            }
            env.sleep(Duration::from_millis(1)).await;
        }
    };
    let appended = async {
        metadata.register(registration).await.map_err(|code| {
            StartError::Environment(format!("cannot write the metadata log: {}", code.name()))
        })
    };
    runtime.drive(futures_lite::future::or(appended, rounds)).await
}

fn registration(part: &Part, high: u64, low: u64) -> NodeRegistration {
    let mut incarnation = [0; 16];
    incarnation[..8].copy_from_slice(&high.to_be_bytes());
    incarnation[8..].copy_from_slice(&low.to_be_bytes());
    NodeRegistration {
        node_id: NodeId(i32::try_from(part.config.number("node.id")).unwrap_or(1)),
        incarnation,
        rack: part.config.get("broker.rack").map(str::to_owned),
        shards: 1,
        listeners: vec![Listener {
            name: LISTENER.into(),
            host: part.advertised.host.clone(),
            port: part.advertised.port,
            security_protocol: PLAINTEXT,
        }],
    }
}

fn log_config(part: &Part) -> LogSetConfig {
    let pools = LogPools {
        tail: part.pools.tail.clone(),
        journal: part.pools.journal.clone(),
        cold: part.pools.cold.clone(),
        upkeep: part.pools.upkeep.clone(),
    };
    let bytes = |key| u64::try_from(part.config.number(key));
    LogSetConfig {
        open_files: part.log_files,
        journal_queue_bytes: bytes("millstream.journal.queue.bytes").unwrap_or(u64::MAX),
        // -1 stands for what is needed.
        reserve: bytes("millstream.reserve.bytes")
            .map_or(ReserveSize::AsNeeded, ReserveSize::Fixed),
        ..LogSetConfig::new(part.data_dir.clone(), ShardId(0), pools)
    }
}

fn limits(part: &Part) -> Limits {
    let number = |key| u64::try_from(part.config.number(key)).unwrap_or(0);
    let frame_max = usize::try_from(number("socket.request.max.bytes")).unwrap_or(usize::MAX);
    Limits {
        frame_max_bytes: frame_max.min(part.pools.frame_max()),
        connections_max: part.connections_max,
        peers: part.peers.clone(),
        idle_max: idle_max(part.config.number("connections.max.idle.ms")),
        spin_max: part.spin_max,
        ..Limits::default()
    }
}

/// A negative one is never, as in Kafka.
fn idle_max(ms: i64) -> Duration {
    u64::try_from(ms).map_or(Duration::MAX, Duration::from_millis)
}

/// Forgets idle producers now and then (`producer.id.expiration.ms`).
fn sweep_producers<E: Env>(env: &E, owner: &Rc<Owner<E>>, config: &BrokerConfig) -> E::Task {
    let expiration_ms = config.number("producer.id.expiration.ms");
    let (env, owner) = (env.clone(), owner.clone());
    env.clone().spawn(async move {
        loop {
            env.sleep(PRODUCER_SWEEP).await;
            owner.expire_producers(expiration_ms);
        }
    })
}
