//! Requests and batches that several tests build, and what their answers hold.

use millstream::model::{ProducerEpoch, ProducerId, Timestamp};
use millstream::record::{BatchBuilder, BatchView, Compression, NewRecord, batches};
use millstream::wire::generated::create_topics::{CreatableTopic, CreatableTopicConfig};
use millstream::wire::generated::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use millstream::wire::generated::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};

use super::admin::{create, topic};
use super::common::{Broker, Client};

/// Timestamp of all records, in milliseconds.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A wait that no test waits for: longer than the longest wait for an answer.
pub(super) const FOR_EVER_MS: i32 = 3_600_000;

/// A builder with `count` records of `size` bytes each.
pub(super) fn records(compression: Compression, count: usize, size: usize) -> BatchBuilder {
    let value = vec![b'v'; size];
    let mut builder = BatchBuilder::new(compression).base_timestamp(NOW);
    for _ in 0..count {
        let record =
            NewRecord { timestamp: NOW, key: Some(b"k"), value: Some(&value), headers: &[] };
        builder.push(&record);
    }
    builder
}

/// A batch of `count` records of `size` bytes each.
pub(super) fn batch(count: usize, size: usize) -> Vec<u8> {
    records(Compression::None, count, size).build().unwrap()
}

/// A batch of an idempotent producer.
pub(super) fn sequenced(id: i64, sequence: i32, count: usize) -> Vec<u8> {
    let builder = records(Compression::None, count, 10);
    builder.producer(ProducerId(id), ProducerEpoch(0), sequence).build().unwrap()
}

/// A produce request for partitions of one topic.
pub(super) fn produce_request(acks: i16, name: &str, parts: &[(i32, Vec<u8>)]) -> ProduceRequest {
    let data = |(index, records): &(i32, Vec<u8>)| PartitionProduceData {
        index: *index,
        records: Some(records.clone().into()),
    };
    let topic = TopicProduceData {
        name: name.into(),
        partition_data: parts.iter().map(data).collect(),
        ..Default::default()
    };
    ProduceRequest { acks, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() }
}

/// Produces one batch with acks=all and answers what the broker says of it.
pub(super) fn produce_at(
    client: &mut Client,
    version: i16,
    name: &str,
    index: i32,
    batch: Vec<u8>,
) -> PartitionProduceResponse {
    let answer = client.ask(version, &produce_request(-1, name, &[(index, batch)]));
    answer.responses.into_iter().next().unwrap().partition_responses.remove(0)
}

/// Produces one batch, which must be taken; answers its base offset.
pub(super) fn produce(client: &mut Client, name: &str, index: i32, batch: Vec<u8>) -> i64 {
    let answer = produce_at(client, 9, name, index, batch);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    answer.base_offset
}

/// The answer to ListOffsets for the end of a partition.
pub(super) fn latest(client: &mut Client, name: &str, index: i32) -> ListOffsetsPartitionResponse {
    let partition =
        ListOffsetsPartition { partition_index: index, timestamp: -1, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: name.into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
    client.ask(7, &request).topics.remove(0).partitions.remove(0)
}

/// The end offset of a partition.
pub(super) fn end(client: &mut Client, name: &str, index: i32) -> i64 {
    let answer = latest(client, name, index);
    assert_eq!(answer.error_code, 0);
    answer.offset
}

/// One partition to fetch, from an offset.
pub(super) fn wanted(index: i32, offset: i64) -> FetchPartition {
    FetchPartition {
        partition: index,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    }
}

/// A fetch by names, outside a session, that does not wait.
pub(super) fn fetch_request(parts: &[(&str, FetchPartition)]) -> FetchRequest {
    let topics = parts.iter().map(|(name, partition)| FetchTopic {
        topic: (*name).into(),
        partitions: vec![partition.clone()],
        ..Default::default()
    });
    FetchRequest {
        min_bytes: 1,
        max_bytes: 8 << 20,
        topics: topics.collect(),
        ..Default::default()
    }
}

/// The partitions of an answer in order, each with its topic.
pub(super) fn answered(answer: FetchResponse) -> Vec<(String, PartitionData)> {
    let topics = answer.responses.into_iter();
    topics.flat_map(|t| t.partitions.into_iter().map(move |p| (t.topic.clone(), p))).collect()
}

/// Fetches one partition by name, without waiting.
pub(super) fn fetch(client: &mut Client, name: &str, partition: FetchPartition) -> PartitionData {
    let mut all = answered(client.ask(12, &fetch_request(&[(name, partition)])));
    assert_eq!(all.len(), 1);
    all.remove(0).1
}

/// First and last offsets of the batches of an answer, each verified.
pub(super) fn offsets(partition: &PartitionData) -> Vec<(i64, i64)> {
    let bytes = partition.records.as_deref().unwrap_or_default();
    let range = |view: BatchView<'_>| {
        assert!(view.verify_crc());
        (view.base_offset().0, view.last_offset().0)
    };
    batches(bytes).map(|view| range(view.expect("whole batches"))).collect()
}

/// Creates a topic, with configs.
pub(super) fn create_with(
    client: &mut Client,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) {
    let config = |(name, value): &(&str, &str)| CreatableTopicConfig {
        name: (*name).into(),
        value: Some((*value).into()),
    };
    let asked =
        CreatableTopic { configs: configs.iter().map(config).collect(), ..topic(name, partitions) };
    let made = create(client, asked);
    assert_eq!(made.error_code, 0, "{made:?}");
}

/// How a broker is made to read what it once wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reads {
    /// From the memory in which it was written.
    Hot,
    /// From disk, after a clean stop and a start.
    AfterStop,
    /// From disk, after a kill and recovery.
    AfterKill,
}

/// All of them, in an order that a test can go through.
pub(super) const READS: [Reads; 3] = [Reads::Hot, Reads::AfterStop, Reads::AfterKill];

/// Brings a broker into this state; the client to ask with.
pub(super) fn prepare(broker: &mut Broker, reads: Reads) -> Client {
    match reads {
        Reads::Hot => return broker.connect(),
        Reads::AfterStop => assert!(broker.stop().success()),
        Reads::AfterKill => broker.kill(),
    }
    broker.restart();
    broker.connect()
}
