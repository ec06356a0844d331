//! What the codec costs per Produce and Fetch: the borrowed views and direct
//! writers of the hot path beside the owned messages of the generated code.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::borrow::Cow;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millstream::model::{ErrorCode, TopicId};
use millstream::wire::generated::{fetch, produce};
use millstream::wire::{
    FetchOutcome, FetchResponsePlan, FetchResponseTop, FetchView, Message, ProduceOutcome,
    ProduceResponseWriter, ProduceView, Reader, RecordsRef, TopicRef, Writer,
};

/// Partitions per request, in one topic.
const PARTITIONS: i32 = 8;
/// Record bytes per partition.
const RECORD_BYTES: usize = 16 * 1024;
const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 17;

fn produce_request() -> Bytes {
    let records = Bytes::from(vec![0x5a; RECORD_BYTES]);
    let partition_data = (0..PARTITIONS)
        .map(|index| produce::PartitionProduceData { index, records: Some(records.clone()) })
        .collect();
    let topic = produce::TopicProduceData {
        name: "orders.eu-west.v2".into(),
        partition_data,
        ..Default::default()
    };
    let request = produce::ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![topic],
        ..Default::default()
    };
    request.encode(PRODUCE_VERSION).expect("a valid request").into()
}

fn fetch_request() -> Bytes {
    let partitions = (0..PARTITIONS)
        .map(|partition| fetch::FetchPartition {
            partition,
            fetch_offset: 1_000_000,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        })
        .collect();
    let topic = fetch::FetchTopic { topic_id: [7; 16], partitions, ..Default::default() };
    let request = fetch::FetchRequest { topics: vec![topic], ..Default::default() };
    request.encode(FETCH_VERSION).expect("a valid request").into()
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire_decode");
    group.throughput(Throughput::Elements(PARTITIONS as u64));
    let frame = produce_request();
    group.bench_function("produce_view_8_partitions", |bencher| {
        bencher.iter(|| {
            let view = ProduceView::parse(Reader::new(black_box(&frame)), PRODUCE_VERSION)
                .expect("a valid request");
            let mut bytes = 0;
            for topic in view.topics() {
                for partition in topic.partitions() {
                    bytes += partition.records.map_or(0, <[u8]>::len);
                }
            }
            bytes
        });
    });
    group.bench_function("produce_owned_8_partitions", |bencher| {
        bencher.iter(|| {
            produce::ProduceRequest::decode(Reader::of_bytes(black_box(&frame)), PRODUCE_VERSION)
                .expect("a valid request")
        });
    });
    let frame = fetch_request();
    group.bench_function("fetch_view_8_partitions", |bencher| {
        bencher.iter(|| {
            let view = FetchView::parse(Reader::new(black_box(&frame)), FETCH_VERSION)
                .expect("a valid request");
            let partitions = view.topics().flat_map(|topic| topic.partitions());
            partitions.map(|partition| partition.fetch_offset).sum::<i64>()
        });
    });
    group.bench_function("fetch_owned_8_partitions", |bencher| {
        bencher.iter(|| {
            fetch::FetchRequest::decode(Reader::new(black_box(&frame)), FETCH_VERSION)
                .expect("a valid request")
        });
    });
    group.finish();
}

fn write_produce(out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    let mut response =
        ProduceResponseWriter::new(&mut writer, PRODUCE_VERSION, 1).expect("a known version");
    let topic = TopicRef::Name(Cow::Borrowed("orders.eu-west.v2"));
    response.topic(&topic, PARTITIONS as usize).expect("a short name");
    for index in 0..PARTITIONS {
        let outcome = ProduceOutcome {
            base_offset: 1_000_000,
            log_start_offset: 0,
            ..ProduceOutcome::failed(index, ErrorCode::None)
        };
        response.partition(&outcome).expect("a plain outcome");
    }
    response.finish(0, &[]).expect("no endpoints");
}

fn plan_fetch(scratch: &mut Vec<u8>, pieces: &mut Vec<millstream::wire::Piece>) -> usize {
    let top = FetchResponseTop {
        throttle_time_ms: 0,
        error_code: ErrorCode::None,
        session_id: 0,
        topic_count: 1,
    };
    let mut plan =
        FetchResponsePlan::new(scratch, pieces, FETCH_VERSION, top).expect("a known version");
    plan.topic(&TopicRef::Id(TopicId([7; 16])), PARTITIONS as usize).expect("an id");
    for index in 0..PARTITIONS {
        let outcome = FetchOutcome {
            high_watermark: 2_000_000,
            last_stable_offset: 2_000_000,
            log_start_offset: 0,
            records: Some(RecordsRef { number: index as usize, length: RECORD_BYTES }),
            ..FetchOutcome::failed(index, ErrorCode::None)
        };
        plan.partition(&outcome).expect("a plain outcome");
    }
    plan.finish(&[]).expect("no endpoints")
}

fn owned_fetch(records: &Bytes) -> fetch::FetchResponse {
    let partitions = (0..PARTITIONS)
        .map(|partition_index| fetch::PartitionData {
            partition_index,
            high_watermark: 2_000_000,
            last_stable_offset: 2_000_000,
            log_start_offset: 0,
            aborted_transactions: None,
            records: Some(records.clone()),
            ..Default::default()
        })
        .collect();
    let topic =
        fetch::FetchableTopicResponse { topic_id: [7; 16], partitions, ..Default::default() };
    fetch::FetchResponse { responses: vec![topic], ..Default::default() }
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire_encode");
    group.throughput(Throughput::Elements(PARTITIONS as u64));
    let (mut out, mut pieces) = (Vec::new(), Vec::new());
    group.bench_function("produce_response_8_partitions", |bencher| {
        bencher.iter(|| {
            out.clear();
            write_produce(black_box(&mut out));
            out.len()
        });
    });
    group.bench_function("fetch_plan_8_partitions", |bencher| {
        bencher.iter(|| {
            out.clear();
            pieces.clear();
            plan_fetch(black_box(&mut out), &mut pieces)
        });
    });
    let owned = owned_fetch(&Bytes::from(vec![0x5a; RECORD_BYTES]));
    group.bench_function("fetch_owned_8_partitions_with_copy", |bencher| {
        bencher.iter(|| {
            out.clear();
            owned.write(&mut Writer::new(black_box(&mut out)), FETCH_VERSION).expect("valid");
            out.len()
        });
    });
    group.finish();
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
