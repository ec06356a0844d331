//! The controller and the image: checklist lines by number, and replay.

use proptest::prelude::*;

use super::*;
use crate::model::config::BrokerConfig;
use crate::model::registration::{Listener, NodeRegistration};
use crate::model::{
    ErrorCode, LeaderEpoch, LogId, NodeId, PartitionIndex, ProducerId, ShardId, TopicId,
};

/// A controller with its image and the log that made it.
struct World {
    controller: Controller,
    image: Image,
    log: Vec<MetadataRecord>,
    random: u64,
}

fn node(id: i32, shards: u16) -> NodeRegistration {
    NodeRegistration {
        node_id: NodeId(id),
        incarnation: [7; 16],
        rack: (id % 2 == 0).then(|| "r".to_owned()),
        shards,
        listeners: vec![Listener {
            name: "PLAINTEXT".to_owned(),
            host: "h".to_owned(),
            port: 9092,
            security_protocol: 0,
        }],
    }
}

impl World {
    fn new(nodes: i32, shards: u16) -> Self {
        let controller = Controller::new(BrokerConfig::default());
        let mut world = Self { controller, image: Image::default(), log: Vec::new(), random: 1 };
        for id in 1..=nodes {
            world.step(Command::RegisterNode(node(id, shards)));
        }
        world
    }

    fn step(&mut self, command: Command) -> Reply {
        let mut next = || {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.random ^ (self.random >> 29)
        };
        let step = self.controller.step(&self.image, command, &mut Ctx { random: &mut next });
        for record in &step.records {
            assert_eq!(decode(&encode(record)), Ok(Decoded::Record(record.clone())));
            self.image.apply(record).unwrap();
        }
        self.log.extend(step.records);
        step.reply
    }

    fn create(&mut self, topics: Vec<NewTopic>, validate_only: bool) -> Vec<NewTopicResult> {
        match self.step(Command::CreateTopics { topics, validate_only }) {
            Reply::CreateTopics(results) => results,
            other => panic!("{other:?}"),
        }
    }

    fn create_one(&mut self, topic: NewTopic) -> Result<CreatedTopic, (ErrorCode, String)> {
        let mut results = self.create(vec![topic], false);
        assert_eq!(results.len(), 1);
        results.remove(0).result.map_err(|error| (error.code, error.message))
    }

    fn grow(&mut self, topics: Vec<AddPartitions>, validate_only: bool) -> Vec<ErrorCode> {
        match self.step(Command::CreatePartitions { topics, validate_only }) {
            Reply::CreatePartitions(results) => results
                .into_iter()
                .map(|result| result.error.map_or(ErrorCode::None, |error| error.code))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, topics: Vec<TopicRef>) -> Vec<(Option<String>, ErrorCode)> {
        match self.step(Command::DeleteTopics { topics }) {
            Reply::DeleteTopics(results) => results
                .into_iter()
                .map(|r| (r.name, r.error.map_or(ErrorCode::None, |error| error.code)))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    fn replayed(&self) -> Image {
        let mut image = Image::default();
        for record in &self.log {
            let Ok(Decoded::Record(record)) = decode(&encode(record)) else { panic!("{record:?}") };
            image.apply(&record).unwrap();
        }
        image
    }
}

fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic { name: name.to_owned(), num_partitions, replication_factor, ..NewTopic::default() }
}

fn add(name: &str, count: i32, assignments: Option<&[&[i32]]>) -> AddPartitions {
    let nodes = |nodes: &&[i32]| nodes.iter().map(|id| NodeId(*id)).collect();
    let assignments = assignments.map(|all| all.iter().map(nodes).collect());
    AddPartitions { name: name.to_owned(), count, assignments }
}

/// `0:1,2;1:2,1` as an assignment.
fn assignment(text: &str) -> Vec<(PartitionIndex, Vec<NodeId>)> {
    let part = |part: &str| {
        let (index, nodes) = part.split_once(':').unwrap();
        let nodes = nodes.split(',').filter(|n| !n.is_empty());
        let nodes = nodes.map(|n| NodeId(n.parse().unwrap())).collect();
        (PartitionIndex(index.parse().unwrap()), nodes)
    };
    text.split(';').filter(|t| !t.is_empty()).map(part).collect()
}

#[test]
fn c103_create_topics_by_table() {
    for line in include_str!("fixtures/create_topics.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, partitions, factor, assigned, configs, code] = fields[..] else {
            panic!("{line}");
        };
        let mut world = World::new(2, 1);
        world.create_one(topic("old", 1, 1)).unwrap();
        world.create_one(topic("dots.in.it", 1, 1)).unwrap();
        let before = world.image.clone();
        let config = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap();
            (key.to_owned(), (value != "<null>").then(|| value.to_owned()))
        };
        let result = world.create_one(NewTopic {
            name: name.to_owned(),
            num_partitions: partitions.parse().unwrap(),
            replication_factor: factor.parse().unwrap(),
            assignments: assignment(assigned),
            configs: configs.split(' ').filter(|c| !c.is_empty()).map(config).collect(),
        });
        let got = result.as_ref().map_or_else(|(code, _)| code.code(), |_| 0);
        assert_eq!(got.to_string(), code, "{line}: {result:?}");
        match result {
            Ok(_) => assert!(world.image.topic(name).is_some()),
            Err((_, message)) => {
                assert!(!message.is_empty());
                assert_eq!(world.image, before, "{line}");
            }
        }
    }
}

