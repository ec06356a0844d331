//! DescribeCluster (KIP-700, KIP-919, KIP-1073) and DescribeTopicPartitions
//! (KIP-966).

use std::collections::BTreeSet;

use crate::cluster::{Cursor, Image, NodeImage, Page, page_partitions};
use crate::io::Env;
use crate::model::{ErrorCode, NodeId, PartitionIndex, TopicId, topic_name};
use crate::wire::generated::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};
use crate::wire::generated::describe_topic_partitions::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic, NextCursor,
};

use super::super::context::Request;
use super::support::{CLUSTER_OPERATIONS, TOPIC_OPERATIONS, partition_answer};

/// Kinds of endpoint that a client can ask for; this listener is of the first.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Names the nodes of the cluster.
pub(in crate::server) async fn describe_cluster<E: Env>(
    request: &Request<E>,
    body: DescribeClusterRequest,
) -> DescribeClusterResponse {
    let context = &request.context;
    nodes(&context.metadata.image(), &context.listener, context.node(), request.version, &body)
}

fn nodes(
    image: &Image,
    listener: &str,
    here: NodeId,
    version: i16,
    body: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    if body.endpoint_type != BROKERS {
        return refuse_endpoint(version, body.endpoint_type);
    }
    // A node is fenced while its registration has no live process behind it;
    // with one node, whoever answers is alive.
    let broker = |node: &NodeImage| {
        let address = node.registration.listener(listener)?;
        Some(DescribeClusterBroker {
            broker_id: node.registration.node_id.0,
            host: address.host.clone(),
            port: i32::from(address.port),
            rack: node.registration.rack.clone(),
            is_fenced: false,
        })
    };
    let brokers: Vec<_> = image.nodes().filter_map(broker).collect();
    let operations =
        if body.include_cluster_authorized_operations { CLUSTER_OPERATIONS } else { i32::MIN };
    DescribeClusterResponse {
        cluster_id: image.cluster_id().unwrap_or_default().into(),
        controller_id: if brokers.iter().any(|b| b.broker_id == here.0) { here.0 } else { -1 },
        brokers,
        cluster_authorized_operations: operations,
        ..DescribeClusterResponse::default()
    }
}

fn refuse_endpoint(version: i16, asked: i8) -> DescribeClusterResponse {
    let (code, message) = match asked {
        _ if version == 0 => (ErrorCode::InvalidRequest, "version 0 knows brokers only".to_owned()),
        CONTROLLERS => (
            ErrorCode::MismatchedEndpointType,
            "this listener is for brokers; controllers have none of their own".to_owned(),
        ),
        _ => (
            ErrorCode::UnsupportedEndpointType,
            format!("endpoint type {asked} does not exist; 1 means brokers"),
        ),
    };
    DescribeClusterResponse {
        error_code: code.code(),
        error_message: Some(message),
        ..DescribeClusterResponse::default()
    }
}

/// Describes topics by pages of partitions.
pub(in crate::server) async fn describe_topic_partitions<E: Env>(
    request: &Request<E>,
    body: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let context = &request.context;
    let limit = context.metadata.config().number("max.request.partition.size.limit");
    page(&context.metadata.image(), &context.listener, limit, body)
}

fn page(
    image: &Image,
    listener: &str,
    limit: i64,
    body: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let names: BTreeSet<&str> = body.topics.iter().map(|topic| topic.name.as_str()).collect();
    let cursor = body.cursor.as_ref().map(|cursor| Cursor {
        topic: cursor.topic_name.clone(),
        partition: PartitionIndex(cursor.partition_index),
    });
    if let Some(cursor) = &cursor {
        let is_listed = names.is_empty() || names.contains(cursor.topic.as_str());
        if !is_listed || cursor.partition.0 < 0 {
            return refuse_cursor(&names);
        }
    }
    let limit = limit.min(body.response_partition_limit.into()).max(1);
    let limit = usize::try_from(limit).expect("it is between 1 and a 32-bit number");
    let names: Vec<&str> = names.into_iter().collect();
    let (pages, next) = page_partitions(image, &names, cursor.as_ref(), limit);
    DescribeTopicPartitionsResponse {
        topics: pages.into_iter().map(|page| topic(image, listener, page)).collect(),
        next_cursor: next.map(|cursor| NextCursor {
            topic_name: cursor.topic,
            partition_index: cursor.partition.0,
        }),
        ..DescribeTopicPartitionsResponse::default()
    }
}

fn refuse_cursor(names: &BTreeSet<&str>) -> DescribeTopicPartitionsResponse {
    let refused = |name: &&str| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name: Some((*name).into()),
        ..DescribeTopicPartitionsResponseTopic::default()
    };
    DescribeTopicPartitionsResponse {
        topics: names.iter().map(refused).collect(),
        ..DescribeTopicPartitionsResponse::default()
    }
}

