//! CreateTopics, DeleteTopics, CreatePartitions: requests become commands of
//! the controller, its results become answers. Names, duplicates, limits and
//! configs are judged by the controller, so that every way in is alike.

use crate::cluster::{
    AddPartitions, AddPartitionsResult, Command, DeleteTopicResult, ErrorReply, NewTopic,
    NewTopicResult, Reply, TopicRef,
};
use crate::io::Env;
use crate::model::config::DescribedConfig;
use crate::model::{ErrorCode, NodeId, PartitionIndex, TopicId};
use crate::wire::generated::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
    CreatePartitionsTopicResult,
};
use crate::wire::generated::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse,
};
use crate::wire::generated::delete_topics::{
    DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse,
};

use super::super::context::Request;
use super::support::{as_known, command};

/// First version of DeleteTopics with ids, and with names that may be null.
const DELETE_BY_ID_FROM: i16 = 6;

/// First version of DeleteTopics whose clients know TOPIC_DELETION_DISABLED.
const DELETION_DISABLED_FROM: i16 = 3;

/// First versions whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599).
const CREATE_THROTTLED_FROM: i16 = 6;
const DELETE_THROTTLED_FROM: i16 = 5;
const ADD_THROTTLED_FROM: i16 = 3;

/// Creates topics.
pub(in crate::server) async fn create<E: Env>(
    request: &Request<E>,
    body: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let names: Vec<String> = body.topics.iter().map(|topic| topic.name.clone()).collect();
    let topics = body.topics.into_iter().map(new_topic).collect();
    let asked = Command::CreateTopics { topics, validate_only: body.validate_only };
    let (topics, throttle_time_ms) = match command(&request.context, asked, body.timeout_ms).await {
        Ok(Reply::CreateTopics(results)) => (results.into_iter().map(created).collect(), 0),
        Ok(reply) => unreachable!("CreateTopics answered {reply:?}"),
        Err(error) => {
            let (error, throttle) = as_known(error, request.version, CREATE_THROTTLED_FROM);
            (names.into_iter().map(|name| not_created(name, error.clone())).collect(), throttle)
        }
    };
    CreateTopicsResponse { topics, throttle_time_ms }
}

fn new_topic(topic: CreatableTopic) -> NewTopic {
    let assignment = |a: crate::wire::generated::create_topics::CreatableReplicaAssignment| {
        (PartitionIndex(a.partition_index), a.broker_ids.into_iter().map(NodeId).collect())
    };
    NewTopic {
        name: topic.name,
        num_partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.into_iter().map(assignment).collect(),
        configs: topic.configs.into_iter().map(|config| (config.name, config.value)).collect(),
    }
}

fn created(result: NewTopicResult) -> CreatableTopicResult {
    match result.result {
        Ok(topic) => CreatableTopicResult {
            name: result.name,
            topic_id: topic.id.0,
            error_message: None,
            num_partitions: topic.num_partitions,
            replication_factor: topic.replication_factor,
            configs: Some(topic.configs.into_iter().map(config).collect()),
            ..CreatableTopicResult::default()
        },
        Err(error) => not_created(result.name, error),
    }
}

fn not_created(name: String, error: ErrorReply) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: error.code.code(),
        error_message: Some(error.message),
        ..CreatableTopicResult::default()
    }
}

fn config(row: DescribedConfig) -> CreatableTopicConfigs {
    CreatableTopicConfigs {
        name: row.name.into(),
        value: row.value,
        read_only: row.read_only,
        config_source: row.source as i8,
        is_sensitive: row.is_sensitive,
    }
}

