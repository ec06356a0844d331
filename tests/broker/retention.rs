//! Log starts that move up, through the socket: retention, DeleteRecords,
//! and what DescribeLogDirs says of sizes.

use millstream::wire::generated::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsTopic,
};
use millstream::wire::generated::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult,
};
use millstream::wire::generated::fetch::FetchRequest;
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};

use super::alter_configs::set;
use super::common::{Broker, Client};
use super::requests::{
    FOR_EVER_MS, answered, batch, create_with, end, fetch, fetch_request, offsets, produce, wanted,
};

/// Looks for old segments ten times a second.
const EAGER: [&str; 2] = ["--set", "log.retention.check.interval.ms=100"];

/// ListOffsets -2.
fn earliest(client: &mut Client, name: &str, index: i32) -> i64 {
    let partition =
        ListOffsetsPartition { partition_index: index, timestamp: -2, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: name.into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
    let found = client.ask(7, &request).topics.remove(0).partitions.remove(0);
    assert_eq!(found.error_code, 0);
    found.offset
}

/// Six batches of 300 KB, three to a segment.
fn fill(client: &mut Client, name: &str) {
    for _ in 0..6 {
        produce(client, name, 0, batch(3, 100_000));
    }
}

/// Parks a fetch at offset 0 until the log begins later.
fn until_the_start_moves(client: &mut Client, name: &str) {
    let request = FetchRequest {
        min_bytes: i32::MAX,
        max_bytes: i32::MAX,
        max_wait_ms: FOR_EVER_MS,
        ..fetch_request(&[(name, wanted(0, 0))])
    };
    let mut all = answered(client.ask(12, &request));
    assert_eq!(all.remove(0).1.error_code, 1, "below the log start");
}

#[test]
fn old_segments_go_when_a_limit_is_set_and_stay_gone() {
    let mut broker = Broker::start_with(&EAGER);
    let mut client = broker.connect();
    let small = [("segment.bytes", "1048576"), ("file.delete.delay.ms", "0")];
    for (key, value) in [("retention.bytes", "800000"), ("retention.ms", "1")] {
        let name = key;
        create_with(&mut client, name, 1, &small);
        fill(&mut client, name);
        assert_eq!(earliest(&mut client, name, 0), 0);
        set(&mut client, name, key, value);
        until_the_start_moves(&mut client, name);
    }
    // By size the oldest segment went; by age everything, after a roll.
    assert_eq!(earliest(&mut client, "retention.bytes", 0), 9);
    let after = fetch(&mut client, "retention.bytes", wanted(0, 9));
    assert_eq!((after.error_code, after.log_start_offset), (0, 9));
    assert_eq!(offsets(&after)[0], (9, 11));
    while earliest(&mut client, "retention.ms", 0) < 18 {
        std::thread::yield_now();
    }
    assert_eq!(end(&mut client, "retention.ms", 0), 18);
    assert_eq!(produce(&mut client, "retention.ms", 0, batch(1, 10)), 18);

    for graceful in [true, false] {
        if graceful {
            assert!(broker.stop().success());
        } else {
            broker.kill();
        }
        broker.restart();
        let mut client = broker.connect();
        assert_eq!(earliest(&mut client, "retention.bytes", 0), 9);
        assert!(earliest(&mut client, "retention.ms", 0) >= 18);
        let below = fetch(&mut client, "retention.bytes", wanted(0, 8));
        assert_eq!((below.error_code, offsets(&below).len()), (1, 0));
    }
}

fn delete(
    client: &mut Client,
    name: &str,
    index: i32,
    offset: i64,
) -> DeleteRecordsPartitionResult {
    let partitions = vec![DeleteRecordsPartition { partition_index: index, offset }];
    let topics = vec![DeleteRecordsTopic { name: name.into(), partitions }];
    let request = DeleteRecordsRequest { topics, timeout_ms: 30_000 };
    client.ask(2, &request).topics.remove(0).partitions.remove(0)
}

#[test]
fn c107_deleted_records_stay_deleted() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "t", 1, &[]);
    create_with(&mut client, "compacted", 1, &[("cleanup.policy", "compact")]);
    produce(&mut client, "t", 0, batch(4, 10));
    produce(&mut client, "t", 0, batch(4, 10));
    let outcome = |client: &mut Client, name: &str, index, offset| {
        let result = delete(client, name, index, offset);
        (result.error_code, result.low_watermark)
    };
    assert_eq!(outcome(&mut client, "t", 0, 5), (0, 5));
    assert_eq!(outcome(&mut client, "t", 0, 2), (0, 5), "a log start never goes back");
    assert_eq!(outcome(&mut client, "t", 0, 9), (1, -1));
    assert_eq!(outcome(&mut client, "t", 0, -2), (1, -1));
    assert_eq!(outcome(&mut client, "t", 1, 0), (3, -1));
    assert_eq!(outcome(&mut client, "nowhere", 0, 0), (3, -1));
    assert_eq!(outcome(&mut client, "compacted", 0, 0), (44, -1));

    broker.kill();
    broker.restart();
    let mut client = broker.connect();
    assert_eq!(earliest(&mut client, "t", 0), 5);
    let below = fetch(&mut client, "t", wanted(0, 4));
    assert_eq!((below.error_code, offsets(&below).len()), (1, 0));
    let inside = fetch(&mut client, "t", wanted(0, 5));
    assert_eq!((inside.error_code, offsets(&inside)), (0, vec![(4, 7)]));
    assert_eq!(outcome(&mut client, "t", 0, -1), (0, 8));
    assert_eq!((earliest(&mut client, "t", 0), end(&mut client, "t", 0)), (8, 8));
    assert_eq!(produce(&mut client, "t", 0, batch(1, 10)), 8);
}

