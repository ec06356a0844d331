//! Topics and configs through the socket, and what a restart keeps of them.

use millstream::wire::generated::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsTopic,
};
use millstream::wire::generated::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use millstream::wire::generated::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use millstream::wire::generated::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult,
};
use millstream::wire::generated::init_producer_id::InitProducerIdRequest;
use millstream::wire::generated::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponseTopic,
};

use super::common::{Broker, Client};

pub(super) fn create(client: &mut Client, topic: CreatableTopic) -> CreatableTopicResult {
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    client.ask(7, &request).topics.remove(0)
}

pub(super) fn topic(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: -1,
        ..Default::default()
    }
}

fn metadata(client: &mut Client, names: &[&str], may_create: bool) -> Vec<MetadataResponseTopic> {
    let named =
        |name: &&str| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() };
    let request = MetadataRequest {
        topics: Some(names.iter().map(named).collect()),
        allow_auto_topic_creation: may_create,
        ..Default::default()
    };
    client.ask(12, &request).topics
}

/// What Kafka 4.4 answers to the same questions.
#[test]
fn c103_c106_internal_topics_are_created_by_request_and_the_metadata_log_never() {
    const LOG: &str = "__cluster_metadata";
    let broker = Broker::start();
    let mut client = broker.connect();
    for validate_only in [true, false] {
        let topics = vec![topic("x", 1), topic(LOG, 1)];
        let request = CreateTopicsRequest { topics, validate_only, ..Default::default() };
        let answer = client.ask(7, &request);
        let codes: Vec<_> = answer.topics.iter().map(|t| (&*t.name, t.error_code)).collect();
        assert_eq!(codes, [("x", 0), (LOG, 42)]);
    }
    for name in ["__consumer_offsets", "__transaction_state", "__share_group_state"] {
        assert_eq!(create(&mut client, topic(name, 1)).error_code, 0, "{name}");
        assert!(metadata(&mut client, &[name], false)[0].is_internal);
    }
    let log = metadata(&mut client, &[LOG], true).remove(0);
    assert_eq!((log.error_code, log.is_internal), (3, false));
    let more = CreatePartitionsTopic { name: LOG.into(), count: 5, ..Default::default() };
    let more = CreatePartitionsRequest { topics: vec![more], ..Default::default() };
    assert_eq!(client.ask(3, &more).results[0].error_code, 3);
    let named = |name: &str| DeleteTopicState { name: Some(name.into()), topic_id: [0; 16] };
    let topics = vec![named(LOG), named("__share_group_state")];
    let answer = client.ask(6, &DeleteTopicsRequest { topics, ..Default::default() });
    let codes: Vec<_> = answer.responses.iter().map(|t| t.error_code).collect();
    assert_eq!(codes, [3, 0]);
}

#[test]
fn c19_naming_a_topic_creates_it_when_both_sides_want_that() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let unwanted = metadata(&mut client, &["new"], false);
    assert_eq!(unwanted[0].error_code, 3);
    let created = metadata(&mut client, &["new", "a/b", "__consumer_offsets"], true);
    let codes: Vec<_> =
        created.iter().map(|t| (t.name.as_deref().unwrap(), t.error_code)).collect();
    assert_eq!(codes, [("__consumer_offsets", 3), ("a/b", 17), ("new", 0)]);
    assert_eq!(created[2].partitions[0].leader_id, 1);

    let broker = Broker::start_with(&["--set", "auto.create.topics.enable=false"]);
    let refused = metadata(&mut broker.connect(), &["new"], true);
    assert_eq!(refused[0].error_code, 3);
}

#[test]
fn c103_c104_topics_are_created_as_asked_and_survive_a_restart() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    let config = |name: &str, value: &str| CreatableTopicConfig {
        name: name.into(),
        value: Some(value.into()),
    };
    let mut asked = topic("t", 3);
    asked.configs = vec![config("retention.ms", "1000"), config("segment.bytes", "1048576")];
    let dry = CreateTopicsRequest {
        topics: vec![asked.clone()],
        validate_only: true,
        ..Default::default()
    };
    let dry = client.ask(7, &dry).topics.remove(0);
    assert_eq!((dry.error_code, dry.num_partitions, dry.topic_id), (0, 3, [0; 16]));
    assert_eq!(metadata(&mut client, &["t"], false)[0].error_code, 3, "only checked");

    let made = create(&mut client, asked.clone());
    assert_eq!((made.error_code, made.num_partitions, made.replication_factor), (0, 3, 1));
    let configs = made.configs.as_ref().unwrap();
    let retention = configs.iter().find(|c| c.name == "retention.ms").unwrap();
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("1000"), 1));
    let seen = metadata(&mut client, &["t"], false).remove(0);
    assert_eq!((seen.topic_id, seen.partitions.len()), (made.topic_id, 3));

    assert_eq!(create(&mut client, asked).error_code, 36);
    assert_eq!(create(&mut client, topic("zero", 0)).error_code, 37);
    assert_eq!(create(&mut client, topic("a.b", 1)).error_code, 0);
    assert_eq!(create(&mut client, topic("a_b", 1)).error_code, 17);
    let mut copies = topic("copies", 1);
    copies.replication_factor = 2;
    assert_eq!(create(&mut client, copies).error_code, 38);
    let mut wrong = topic("wrong", 1);
    wrong.configs = vec![config("retention.ms", "soon")];
    assert_eq!(create(&mut client, wrong).error_code, 40);
    let twice =
        CreateTopicsRequest { topics: vec![topic("x", 1), topic("x", 1)], ..Default::default() };
    let twice: Vec<_> = client.ask(7, &twice).topics.iter().map(|t| t.error_code).collect();
    assert_eq!(twice, [42]);

    for graceful in [true, false] {
        if graceful {
            assert!(broker.stop().success());
        } else {
            broker.kill();
        }
        broker.restart();
        let again = metadata(&mut broker.connect(), &["t"], false).remove(0);
        assert_eq!((again.topic_id, again.partitions.len()), (made.topic_id, 3));
        assert!(again.partitions[0].leader_epoch > seen.partitions[0].leader_epoch);
    }
}

