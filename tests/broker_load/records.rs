//! Topics, produce and fetch requests of the load tests.

use std::io::Read as _;
use std::net::TcpStream;

use millstream::model::Timestamp;
use millstream::record::{BatchBuilder, Compression, NewRecord};
use millstream::wire::Request;
use millstream::wire::frame::write_request;
use millstream::wire::generated::create_topics::{CreatableTopic, CreateTopicsRequest};
use millstream::wire::generated::fetch::{FetchPartition, FetchRequest, FetchTopic};
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use millstream::wire::generated::produce::{
    PartitionProduceData, ProduceRequest, TopicProduceData,
};

use super::common::Client;

/// Version of the produces here: by name.
pub(super) const PRODUCE_VERSION: i16 = 9;
/// Version of the fetches here: by name, without a session.
pub(super) const FETCH_VERSION: i16 = 12;

/// Creates a topic; returns its name.
pub(super) fn create(client: &mut Client, name: &str, partitions: i32) -> String {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: -1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    let answer = client.ask(7, &request);
    assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
    name.into()
}

/// A produce of one batch with `count` records of `bytes` bytes, acks=all.
pub(super) fn produce(topic: &str, partition: i32, count: usize, bytes: usize) -> ProduceRequest {
    let value = vec![b'v'; bytes];
    let now = Timestamp(1_700_000_000_000);
    let record = NewRecord { timestamp: now, key: None, value: Some(&value), headers: &[] };
    let mut builder = BatchBuilder::new(Compression::None);
    (0..count).for_each(|_| builder.push(&record));
    let records = builder.build().unwrap();
    let data = PartitionProduceData { index: partition, records: Some(records.into()) };
    let topic_data =
        TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![topic_data],
        ..Default::default()
    }
}

/// Produces and expects success; returns the base offset.
pub(super) fn ask_produce(client: &mut Client, request: &ProduceRequest) -> i64 {
    let answer = client.ask(PRODUCE_VERSION, request);
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, 0, "{answer:?}");
    partition.base_offset
}

/// A fetch of everything from offset 0, at most `bytes` per partition.
pub(super) fn fetch(topic: &str, partitions: i32, bytes: i32) -> FetchRequest {
    let partition = |index| FetchPartition {
        partition: index,
        partition_max_bytes: bytes,
        ..Default::default()
    };
    let topic = FetchTopic {
        topic: topic.into(),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    FetchRequest { max_wait_ms: 1000, min_bytes: 1, topics: vec![topic], ..Default::default() }
}

/// End offset of a partition.
pub(super) fn end(client: &mut Client, topic: &str, partition: i32) -> i64 {
    let partition = ListOffsetsPartition {
        partition_index: partition,
        current_leader_epoch: -1,
        timestamp: -1,
    };
    let topics = vec![ListOffsetsTopic { name: topic.into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
    let answer = client.ask(7, &request);
    assert_eq!(answer.topics[0].partitions[0].error_code, 0, "{answer:?}");
    answer.topics[0].partitions[0].offset
}

/// A request as a whole frame.
pub(super) fn frame<R: Request>(version: i16, id: i32, request: &R) -> Vec<u8> {
    let mut frame = Vec::new();
    write_request(&mut frame, version, id, Some("load"), request).unwrap();
    frame
}

/// The next frame without its length; `None` when the broker has closed.
pub(super) fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(frame)
}
