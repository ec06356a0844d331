//! What a fetch asks its partitions, by counts, and what it says of them.

use std::time::Duration;

use super::part::{Part, State};
use super::pending::SLICE_PARTITIONS_MAX;
use crate::io::sim::Sim;
use crate::io::{Env, Pool};
use crate::model::limits::COLD_READS_PER_FETCH_MAX;
use crate::model::{ErrorCode, LeaderEpoch, Offset, TopicConfig};
use crate::partition::Isolation;
use crate::server::sessions::{TopicKey, Wanted};
use crate::server::testing::{PRODUCE, Plan, Rig, batch, produce};
use crate::shard::Bounds;
use crate::wire::generated::fetch::{
    EpochEndOffset, FetchPartition, FetchRequest, FetchResponse, FetchTopic,
};
use crate::wire::generated::produce::ProduceRequest;

const VERSION: i16 = 12;

/// A wait that no test waits for.
const FOR_EVER_MS: i32 = 3_600_000;

fn wanted(partition: i32) -> FetchPartition {
    FetchPartition { partition, partition_max_bytes: 1 << 20, ..FetchPartition::default() }
}

fn fetch(min_bytes: usize, partitions: Vec<FetchPartition>) -> FetchRequest {
    FetchRequest {
        replica_id: -1,
        max_wait_ms: FOR_EVER_MS,
        min_bytes: i32::try_from(min_bytes).unwrap(),
        max_bytes: i32::MAX,
        session_epoch: -1,
        topics: vec![FetchTopic { topic: "t".into(), partitions, ..FetchTopic::default() }],
        ..FetchRequest::default()
    }
}

fn plan(partitions: i32) -> Plan {
    Plan { topics: vec![("t", partitions, TopicConfig::default())], ..Plan::default() }
}

/// Bytes of each partition that has some.
fn sizes(answer: &FetchResponse) -> Vec<(i32, usize)> {
    let all = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let with = all.map(|p| (p.partition_index, p.records.as_ref().map_or(0, |r| r.len())));
    with.filter(|(_, len)| *len > 0).collect()
}

/// Reads and reports so far.
fn counts(rig: &Rig) -> (u64, u64) {
    let counters = &rig.context.counters;
    (counters.partitions_read.get(), counters.fetch_reports.get())
}

#[test]
fn c50_a_wake_costs_a_report_and_no_read() {
    let sim = Sim::new(3);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(1000)).await;
        let (consumer, producer) = (rig.connect(), rig.connect());
        let size = batch(50).len();
        let all = (0..1000).map(wanted).collect();
        let id = rig.send(consumer, VERSION, &fetch(1000 * size, all));
        (0..20).for_each(|_| rig.round());
        assert_eq!(counts(&rig), (1000, 0));
        for step in 0..1000 {
            assert!(rig.is_silent(consumer), "after {step} of 1000 batches");
            rig.append(producer, step * 7 % 1000, 50).await;
            assert_eq!(counts(&rig).1, u64::try_from(step).unwrap() + 1);
        }
        let answer = rig.answered::<FetchRequest>(consumer, VERSION, id);
        assert_eq!(sizes(&answer).len(), 1000);
        assert_eq!(counts(&rig), (2000, 1000), "one read of each at last");
    });
}

#[test]
fn c50_what_a_partition_may_give_bounds_what_it_counts() {
    let sim = Sim::new(4);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(3)).await;
        let (consumer, producer) = (rig.connect(), rig.connect());
        let size = batch(1000).len();
        // Each may give two batches, four are wanted.
        let most = i32::try_from(2 * size + 10).unwrap();
        let part = |index| FetchPartition { partition_max_bytes: most, ..wanted(index) };
        let id = rig.send(consumer, VERSION, &fetch(4 * size, (0..3).map(part).collect()));
        for _ in 0..6 {
            rig.append(producer, 0, 1000).await;
        }
        rig.append(producer, 2, 1000).await;
        assert!(rig.is_silent(consumer), "two of one and one of another are three");
        rig.append(producer, 1, 1000).await;
        let answer = rig.answered::<FetchRequest>(consumer, VERSION, id);
        assert_eq!(sizes(&answer), [(0, 2 * size), (1, size), (2, size)]);
        assert_eq!(counts(&rig).0, 6, "two looks at each");

        // The first batch comes whole, although it is larger than both limits.
        let one = FetchPartition { partition_max_bytes: 10, fetch_offset: 6, ..wanted(0) };
        let next = FetchPartition { fetch_offset: 1, ..wanted(1) };
        let id = rig.send(consumer, VERSION, &fetch(500, vec![one, next]));
        rig.round();
        let (reads, _) = counts(&rig);
        rig.append(producer, 0, 1000).await;
        let answer = rig.answered::<FetchRequest>(consumer, VERSION, id);
        assert_eq!(sizes(&answer), [(0, size)]);
        assert_eq!(counts(&rig).0, reads + 2);
    });
}