#[test]
fn c103_a_name_twice_in_a_request_is_one_error() {
    let mut world = World::new(1, 1);
    let results = world.create(vec![topic("a", 1, 1), topic("b", 1, 1), topic("a", 2, 1)], false);
    assert_eq!(results.len(), 2);
    assert_eq!(results[0].result.as_ref().unwrap_err().code, ErrorCode::InvalidRequest);
    assert!(results[1].result.is_ok());
    let results = world.create(vec![topic("c.d", 1, 1), topic("c_d", 1, 1)], false);
    assert!(results[0].result.is_ok());
    assert_eq!(results[1].result.as_ref().unwrap_err().code, ErrorCode::InvalidTopicException);
}

#[test]
fn c103_defaults_come_from_the_broker() {
    let mut world = World::new(2, 1);
    let mut config = BrokerConfig::default();
    config.set("num.partitions", "3").unwrap();
    config.set("default.replication.factor", "2").unwrap();
    world.controller = Controller::new(config);
    let created = world.create_one(topic("a", -1, -1)).unwrap();
    assert_eq!((created.num_partitions, created.replication_factor), (3, 2));
    assert_eq!(world.image.topic("a").unwrap().partitions.len(), 3);
}

#[test]
fn c104_validate_only_leaves_nothing_and_configs_come_back() {
    let mut world = World::new(1, 1);
    let mut wanted = topic("a", 2, 1);
    wanted.configs = vec![("retention.ms".to_owned(), Some("5".to_owned()))];
    let before = world.image.clone();
    let results = world.create(vec![wanted.clone()], true);
    let created = results[0].result.as_ref().unwrap();
    assert!(created.id.is_none());
    assert_eq!(world.image, before);
    let created = world.create_one(wanted).unwrap();
    assert!(!created.id.is_none());
    let retention = created.configs.iter().find(|row| row.name == "retention.ms").unwrap();
    assert_eq!(retention.value.as_deref(), Some("5"));
    assert_eq!(world.image.topic("a").unwrap().configs["retention.ms"], "5");
}