/// Deletes topics.
pub(in crate::server) async fn delete<E: Env>(
    request: &Request<E>,
    body: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let version = request.version;
    let topics = to_delete(version, body.topic_names, body.topics);
    let (responses, throttle_time_ms) = if !request
        .context
        .metadata
        .config()
        .flag("delete.topic.enable")
    {
        let code = if version < DELETION_DISABLED_FROM {
            ErrorCode::InvalidRequest
        } else {
            ErrorCode::TopicDeletionDisabled
        };
        let error = ErrorReply { code, message: "delete.topic.enable is false".into() };
        (topics.into_iter().map(|topic| not_deleted(version, topic, error.clone())).collect(), 0)
    } else {
        let asked = Command::DeleteTopics { topics: topics.clone() };
        match command(&request.context, asked, body.timeout_ms).await {
            Ok(Reply::DeleteTopics(results)) => {
                (results.into_iter().map(|result| deleted(version, result)).collect(), 0)
            }
            Ok(reply) => unreachable!("DeleteTopics answered {reply:?}"),
            Err(error) => {
                let (error, throttle) = as_known(error, version, DELETE_THROTTLED_FROM);
                let not = |topic| not_deleted(version, topic, error.clone());
                (topics.into_iter().map(not).collect(), throttle)
            }
        }
    };
    DeleteTopicsResponse { responses, throttle_time_ms }
}

fn to_delete(
    version: i16,
    names: Vec<String>,
    topics: Vec<crate::wire::generated::delete_topics::DeleteTopicState>,
) -> Vec<TopicRef> {
    if version < DELETE_BY_ID_FROM {
        let by_name = |name| TopicRef { name: Some(name), id: TopicId::NONE };
        names.into_iter().map(by_name).collect()
    } else {
        let either = |t: crate::wire::generated::delete_topics::DeleteTopicState| TopicRef {
            name: t.name,
            id: TopicId(t.topic_id),
        };
        topics.into_iter().map(either).collect()
    }
}

fn not_deleted(version: i16, topic: TopicRef, error: ErrorReply) -> DeletableTopicResult {
    deleted(version, DeleteTopicResult { name: topic.name, id: topic.id, error: Some(error) })
}

fn deleted(version: i16, result: DeleteTopicResult) -> DeletableTopicResult {
    let (code, message) = match result.error {
        None => (ErrorCode::None, None),
        Some(error) => (error.code, Some(error.message)),
    };
    let name = match result.name {
        // Only ids are known without a name, and older versions have no ids.
        None if version < DELETE_BY_ID_FROM => Some(String::new()),
        name => name,
    };
    DeletableTopicResult {
        name,
        topic_id: result.id.0,
        error_code: code.code(),
        error_message: message,
    }
}

/// Adds partitions to topics.
pub(in crate::server) async fn create_partitions<E: Env>(
    request: &Request<E>,
    body: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let names: Vec<String> = body.topics.iter().map(|topic| topic.name.clone()).collect();
    let topics = body.topics.into_iter().map(added_partitions).collect();
    let asked = Command::CreatePartitions { topics, validate_only: body.validate_only };
    let (results, throttle_time_ms) = match command(&request.context, asked, body.timeout_ms).await
    {
        Ok(Reply::CreatePartitions(results)) => (results.into_iter().map(added).collect(), 0),
        Ok(reply) => unreachable!("CreatePartitions answered {reply:?}"),
        Err(error) => {
            let (error, throttle) = as_known(error, request.version, ADD_THROTTLED_FROM);
            let not = |name| added(AddPartitionsResult { name, error: Some(error.clone()) });
            (names.into_iter().map(not).collect(), throttle)
        }
    };
    CreatePartitionsResponse { results, throttle_time_ms }
}

fn added_partitions(topic: CreatePartitionsTopic) -> AddPartitions {
    let nodes = |ids: Vec<i32>| ids.into_iter().map(NodeId).collect();
    AddPartitions {
        name: topic.name,
        count: topic.count,
        assignments: topic
            .assignments
            .map(|all| all.into_iter().map(|one| nodes(one.broker_ids)).collect()),
    }
}