#[test]
fn c47_the_deadline_answers_with_what_is_there_and_reads_once() {
    let sim = Sim::new(5);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(10)).await;
        let (consumer, producer) = (rig.connect(), rig.connect());
        let request =
            FetchRequest { max_wait_ms: 500, ..fetch(1 << 20, (0..10).map(wanted).collect()) };
        let id = rig.send(consumer, VERSION, &request);
        for index in 0..10 {
            rig.append(producer, index, 100).await;
        }
        assert!(rig.is_silent(consumer));
        rig.env.sleep(Duration::from_millis(600)).await;
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        assert_eq!(sizes(&answer).len(), 10);
        assert_eq!(counts(&rig), (20, 10));
    });
}

#[test]
fn a_fetch_of_100000_partitions_goes_on_round_by_round_beside_others() {
    let sim = Sim::new(6);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(2)).await;
        let (consumer, other) = (rig.connect(), rig.connect());
        // A request may name a partition more than once.
        let all = vec![wanted(0); 100_000];
        let id = rig.send(consumer, VERSION, &fetch(1, all));
        let (mut before, mut rounds, mut answers) = (0, 0, 0);
        let mut asked = rig.send(other, PRODUCE, &produce(1, batch(10)));
        let mut step = |rig: &mut Rig| {
            rounds += 1;
            let (reads, _) = counts(rig);
            assert!(reads - before <= SLICE_PARTITIONS_MAX as u64, "{} in a round", reads - before);
            before = reads;
            if !rig.is_silent(other) {
                answers += 1;
                rig.answered::<ProduceRequest>(other, PRODUCE, asked);
                asked = rig.send(other, PRODUCE, &produce(1, batch(10)));
            }
            reads
        };
        rig.rounds(|rig| step(rig) == 100_000).await;
        // It registers, is told, and looks again.
        let producer = rig.connect();
        rig.send(producer, PRODUCE, &produce(0, batch(10)));
        rig.rounds(|rig| {
            step(rig);
            !rig.is_silent(consumer)
        })
        .await;
        let answer = rig.answered::<FetchRequest>(consumer, VERSION, id);
        assert_eq!(answer.responses[0].partitions.len(), 100_000);
        assert!(answers >= 60 && rounds >= 140, "{answers} answers of another in {rounds} rounds");
        assert_eq!(counts(&rig).0, 200_000);
    });
}

#[test]
fn c54_what_comes_after_an_error_is_told_although_nothing_else_is_new() {
    let sim = Sim::new(12);
    sim.run_until(async {
        let mut rig = Rig::new(sim.env(), plan(2)).await;
        let (consumer, producer) = (rig.connect(), rig.connect());
        rig.append(producer, 0, 10).await;
        let at = |fetch_offset| FetchPartition { fetch_offset, ..wanted(0) };
        let request = |session_id, session_epoch, topics: Vec<FetchPartition>| {
            let now =
                FetchRequest { max_wait_ms: 0, session_id, session_epoch, ..fetch(1, topics) };
            if now.topics[0].partitions.is_empty() {
                return FetchRequest { topics: Vec::new(), ..now };
            }
            now
        };
        let error = |answer: &FetchResponse| {
            let all = answer.responses.iter().flat_map(|topic| &topic.partitions);
            all.map(|p| (p.error_code, p.high_watermark)).collect::<Vec<_>>()
        };
        let id = rig.send(consumer, VERSION, &request(0, 0, vec![at(1)]));
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        let session = answer.session_id;
        assert_eq!(error(&answer), [(0, 1)]);
        let id = rig.send(consumer, VERSION, &request(session, 1, vec![]));
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        assert_eq!(error(&answer), [], "nothing is new");
        let id = rig.send(consumer, VERSION, &request(session, 2, vec![at(5)]));
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        assert_eq!(error(&answer), [(ErrorCode::OffsetOutOfRange.code(), -1)]);
        let id = rig.send(consumer, VERSION, &request(session, 3, vec![at(1)]));
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        assert_eq!(error(&answer), [(0, 1)], "the error is over");
    });
}

#[test]
fn reads_end_with_the_connection_that_they_are_for() {
    let sim = Sim::new(13);
    sim.run_until(async {
        let plan = Plan { tail_bytes: 1 << 20, ..plan(8) };
        let mut rig = Rig::new(sim.env(), plan).await;
        let (consumer, producer) = (rig.connect(), rig.connect());
        for step in 0..80 {
            rig.append(producer, step % 8, 60_000).await;
        }
        let reads = |rig: &Rig| rig.context.counters.cold_reads.get();
        let request = fetch(1, (0..8).map(wanted).collect());
        let id = rig.send(consumer, VERSION, &request);
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        let all = reads(&rig);
        assert!(sizes(&answer).len() > 1 && all > 1, "{all} reads");
        rig.send(consumer, VERSION, &request);
        rig.turns();
        rig.disconnect(consumer);
        for _ in 0..1000 {
            rig.env.sleep(Duration::from_millis(1)).await;
            rig.round();
        }
        let more = reads(&rig) - all;
        assert!(more <= 1, "{more} of {all} reads for nobody");
    });
}