#[test]
fn c105_create_partitions() {
    let mut world = World::new(2, 1);
    world.create_one(topic("a", 2, 1)).unwrap();
    world.create_one(topic("b", 1, 2)).unwrap();
    let cases: &[(AddPartitions, ErrorCode)] = &[
        (add("none", 2, None), ErrorCode::UnknownTopicOrPartition),
        (add("__cluster_metadata", 2, None), ErrorCode::UnknownTopicOrPartition),
        (add("a", 2, None), ErrorCode::InvalidPartitions),
        (add("a", 1, None), ErrorCode::InvalidPartitions),
        (add("a", -1, None), ErrorCode::InvalidPartitions),
        (add("a", 4, Some(&[&[1]])), ErrorCode::InvalidReplicaAssignment),
        (add("a", 3, Some(&[&[1, 2]])), ErrorCode::InvalidReplicaAssignment),
        (add("a", 3, Some(&[&[]])), ErrorCode::InvalidReplicaAssignment),
        (add("a", 3, Some(&[&[9]])), ErrorCode::InvalidReplicaAssignment),
        (add("b", 2, Some(&[&[1, 1]])), ErrorCode::InvalidReplicaAssignment),
        (add("a", i32::MAX, None), ErrorCode::InvalidPartitions),
        (add("a", 3, Some(&[&[2]])), ErrorCode::None),
        (add("b", 3, None), ErrorCode::None),
    ];
    for (request, code) in cases {
        assert_eq!(world.grow(vec![request.clone()], true), [*code], "{request:?}");
        assert_eq!(world.grow(vec![request.clone()], false), [*code], "{request:?}");
    }
    let a = world.image.topic("a").unwrap();
    assert_eq!(a.partitions.len(), 3);
    assert_eq!(a.partitions[2].leader().node, NodeId(2));
    assert_eq!(world.image.topic("b").unwrap().partitions.len(), 3);
    // A result per distinct topic.
    let request = vec![add("a", 4, None), add("b", 4, None), add("a", 5, None)];
    assert_eq!(world.grow(request, false), [ErrorCode::InvalidRequest, ErrorCode::None]);
}

#[test]
fn c106_delete_topics() {
    let mut world = World::new(1, 1);
    let by_name = |name: &str| TopicRef { name: Some(name.to_owned()), id: TopicId::NONE };
    let by_id = |id| TopicRef { name: None, id };
    let a = world.create_one(topic("a.x", 2, 1)).unwrap().id;
    world.create_one(topic("b", 1, 1)).unwrap();
    let both = TopicRef { name: Some("a.x".to_owned()), id: a };
    assert_eq!(world.delete(vec![both])[0].1, ErrorCode::InvalidRequest);
    assert_eq!(world.delete(vec![by_id(TopicId::NONE)])[0].1, ErrorCode::InvalidRequest);
    for unknown in ["c", "__cluster_metadata"] {
        let code = world.delete(vec![by_name(unknown)])[0].1;
        assert_eq!(code, ErrorCode::UnknownTopicOrPartition, "{unknown}");
    }
    assert_eq!(world.delete(vec![by_id(TopicId([9; 16]))])[0].1, ErrorCode::UnknownTopicId);
    // The same topic twice, by name and by id.
    let twice = world.delete(vec![by_name("a.x"), by_id(a), by_name("b")]);
    assert_eq!(twice[0].1, ErrorCode::InvalidRequest);
    assert_eq!(twice[1], (Some("b".to_owned()), ErrorCode::None));
    assert_eq!(world.delete(vec![by_id(a)])[0], (Some("a.x".to_owned()), ErrorCode::None));
    assert_eq!(world.image.topic_count(), 0);
    // The colliding name is free again, with another id and other log ids.
    let again = world.create_one(topic("a_x", 2, 1)).unwrap().id;
    assert_ne!(again, a);
    let logs: Vec<_> =
        world.image.topic("a_x").unwrap().partitions.iter().map(|p| p.log_id).collect();
    assert_eq!(logs, [LogId(4), LogId(5)]);
}

#[test]
fn c19_auto_creation_obeys_the_setting_and_the_rules() {
    let mut world = World::new(1, 1);
    let names = vec!["good".to_owned(), "bad name".to_owned()];
    let Reply::CreateTopics(results) = world.step(Command::AutoCreate { names: names.clone() })
    else {
        panic!()
    };
    assert!(results[0].result.is_ok());
    assert_eq!(results[1].result.as_ref().unwrap_err().code, ErrorCode::InvalidTopicException);
    let mut config = BrokerConfig::default();
    config.set("auto.create.topics.enable", "false").unwrap();
    world.controller = Controller::new(config);
    let before = world.image.clone();
    assert_eq!(world.step(Command::AutoCreate { names }), Reply::CreateTopics(Vec::new()));
    assert_eq!(world.image, before);
}

