//! ListOffsets and OffsetForLeaderEpoch over records that were really produced.

use millstream::model::Timestamp;
use millstream::record::{BatchBuilder, Compression, NewRecord};
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use millstream::wire::generated::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use millstream::wire::generated::produce::{
    PartitionProduceData, ProduceRequest, TopicProduceData,
};

use super::admin::{create, topic};
use super::common::{Broker, Client};

fn produce(client: &mut Client, timestamps: &[i64]) {
    let base = Timestamp(timestamps[0]);
    let mut builder = BatchBuilder::new(Compression::None).base_timestamp(base);
    for timestamp in timestamps {
        builder.push(&NewRecord {
            timestamp: Timestamp(*timestamp),
            key: None,
            value: Some(b"v"),
            headers: &[],
        });
    }
    let records = builder.build().unwrap();
    let partition = PartitionProduceData { index: 0, records: Some(records.into()) };
    let data = TopicProduceData {
        name: "t".into(),
        partition_data: vec![partition],
        ..Default::default()
    };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![data],
        ..Default::default()
    };
    let answer = client.ask(9, &request);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0, "{answer:?}");
}

fn list(
    client: &mut Client,
    version: i16,
    timestamp: i64,
    epoch: i32,
) -> ListOffsetsPartitionResponse {
    let partition =
        ListOffsetsPartition { partition_index: 0, current_leader_epoch: epoch, timestamp };
    let topics = vec![ListOffsetsTopic { name: "t".into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
    client.ask(version, &request).topics.remove(0).partitions.remove(0)
}

fn end_of(client: &mut Client, epoch: i32, current: i32) -> EpochEndOffset {
    let partition = OffsetForLeaderPartition {
        partition: 0,
        current_leader_epoch: current,
        leader_epoch: epoch,
    };
    let topics = vec![OffsetForLeaderTopic { topic: "t".into(), partitions: vec![partition] }];
    let request = OffsetForLeaderEpochRequest { topics, ..Default::default() };
    client.ask(4, &request).topics.remove(0).partitions.remove(0)
}

#[test]
fn c58_c62_offsets_by_time_and_by_epoch() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    assert_eq!(create(&mut client, topic("t", 1)).error_code, 0);
    let found =
        |answer: ListOffsetsPartitionResponse| (answer.error_code, answer.offset, answer.timestamp);
    let now = 1_700_000_000_000;
    assert_eq!(found(list(&mut client, 7, -1, -1)), (0, 0, -1));
    assert_eq!(found(list(&mut client, 7, -3, -1)), (0, -1, -1), "no record, no newest one");
    produce(&mut client, &[now, now + 500, now + 100]);
    produce(&mut client, &[now + 400, now + 300]);

    assert_eq!(found(list(&mut client, 1, -1, -1)), (0, 5, -1));
    assert_eq!(found(list(&mut client, 1, -2, -1)), (0, 0, -1));
    assert_eq!(found(list(&mut client, 11, now + 1, -1)), (0, 1, now + 500));
    assert_eq!(found(list(&mut client, 11, now, -1)), (0, 0, now));
    assert_eq!(found(list(&mut client, 11, now + 501, -1)), (0, -1, -1));
    assert_eq!(found(list(&mut client, 7, -3, -1)), (0, 1, now + 500));
    assert_eq!(found(list(&mut client, 8, -4, -1)), (0, 0, -1));
    assert_eq!(found(list(&mut client, 9, -5, -1)), (0, -1, -1));
    for (version, timestamp) in [(6, -3), (7, -4), (8, -5), (10, -6), (11, -7)] {
        assert_eq!(list(&mut client, version, timestamp, -1).error_code, 35, "{timestamp}");
    }

    let epoch = list(&mut client, 4, -1, -1).leader_epoch;
    assert_eq!(list(&mut client, 4, -1, epoch).error_code, 0);
    assert_eq!(list(&mut client, 4, -1, epoch + 1).error_code, 75);
    let ended = |end: EpochEndOffset| (end.error_code, end.leader_epoch, end.end_offset);
    assert_eq!(ended(end_of(&mut client, epoch, epoch)), (0, epoch, 5));
    assert_eq!(ended(end_of(&mut client, epoch + 1, -1)), (0, -1, -1));
    assert_eq!(end_of(&mut client, epoch, epoch + 1).error_code, 75);

    assert!(broker.stop().success());
    broker.restart();
    let mut client = broker.connect();
    produce(&mut client, &[now + 900]);
    assert_eq!(list(&mut client, 4, -1, epoch).error_code, 74, "the old epoch is fenced (c51)");
    assert_eq!(ended(end_of(&mut client, epoch, -1)), (0, epoch, 5));
    assert_eq!(found(list(&mut client, 7, -3, -1)), (0, 5, now + 900));
}

#[test]
fn c61_partitions_that_are_not_there_or_named_twice() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    let partition = |index| ListOffsetsPartition {
        partition_index: index,
        timestamp: -1,
        ..Default::default()
    };
    let ask = |name: &str, indexes: &[i32]| ListOffsetsTopic {
        name: name.into(),
        partitions: indexes.iter().map(|index| partition(*index)).collect(),
    };
    let topics =
        vec![ask("t", &[0, 0, 7, -1]), ask("nowhere", &[0]), ask("__cluster_metadata", &[0])];
    let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
    let answer = client.ask(11, &request);
    let codes: Vec<Vec<_>> = answer
        .topics
        .iter()
        .map(|t| t.partitions.iter().map(|p| (p.partition_index, p.error_code)).collect())
        .collect();
    assert_eq!(codes, [vec![(0, 42), (7, 3), (-1, 3)], vec![(0, 3)], vec![(0, 3)]]);
}
