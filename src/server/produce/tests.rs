//! What becomes of a request that finds no room, by counts.

use std::time::Duration;

use crate::io::Env;
use crate::io::sim::Sim;
use crate::model::limits::DECOMPRESSED_BYTES_MAX;
use crate::model::{CompressionType, TopicConfig};
use crate::record::{BatchBuilder, Compression, NewRecord};
use crate::server::testing::{Plan, Rig};
use crate::wire::generated::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};

const VERSION: i16 = 9;

/// A batch of about 10 KB that does not compress.
fn batch() -> Vec<u8> {
    let mut state = 1_u32;
    let value: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(10_000)
    .collect();
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(&NewRecord { value: Some(&value), ..NewRecord::default() });
    builder.build().unwrap()
}

fn request(acks: i16, timeout_ms: i32, topics: &[(&str, i32)]) -> ProduceRequest {
    let data = |index| PartitionProduceData { index, records: Some(batch().into()) };
    let topic = |(name, count): &(&str, i32)| TopicProduceData {
        name: (*name).into(),
        partition_data: (0..*count).map(data).collect(),
        ..TopicProduceData::default()
    };
    let topic_data = topics.iter().map(topic).collect();
    ProduceRequest { acks, timeout_ms, topic_data, ..ProduceRequest::default() }
}

fn plan(config: &TopicConfig) -> Plan {
    let topics = vec![("a", 3, config.clone()), ("b", 4, config.clone())];
    Plan { topics, tail_bytes: 1 << 20, ..Plan::default() }
}

/// Takes the whole tail pool, in pieces of 16 KiB.
fn take_all(rig: &Rig) -> Vec<crate::io::ChunkMut> {
    std::iter::from_fn(|| rig.tail.take(16 << 10)).collect()
}

async fn answer(rig: &mut Rig, at: usize, id: i32) -> Vec<PartitionProduceResponse> {
    let answer = rig.answer::<ProduceRequest>(at, VERSION, id).await;
    answer.responses.into_iter().flat_map(|topic| topic.partition_responses).collect()
}

/// Error and base offset of each partition.
fn told(answer: &[PartitionProduceResponse]) -> Vec<(i16, i64)> {
    answer.iter().map(|p| (p.error_code, p.base_offset)).collect()
}

/// Sends two requests on one connection and lets room come bit by bit.
fn goes_on(config: &TopicConfig, kept_bytes: usize) -> (u64, u64, usize) {
    let sim = Sim::new(7);
    sim.run_until(async {
        let plan = Plan { kept_bytes, ..plan(config) };
        let mut rig = Rig::new(sim.env(), plan).await;
        let mut held = take_all(&rig);
        let (one, other) = (rig.connect(), rig.connect());
        let first = rig.send(one, VERSION, &request(-1, 60_000, &[("a", 3), ("b", 4)]));
        let second = rig.send(one, VERSION, &request(-1, 60_000, &[("b", 2)]));
        let mut kept = 0;
        for _ in 0..50 {
            rig.round();
            kept = kept.max(rig.kept.used());
            assert_eq!(rig.in_flight(one), (1, 2), "it keeps its place and its frame");
        }
        assert!(rig.is_silent(one));
        // Another connection has its turns, and waits for room of its own.
        let third = rig.send(other, VERSION, &request(1, 60_000, &[("a", 1)]));
        rig.rounds(|rig| {
            held.pop();
            !rig.is_silent(one)
        })
        .await;
        let answer_1 = rig.answered::<ProduceRequest>(one, VERSION, first);
        let of = |topic: usize| told(&answer_1.responses[topic].partition_responses);
        assert!(of(0)[1..].iter().chain(&of(1)).all(|told| *told == (0, 0)));
        drop(held);
        assert_eq!(told(&answer(&mut rig, one, second).await), [(0, 1), (0, 1)], "in order");
        let third = told(&answer(&mut rig, other, third).await);
        assert_eq!((of(0)[0].0, third[0].0), (0, 0));
        assert_eq!(of(0)[0].1 + third[0].1, 1, "both are there");
        assert_eq!(rig.kept.used(), 0);
        let counters = &rig.context.counters;
        (counters.batches_validated.get(), counters.produce_pauses.get(), kept)
    })
}

