//! CreateTopics, and the topics that Metadata requests create: checks, and
//! the records of what passes them.

use std::collections::BTreeMap;

use super::controller::{Controller, CreatedTopic, Ctx, ErrorReply, NewTopic, NewTopicResult};
use super::image::Image;
use super::placement::Placer;
use super::records::{MetadataRecord, PartitionRecord, Replica};
use crate::model::limits::{PARTITIONS_PER_REQUEST_MAX, PARTITIONS_PER_TOPIC_MAX};
use crate::model::topic_name::{self, CLUSTER_METADATA, can_collide, collision_key};
use crate::model::{ErrorCode, LeaderEpoch, LogId, NodeId, PartitionIndex, TopicId};

/// The records of one command as they come together, and what is used up.
pub(super) struct Draft<'a> {
    pub(super) image: &'a Image,
    pub(super) placer: Placer<'a>,
    pub(super) records: Vec<MetadataRecord>,
    next_log_id: u64,
    partitions: i64,
}

impl<'a> Draft<'a> {
    pub(super) fn new(image: &'a Image) -> Self {
        Self {
            image,
            placer: Placer::new(image),
            records: Vec::new(),
            next_log_id: image.next_log_id().0,
            partitions: 0,
        }
    }

    /// Counts partitions that a topic asks for against the request's limit.
    pub(super) fn reserve(&mut self, count: i64) -> Result<(), ErrorReply> {
        let max = i64::from(PARTITIONS_PER_REQUEST_MAX);
        if count > i64::from(PARTITIONS_PER_TOPIC_MAX) || self.partitions + count > max {
            return Err(ErrorReply::new(
                ErrorCode::InvalidPartitions,
                format!(
                    "{count} partitions are too many: one request may add {max} in all, one topic \
                     may have {PARTITIONS_PER_TOPIC_MAX}"
                ),
            ));
        }
        self.partitions += count;
        Ok(())
    }

    /// Adds a partition with these copies.
    pub(super) fn add_partition(&mut self, topic_id: TopicId, index: i32, replicas: Vec<Replica>) {
        let node = self.image.node(replicas[0].node);
        let log_id = LogId(self.next_log_id);
        self.next_log_id += 1;
        self.records.push(MetadataRecord::Partition(PartitionRecord {
            topic_id,
            index: PartitionIndex(index),
            log_id,
            leader_epoch: node.map_or(LeaderEpoch(0), |node| node.epoch).max(LeaderEpoch(0)),
            replicas,
        }));
    }

    /// All records of the command, with the log ids that they use up.
    pub(super) fn finish(mut self) -> Vec<MetadataRecord> {
        if self.next_log_id != self.image.next_log_id().0 {
            self.records.push(MetadataRecord::LogIds { next: LogId(self.next_log_id) });
        }
        self.records
    }
}

impl Controller {
    /// One result per distinct name, in the request's order.
    pub(super) fn create_topics(
        &self,
        image: &Image,
        topics: Vec<NewTopic>,
        ctx: &mut Ctx<'_>,
    ) -> (Vec<MetadataRecord>, Vec<NewTopicResult>) {
        let mut draft = Draft::new(image);
        let mut times = BTreeMap::<String, usize>::new();
        for topic in &topics {
            *times.entry(topic.name.clone()).or_default() += 1;
        }
        // Names of this request that others of it could collide with.
        let mut taken = BTreeMap::new();
        let mut results = Vec::with_capacity(times.len());
        for topic in topics {
            let result = match times.remove(&topic.name) {
                None => continue,
                Some(1) => self.create_topic(&mut draft, &mut taken, &topic, ctx),
                Some(_) => Err(ErrorReply::new(
                    ErrorCode::InvalidRequest,
                    format!("the request names topic '{}' more than once", topic.name),
                )),
            };
            results.push(NewTopicResult { name: topic.name, result });
        }
        (draft.finish(), results)
    }

    fn create_topic(
        &self,
        draft: &mut Draft<'_>,
        taken: &mut BTreeMap<String, String>,
        topic: &NewTopic,
        ctx: &mut Ctx<'_>,
    ) -> Result<CreatedTopic, ErrorReply> {
        check_name(draft.image, taken, &topic.name)?;
        let configs = self.check_configs(topic)?;
        let partitions = if topic.assignments.is_empty() {
            self.place_new(draft, topic)?
        } else {
            place_assigned(draft, topic)?
        };
        let id = TopicId(ctx.uuid());
        let result = CreatedTopic {
            id,
            num_partitions: i32::try_from(partitions.len()).expect("checked against the limit"),
            replication_factor: i16::try_from(partitions[0].len()).expect("was given as an i16"),
            configs: self.config.describe_topic(&configs),
        };
        draft.records.push(MetadataRecord::Topic { name: topic.name.clone(), id });
        for (key, value) in configs {
            draft.records.push(MetadataRecord::TopicConfig { id, key, value: Some(value) });
        }
        for (index, replicas) in (0..).zip(partitions) {
            draft.add_partition(id, index, replicas);
        }
        if can_collide(&topic.name) {
            taken.insert(collision_key(&topic.name), topic.name.clone());
        }
        Ok(result)
    }

    fn check_configs(&self, topic: &NewTopic) -> Result<BTreeMap<String, String>, ErrorReply> {
        let bad = |message| ErrorReply::new(ErrorCode::InvalidConfig, message);
        let mut configs = BTreeMap::new();
        for (key, value) in &topic.configs {
            let Some(value) = value else {
                return Err(bad(format!("configuration {key} of a new topic has no value")));
            };
            // The last one counts, as in Kafka.
            configs.insert(key.clone(), value.clone());
        }
        self.config.check_topic(&configs).map_err(|error| bad(error.to_string()))?;
        Ok(configs)
    }