fn log_dirs(client: &mut Client, topics: Option<Vec<(&str, &[i32])>>) -> DescribeLogDirsResult {
    let topic = |(name, partitions): (&str, &[i32])| DescribableLogDirTopic {
        topic: name.into(),
        partitions: partitions.to_vec(),
    };
    let topics = topics.map(|topics| topics.into_iter().map(topic).collect());
    let mut answer = client.ask(5, &DescribeLogDirsRequest { topics });
    assert_eq!((answer.error_code, answer.results.len()), (0, 1));
    answer.results.remove(0)
}

#[test]
fn sizes_of_partitions_and_the_room_are_told() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "a", 2, &[]);
    create_with(&mut client, "b", 1, &[]);
    let bytes = batch(10, 1_000);
    let len = i64::try_from(bytes.len()).unwrap();
    for _ in 0..3 {
        produce(&mut client, "a", 1, bytes.clone());
    }
    let all = log_dirs(&mut client, None);
    assert_eq!(all.error_code, 0);
    assert_eq!(all.log_dir, broker.data_dir().display().to_string());
    assert!(0 < all.usable_bytes && all.usable_bytes <= all.total_bytes);
    let sizes = |dir: &DescribeLogDirsResult| -> Vec<(String, i32, i64)> {
        let of = |t: &millstream::wire::generated::describe_log_dirs::DescribeLogDirsTopic| {
            let name = t.name.clone();
            let rows = t.partitions.iter().map(move |p| {
                assert!(p.offset_lag == 0 && !p.is_future_key);
                (name.clone(), p.partition_index, p.partition_size)
            });
            rows.collect::<Vec<_>>()
        };
        dir.topics.iter().flat_map(of).collect()
    };
    let row = |name: &str, index, size| (name.to_owned(), index, size);
    assert_eq!(sizes(&all), [row("a", 0, 0), row("a", 1, 3 * len), row("b", 0, 0)]);
    let some = log_dirs(&mut client, Some(vec![("a", &[1, 7]), ("nowhere", &[0])]));
    assert_eq!(sizes(&some), [row("a", 1, 3 * len)]);
    assert!(log_dirs(&mut client, Some(vec![])).topics.is_empty());
}