#[test]
fn c105_c106_partitions_are_added_and_topics_deleted() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let made = create(&mut client, topic("t", 2));
    let grow = |client: &mut Client, name: &str, count: i32| {
        let topic = CreatePartitionsTopic { name: name.into(), count, assignments: None };
        let request = CreatePartitionsRequest {
            topics: vec![topic],
            timeout_ms: 30_000,
            ..Default::default()
        };
        client.ask(3, &request).results.remove(0).error_code
    };
    assert_eq!(grow(&mut client, "t", 2), 37);
    assert_eq!(grow(&mut client, "nowhere", 2), 3);
    assert_eq!(grow(&mut client, "t", 5), 0);
    assert_eq!(metadata(&mut client, &["t"], false)[0].partitions.len(), 5);

    let delete = |client: &mut Client, name: Option<&str>, topic_id| {
        let topic = DeleteTopicState { name: name.map(Into::into), topic_id };
        let request =
            DeleteTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
        client.ask(6, &request).responses.remove(0).error_code
    };
    assert_eq!(delete(&mut client, Some("t"), made.topic_id), 42, "not both");
    assert_eq!(delete(&mut client, None, [9; 16]), 100);
    assert_eq!(delete(&mut client, Some("nowhere"), [0; 16]), 3);
    assert_eq!(delete(&mut client, None, made.topic_id), 0);
    assert_eq!(metadata(&mut client, &["t"], false)[0].error_code, 3);
    let again = create(&mut client, topic("t", 1));
    assert_eq!(again.error_code, 0);
    assert_ne!(again.topic_id, made.topic_id, "a new topic of the same name (c24)");
}

fn describe(
    client: &mut Client,
    kind: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> DescribeConfigsResult {
    let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configuration_keys: keys,
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: true,
    };
    client.ask(4, &request).results.remove(0)
}

#[test]
fn c109_every_key_is_described() {
    let broker = Broker::start_with(&["--set", "num.partitions=4"]);
    let mut client = broker.connect();
    create(&mut client, topic("t", -1));
    assert_eq!(metadata(&mut client, &["t"], false)[0].partitions.len(), 4);
    let rows = describe(&mut client, 2, "t", None);
    let expected: Vec<_> = millstream::model::config::topic_keys().iter().map(|k| k.name).collect();
    let names: Vec<_> = rows.configs.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, expected);
    assert!(rows.configs.iter().all(|row| row.config_type != 0 && row.documentation.is_some()));

    let broker_rows = describe(&mut client, 4, "1", None);
    assert_eq!(broker_rows.configs.len(), millstream::model::config::broker_keys().count());
    let set = broker_rows.configs.iter().find(|row| row.name == "num.partitions").unwrap();
    assert_eq!((set.value.as_deref(), set.config_source), (Some("4"), 4));
    assert!(broker_rows.configs.iter().all(|row| !row.is_sensitive || row.value.is_none()));

    let one = describe(&mut client, 2, "t", Some(&["retention.ms"]));
    assert_eq!(one.configs.len(), 1);
    for (kind, name, code) in [
        (2, "nowhere", 3),
        (2, "a b", 17),
        (4, "2", 42),
        (4, "", 0),
        (8, "1", 0),
        (8, "", 42),
        (99, "x", 42),
    ] {
        assert_eq!(describe(&mut client, kind, name, None).error_code, code, "{kind} {name}");
    }
}

#[test]
fn c44_producer_ids_are_never_given_twice() {
    let mut broker = Broker::start();
    let mut seen = std::collections::HashSet::new();
    for round in 0..3 {
        let mut client = broker.connect();
        for _ in 0..3 {
            let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
            let answer = client.ask(4, &request);
            assert_eq!((answer.error_code, answer.producer_epoch), (0, 0));
            assert!(seen.insert(answer.producer_id), "id {} came twice", answer.producer_id);
        }
        if round == 0 {
            broker.kill();
        } else {
            assert!(broker.stop().success());
        }
        broker.restart();
    }
}