#[test]
fn a_request_that_finds_no_room_goes_on_where_it_stopped_and_validates_once() {
    let (validated, pauses, kept) = goes_on(&TopicConfig::default(), 1 << 20);
    assert_eq!((validated, kept), (10, 0), "producers' bytes stay in the frame");
    assert!(pauses >= 3, "it stopped {pauses} times");
}

#[test]
fn batches_that_were_made_anew_are_kept_in_a_pool() {
    let compression = CompressionType::Zstd;
    let config = TopicConfig { compression, ..TopicConfig::default() };
    let (validated, _, kept) = goes_on(&config, 1 << 20);
    assert_eq!(validated, 10);
    assert!((10_000..20_000).contains(&kept), "{kept} bytes were kept");
    let (validated, _, kept) = goes_on(&config, 4096);
    assert!(validated > 50 && kept == 0, "without memory for them they are made each time");
}

#[test]
fn a_batch_that_is_made_again_at_each_try_counts_once_against_bombs() {
    const VALUE: usize = 32 << 20;
    let sim = Sim::new(11);
    sim.run_until(async {
        let config = TopicConfig { compression: CompressionType::Lz4, ..TopicConfig::default() };
        let mut rig = Rig::new(sim.env(), plan(&config)).await;
        let held = take_all(&rig);
        let kept: Vec<_> = std::iter::from_fn(|| rig.kept.take(4096)).collect();
        let mut builder = BatchBuilder::new(Compression::Zstd);
        builder.push(&NewRecord { value: Some(&vec![0; VALUE]), ..NewRecord::default() });
        let mut asked = request(-1, 60_000, &[("a", 1)]);
        asked.topic_data[0].partition_data[0].records = Some(builder.build().unwrap().into());
        let one = rig.connect();
        let id = rig.send(one, VERSION, &asked);
        let tries = DECOMPRESSED_BYTES_MAX / VALUE + 3;
        (0..tries).for_each(|_| rig.round());
        assert!(rig.is_silent(one), "it waits");
        assert_eq!(rig.context.counters.batches_validated.get(), tries as u64);
        drop((held, kept));
        assert_eq!(told(&answer(&mut rig, one, id).await), [(0, 0)]);
    });
}

#[test]
fn the_deadline_answers_for_what_was_not_taken() {
    let sim = Sim::new(8);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(&TopicConfig::default())).await;
        let mut held = take_all(&rig);
        held.pop();
        let one = rig.connect();
        let late = rig.send(one, VERSION, &request(-1, 50, &[("a", 3)]));
        rig.round();
        assert!(rig.is_silent(one));
        rig.env.sleep(Duration::from_millis(60)).await;
        assert_eq!(told(&answer(&mut rig, one, late).await), [(0, 0), (7, -1), (7, -1)]);
        assert_eq!(rig.context.counters.batches_validated.get(), 2);

        let silent = rig.connect();
        rig.send(silent, VERSION, &request(0, 50, &[("a", 3)]));
        rig.round();
        assert_eq!((rig.in_flight(silent), rig.closed(silent)), ((1, 1), None), "it waits too");
        rig.env.sleep(Duration::from_millis(60)).await;
        rig.round();
        assert!(rig.closed(silent).is_some_and(|why| why.contains("REQUEST_TIMED_OUT")));
        drop(held);
        let again = rig.send(one, VERSION, &request(-1, 50, &[("a", 3)]));
        let offsets: Vec<_> = told(&answer(&mut rig, one, again).await);
        assert_eq!(offsets[1..], [(0, 0), (0, 0)], "nothing of what was late is there");
    });
}

#[test]
fn without_answers_it_waits_for_room_all_the_same() {
    let sim = Sim::new(9);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(&TopicConfig::default())).await;
        let held = take_all(&rig);
        let one = rig.connect();
        rig.send(one, VERSION, &request(0, 60_000, &[("a", 2)]));
        let next = rig.send(one, VERSION, &request(-1, 60_000, &[("a", 2)]));
        (0..20).for_each(|_| rig.round());
        assert_eq!(rig.in_flight(one), (1, 2));
        drop(held);
        assert_eq!(told(&answer(&mut rig, one, next).await), [(0, 1), (0, 1)]);
        assert_eq!(rig.context.counters.batches_validated.get(), 4);
    });
}

