//! Metadata: the nodes, and the topics that a client names, all of them, or
//! those that its naming creates (checklist 18-24).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::cluster::{Command, Image, Reply, TopicImage};
use crate::io::Env;
use crate::model::limits::PARTITIONS_PER_REQUEST_MAX;
use crate::model::{ErrorCode, TopicId, topic_name};
use crate::wire::generated::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};

use super::super::context::{Context, Request};
use super::support::{CLUSTER_OPERATIONS, TOPIC_OPERATIONS, command, partition_answer};

/// Topics that one request may create by naming them. The rest is answered as
/// unknown, which clients retry.
const AUTO_CREATE_MAX: i64 = 1000;

/// How long a client that names a new topic waits for it, in milliseconds.
const AUTO_CREATE_WAIT_MS: i32 = 30_000;

/// First version without an empty list for "all".
const NULL_IS_ALL_FROM: i16 = 1;
/// First version that can say that a listener is missing (checklist 22).
const LISTENER_NOT_FOUND_FROM: i16 = 6;
/// First version in which topics can be named by id; 10 and 11 have the field
/// and do not mean it (KIP-516).
const TOPIC_ID_FROM: i16 = 12;
/// Versions that can say what one may do with topics, and with the cluster.
const TOPIC_OPERATIONS_FROM: i16 = 8;
const CLUSTER_OPERATIONS_UNTIL: i16 = 10;

/// What a request asks for.
#[derive(Debug, PartialEq)]
enum Asked {
    All,
    /// Sorted and without copies, as answers are.
    Some {
        names: BTreeSet<String>,
        ids: BTreeSet<TopicId>,
        /// Entries with neither.
        nameless: bool,
    },
}