fn added(result: AddPartitionsResult) -> CreatePartitionsTopicResult {
    let (code, message) = match result.error {
        None => (ErrorCode::None, None),
        Some(error) => (error.code, Some(error.message)),
    };
    CreatePartitionsTopicResult {
        name: result.name,
        error_code: code.code(),
        error_message: message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::CreatedTopic;
    use crate::wire::generated::create_topics::{CreatableReplicaAssignment, CreatableTopicConfig};
    use crate::wire::generated::delete_topics::DeleteTopicState;
    use crate::wire::{Message, Reader};

    fn refusal(code: ErrorCode) -> ErrorReply {
        ErrorReply { code, message: "because".into() }
    }

    #[test]
    fn c103_requests_reach_the_controller_whole() {
        let topic = new_topic(CreatableTopic {
            name: "t".into(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: vec![CreatableReplicaAssignment {
                partition_index: 0,
                broker_ids: vec![1, 2],
            }],
            configs: vec![CreatableTopicConfig { name: "k".into(), value: None }],
        });
        assert_eq!((topic.num_partitions, topic.replication_factor), (-1, -1));
        assert_eq!(topic.assignments, [(PartitionIndex(0), vec![NodeId(1), NodeId(2)])]);
        assert_eq!(topic.configs, [("k".to_owned(), None)]);
    }

    #[test]
    fn c104_results_carry_id_and_configs_where_the_version_has_them() {
        let results = || {
            let topic = CreatedTopic {
                id: TopicId([7; 16]),
                num_partitions: 4,
                replication_factor: 1,
                configs: Vec::new(),
            };
            let failed = Err(refusal(ErrorCode::TopicAlreadyExists));
            vec![
                NewTopicResult { name: "good".into(), result: Ok(topic) },
                NewTopicResult { name: "bad".into(), result: failed },
            ]
        };
        for version in 2..=7 {
            let topics = results().into_iter().map(created).collect();
            let response = CreateTopicsResponse { topics, ..CreateTopicsResponse::default() };
            let bytes = response.encode(version).unwrap();
            let back = CreateTopicsResponse::decode(Reader::new(&bytes), version).unwrap();
            let (good, bad) = (&back.topics[0], &back.topics[1]);
            assert_eq!((good.error_code, bad.error_code), (0, 36));
            assert_eq!(good.error_message, None);
            assert_eq!(bad.error_message.as_deref(), Some("because"));
            assert_eq!(good.topic_id, if version >= 7 { [7; 16] } else { [0; 16] });
            assert_eq!(good.num_partitions, if version >= 5 { 4 } else { -1 });
            assert_eq!(bad.num_partitions, -1);
        }
    }

    #[test]
    fn c106_names_and_ids_to_delete() {
        let names = || vec!["a".to_owned(), "a".to_owned()];
        let by_name = to_delete(5, names(), Vec::new());
        assert_eq!(by_name.len(), 2, "the controller sees duplicates");
        let both = DeleteTopicState { name: Some("a".into()), topic_id: [1; 16] };
        let by_either = to_delete(6, Vec::new(), vec![both]);
        assert_eq!(
            by_either,
            [TopicRef { name: Some("a".into()), id: TopicId([1; 16]) }],
            "the controller refuses both at once"
        );
        for version in 1..=6 {
            let topic = TopicRef { name: None, id: TopicId([1; 16]) };
            let responses = vec![
                not_deleted(version, topic, refusal(ErrorCode::UnknownTopicId)),
                deleted(
                    version,
                    DeleteTopicResult { name: Some("a".into()), id: TopicId::NONE, error: None },
                ),
            ];
            let response = DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() };
            let bytes = response.encode(version).unwrap();
            let back = DeleteTopicsResponse::decode(Reader::new(&bytes), version).unwrap();
            assert_eq!((back.responses[0].error_code, back.responses[1].error_code), (100, 0));
            assert_eq!(back.responses[1].error_message, None);
        }
    }

    #[test]
    fn c105_every_topic_gets_a_result() {
        let results = vec![
            AddPartitionsResult { name: "a".into(), error: None },
            AddPartitionsResult {
                name: "b".into(),
                error: Some(refusal(ErrorCode::InvalidPartitions)),
            },
        ];
        let results: Vec<_> = results.into_iter().map(added).collect();
        for version in 0..=3 {
            let response = CreatePartitionsResponse {
                results: results.clone(),
                ..CreatePartitionsResponse::default()
            };
            let bytes = response.encode(version).unwrap();
            let back = CreatePartitionsResponse::decode(Reader::new(&bytes), version).unwrap();
            let codes: Vec<_> = back.results.iter().map(|r| r.error_code).collect();
            assert_eq!(codes, [0, 37], "version {version}");
        }
    }
}