#[test]
fn a_request_of_many_partitions_takes_turns_with_others() {
    let sim = Sim::new(10);
    sim.knobs(|knobs| knobs.slice_over = 1000);
    sim.run_until(async {
        let mut rig =
            Rig::new(sim.env(), Plan { tail_bytes: 8 << 20, ..plan(&TopicConfig::default()) })
                .await;
        let (large, small) = (rig.connect(), rig.connect());
        let parts: Vec<_> = std::iter::repeat_n(("b", 4), 25).collect();
        let long = rig.send(large, VERSION, &request(-1, 60_000, &parts));
        let mut answers = 0;
        let mut asked = rig.send(small, VERSION, &request(-1, 60_000, &[("a", 1)]));
        rig.rounds(|rig| {
            if !rig.is_silent(small) {
                rig.answered::<ProduceRequest>(small, VERSION, asked);
                answers += 1;
                asked = rig.send(small, VERSION, &request(-1, 60_000, &[("a", 1)]));
            }
            !rig.is_silent(large)
        })
        .await;
        let answer = rig.answered::<ProduceRequest>(large, VERSION, long);
        let all = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
        let mut ends = [0; 4];
        for told in all {
            let end = &mut ends[usize::try_from(told.index).unwrap()];
            assert_eq!((told.error_code, told.base_offset), (0, *end), "in order");
            *end += 1;
        }
        assert_eq!(ends, [25; 4]);
        // 100 batches of 10 KB, and the slice is asked about each 16 KiB.
        assert!(answers >= 40, "{answers} answers of another connection meanwhile");
    });
}

/// A batch of some hundred bytes that holds `len` zeros.
fn bomb(len: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::Zstd);
    builder.push(&NewRecord { value: Some(&vec![0; len]), ..NewRecord::default() });
    builder.build().unwrap()
}

/// Pauses for which requests with these batches each stop, all sent at once
/// beside another connection, and that one's answers meanwhile.
fn beside(config: &TopicConfig, requests: usize, partitions: i32, len: usize) -> (u64, usize) {
    let sim = Sim::new(12);
    sim.knobs(|knobs| knobs.slice_over = 1000);
    sim.run_until(async {
        let plan = Plan { tail_bytes: 8 << 20, ..plan(config) };
        let mut rig = Rig::new(sim.env(), plan).await;
        let (large, small) = (rig.connect(), rig.connect());
        let mut asked = request(-1, 60_000, &[("b", partitions)]);
        for partition in &mut asked.topic_data[0].partition_data {
            partition.records = Some(bomb(len).into());
        }
        let ids: Vec<_> = (0..requests).map(|_| rig.send(large, VERSION, &asked)).collect();
        let mut little = request(-1, 60_000, &[("a", 1)]);
        little.topic_data[0].partition_data[0].records = Some(bomb(1).into());
        let mut answers = 0;
        let mut waits = rig.send(small, VERSION, &little);
        for (at, id) in ids.into_iter().enumerate() {
            rig.rounds(|rig| {
                if !rig.is_silent(small) {
                    rig.answered::<ProduceRequest>(small, VERSION, waits);
                    answers += 1;
                    waits = rig.send(small, VERSION, &little);
                }
                !rig.is_silent(large)
            })
            .await;
            let answer = rig.answered::<ProduceRequest>(large, VERSION, id);
            let told = told(&answer.responses[0].partition_responses);
            assert!(told.iter().all(|told| *told == (0, at as i64)), "{told:?}");
        }
        (rig.context.counters.produce_pauses.get(), answers)
    })
}

#[test]
fn small_frames_with_much_in_them_take_turns_with_others() {
    for compression in [CompressionType::Producer, CompressionType::Gzip] {
        let config = TopicConfig { compression, ..TopicConfig::default() };
        let (pauses, answers) = beside(&config, 12, 1, 256 << 10);
        assert_eq!(pauses, 12, "each stops once, behind its batch");
        assert!(answers >= 10, "{answers} answers of another connection meanwhile");
        let (pauses, answers) = beside(&config, 1, 4, 256 << 10);
        assert_eq!(pauses, 4, "it stops behind each batch");
        assert!(answers >= 2, "{answers} answers of another connection meanwhile");
        let (pauses, _) = beside(&config, 12, 1, 1000);
        assert_eq!(pauses, 0, "what is little work goes on");
    }
}