#[test]
fn c24_epochs_rise_with_each_start_and_one_record_serves_all() {
    let mut world = World::new(1, 1);
    world.create_one(topic("a", 50, 1)).unwrap();
    let epochs = |world: &World| {
        let topic = world.image.topic("a").unwrap();
        topic.partitions.iter().map(|p| world.image.leader_epoch(p)).collect::<Vec<_>>()
    };
    assert_eq!(epochs(&world), [LeaderEpoch(0); 50]);
    let before = world.log.len();
    let reply = world.step(Command::RegisterNode(node(1, 1)));
    assert_eq!(reply, Reply::Registered { epoch: LeaderEpoch(1) });
    assert_eq!(world.log.len() - before, 2);
    assert_eq!(epochs(&world), [LeaderEpoch(1); 50]);
    // A partition whose leadership changed alone is overtaken too.
    let moved = world.image.topic("a").unwrap().partitions[7].clone();
    let record = MetadataRecord::Partition(PartitionRecord {
        topic_id: world.image.topic("a").unwrap().id,
        index: moved.index,
        log_id: moved.log_id,
        leader_epoch: LeaderEpoch(9),
        replicas: moved.replicas,
    });
    world.image.apply(&record).unwrap();
    assert_eq!(epochs(&world)[7], LeaderEpoch(9));
    world.step(Command::RegisterNode(node(1, 1)));
    assert_eq!(epochs(&world), [LeaderEpoch(10); 50]);
}

#[test]
fn c44_producer_ids_are_never_given_twice() {
    let mut world = World::new(2, 1);
    let mut ids = ProducerIds::default();
    let mut given = Vec::new();
    for round in 0..4 {
        let node = NodeId(round % 2 + 1);
        let Reply::ProducerIds { first, count } = world.step(Command::AllocateProducerIds { node })
        else {
            panic!()
        };
        ids.add(first, count);
        given.extend(std::iter::from_fn(|| ids.take()).take(600));
        if round == 1 {
            // A start: what was left is lost, the log goes on.
            ids = ProducerIds::default();
            world.image = world.replayed();
        }
    }
    assert_eq!(ids.left(), 800);
    let mut unique = given.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!((unique.len(), given.len()), (2400, 2400));
    assert_eq!(given[0], ProducerId(0));
    let unknown = world.step(Command::AllocateProducerIds { node: NodeId(9) });
    assert!(matches!(unknown, Reply::Refused(_)));
}

#[test]
fn the_first_registration_names_the_cluster() {
    let world = World::new(1, 1);
    let id = world.image.cluster_id().unwrap();
    assert_eq!(id.len(), 22);
    assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
    let mut world = World::new(1, 1);
    let id = world.image.cluster_id().unwrap().to_owned();
    world.step(Command::RegisterNode(node(2, 4)));
    assert_eq!(world.image.cluster_id(), Some(id.as_str()));
    assert_eq!(world.image.feature_level(), FEATURE_LEVEL);
    assert!(matches!(world.step(Command::RegisterNode(node(3, 0))), Reply::Refused(_)));
}

#[test]
fn placement_balances_nodes_and_shards() {
    let mut world = World::new(3, 2);
    world.create_one(topic("a", 7, 2)).unwrap();
    world.create_one(topic("b", 5, 2)).unwrap();
    for id in 1..=3 {
        for shard in 0..2 {
            let load = world.image.load(Replica { node: NodeId(id), shard: ShardId(shard) });
            assert_eq!(load, 4, "node {id} shard {shard}");
        }
    }
    for topic in world.image.topics() {
        for partition in &topic.partitions {
            assert_ne!(partition.replicas[0].node, partition.replicas[1].node);
        }
    }
}

#[test]
fn a_held_topic_never_changes() {
    let mut world = World::new(1, 1);
    world.create_one(topic("a", 1, 1)).unwrap();
    let held = world.image.topic("a").unwrap().clone();
    world.grow(vec![add("a", 2, None)], false);
    assert_eq!(held.partitions.len(), 1);
    assert_eq!(world.image.topic("a").unwrap().partitions.len(), 2);
}

