//! Produce through the socket: checklist 25 to 39, each rule that a request
//! can show.

use millstream::record::{BatchBuilder, Compression, NewRecord, TimestampType, batches};
use millstream::wire::ApiKey;
use millstream::wire::generated::api_versions::ApiVersionsRequest;
use millstream::wire::generated::init_producer_id::InitProducerIdRequest;
use millstream::wire::generated::produce::{
    PartitionProduceData, ProduceResponse, TopicProduceData,
};

use super::admin::{create, topic};
use super::common::{Broker, Client, frame};
use super::requests::{
    NOW, READS, batch, create_with, end, fetch, prepare, produce, produce_at, produce_request,
    records, sequenced, wanted,
};

/// A batch whose bytes are not what its checksum says.
fn damaged() -> Vec<u8> {
    let mut bytes = batch(2, 10);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    bytes
}

fn codes(answer: &ProduceResponse) -> Vec<Vec<(i32, i16)>> {
    let partitions = answer.responses.iter().map(|topic| &topic.partition_responses);
    partitions.map(|all| all.iter().map(|p| (p.index, p.error_code)).collect()).collect()
}

#[test]
fn c25_other_acks_are_refused_by_partition_and_nothing_is_appended() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 2));
    for acks in [2, -2, i16::MAX] {
        let request = produce_request(acks, "t", &[(0, batch(1, 10)), (1, batch(1, 10))]);
        for version in [3, 9, 12] {
            assert_eq!(codes(&client.ask(version, &request)), [[(0, 21), (1, 21)]], "{acks}");
        }
    }
    assert_eq!((end(&mut client, "t", 0), end(&mut client, "t", 1)), (0, 0));
    for acks in [-1, 1] {
        let request = produce_request(acks, "t", &[(0, batch(1, 10))]);
        assert_eq!(codes(&client.ask(9, &request)), [[(0, 0)]]);
    }
    assert_eq!(end(&mut client, "t", 0), 2);
}

/// Sends a produce that has no answer.
fn send_silently(client: &mut Client, name: &str, batch: Vec<u8>) {
    let body = millstream::wire::Message::encode(&produce_request(0, name, &[(0, batch)]), 9);
    client.send_body(ApiKey::Produce, 9, &body.unwrap());
}

#[test]
fn c26_acks_0_has_no_answer_and_an_error_closes() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    for _ in 0..3 {
        send_silently(&mut client, "t", batch(2, 10));
    }
    // The next answer on the connection is the next request's: `ask` compares.
    assert_eq!(client.ask(0, &ApiVersionsRequest::default()).error_code, 0);
    // A batch of another connection comes after them.
    assert_eq!(produce(&mut broker.connect(), "t", 0, batch(1, 10)), 6);

    for (name, bad) in [("nowhere", batch(1, 10)), ("t", damaged()), ("t", Vec::new())] {
        let mut other = broker.connect();
        send_silently(&mut other, name, bad);
        assert_eq!(other.receive(), None, "{name}");
    }
    assert_eq!(end(&mut client, "t", 0), 7);
}

#[test]
fn c27_one_batch_of_the_present_format_and_zstd_from_version_7() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    let zstd = || records(Compression::Zstd, 3, 100).build().unwrap();
    let mut code = |version, batch| produce_at(&mut client, version, "t", 0, batch).error_code;
    assert_eq!((code(6, zstd()), code(3, zstd())), (76, 76));
    assert_eq!((code(7, zstd()), code(12, zstd())), (0, 0));
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        assert_eq!(code(3, records(compression, 3, 100).build().unwrap()), 0);
    }
    for version in [3, 12] {
        assert_eq!(code(version, [batch(1, 10), batch(1, 10)].concat()), 87, "two batches");
        assert_eq!(code(version, Vec::new()), 87, "none");
        assert_eq!(
            code(version, records(Compression::None, 1, 9).raw_magic(1).build().unwrap()),
            87
        );
    }
    assert_eq!(end(&mut client, "t", 0), 15);
}