/// Names the cluster's nodes, topics and leaders.
pub(in crate::server) async fn handle<E: Env>(
    request: &Request<E>,
    body: MetadataRequest,
) -> MetadataResponse {
    let (context, version) = (&request.context, request.version);
    let asked = match asked(version, body.topics) {
        Ok(asked) => asked,
        Err(topics) => return refuse(context, topics),
    };
    let may_create = body.allow_auto_topic_creation
        && context.metadata.config().flag("auto.create.topics.enable");
    let mut failed = BTreeMap::new();
    if may_create && let Asked::Some { names, .. } = &asked {
        let absent = absent(&context.metadata.image(), names);
        if !absent.is_empty() {
            failed = auto_create(context, absent).await;
        }
    }
    let operations = version >= TOPIC_OPERATIONS_FROM && body.include_topic_authorized_operations;
    let found = find(&context.metadata.image(), asked, &failed);
    let mut topics = found.absent;
    // Thousands of topics take longer than this shard's slice.
    for topic in found.topics {
        if context.owner.env().slice_over() {
            context.owner.env().pause().await;
        }
        let image = context.metadata.image();
        topics.push(describe(&image, &topic, &context.listener, version));
    }
    if operations {
        let exists = |topic: &&mut MetadataResponseTopic| topic.error_code == 0;
        for topic in topics.iter_mut().filter(exists) {
            topic.topic_authorized_operations = TOPIC_OPERATIONS;
        }
    }
    let mut response = response(context, topics);
    if body.include_cluster_authorized_operations
        && (TOPIC_OPERATIONS_FROM..=CLUSTER_OPERATIONS_UNTIL).contains(&version)
    {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    response
}

/// Reads the list of topics.
///
/// # Errors
/// The answers to a list that this version cannot mean (checklist 21).
fn asked(
    version: i16,
    topics: Option<Vec<MetadataRequestTopic>>,
) -> Result<Asked, Vec<MetadataResponseTopic>> {
    let Some(topics) = topics else { return Ok(Asked::All) };
    if version < NULL_IS_ALL_FROM && topics.is_empty() {
        return Ok(Asked::All);
    }
    let impossible = |topic: &MetadataRequestTopic| {
        version < TOPIC_ID_FROM && (topic.name.is_none() || topic.topic_id != TopicId::NONE.0)
    };
    if topics.iter().any(impossible) {
        let refused = |topic: MetadataRequestTopic| MetadataResponseTopic {
            error_code: ErrorCode::InvalidRequest.code(),
            name: Some(topic.name.unwrap_or_default()),
            topic_id: topic.topic_id,
            ..MetadataResponseTopic::default()
        };
        return Err(topics.into_iter().map(refused).collect());
    }
    let (mut names, mut ids, mut nameless) = (BTreeSet::new(), BTreeSet::new(), false);
    for topic in topics {
        let id = TopicId(topic.topic_id);
        if !id.is_none() {
            ids.insert(id);
        } else if let Some(name) = topic.name {
            names.insert(name);
        } else {
            nameless = true;
        }
    }
    Ok(Asked::Some { names, ids, nameless })
}

/// Names that a client may create by naming them.
fn absent(image: &Image, names: &BTreeSet<String>) -> Vec<String> {
    // The broker makes its own topics itself, with settings of their own.
    let creatable = |name: &&String| {
        image.topic(name).is_none()
            && topic_name::validate(name).is_ok()
            && !topic_name::is_internal(name)
            && name.as_str() != topic_name::CLUSTER_METADATA
    };
    names.iter().filter(creatable).cloned().collect()
}

/// Creates topics and waits until they can be used: an answer of "unknown" now
/// would only make the client ask again. Returns why some were not created.
async fn auto_create<E: Env>(
    context: &Rc<Context<E>>,
    mut names: Vec<String>,
) -> BTreeMap<String, ErrorCode> {
    let partitions = context.metadata.config().number("num.partitions").max(1);
    let room = i64::from(PARTITIONS_PER_REQUEST_MAX) / partitions;
    names.truncate(usize::try_from(room.clamp(1, AUTO_CREATE_MAX)).expect("it is at most 1000"));
    let names_text = names.join(", ");
    match command(context, Command::AutoCreate { names }, AUTO_CREATE_WAIT_MS).await {
        Ok(Reply::CreateTopics(results)) => results
            .into_iter()
            .filter_map(|result| Some((result.name, result.result.err()?.code)))
            .collect(),
        Ok(reply) => unreachable!("AutoCreate answered {reply:?}"),
        Err(error) => {
            tracing::warn!(
                "topics named by a client were not created ({names_text}): {}",
                error.message
            );
            BTreeMap::new()
        }
    }
}

/// Topics of an answer.
#[derive(Debug, Default)]
struct Found {
    /// Sorted by name.
    topics: Vec<Arc<TopicImage>>,
    absent: Vec<MetadataResponseTopic>,
}

fn find(image: &Image, asked: Asked, failed: &BTreeMap<String, ErrorCode>) -> Found {
    let mut found = Found::default();
    let (names, ids, nameless) = match asked {
        Asked::All => {
            found.topics = image.topics().cloned().collect();
            return found;
        }
        Asked::Some { names, ids, nameless } => (names, ids, nameless),
    };
    let mut missing = |code: ErrorCode, name: Option<String>, id: TopicId| {
        found.absent.push(MetadataResponseTopic {
            error_code: code.code(),
            is_internal: name.as_deref().is_some_and(topic_name::is_internal),
            name,
            topic_id: id.0,
            ..MetadataResponseTopic::default()
        });
    };
    let mut topics = BTreeMap::new();
    if nameless {
        missing(ErrorCode::InvalidRequest, None, TopicId::NONE);
    }
    for id in ids {
        match image.topic_by_id(id) {
            Some(topic) => drop(topics.insert(topic.name.clone(), topic.clone())),
            None => missing(ErrorCode::UnknownTopicId, None, id),
        }
    }
    for name in names {
        match image.topic(&name) {
            Some(topic) => drop(topics.insert(topic.name.clone(), topic.clone())),
            None => missing(why_absent(&name, failed), Some(name), TopicId::NONE),
        }
    }
    found.topics = topics.into_values().collect();
    found
}

/// Clients retry an unknown topic and give up on a bad name.
fn why_absent(name: &str, failed: &BTreeMap<String, ErrorCode>) -> ErrorCode {
    let refused = failed.get(name) == Some(&ErrorCode::InvalidTopicException);
    if refused || topic_name::validate(name).is_err() {
        ErrorCode::InvalidTopicException
    } else {
        ErrorCode::UnknownTopicOrPartition
    }
}

fn describe(
    image: &Image,
    topic: &TopicImage,
    listener: &str,
    version: i16,
) -> MetadataResponseTopic {
    let partition = |index: usize| {
        let answer = partition_answer(image, topic, index, listener);
        let error = match answer.error {
            ErrorCode::ListenerNotFound if version < LISTENER_NOT_FOUND_FROM => {
                ErrorCode::LeaderNotAvailable
            }
            other => other,
        };
        MetadataResponsePartition {
            error_code: error.code(),
            partition_index: topic.partitions[index].index.0,
            leader_id: answer.leader,
            leader_epoch: answer.leader_epoch,
            // Every copy is in sync while there is one.
            isr_nodes: answer.replicas.clone(),
            replica_nodes: answer.replicas,
            offline_replicas: answer.offline,
        }
    };
    MetadataResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.to_string()),
        topic_id: topic.id.0,
        is_internal: topic_name::is_internal(&topic.name),
        partitions: (0..topic.partitions.len()).map(partition).collect(),
        ..MetadataResponseTopic::default()
    }
}