#[test]
fn one_fetch_reads_files_for_so_many_partitions_and_the_next_for_the_others() {
    let sim = Sim::new(14);
    sim.run_until(async {
        let plan = Plan { tail_bytes: 1 << 20, ..plan(700) };
        let mut rig = Rig::new(sim.env(), plan).await;
        let (consumer, producer) = (rig.connect(), rig.connect());
        for index in 0..700 {
            rig.append(producer, index, 1000).await;
        }
        let mut seen = std::collections::BTreeSet::new();
        let request = FetchRequest { session_epoch: 0, ..fetch(1, (0..700).map(wanted).collect()) };
        let id = rig.send(consumer, VERSION, &request);
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        seen.extend(sizes(&answer));
        let reads = rig.context.counters.cold_reads.get();
        assert_eq!(reads, COLD_READS_PER_FETCH_MAX as u64);
        assert!(seen.len() < 700);
        // What was served goes to the end of the session's order.
        let (session_id, session_epoch) = (answer.session_id, 1);
        let next =
            FetchRequest { session_id, session_epoch, topics: Vec::new(), ..fetch(1, Vec::new()) };
        let id = rig.send(consumer, VERSION, &next);
        let answer = rig.answer::<FetchRequest>(consumer, VERSION, id).await;
        seen.extend(sizes(&answer));
        assert_eq!(seen.len(), 700);
    });
}

#[test]
fn fetches_hold_no_more_partitions_together_than_they_may() {
    let sim = Sim::new(15);
    sim.run_until(async {
        let plan = Plan { fetch_partitions_max: 10, ..plan(8) };
        let mut rig = Rig::new(sim.env(), plan).await;
        let (first, second, third) = (rig.connect(), rig.connect(), rig.connect());
        let request = fetch(1, (0..8).map(wanted).collect());
        let first_id = rig.send(first, VERSION, &request);
        rig.round();
        let second_id = rig.send(second, VERSION, &request);
        rig.round();
        // The one that waits for data answers early, for the one that waits for room.
        let answer = rig.answered::<FetchRequest>(first, VERSION, first_id);
        assert_eq!(sizes(&answer), []);
        rig.send(third, VERSION, &request);
        rig.round();
        rig.answered::<FetchRequest>(second, VERSION, second_id);
        rig.round();
        assert_eq!((rig.in_flight(third), rig.context.fetches.held()), ((1, 0), 8));
        assert_eq!(rig.context.counters.fetches_held_back.get(), 2);
        // Who goes gives its room back, be it in the queue.
        rig.send(second, VERSION, &request);
        rig.turns();
        rig.disconnect(second);
        rig.disconnect(third);
        assert_eq!(rig.context.fetches.held(), 0);
        rig.send(first, VERSION, &request);
        rig.round();
        assert_eq!(rig.context.fetches.held(), 8);
    });
}

fn part(state: State) -> Part {
    let bounds = Bounds {
        log_start: Offset(3),
        high_watermark: Offset(9),
        last_stable: Offset(7),
        epoch: LeaderEpoch(2),
    };
    let partition = FetchPartition { partition: 4, ..FetchPartition::default() };
    let mut part = Part::new(Wanted { topic: TopicKey::Name("t".into()), partition });
    part.bounds = Some(bounds);
    part.state = state;
    part
}

#[test]
fn c49_the_list_of_aborted_transactions_depends_on_the_isolation() {
    let empty = part(State::Empty);
    let outcome = empty.outcome(0, Isolation::ReadUncommitted);
    assert_eq!(outcome.aborted_transactions, None);
    let outcome = empty.outcome(0, Isolation::ReadCommitted);
    assert_eq!(outcome.aborted_transactions, Some([].as_slice()));
    assert_eq!((outcome.high_watermark, outcome.last_stable_offset), (9, 7));
    assert_eq!((outcome.log_start_offset, outcome.records.unwrap().length), (3, 0));
}

#[test]
fn an_outcome_has_records_or_an_error_or_where_logs_part() {
    let pool = Pool::new("test", 4096).unwrap();
    let mut chunk = pool.take(10).unwrap();
    chunk.extend(b"0123456789");
    let slices = std::iter::repeat_n(chunk.freeze(), 2).collect();
    let found = part(State::Found(slices));
    let outcome = found.outcome(6, Isolation::ReadUncommitted);
    let records = outcome.records.unwrap();
    assert_eq!((records.number, records.length), (6, 20));

    let failed = part(State::Failed(ErrorCode::OffsetOutOfRange));
    let outcome = failed.outcome(0, Isolation::ReadUncommitted);
    assert_eq!((outcome.error_code, outcome.high_watermark), (ErrorCode::OffsetOutOfRange, -1));

    let parted = part(State::Diverging(EpochEndOffset { epoch: 1, end_offset: 5 }));
    let outcome = parted.outcome(0, Isolation::ReadUncommitted);
    assert_eq!(outcome.diverging_epoch.unwrap().end_offset, 5);
    assert_eq!(outcome.records.unwrap().length, 0);
}