#[test]
fn c111_pages_of_partitions() {
    let mut world = World::new(1, 1);
    for (name, count) in [("b", 3), ("a", 5), ("c", 2)] {
        world.create_one(topic(name, count, 1)).unwrap();
    }
    let walk = |names: &[&str], limit| {
        let (mut all, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (page, next) = page_partitions(&world.image, names, cursor.as_ref(), limit);
            let size: usize = page.iter().map(|topic| topic.partitions.len()).sum();
            assert!(size <= limit);
            for topic in page {
                all.extend(topic.partitions.clone().map(|p| format!("{}-{p}", topic.name)));
                if topic.topic.is_none() {
                    all.push(format!("{}?", topic.name));
                }
            }
            pages += 1;
            cursor = next;
            if cursor.is_none() {
                return (all, pages);
            }
        }
    };
    let everything: Vec<_> =
        ["a-0", "a-1", "a-2", "a-3", "a-4", "b-0", "b-1", "b-2", "c-0", "c-1"].into();
    for limit in 1..12 {
        let (all, pages) = walk(&[], limit);
        assert_eq!(all, everything, "limit {limit}");
        assert_eq!(pages, 10_usize.div_ceil(limit), "limit {limit}");
    }
    let (all, _) = walk(&["c", "nope", "b", "b"], 4);
    assert_eq!(all, ["b-0", "b-1", "b-2", "c-0", "c-1", "nope?"]);
}

#[test]
fn what_a_newer_version_wrote_is_refused_or_skipped_by_the_rules() {
    let topic = encode(&MetadataRecord::TopicRemoved { id: TopicId([1; 16]) });
    // A newer version of a known record.
    let mut newer = topic.clone();
    newer[1] = 1;
    let error = decode(&newer).unwrap_err().to_string();
    assert!(error.contains("version 1") && error.contains("newer"), "{error}");
    // A new record that must be understood, and one that may be skipped.
    assert_eq!(decode(&[63, 0]), Err(DecodeError::UnknownType(63)));
    assert_eq!(decode(&[0x80, 0x80, 1, 5]), Ok(Decoded::Skipped { kind: 1 << 14 }));
    // A new field, likewise.
    let with = |tag| [topic.as_slice(), &[tag, 1, 0]].concat();
    assert!(matches!(decode(&with(63)), Err(DecodeError::UnknownField { tag: 63, .. })));
    assert!(matches!(decode(&with(64)), Ok(Decoded::Record(_))));
    // A level above ours.
    let level = FEATURE_LEVEL + 1;
    let record = MetadataRecord::FeatureLevel { name: FEATURE_NAME.to_owned(), level };
    let error = Image::default().apply(&record).unwrap_err().to_string();
    assert!(error.contains("supports up to 1"), "{error}");
}

#[test]
fn records_that_do_not_fit_are_refused_and_change_nothing() {
    let mut world = World::new(1, 1);
    world.create_one(topic("a", 1, 1)).unwrap();
    let id = world.image.topic("a").unwrap().id;
    let replicas = vec![Replica { node: NodeId(1), shard: ShardId(0) }];
    let partition = |topic_id, index, replicas: &[Replica]| {
        MetadataRecord::Partition(PartitionRecord {
            topic_id,
            index: PartitionIndex(index),
            log_id: LogId(1),
            leader_epoch: LeaderEpoch(0),
            replicas: replicas.to_vec(),
        })
    };
    let name = || "a".to_owned();
    let bad = [
        partition(TopicId([3; 16]), 0, &replicas),
        partition(id, 2, &replicas),
        partition(id, -1, &replicas),
        partition(id, 1, &[]),
        MetadataRecord::Topic { name: name(), id: TopicId([3; 16]) },
        MetadataRecord::Topic { name: "b".to_owned(), id },
        MetadataRecord::TopicRemoved { id: TopicId([3; 16]) },
        MetadataRecord::TopicConfig { id: TopicId([3; 16]), key: name(), value: None },
        MetadataRecord::EpochBlock { node: NodeId(5), epoch: LeaderEpoch(0) },
        MetadataRecord::EpochBlock { node: NodeId(1), epoch: LeaderEpoch(-1) },
        MetadataRecord::LogIds { next: LogId(0) },
        MetadataRecord::ProducerIdBlock { node: NodeId(1), first: ProducerId(-1), count: 1 },
    ];
    for record in bad {
        let before = world.image.clone();
        assert!(world.image.apply(&record).is_err(), "{record:?}");
        assert_eq!(world.image, before, "{record:?}");
    }
}