#[test]
fn c32_the_records_at_fault_are_named_from_version_8() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "compacted", 1, &[("cleanup.policy", "compact")]);
    let record = |key| NewRecord { timestamp: NOW, key, value: Some(b"v"), headers: &[] };
    let keyless = || {
        let builder = BatchBuilder::new(Compression::None).record(&record(Some(b"k")));
        builder.record(&record(None)).record(&record(Some(b"k"))).build().unwrap()
    };
    for version in [7, 8, 12] {
        let answer = produce_at(&mut client, version, "compacted", 0, keyless());
        assert_eq!((answer.error_code, answer.base_offset), (87, -1));
        let named: Vec<_> = answer.record_errors.iter().map(|e| e.batch_index).collect();
        assert_eq!(named, if version >= 8 { vec![1] } else { vec![] }, "version {version}");
        assert_eq!(answer.error_message.is_some(), version >= 8);
    }
    assert_eq!(end(&mut client, "compacted", 0), 0, "the batch is refused whole");
    produce(&mut client, "compacted", 0, batch(1, 10));
}

#[test]
fn c34_the_time_of_the_append_is_told_where_the_topic_wants_it() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "ours", 1, &[("message.timestamp.type", "LogAppendTime")]);
    create(&mut client, topic("theirs", 1));
    let theirs = produce_at(&mut client, 9, "theirs", 0, batch(2, 10));
    assert_eq!(theirs.log_append_time_ms, -1);
    for (compression, base) in [(Compression::None, 0), (Compression::Gzip, 2)] {
        let sent = records(compression, 2, 10).build().unwrap();
        let ours = produce_at(&mut client, 9, "ours", 0, sent);
        assert_eq!((ours.error_code, ours.base_offset), (0, base));
        assert!(ours.log_append_time_ms > NOW.0);
        for reads in READS {
            let mut client = prepare(&mut broker, reads);
            let found = fetch(&mut client, "ours", wanted(0, base)).records.unwrap();
            let found = batches(&found).next().unwrap().unwrap();
            assert!(found.verify_crc());
            assert_eq!(found.timestamp_type(), TimestampType::LogAppendTime);
            assert_eq!(found.max_timestamp().0, ours.log_append_time_ms);
        }
        client = broker.connect();
    }
}

#[test]
fn c37_partitions_of_one_request_fail_alone() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 3));
    for (round, version) in [4, 5, 9, 12].into_iter().enumerate() {
        let parts = [
            (0, batch(1, 10)),
            (1, damaged()),
            (9, batch(1, 10)),
            (-1, batch(1, 10)),
            (2, batch(2, 10)),
        ];
        let mut request = produce_request(-1, "t", &parts);
        let stray = PartitionProduceData { index: 0, records: Some(batch(1, 10).into()) };
        request.topic_data.push(TopicProduceData {
            name: "nowhere".into(),
            partition_data: vec![stray],
            ..Default::default()
        });
        let answer = client.ask(version, &request);
        let want = [vec![(0, 0), (1, 2), (9, 3), (-1, 3), (2, 0)], vec![(0, 3)]];
        assert_eq!(codes(&answer), want, "version {version}");
        let all = &answer.responses[0].partition_responses;
        let round = i64::try_from(round).unwrap();
        let bases: Vec<_> = all.iter().map(|p| p.base_offset).collect();
        assert_eq!(bases, [round, -1, -1, -1, 2 * round]);
        let starts: Vec<_> = all.iter().map(|p| p.log_start_offset).collect();
        let start = if version >= 5 { 0 } else { -1 };
        assert_eq!(starts, [start, -1, -1, -1, start]);
    }
    assert_eq!([0, 1, 2].map(|index| end(&mut client, "t", index)), [4, 0, 8]);
}

