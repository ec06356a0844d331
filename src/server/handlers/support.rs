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

/// Carries a command out, or gives up waiting for it after `timeout_ms`.
///
/// # Errors
/// A refusal of the whole command, what kept its records from becoming durable,
/// and those of [`change`].
pub(super) async fn command<E: Env>(
    context: &Rc<Context<E>>,
    command: Command,
    timeout_ms: i32,
) -> Result<Reply, ErrorReply> {
    let metadata = context.metadata.clone();
    let carried_out = async move { metadata.command(command).await };
    match change(context, timeout_ms, carried_out).await? {
        Ok(Reply::Refused(error)) => Err(error),
        Ok(reply) => Ok(reply),
        Err(code) => {
            let message = "the change could not be made durable".into();
            Err(ErrorReply { code, message })
        }
    }
}

/// Makes a change, or gives up waiting for it after `timeout_ms`. The change
/// itself is never given up: it may be on its way to disk.
///
/// # Errors
/// `RequestTimedOut`, or `ThrottlingQuotaExceeded` when too many are in progress.
pub(super) async fn change<E: Env, T: 'static>(
    context: &Rc<Context<E>>,
    timeout_ms: i32,
    change: impl Future<Output = T> + 'static,
) -> Result<T, ErrorReply> {
    let refused = |code: ErrorCode, message: &str| ErrorReply { code, message: message.into() };
    let Some(in_progress) = context.commands.enter() else {
        context.counters.commands_refused.add(1);
        let max = context.commands.max();
        let message = format!(
            "{max} changes are in progress, no more are taken; try again later, or raise \
             millstream.metadata.changes.max"
        );
        return Err(ErrorReply { code: ErrorCode::ThrottlingQuotaExceeded, message });
    };
    let env = context.owner.env();
    let wait = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)).max(COMMAND_WAIT_MIN);
    let (giver, receiver) = once();
    let running = env.spawn(async move {
        let done = change.await;
        drop(in_progress);
        giver.give(done);
    });
    running.detach();
    let timer = env.sleep(wait);
    let made = async { Ok(receiver.await) };
    let late = async {
        timer.await;
        Err(())
    };
    match futures_lite::future::or(made, late).await {
        Ok(Some(done)) => Ok(done),
        Ok(None) => Err(refused(ErrorCode::BrokerNotAvailable, "the broker is stopping")),
        Err(()) => Err(refused(
            ErrorCode::RequestTimedOut,
            "the change was not durable in time; it may still happen",
        )),
    }
}

/// How long a client is asked to wait after [`ErrorCode::ThrottlingQuotaExceeded`],
/// in milliseconds.
const THROTTLE_MS: i32 = 100;

/// For [`as_known`]: KIP-599 counts changes of topics and partitions, so that no
/// version of other requests has clients that know `ThrottlingQuotaExceeded`.
pub(super) const NEVER_THROTTLED: i16 = i16::MAX;

/// A failed command as clients of this version know it, and how long they are
/// to wait; `since` is the first version with `ThrottlingQuotaExceeded`
/// (KIP-599).
pub(super) fn as_known(error: ErrorReply, version: i16, since: i16) -> (ErrorReply, i32) {
    match error.code {
        ErrorCode::ThrottlingQuotaExceeded if version < since => {
            (ErrorReply { code: ErrorCode::RequestTimedOut, ..error }, THROTTLE_MS)
        }
        ErrorCode::ThrottlingQuotaExceeded => (error, THROTTLE_MS),
        _ => (error, 0),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::io::sim::Sim;
    use crate::server::handlers::testing::image;
    use crate::server::testing::{Plan, Rig};
    use crate::wire::generated::alter_configs::{self as whole, AlterConfigsRequest};
    use crate::wire::generated::create_topics::{CreatableTopic, CreateTopicsRequest};
    use crate::wire::generated::incremental_alter_configs::{
        self as incremental, IncrementalAlterConfigsRequest,
    };

    fn create(name: &str) -> CreateTopicsRequest {
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 1, ..CreateTopicsRequest::default() }
    }

    #[test]
    fn changes_that_nobody_waits_for_any_more_still_count() {
        let sim = Sim::new(1);
        sim.run_until(async {
            let plan = Plan { image: image(&[]), commands_max: 2, ..Plan::default() };
            let mut rig = Rig::new(sim.env(), plan).await;
            let clients: Vec<_> = (0..4).map(|_| rig.connect()).collect();
            let asked = |rig: &mut Rig, at: usize, version, name: &str| {
                rig.send(clients[at], version, &create(name))
            };
            // No round ends, so nothing becomes durable and nothing is done.
            let first = [asked(&mut rig, 0, 7, "a"), asked(&mut rig, 1, 7, "b")];
            rig.turns();
            rig.env.sleep(COMMAND_WAIT_MIN + Duration::from_millis(10)).await;
            rig.turns();
            for (at, id) in first.into_iter().enumerate() {
                let answer = rig.answered::<CreateTopicsRequest>(clients[at], 7, id);
                assert_eq!(answer.topics[0].error_code, 7, "nobody waits for it any more");
            }
            for (at, version, code) in [(2, 6, 89), (3, 5, 7)] {
                let id = asked(&mut rig, at, version, "c");
                rig.turns();
                let answer = rig.answered::<CreateTopicsRequest>(clients[at], version, id);
                let topic = &answer.topics[0];
                assert_eq!((topic.error_code, answer.throttle_time_ms), (code, THROTTLE_MS));
                let message = topic.error_message.as_deref().unwrap_or_default();
                assert!(message.contains("millstream.metadata.changes.max"), "{message}");
            }
            // KIP-599 says nothing of these.
            let resource = incremental::AlterConfigsResource {
                resource_type: TOPIC,
                resource_name: "c".into(),
                ..Default::default()
            };
            let request =
                IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
            let id = rig.send(clients[2], 1, &request);
            rig.turns();
            let answer = rig.answered::<IncrementalAlterConfigsRequest>(clients[2], 1, id);
            let told = (answer.responses[0].error_code, answer.throttle_time_ms);
            assert_eq!(told, (7, THROTTLE_MS));
            let resource = whole::AlterConfigsResource {
                resource_type: TOPIC,
                resource_name: "c".into(),
                ..Default::default()
            };
            let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
            let id = rig.send(clients[3], 2, &request);
            rig.turns();
            let answer = rig.answered::<AlterConfigsRequest>(clients[3], 2, id);
            let told = (answer.responses[0].error_code, answer.throttle_time_ms);
            assert_eq!(told, (7, THROTTLE_MS));
            assert_eq!(rig.context.counters.commands_refused.get(), 4);
            // Both happen, and then there is room again.
            let exists = |rig: &Rig, name| rig.context.owner.topic(name).is_some();
            rig.rounds(|rig| exists(rig, "a") && exists(rig, "b")).await;
            rig.round();
            let id = asked(&mut rig, 2, 7, "c");
            let answer = rig.answer::<CreateTopicsRequest>(clients[2], 7, id).await;
            assert_eq!(answer.topics[0].error_code, 0);
        });
    }
}