fn topic(image: &Image, listener: &str, page: Page) -> DescribeTopicPartitionsResponseTopic {
    let Some(topic) = page.topic else {
        let code = match topic_name::validate(&page.name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition,
            Err(_) => ErrorCode::InvalidTopicException,
        };
        return DescribeTopicPartitionsResponseTopic {
            error_code: code.code(),
            is_internal: topic_name::is_internal(&page.name),
            name: Some(page.name),
            topic_id: TopicId::NONE.0,
            ..DescribeTopicPartitionsResponseTopic::default()
        };
    };
    let partition = |index: usize| {
        let answer = partition_answer(image, &topic, index, listener);
        DescribeTopicPartitionsResponsePartition {
            error_code: answer.error.code(),
            partition_index: topic.partitions[index].index.0,
            leader_id: answer.leader,
            leader_epoch: answer.leader_epoch,
            isr_nodes: answer.replicas.clone(),
            replica_nodes: answer.replicas,
            // Nobody but the in-sync copies can become the leader.
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            offline_replicas: answer.offline,
        }
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.to_string()),
        topic_id: topic.id.0,
        is_internal: topic_name::is_internal(&topic.name),
        partitions: page.partitions.map(partition).collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::wire::Message;
    use crate::wire::generated::describe_topic_partitions as dtp;

    #[test]
    fn c23_describe_cluster_names_nodes_and_rights_on_request() {
        let image = testing::image(&[]);
        for version in 0..=2 {
            let mut body = DescribeClusterRequest::default();
            let response = nodes(&image, "PLAINTEXT", NodeId(1), version, &body);
            assert_eq!((response.error_code, response.controller_id), (0, 1));
            assert_eq!(response.cluster_id, "cluster");
            assert_eq!(response.cluster_authorized_operations, i32::MIN);
            let broker = &response.brokers[0];
            assert_eq!((broker.broker_id, broker.port, broker.is_fenced), (1, 9092, false));
            assert_eq!(broker.rack.as_deref(), Some("r1"));
            body.include_cluster_authorized_operations = true;
            let response = nodes(&image, "PLAINTEXT", NodeId(1), version, &body);
            assert_eq!(response.cluster_authorized_operations, CLUSTER_OPERATIONS);
            response.encode(version).unwrap();
        }
    }

    #[test]
    fn describe_cluster_refuses_endpoints_that_it_has_not() {
        let image = testing::image(&[]);
        for (version, endpoint, code) in
            [(0, 2, 42), (1, 2, 114), (2, 2, 114), (1, 3, 115), (2, -1, 115)]
        {
            let body = DescribeClusterRequest {
                endpoint_type: endpoint,
                ..DescribeClusterRequest::default()
            };
            let response = nodes(&image, "PLAINTEXT", NodeId(1), version, &body);
            assert_eq!(response.error_code, code, "version {version}, type {endpoint}");
            assert!(response.brokers.is_empty());
            response.encode(version).unwrap();
        }
    }

    fn ask(
        names: &[&str],
        limit: i32,
        cursor: Option<(&str, i32)>,
    ) -> DescribeTopicPartitionsRequest {
        DescribeTopicPartitionsRequest {
            topics: names.iter().map(|name| dtp::TopicRequest { name: (*name).into() }).collect(),
            response_partition_limit: limit,
            cursor: cursor.map(|(topic, partition)| dtp::Cursor {
                topic_name: topic.into(),
                partition_index: partition,
            }),
        }
    }

    fn brief(response: &DescribeTopicPartitionsResponse) -> Vec<(&str, i16, Vec<i32>)> {
        let topic = |t: &'_ DescribeTopicPartitionsResponseTopic| {
            t.partitions.iter().map(|p| p.partition_index).collect::<Vec<_>>()
        };
        response
            .topics
            .iter()
            .map(|t| (t.name.as_deref().unwrap_or("(null)"), t.error_code, topic(t)))
            .collect()
    }

    #[test]
    fn c111_pages_continue_at_the_cursor() {
        let image = testing::image(&[("a", 3), ("b", 2), ("c", 1)]);
        let first = page(&image, "PLAINTEXT", 2000, ask(&[], 4, None));
        assert_eq!(brief(&first), [("a", 0, vec![0, 1, 2]), ("b", 0, vec![0])]);
        let next = first.next_cursor.as_ref().unwrap();
        assert_eq!((next.topic_name.as_str(), next.partition_index), ("b", 1));
        let second = page(&image, "PLAINTEXT", 2000, ask(&[], 4, Some(("b", 1))));
        assert_eq!(brief(&second), [("b", 0, vec![1]), ("c", 0, vec![0])]);
        assert!(second.next_cursor.is_none());
        second.encode(0).unwrap();
        let capped = page(&image, "PLAINTEXT", 2, ask(&[], 2000, None));
        assert_eq!(brief(&capped), [("a", 0, vec![0, 1])], "the broker's limit holds");
        let least = page(&image, "PLAINTEXT", 2000, ask(&[], -5, None));
        assert_eq!(brief(&least), [("a", 0, vec![0])], "a page has at least one");
    }

    #[test]
    fn c111_names_that_do_not_exist_and_cursors_that_cannot_be() {
        let image = testing::image(&[("a", 1)]);
        let response = page(&image, "PLAINTEXT", 2000, ask(&["zz", "x y", "a", "a"], 2000, None));
        assert_eq!(brief(&response), [("a", 0, vec![0]), ("x y", 17, vec![]), ("zz", 3, vec![])]);
        for cursor in [("b", 0), ("a", -1)] {
            let response = page(&image, "PLAINTEXT", 2000, ask(&["a"], 10, Some(cursor)));
            assert_eq!(brief(&response), [("a", 42, vec![])]);
        }
        assert_eq!(response.topics[0].topic_authorized_operations, TOPIC_OPERATIONS);
    }
}