#[test]
fn c38_internal_topics_are_for_the_brokers_own_tools() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("__consumer_offsets", 1));
    let refused = produce_at(&mut client, 9, "__consumer_offsets", 0, batch(1, 10));
    assert_eq!(refused.error_code, 17);
    assert_eq!(produce_at(&mut client, 9, "__cluster_metadata", 0, batch(1, 10)).error_code, 3);
    let mut admin = broker.connect().named("__admin_client");
    assert_eq!(produce_at(&mut admin, 9, "__consumer_offsets", 0, batch(1, 10)).error_code, 0);
    assert_eq!(produce_at(&mut admin, 9, "__cluster_metadata", 0, batch(1, 10)).error_code, 3);
    assert_eq!(end(&mut client, "__consumer_offsets", 0), 1);
}

#[test]
fn c39_a_copy_answers_as_its_original_did() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("theirs", 1));
    create_with(&mut client, "ours", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
    let id = client.ask(4, &request).producer_id;
    for name in ["theirs", "ours"] {
        let sent: Vec<_> = (0..5).map(|number| sequenced(id, number * 3, 3)).collect();
        let produce = |client: &mut Client, batch: &Vec<u8>| {
            let answer = produce_at(client, 9, name, 0, batch.clone());
            (answer.error_code, answer.base_offset, answer.log_append_time_ms)
        };
        let first: Vec<_> = sent.iter().map(|batch| produce(&mut client, batch)).collect();
        let bases: Vec<_> = first.iter().map(|answer| (answer.0, answer.1)).collect();
        assert_eq!(bases, [(0, 0), (0, 3), (0, 6), (0, 9), (0, 12)]);
        assert!(first.iter().all(|answer| (answer.2 == -1) == (name == "theirs")));
        for reads in READS {
            let mut client = prepare(&mut broker, reads);
            for (batch, original) in sent.iter().zip(&first) {
                assert_eq!(produce(&mut client, batch), *original, "{reads:?}");
            }
            assert_eq!(end(&mut client, name, 0), 15, "{reads:?}");
        }
        client = broker.connect();
        assert_eq!(produce(&mut client, &sequenced(id, 18, 1)).0, 45, "a gap (c40)");
        assert_eq!(produce(&mut client, &sequenced(id, 15, 1)).1, 15);
        assert_eq!(produce(&mut client, &sent[0]).0, 45, "the sixth is forgotten");
    }
}

#[test]
fn c53_topics_go_by_id_from_version_13() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let id = create(&mut client, topic("t", 1)).topic_id;
    let mut request = produce_request(-1, "", &[(0, batch(1, 10))]);
    request.topic_data[0].topic_id = id;
    let unknown = TopicProduceData { topic_id: [9; 16], ..request.topic_data[0].clone() };
    request.topic_data.push(unknown);
    let answer = client.ask(13, &request);
    assert_eq!(codes(&answer), [[(0, 0)], [(0, 100)]]);
    let ids: Vec<_> = answer.responses.iter().map(|topic| topic.topic_id).collect();
    assert_eq!(ids, [id, [9; 16]]);
}

#[test]
fn c1_c30_the_largest_frame_for_the_least_memory_is_served_and_a_larger_one_closes() {
    // What the receive pool of 64 MiB leaves beside the ring, and two thirds of it.
    const FRAME_MAX: usize = ((64 << 20) / 16 * 5 - (256 * 65_536 + 4096)) * 2 / 3;
    let broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "large", 1, &[("max.message.bytes", "100000000")]);
    let base = produce(&mut client, "large", 0, batch(1, FRAME_MAX - 300));
    produce(&mut broker.connect(), "large", 0, batch(1, 10));
    assert_eq!(end(&mut client, "large", 0), base + 2);
    let found = fetch(&mut client, "large", wanted(0, base)).records.unwrap();
    assert!(found.len() > FRAME_MAX - 300, "{} bytes", found.len());
    let body = millstream::wire::Message::encode(
        &produce_request(-1, "large", &[(0, batch(1, FRAME_MAX))]),
        9,
    );
    let mut other = broker.connect();
    other.send_bytes(&frame(ApiKey::Produce, 9, 1, "test", &body.unwrap()));
    assert_eq!(other.receive(), None);
}