/// The nodes that clients of `listener` can reach, by id.
fn brokers(image: &Image, listener: &str) -> Vec<MetadataResponseBroker> {
    let broker = |node: &crate::cluster::NodeImage| {
        let address = node.registration.listener(listener)?;
        Some(MetadataResponseBroker {
            node_id: node.registration.node_id.0,
            host: address.host.clone(),
            port: i32::from(address.port),
            rack: node.registration.rack.clone(),
        })
    };
    image.nodes().filter_map(broker).collect()
}

fn response<E: Env>(context: &Context<E>, topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
    let image = context.metadata.image();
    let brokers = brokers(&image, &context.listener);
    // Any node passes commands on, so this one will do (Kafka names any, too).
    let here = context.node().0;
    MetadataResponse {
        controller_id: if brokers.iter().any(|b| b.node_id == here) { here } else { -1 },
        brokers,
        cluster_id: image.cluster_id().map(Into::into),
        topics,
        ..MetadataResponse::default()
    }
}

fn refuse<E: Env>(context: &Context<E>, topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
    let error_code = ErrorCode::InvalidRequest.code();
    MetadataResponse { error_code, ..response(context, topics) }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::wire::Message;

    fn named(names: &[&str]) -> Option<Vec<MetadataRequestTopic>> {
        let topic = |name: &&str| MetadataRequestTopic {
            name: Some((*name).into()),
            ..MetadataRequestTopic::default()
        };
        Some(names.iter().map(topic).collect())
    }

    fn by_id(id: TopicId) -> MetadataRequestTopic {
        MetadataRequestTopic { topic_id: id.0, name: None }
    }

    fn answer(
        image: &Image,
        version: i16,
        topics: Option<Vec<MetadataRequestTopic>>,
    ) -> Vec<MetadataResponseTopic> {
        let found = match asked(version, topics) {
            Ok(asked) => find(image, asked, &BTreeMap::new()),
            Err(topics) => return topics,
        };
        let mut all = found.absent;
        all.extend(found.topics.iter().map(|t| describe(image, t, "PLAINTEXT", version)));
        all
    }

    fn brief(topics: &[MetadataResponseTopic]) -> Vec<(Option<&str>, i16)> {
        topics.iter().map(|t| (t.name.as_deref(), t.error_code)).collect()
    }

    #[test]
    fn c18_all_and_none() {
        let image = testing::image(&[("b", 1), ("a", 2)]);
        let all = [(Some("a"), 0), (Some("b"), 0)];
        assert_eq!(brief(&answer(&image, 0, Some(vec![]))), all);
        for version in 1..=13 {
            assert_eq!(brief(&answer(&image, version, None)), all, "version {version}");
            assert_eq!(brief(&answer(&image, version, Some(vec![]))), [], "version {version}");
        }
    }

    #[test]
    fn c19_unknown_topics_are_retriable_and_bad_names_are_not() {
        let image = testing::image(&[("a", 1)]);
        let topics = answer(&image, 9, named(&["x y", "b", "a", "b", "__cluster_metadata"]));
        let expected =
            [(Some("__cluster_metadata"), 3), (Some("b"), 3), (Some("x y"), 17), (Some("a"), 0)];
        assert_eq!(brief(&topics), expected);
        assert!(!topics[0].is_internal && topics[0].topic_id == [0; 16], "as in Kafka");
        let names = ["a", "b", "x y", "__consumer_offsets", "__cluster_metadata"];
        let names = names.map(String::from).into();
        assert_eq!(absent(&image, &names), ["b"], "what a client can create by naming it");
        let failed = BTreeMap::from([
            ("a_b".to_owned(), ErrorCode::InvalidTopicException),
            ("c".to_owned(), ErrorCode::InvalidConfig),
        ]);
        assert_eq!(why_absent("a_b", &failed), ErrorCode::InvalidTopicException);
        assert_eq!(why_absent("c", &failed), ErrorCode::UnknownTopicOrPartition);
    }

    #[test]
    fn c21_topics_by_id() {
        let image = testing::image(&[("a", 1), ("b", 1)]);
        let (known, unknown) = (image.topic("b").unwrap().id, TopicId([9; 16]));
        for version in [12, 13] {
            let topics = answer(&image, version, Some(vec![by_id(unknown), by_id(known)]));
            assert_eq!(brief(&topics), [(None, 100), (Some("b"), 0)]);
            assert_eq!(topics[0].topic_id, unknown.0);
            let none = answer(&image, version, Some(vec![by_id(TopicId::NONE)]));
            assert_eq!(brief(&none), [(None, 42)]);
        }
        for version in [10, 11] {
            for entry in [by_id(known), by_id(TopicId::NONE)] {
                let topics = answer(&image, version, Some(vec![entry]));
                assert_eq!(brief(&topics), [(Some(""), 42)], "version {version}");
            }
        }
    }

    #[test]
    fn c22_addresses_are_those_of_the_listener() {
        let image = testing::image(&[("a", 1)]);
        let brokers_here = brokers(&image, "PLAINTEXT");
        let seen: Vec<_> =
            brokers_here.iter().map(|b| (b.node_id, b.host.as_str(), b.port)).collect();
        assert_eq!(seen, [(1, "broker.example", 9092)]);
        let inside = brokers(&image, "INTERNAL");
        assert_eq!((inside[0].host.as_str(), inside[0].port), ("10.0.0.1", 9093));
        assert!(brokers(&image, "NOWHERE").is_empty());
        let topic = image.topic("a").unwrap();
        for (version, code) in [(0, 5), (5, 5), (6, 72), (13, 72)] {
            let partition = describe(&image, topic, "NOWHERE", version).partitions.remove(0);
            assert_eq!((partition.error_code, partition.leader_id), (code, -1));
            assert_eq!(partition.offline_replicas, [1]);
        }
    }

    #[test]
    fn c24_a_recreated_topic_has_a_new_id_and_epochs_grow() {
        let mut image = testing::image(&[("a", 1)]);
        let before = answer(&image, 12, named(&["a"])).remove(0);
        testing::restart(&mut image);
        let after = answer(&image, 12, named(&["a"])).remove(0);
        assert_eq!(before.topic_id, after.topic_id);
        assert!(after.partitions[0].leader_epoch > before.partitions[0].leader_epoch);
        testing::recreate(&mut image, "a");
        let again = answer(&image, 12, named(&["a"])).remove(0);
        assert_ne!(again.topic_id, after.topic_id);
        assert!(again.partitions[0].leader_epoch >= after.partitions[0].leader_epoch);
    }

    #[test]
    fn c17_answers_fit_every_version() {
        let image = testing::image(&[("a", 3), ("b", 1)]);
        for version in 0..=13 {
            let topics = answer(&image, version, named(&["a", "zz", "b"]));
            let brokers = brokers(&image, "PLAINTEXT");
            let response = MetadataResponse { brokers, topics, ..MetadataResponse::default() };
            let bytes = response.encode(version).unwrap();
            let back = MetadataResponse::decode(crate::wire::Reader::new(&bytes), version).unwrap();
            assert_eq!(back.topics[1].partitions.len(), 3, "version {version}");
        }
    }
}