    fn place_new(
        &self,
        draft: &mut Draft<'_>,
        topic: &NewTopic,
    ) -> Result<Vec<Vec<Replica>>, ErrorReply> {
        let factor = match topic.replication_factor {
            -1 => self.config.number("default.replication.factor"),
            factor @ 1.. => i64::from(factor),
            factor => {
                return Err(ErrorReply::new(
                    ErrorCode::InvalidReplicationFactor,
                    format!(
                        "replication factor {factor} is not allowed: at least 1, or -1 for the \
                         default"
                    ),
                ));
            }
        };
        let count = match topic.num_partitions {
            -1 => self.config.number("num.partitions"),
            count @ 1.. => i64::from(count),
            count => {
                return Err(ErrorReply::new(
                    ErrorCode::InvalidPartitions,
                    format!(
                        "{count} partitions are not allowed: at least 1, or -1 for the default"
                    ),
                ));
            }
        };
        check_factor(draft.image, factor)?;
        draft.reserve(count)?;
        let factor = usize::try_from(factor).expect("at least 1");
        let place = |_| draft.placer.place(factor).expect("there are enough nodes");
        Ok((0..count).map(place).collect())
    }
}

/// Refuses a replication factor above the number of nodes.
pub(super) fn check_factor(image: &Image, factor: i64) -> Result<(), ErrorReply> {
    let nodes = image.nodes().len();
    if usize::try_from(factor).is_ok_and(|factor| (1..=nodes).contains(&factor)) {
        return Ok(());
    }
    Err(ErrorReply::new(
        ErrorCode::InvalidReplicationFactor,
        format!("replication factor {factor} is not possible with {nodes} brokers"),
    ))
}

fn check_name(
    image: &Image,
    taken: &BTreeMap<String, String>,
    name: &str,
) -> Result<(), ErrorReply> {
    if name == CLUSTER_METADATA {
        return Err(ErrorReply::new(
            ErrorCode::InvalidRequest,
            format!("topic {name} belongs to the cluster, nobody can create it"),
        ));
    }
    topic_name::validate(name)
        .map_err(|error| ErrorReply::new(ErrorCode::InvalidTopicException, error.to_string()))?;
    if image.topic(name).is_some() {
        return Err(ErrorReply::new(
            ErrorCode::TopicAlreadyExists,
            format!("topic '{name}' exists already"),
        ));
    }
    let in_request = || taken.get(&collision_key(name)).map(String::as_str);
    if let Some(other) = image.collision(name).or_else(in_request) {
        return Err(ErrorReply::new(
            ErrorCode::InvalidTopicException,
            format!(
                "topic '{name}' is too close to topic '{other}': '.' and '_' count as the same"
            ),
        ));
    }
    Ok(())
}

fn place_assigned(
    draft: &mut Draft<'_>,
    topic: &NewTopic,
) -> Result<Vec<Vec<Replica>>, ErrorReply> {
    let bad = |message: &str| Err(ErrorReply::new(ErrorCode::InvalidRequest, message));
    if topic.replication_factor != -1 {
        return bad("with a replica assignment the replication factor must be -1");
    }
    if topic.num_partitions != -1 {
        return bad("with a replica assignment the number of partitions must be -1");
    }
    let bad = |message: String| Err(ErrorReply::new(ErrorCode::InvalidReplicaAssignment, message));
    draft.reserve(topic.assignments.len() as i64)?;
    let mut by_index = BTreeMap::new();
    let mut factor = None;
    for (index, nodes) in &topic.assignments {
        if by_index.insert(index.0, nodes).is_some() {
            return bad(format!("partition {index} is assigned more than once"));
        }
        check_assignment(draft.image, nodes, factor)?;
        factor = Some(nodes.len());
    }
    if !by_index.keys().copied().eq((0..).take(by_index.len())) {
        return bad("the assigned partitions must be numbered from 0 without a gap".to_owned());
    }
    Ok(by_index.into_values().map(|nodes| place_on(draft, nodes)).collect())
}

/// Copies on exactly these nodes, which were checked.
pub(super) fn place_on(draft: &mut Draft<'_>, nodes: &[NodeId]) -> Vec<Replica> {
    let place = |node: &NodeId| draft.placer.place_on(*node).expect("the node is registered");
    nodes.iter().map(place).collect()
}

/// Checks the nodes that a client chose for one partition.
pub(super) fn check_assignment(
    image: &Image,
    nodes: &[NodeId],
    factor: Option<usize>,
) -> Result<(), ErrorReply> {
    let bad = |message: String| Err(ErrorReply::new(ErrorCode::InvalidReplicaAssignment, message));
    if nodes.is_empty() {
        return bad("a replica assignment must name a broker for each partition".to_owned());
    }
    for (at, node) in nodes.iter().enumerate() {
        if image.node(*node).is_none() {
            return bad(format!("a replica is assigned to broker {node}, which does not exist"));
        }
        if nodes[..at].contains(node) {
            return bad(format!("two replicas of a partition are assigned to broker {node}"));
        }
    }
    match factor {
        Some(factor) if factor != nodes.len() => {
            bad(format!("a partition is assigned {} replicas, others have {factor}", nodes.len()))
        }
        _ => Ok(()),
    }
}