fn any_record() -> impl Strategy<Value = MetadataRecord> {
    let id = || any::<[u8; 16]>().prop_map(TopicId);
    let replica = (any::<i32>(), any::<u16>())
        .prop_map(|(node, shard)| Replica { node: NodeId(node), shard: ShardId(shard) });
    let partition =
        (id(), any::<i32>(), any::<u64>(), any::<i32>(), prop::collection::vec(replica, 0..4))
            .prop_map(|(topic_id, index, log_id, epoch, replicas)| {
                MetadataRecord::Partition(PartitionRecord {
                    topic_id,
                    index: PartitionIndex(index),
                    log_id: LogId(log_id),
                    leader_epoch: LeaderEpoch(epoch),
                    replicas,
                })
            });
    prop_oneof![
        (".*", any::<u16>()).prop_map(|(name, level)| MetadataRecord::FeatureLevel { name, level }),
        ".*".prop_map(|id| MetadataRecord::ClusterId { id }),
        (any::<i32>(), any::<u16>())
            .prop_map(|(id, shards)| MetadataRecord::Node(node(id, shards))),
        (any::<i32>(), any::<i32>()).prop_map(|(node, epoch)| MetadataRecord::EpochBlock {
            node: NodeId(node),
            epoch: LeaderEpoch(epoch)
        }),
        (".*", id()).prop_map(|(name, id)| MetadataRecord::Topic { name, id }),
        partition,
        id().prop_map(|id| MetadataRecord::TopicRemoved { id }),
        (id(), ".*", any::<Option<String>>())
            .prop_map(|(id, key, value)| MetadataRecord::TopicConfig { id, key, value }),
        (any::<i32>(), any::<i64>(), any::<i64>()).prop_map(|(node, first, count)| {
            MetadataRecord::ProducerIdBlock { node: NodeId(node), first: ProducerId(first), count }
        }),
        any::<u64>().prop_map(|next| MetadataRecord::LogIds { next: LogId(next) }),
    ]
}

fn any_command() -> impl Strategy<Value = Command> {
    let name = || prop::sample::select(vec!["a", "b", "a.b", "a_b", "", "x y", "long-name"]);
    let new = (name(), -2..6_i32, -2..4_i16).prop_map(|(n, p, r)| topic(n, p, r));
    let by_name = name().prop_map(|n| TopicRef { name: Some(n.to_owned()), id: TopicId::NONE });
    prop_oneof![
        (prop::collection::vec(new, 0..4), any::<bool>())
            .prop_map(|(topics, validate_only)| Command::CreateTopics { topics, validate_only }),
        prop::collection::vec(name(), 0..3).prop_map(|names| Command::AutoCreate {
            names: names.into_iter().map(str::to_owned).collect()
        }),
        prop::collection::vec(by_name, 0..3).prop_map(|topics| Command::DeleteTopics { topics }),
        (name(), -1..9_i32, any::<bool>()).prop_map(|(n, count, validate_only)| {
            Command::CreatePartitions { topics: vec![add(n, count, None)], validate_only }
        }),
        (1..4_i32, 1..4_u16).prop_map(|(id, shards)| Command::RegisterNode(node(id, shards))),
        (1..4_i32).prop_map(|id| Command::AllocateProducerIds { node: NodeId(id) }),
    ]
}

proptest! {
    #[test]
    fn records_survive_their_encoding(record in any_record()) {
        prop_assert_eq!(decode(&encode(&record)), Ok(Decoded::Record(record)));
    }

    #[test]
    fn damaged_records_are_errors_and_never_panics(
        record in any_record(),
        cut in any::<prop::sample::Index>(),
        flip in any::<u8>(),
    ) {
        let mut bytes = encode(&record);
        let at = cut.index(bytes.len());
        bytes[at] ^= flip;
        let _ = decode(&bytes);
        bytes.truncate(at);
        let _ = decode(&bytes);
    }

    #[test]
    fn replay_gives_the_same_image(commands in prop::collection::vec(any_command(), 0..30)) {
        let mut world = World::new(1, 1);
        for command in commands {
            world.step(command);
        }
        prop_assert_eq!(world.replayed(), world.image);
    }
}

/// Both would recover from the frames of the other otherwise.
#[test]
fn no_partition_gets_the_metadata_logs_id() {
    assert!(Image::default().next_log_id() > crate::model::LogId::METADATA);
}
