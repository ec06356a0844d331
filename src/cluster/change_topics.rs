//! DeleteTopics and CreatePartitions.

use std::collections::{BTreeMap, BTreeSet};

use super::controller::{
    AddPartitions, AddPartitionsResult, Controller, DeleteTopicResult, ErrorReply, Reply, Step,
    TopicRef,
};
use super::create_topics::{Draft, check_assignment, check_factor, place_on};
use super::image::Image;
use super::records::MetadataRecord;
use crate::model::{ErrorCode, NodeId, TopicId};

impl Controller {
    pub(super) fn delete_topics(&self, image: &Image, topics: Vec<TopicRef>) -> Step {
        let enabled = self.config.flag("delete.topic.enable");
        // What the request names, by the topic that it means.
        let mut times = BTreeMap::<TopicId, usize>::new();
        for id in topics.iter().filter_map(|topic| resolve(image, topic)) {
            *times.entry(id).or_default() += 1;
        }
        let mut records = Vec::new();
        let mut answered = BTreeSet::new();
        let mut results = Vec::with_capacity(topics.len());
        for topic in topics {
            let found = resolve(image, &topic);
            let error = match check_delete(&topic, found, &times, enabled) {
                Ok(id) => {
                    records.push(MetadataRecord::TopicRemoved { id });
                    None
                }
                Err(error) => Some(error),
            };
            // One answer for a topic that is named twice.
            if found.is_some_and(|id| !answered.insert(id)) {
                continue;
            }
            let known = found.and_then(|id| image.topic_by_id(id));
            results.push(DeleteTopicResult {
                name: topic.name.or_else(|| known.map(|topic| topic.name.to_string())),
                id: found.unwrap_or(topic.id),
                error,
            });
        }
        Step { records, reply: Reply::DeleteTopics(results) }
    }
}

/// The topic that a reference means, when it exists and the reference is
/// well-formed.
fn resolve(image: &Image, topic: &TopicRef) -> Option<TopicId> {
    match &topic.name {
        Some(name) if topic.id.is_none() => image.topic(name).map(|topic| topic.id),
        None => image.topic_by_id(topic.id).map(|topic| topic.id),
        Some(_) => None,
    }
}

fn check_delete(
    topic: &TopicRef,
    found: Option<TopicId>,
    times: &BTreeMap<TopicId, usize>,
    enabled: bool,
) -> Result<TopicId, ErrorReply> {
    let error = |code, message: String| Err(ErrorReply::new(code, message));
    let id = match (&topic.name, topic.id.is_none(), found) {
        (Some(_), false, _) => {
            let message = "a topic is named by its name or by its id, not by both";
            return error(ErrorCode::InvalidRequest, message.to_owned());
        }
        (None, true, _) => {
            let message = "a topic must be named by its name or by its id";
            return error(ErrorCode::InvalidRequest, message.to_owned());
        }
        (Some(name), _, None) => {
            let message = format!("topic '{name}' does not exist");
            return error(ErrorCode::UnknownTopicOrPartition, message);
        }
        (None, _, None) => {
            let message = "no topic has this id".to_owned();
            return error(ErrorCode::UnknownTopicId, message);
        }
        (_, _, Some(id)) => id,
    };
    if times.get(&id).copied().unwrap_or(0) > 1 {
        let message = "the request names this topic more than once".to_owned();
        return error(ErrorCode::InvalidRequest, message);
    }
    if !enabled {
        let message = "delete.topic.enable is false".to_owned();
        return error(ErrorCode::TopicDeletionDisabled, message);
    }
    Ok(id)
}

/// One result per distinct name, in the request's order.
pub(super) fn create_partitions(
    image: &Image,
    topics: Vec<AddPartitions>,
) -> (Vec<MetadataRecord>, Vec<AddPartitionsResult>) {
    let mut draft = Draft::new(image);
    let mut times = BTreeMap::<String, usize>::new();
    for topic in &topics {
        *times.entry(topic.name.clone()).or_default() += 1;
    }
    let mut results = Vec::with_capacity(times.len());
    for topic in topics {
        let result = match times.remove(&topic.name) {
            None => continue,
            Some(1) => add_partitions(&mut draft, &topic),
            Some(_) => Err(ErrorReply::new(
                ErrorCode::InvalidRequest,
                format!("the request names topic '{}' more than once", topic.name),
            )),
        };
        results.push(AddPartitionsResult { name: topic.name, error: result.err() });
    }
    (draft.finish(), results)
}

fn add_partitions(draft: &mut Draft<'_>, request: &AddPartitions) -> Result<(), ErrorReply> {
    let name = &request.name;
    let Some(topic) = draft.image.topic(name) else {
        let message = format!("topic '{name}' does not exist");
        return Err(ErrorReply::new(ErrorCode::UnknownTopicOrPartition, message));
    };
    let have = i32::try_from(topic.partitions.len()).expect("partition indexes are 32 bits");
    if request.count <= have {
        return Err(ErrorReply::new(
            ErrorCode::InvalidPartitions,
            format!("topic '{name}' has {have} partitions; {} would not be more", request.count),
        ));
    }
    let added = request.count - have;
    let factor = topic.replication_factor();
    if let Some(assignments) = &request.assignments {
        check_assignments(draft.image, assignments, added, factor)?;
    } else {
        check_factor(draft.image, factor as i64)?;
    }
    if i64::from(request.count) > i64::from(crate::model::limits::PARTITIONS_PER_TOPIC_MAX) {
        draft.reserve(i64::from(request.count))?;
    }
    draft.reserve(i64::from(added))?;
    for index in have..request.count {
        let replicas = match &request.assignments {
            Some(assignments) => place_on(draft, &assignments[(index - have) as usize]),
            None => draft.placer.place(factor).expect("there are enough nodes"),
        };
        draft.add_partition(topic.id, index, replicas);
    }
    Ok(())
}

fn check_assignments(
    image: &Image,
    assignments: &[Vec<NodeId>],
    added: i32,
    factor: usize,
) -> Result<(), ErrorReply> {
    if usize::try_from(added) != Ok(assignments.len()) {
        let message =
            format!("{added} partitions would be added, {} are assigned", assignments.len());
        return Err(ErrorReply::new(ErrorCode::InvalidReplicaAssignment, message));
    }
    assignments.iter().try_for_each(|nodes| check_assignment(image, nodes, Some(factor)))
}
