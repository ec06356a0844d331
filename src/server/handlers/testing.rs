//! Images and a shard for the handlers' tests.

use crate::cluster::{Image, MetadataRecord, PartitionRecord, Replica};
use crate::model::registration::{Listener, NodeRegistration};
use crate::model::{LeaderEpoch, LogId, NodeId, PartitionIndex, ShardId, TopicId};

/// Node 1 with two listeners, and topics with so many partitions.
pub(in crate::server) fn image(topics: &[(&str, i32)]) -> Image {
    let mut image = Image::default();
    let listener = |name: &str, host: &str, port| Listener {
        name: name.into(),
        host: host.into(),
        port,
        security_protocol: 0,
    };
    let node = NodeRegistration {
        node_id: NodeId(1),
        incarnation: [0; 16],
        rack: Some("r1".into()),
        shards: 1,
        listeners: vec![
            listener("PLAINTEXT", "broker.example", 9092),
            listener("INTERNAL", "10.0.0.1", 9093),
        ],
    };
    apply(&mut image, MetadataRecord::ClusterId { id: "cluster".into() });
    apply(&mut image, MetadataRecord::Node(node));
    restart(&mut image);
    for (number, (name, partitions)) in topics.iter().enumerate() {
        let number = u8::try_from(number).unwrap();
        create(&mut image, name, TopicId([number + 1; 16]), *partitions);
    }
    image
}

/// Node 1 starts again.
pub(super) fn restart(image: &mut Image) {
    let epoch = LeaderEpoch(image.node(NodeId(1)).unwrap().epoch.0 + 1);
    apply(image, MetadataRecord::EpochBlock { node: NodeId(1), epoch });
}

/// Deletes a topic and creates it again with one partition.
pub(super) fn recreate(image: &mut Image, name: &str) {
    let id = image.topic(name).unwrap().id;
    apply(image, MetadataRecord::TopicRemoved { id });
    create(image, name, TopicId([id.0[0] + 100; 16]), 1);
}

fn create(image: &mut Image, name: &str, id: TopicId, partitions: i32) {
    apply(image, MetadataRecord::Topic { name: name.into(), id });
    for index in 0..partitions {
        let partition = PartitionRecord {
            topic_id: id,
            index: PartitionIndex(index),
            log_id: LogId(1),
            leader_epoch: LeaderEpoch(0),
            replicas: vec![Replica { node: NodeId(1), shard: ShardId(0) }],
        };
        apply(image, MetadataRecord::Partition(partition));
    }
}

fn apply(image: &mut Image, record: MetadataRecord) {
    image.apply(&record).unwrap();
}
