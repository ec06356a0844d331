//! What several handlers need: commands with a deadline, the address of a
//! node, the answer to "what may I do".

use std::rc::Rc;
use std::time::Duration;

use crate::base::once;
use crate::cluster::{Command, ErrorReply, Image, Reply, TopicImage};
use crate::io::{Env, Task};
use crate::model::registration::Listener;
use crate::model::{ErrorCode, NodeId, PartitionIndex};
use crate::shard::OwnedPartition;

use super::super::context::Context;

/// Least time that a client gives a command. Kafka's timeout bounds the time
/// until the controller starts on it, so 0 usually succeeds there (librdkafka
/// sends it); ours bounds the whole, of which a disk flush is a part.
const COMMAND_WAIT_MIN: Duration = Duration::from_secs(1);

/// Every operation on a topic, as bits of `AclOperation`: read, write, create,
/// delete, alter, describe, describe configs, alter configs. What a client may
/// do while there is no authorizer (KIP-430).
pub(super) const TOPIC_OPERATIONS: i32 =
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;

/// Every operation on the cluster: create, alter, describe, cluster action,
/// describe configs, alter configs, idempotent write (KIP-430).
pub(super) const CLUSTER_OPERATIONS: i32 =
    1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;

/// Kafka's numbers for what has configs (`ConfigResource.Type`).
pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
pub(super) const BROKER_LOGGER: i8 = 8;

/// Only this node knows its own settings.
///
/// # Errors
/// `InvalidRequest` when `name` is not the id of node `here`.
pub(super) fn is_here(name: &str, here: i32) -> Result<(), (ErrorCode, String)> {
    match name.parse::<i32>() {
        Ok(id) if id == here => Ok(()),
        Ok(id) => Err((
            ErrorCode::InvalidRequest,
            format!("this is broker {here}; ask broker {id} for its own settings"),
        )),
        Err(_) => Err((ErrorCode::InvalidRequest, format!("broker id '{name}' is not a number"))),
    }
}

/// Carries a command out, or gives up waiting for it after `timeout_ms`. A
/// command itself is never given up: its records may be on their way to disk.
///
/// # Errors
/// A refusal of the whole command, `RequestTimedOut`, or what kept its records
/// from becoming durable.
pub(super) async fn command<E: Env>(
    context: &Rc<Context<E>>,
    command: Command,
    timeout_ms: i32,
) -> Result<Reply, ErrorReply> {
    let env = context.owner.env();
    let wait = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)).max(COMMAND_WAIT_MIN);
    let (giver, receiver) = once();
    let metadata = context.metadata.clone();
    let running = env.spawn(async move { giver.give(metadata.command(command).await) });
    running.detach();
    let timer = env.sleep(wait);
    let late = async {
        timer.await;
        Some(Err(ErrorCode::RequestTimedOut))
    };
    let refused = |code: ErrorCode, message: &str| ErrorReply { code, message: message.into() };
    match futures_lite::future::or(receiver, late).await {
        Some(Ok(Reply::Refused(error))) => Err(error),
        Some(Ok(reply)) => Ok(reply),
        Some(Err(ErrorCode::RequestTimedOut)) => Err(refused(
            ErrorCode::RequestTimedOut,
            "the change was not durable in time; it may still happen",
        )),
        Some(Err(code)) => Err(refused(code, "the change could not be made durable")),
        None => Err(refused(ErrorCode::BrokerNotAvailable, "the broker is stopping")),
    }
}

/// Where clients of `listener` reach a node (checklist 22).
pub(super) fn address<'a>(image: &'a Image, node: NodeId, listener: &str) -> Option<&'a Listener> {
    image.node(node)?.registration.listener(listener)
}

/// A partition of this shard by the name of its topic. The image is asked
/// first: it does not list the metadata topic, which no client reads by name.
///
/// # Errors
/// `UnknownTopicOrPartition`, and `NotLeaderOrFollower` for one that exists
/// but is not open here.
pub(super) fn owned_partition<E: Env>(
    context: &Context<E>,
    topic: &str,
    index: i32,
) -> Result<Rc<OwnedPartition>, ErrorCode> {
    let index = PartitionIndex(index);
    let id = {
        let image = context.metadata.image();
        let topic = image.topic(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        topic.partition(index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        topic.id
    };
    let topic = context.owner.topic_by_id(id);
    topic.and_then(|topic| topic.partition(index)).ok_or(ErrorCode::NotLeaderOrFollower)
}

/// One partition as Metadata and DescribeTopicPartitions show it.
pub(super) struct PartitionAnswer {
    pub(super) error: ErrorCode,
    pub(super) leader: i32,
    pub(super) leader_epoch: i32,
    pub(super) replicas: Vec<i32>,
    pub(super) offline: Vec<i32>,
}

/// What clients of `listener` are told about a partition of `topic`.
pub(super) fn partition_answer(
    image: &Image,
    topic: &TopicImage,
    index: usize,
    listener: &str,
) -> PartitionAnswer {
    let partition = &topic.partitions[index];
    let leader = partition.leader().node;
    let reachable = |node: NodeId| address(image, node, listener).is_some();
    let (error, leader_id) = if image.node(leader).is_none() {
        (ErrorCode::LeaderNotAvailable, -1)
    } else if !reachable(leader) {
        (ErrorCode::ListenerNotFound, -1)
    } else {
        (ErrorCode::None, leader.0)
    };
    let offline = |node: &NodeId| !reachable(*node);
    let nodes = partition.replicas.iter().map(|replica| replica.node);
    PartitionAnswer {
        error,
        leader: leader_id,
        leader_epoch: image.leader_epoch(partition).0,
        offline: nodes.clone().filter(offline).map(|node| node.0).collect(),
        replicas: nodes.map(|node| node.0).collect(),
    }
}
