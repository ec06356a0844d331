//! The partition machine: two-stage appends, bounds, waiters, truncation.

use super::producers::ProducerStates;
use super::*;
use crate::model::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};
use crate::record::{BatchSummary, Compression, TimestampType};

fn plain(count: i32) -> BatchSummary {
    BatchSummary {
        record_count: count,
        last_offset_delta: count - 1,
        base_timestamp: Timestamp(5),
        max_timestamp: Timestamp(9),
        timestamp_type: TimestampType::CreateTime,
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        base_sequence: -1,
        is_transactional: false,
        is_control: false,
        compression: Compression::None,
        size: 100,
    }
}

fn idempotent(id: i64, sequence: i32, count: i32) -> BatchSummary {
    BatchSummary {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(0),
        base_sequence: sequence,
        ..plain(count)
    }
}

/// A replicator whose commits the test decides.
#[derive(Debug, Default)]
struct Manual {
    refuse_all: bool,
    committed: Offset,
}

impl Replicator for Manual {
    fn may_append(&self, acks: Acks) -> Result<(), ErrorCode> {
        if self.refuse_all && acks == Acks::All {
            Err(ErrorCode::NotEnoughReplicas)
        } else {
            Ok(())
        }
    }
    fn appended(&mut self, _log_end: Offset, _durable: Offset) -> Offset {
        self.committed
    }
    fn durable(&mut self, _log_end: Offset, _durable: Offset) -> Offset {
        self.committed
    }
}

fn init() -> PartitionInit {
    PartitionInit {
        epoch: LeaderEpoch(3),
        log_start: Offset(0),
        high_watermark: Offset(0),
        log_end: Offset(0),
        producers: ProducerStates::default(),
    }
}

fn admission<R: Replicator>(partition: &Partition<R>, batch: &BatchSummary) -> Admission {
    match partition.admit(batch, Acks::All).unwrap() {
        Admitted::Append(admission) => admission,
        other => panic!("{other:?}"),
    }
}

fn append<R: Replicator>(
    partition: &mut Partition<R>,
    batch: &BatchSummary,
    ack: Option<(u64, Acks)>,
    effects: &mut Effects,
) -> Offset {
    let admission = admission(partition, batch);
    let ack = ack.map(|(token, acks)| (AckToken(token), acks));
    partition.appended(&admission, ack, effects);
    admission.base_offset
}

fn outcomes(effects: &mut Effects) -> Vec<(u64, AppendOutcome)> {
    effects.completed.drain(..).map(|done| (done.token.0, done.outcome)).collect()
}

const fn committed(base: i64) -> AppendOutcome {
    AppendOutcome::Committed { base_offset: Offset(base) }
}

#[test]
fn c25_only_three_values_of_acks() {
    assert_eq!(Acks::from_wire(-1), Ok(Acks::All));
    assert_eq!(Acks::from_wire(1), Ok(Acks::Leader));
    assert_eq!(Acks::from_wire(0), Ok(Acks::None));
    for acks in [-2, 2, i16::MAX, i16::MIN] {
        assert_eq!(Acks::from_wire(acks), Err(ErrorCode::InvalidRequiredAcks));
    }
}

#[test]
fn c25_too_few_replicas_refuse_before_the_append_and_a_deadline_ends_the_wait() {
    let replicator = Manual { refuse_all: true, ..Manual::default() };
    let partition = Partition::with_replicator(init(), replicator);
    assert_eq!(partition.admit(&plain(1), Acks::All), Err(ErrorCode::NotEnoughReplicas));
    assert!(partition.admit(&plain(1), Acks::Leader).is_ok());

    let mut partition = Partition::with_replicator(init(), Manual::default());
    let mut effects = Effects::default();
    append(&mut partition, &plain(2), Some((1, Acks::All)), &mut effects);
    append(&mut partition, &plain(2), Some((2, Acks::All)), &mut effects);
    partition.time_out(Offset(2), AckToken(1), &mut effects);
    partition.time_out(Offset(2), AckToken(1), &mut effects);
    partition.time_out(Offset(4), AckToken(9), &mut effects);
    assert_eq!(outcomes(&mut effects), [(1, AppendOutcome::Timeout)]);
    assert_eq!(AppendOutcome::Timeout.error_code(), ErrorCode::RequestTimedOut);
    assert_eq!(partition.pending_acks(), 1);
}

#[test]
fn the_five_offsets_move_apart() {
    let mut partition = Partition::with_replicator(init(), Manual::default());
    let mut effects = Effects::default();
    append(&mut partition, &plain(3), Some((1, Acks::Leader)), &mut effects);
    append(&mut partition, &plain(2), Some((2, Acks::All)), &mut effects);
    assert!(outcomes(&mut effects).is_empty());
    partition.durable(Offset(3), &mut effects);
    assert_eq!(outcomes(&mut effects), [(1, committed(0))]);
    assert_eq!(effects.high_watermark, None);
    partition.durable(Offset(5), &mut effects);
    assert!(outcomes(&mut effects).is_empty());
    partition.commit(Offset(5), &mut effects);
    assert_eq!(outcomes(&mut effects), [(2, committed(3))]);
    assert_eq!(effects.high_watermark, Some(Offset(5)));
    partition.advance_log_start(Offset(3), &mut effects);
    let expected = Offsets {
        log_start: Offset(3),
        last_stable: Offset(5),
        high_watermark: Offset(5),
        durable: Offset(5),
        log_end: Offset(5),
    };
    assert_eq!(*partition.offsets(), expected);
}

#[test]
fn on_one_node_the_high_watermark_is_the_durable_offset() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    for token in 0..5 {
        append(&mut partition, &plain(2), Some((token, Acks::All)), &mut effects);
    }
    assert_eq!(partition.offsets().high_watermark, Offset(0));
    partition.durable(Offset(6), &mut effects);
    assert_eq!(partition.offsets().high_watermark, Offset(6));
    assert_eq!(outcomes(&mut effects), [(0, committed(0)), (1, committed(2)), (2, committed(4))]);
    partition.durable(Offset(4), &mut effects);
    assert_eq!(partition.offsets().durable, Offset(6));
    // Nothing waits with acks=0.
    append(&mut partition, &plain(1), Some((9, Acks::None)), &mut effects);
    assert_eq!(partition.pending_acks(), 2);
}

#[test]
fn an_admission_that_the_log_refuses_changes_nothing() {
    let partition = Partition::new(init());
    let first = admission(&partition, &idempotent(1, 0, 3));
    assert_eq!(admission(&partition, &idempotent(1, 0, 3)), first);
    assert!(partition.producers().is_empty());
    assert_eq!(partition.offsets().log_end, Offset(0));
    assert_eq!((first.base_offset, first.epoch), (Offset(0), LeaderEpoch(3)));
}

#[test]
#[should_panic(expected = "stale admission")]
fn an_admission_serves_once() {
    let mut partition = Partition::new(init());
    let admission = admission(&partition, &plain(1));
    let mut effects = Effects::default();
    partition.appended(&admission, None, &mut effects);
    partition.appended(&admission, None, &mut effects);
}

#[test]
fn c39_a_duplicate_in_flight_waits_for_the_first_copy() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    append(&mut partition, &idempotent(1, 0, 2), Some((1, Acks::All)), &mut effects);
    append(&mut partition, &idempotent(1, 2, 2), Some((2, Acks::All)), &mut effects);
    let answer = partition.admit(&idempotent(1, 0, 2), Acks::All).unwrap();
    let Admitted::Duplicate { base_offset, end_offset, timestamp } = answer else { panic!() };
    assert_eq!((base_offset, end_offset, timestamp), (Offset(0), Offset(2), Timestamp(9)));
    partition.wait_for_ack(base_offset, end_offset, AckToken(3), Acks::All, &mut effects);
    assert!(outcomes(&mut effects).is_empty());
    partition.durable(Offset(2), &mut effects);
    assert_eq!(outcomes(&mut effects), [(1, committed(0)), (3, committed(0))]);
    // And is answered at once when that is durable.
    partition.wait_for_ack(base_offset, end_offset, AckToken(4), Acks::All, &mut effects);
    assert_eq!(outcomes(&mut effects), [(4, committed(0))]);
}

#[test]
fn truncation_ends_acks_and_takes_producers_back() {
    let mut partition = Partition::with_replicator(init(), Manual::default());
    let mut effects = Effects::default();
    append(&mut partition, &idempotent(1, 0, 2), Some((1, Acks::All)), &mut effects);
    append(&mut partition, &idempotent(1, 2, 2), Some((2, Acks::All)), &mut effects);
    append(&mut partition, &idempotent(2, 0, 2), Some((3, Acks::Leader)), &mut effects);
    wait(&mut partition, 8, 0, Isolation::ReadUncommitted, (1, 1));
    partition.durable(Offset(4), &mut effects);
    partition.truncate(Offset(2), &mut effects);
    let truncated = AppendOutcome::Truncated;
    assert_eq!(outcomes(&mut effects), [(3, truncated), (2, truncated)]);
    assert_eq!(effects.wake, [report(8, 0, true)]);
    assert_eq!(partition.offsets().log_end, Offset(2));
    assert_eq!(partition.offsets().durable, Offset(2));
    assert_eq!(partition.producers().len(), 1);
    // The producer sends again what was lost, at the same offsets.
    let again = append(&mut partition, &idempotent(1, 2, 2), None, &mut effects);
    assert_eq!(again, Offset(2));
    partition.commit(Offset(4), &mut effects);
    assert_eq!(outcomes(&mut effects), [(1, committed(0))]);
}

#[test]
#[should_panic(expected = "of committed")]
fn nothing_committed_is_truncated() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    append(&mut partition, &plain(2), None, &mut effects);
    partition.durable(Offset(2), &mut effects);
    partition.truncate(Offset(0), &mut effects);
}

#[test]
#[should_panic(expected = "inside a batch")]
fn no_batch_is_cut() {
    let mut partition = Partition::new(init());
    append(&mut partition, &plain(2), None, &mut Effects::default());
    partition.truncate(Offset(1), &mut Effects::default());
}

#[test]
fn a_leader_that_resigns_says_so() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    append(&mut partition, &plain(2), Some((1, Acks::All)), &mut effects);
    partition.resign(&mut effects);
    assert_eq!(outcomes(&mut effects), [(1, AppendOutcome::NotLeader)]);
    assert_eq!(partition.admit(&plain(1), Acks::All), Err(ErrorCode::NotLeaderOrFollower));
    assert_eq!(partition.check_epoch(LeaderEpoch(3)), Err(ErrorCode::NotLeaderOrFollower));
    partition.lead(LeaderEpoch(7));
    assert_eq!(admission(&partition, &plain(1)).epoch, LeaderEpoch(7));
    assert_eq!(partition.epoch_start(), Offset(2));
}

#[test]
fn c48_fetch_bounds() {
    let mut partition = Partition::new(PartitionInit {
        log_start: Offset(5),
        high_watermark: Offset(10),
        log_end: Offset(10),
        ..init()
    });
    append(&mut partition, &plain(10), None, &mut Effects::default());
    let bounds = |offset| partition.fetch_bounds(Offset(offset), Isolation::ReadUncommitted);
    assert_eq!(bounds(4), Err(ErrorCode::OffsetOutOfRange));
    assert_eq!(bounds(5), Ok(FetchBounds::Readable { upper: Offset(10) }));
    assert_eq!(bounds(9), Ok(FetchBounds::Readable { upper: Offset(10) }));
    for waits in [10, 11, 20] {
        assert_eq!(bounds(waits), Ok(FetchBounds::Wait));
    }
    assert_eq!(bounds(21), Err(ErrorCode::OffsetOutOfRange));
}

#[test]
fn c49_committed_readers_stop_at_an_open_transaction() {
    let mut producers = ProducerStates::default();
    let open = BatchSummary { is_transactional: true, ..idempotent(1, 0, 2) };
    producers.apply(&producer_batch(&open, Offset(4)).unwrap());
    let partition = Partition::new(PartitionInit {
        high_watermark: Offset(10),
        log_end: Offset(10),
        producers,
        ..init()
    });
    assert_eq!(partition.offsets().last_stable, Offset(4));
    let upper = FetchBounds::Readable { upper: Offset(4) };
    assert_eq!(partition.fetch_bounds(Offset(0), Isolation::ReadCommitted), Ok(upper));
    assert_eq!(partition.fetch_bounds(Offset(4), Isolation::ReadCommitted), Ok(FetchBounds::Wait));
    assert_eq!(Isolation::from_wire(1), Isolation::ReadCommitted);
    assert_eq!(
        partition.list_offset(OffsetSpec::Latest, Isolation::ReadCommitted),
        Ok(ListOffset::Bound(Offset(4)))
    );
}

/// Registers a fetch at `offset` that wants reports of so many bytes, up to
/// so many in all; nothing is due at once.
fn wait<R: Replicator>(
    partition: &mut Partition<R>,
    token: u64,
    offset: i64,
    isolation: Isolation,
    (report_bytes, limit_bytes): (u64, u64),
) {
    let seen = partition.seen_bytes(Offset(offset), isolation);
    let interest = Interest { report_bytes, limit_bytes };
    let mut effects = Effects::default();
    partition.wait_for_data(FetchToken(token), seen, isolation, interest, &mut effects);
    assert!(effects.wake.is_empty());
}

fn report(token: u64, bytes: u64, over: bool) -> Wake {
    Wake { token: FetchToken(token), bytes, over }
}

#[test]
fn c50_waiters_wake_by_bytes() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    let all = Isolation::ReadUncommitted;
    wait(&mut partition, 1, 0, all, (1, 1));
    wait(&mut partition, 2, 0, Isolation::ReadCommitted, (250, 250));
    wait(&mut partition, 3, 0, all, (301, 301));
    wait(&mut partition, 4, 0, all, (0, 0));
    assert!(partition.cancel_wait(FetchToken(4)) && !partition.cancel_wait(FetchToken(4)));
    for _ in 0..3 {
        append(&mut partition, &plain(1), None, &mut effects);
    }
    assert!(effects.wake.is_empty(), "appended is not yet visible");
    partition.durable(Offset(1), &mut effects);
    assert_eq!(std::mem::take(&mut effects.wake), [report(1, 100, true)]);
    // One that looks from beyond the high watermark counts from there.
    wait(&mut partition, 5, 2, all, (100, 100));
    partition.durable(Offset(2), &mut effects);
    assert!(effects.wake.is_empty());
    partition.durable(Offset(3), &mut effects);
    assert_eq!(std::mem::take(&mut effects.wake), [report(2, 300, true), report(5, 100, true)]);
    assert_eq!(partition.waiting_fetches(), 1);
    append(&mut partition, &plain(1), None, &mut effects);
    partition.durable(Offset(4), &mut effects);
    assert_eq!(effects.wake, [report(3, 400, true)]);
}

#[test]
fn c50_a_waiter_hears_what_it_gains_until_it_has_enough() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    wait(&mut partition, 1, 0, Isolation::ReadUncommitted, (1, 250));
    wait(&mut partition, 2, 0, Isolation::ReadUncommitted, (150, 1000));
    let mut step = |end| {
        append(&mut partition, &plain(1), None, &mut effects);
        partition.durable(Offset(end), &mut effects);
        std::mem::take(&mut effects.wake)
    };
    assert_eq!(step(1), [report(1, 100, false)]);
    assert_eq!(step(2), [report(1, 100, false), report(2, 200, false)]);
    assert_eq!(step(3), [report(1, 100, true)], "250 were of interest");
    assert_eq!(step(4), [report(2, 200, false)]);
    // Whoever looked at 200 bytes and registers now hears of the rest at once.
    let interest = Interest { report_bytes: 1, limit_bytes: 1000 };
    let mut late = Effects::default();
    let all = Isolation::ReadUncommitted;
    partition.wait_for_data(FetchToken(3), 200, all, interest, &mut late);
    assert_eq!(late.wake, [report(3, 200, false)]);
    partition.resign(&mut effects);
    assert_eq!(effects.wake, [report(2, 0, true), report(3, 0, true)]);
    let mut late = Effects::default();
    partition.wait_for_data(FetchToken(4), 400, all, interest, &mut late);
    assert_eq!(late.wake, [report(4, 0, true)], "nobody leads here any more");
}

#[test]
fn c50_committed_readers_hear_nothing_of_an_open_transaction() {
    let mut producers = ProducerStates::default();
    let open = BatchSummary { is_transactional: true, ..idempotent(1, 0, 2) };
    producers.apply(&producer_batch(&open, Offset(0)).unwrap());
    let start =
        PartitionInit { high_watermark: Offset(2), log_end: Offset(2), producers, ..init() };
    let mut partition = Partition::new(start);
    let mut effects = Effects::default();
    wait(&mut partition, 1, 2, Isolation::ReadUncommitted, (1, 1000));
    wait(&mut partition, 2, 0, Isolation::ReadCommitted, (1, 1000));
    append(&mut partition, &plain(1), None, &mut effects);
    partition.durable(Offset(3), &mut effects);
    assert_eq!(effects.wake, [report(1, 100, false)]);
    assert_eq!(partition.waiting_fetches(), 2);
}

#[test]
fn c51_epochs_of_clients() {
    let partition = Partition::new(init());
    assert_eq!(partition.check_epoch(LeaderEpoch::NONE), Ok(()));
    assert_eq!(partition.check_epoch(LeaderEpoch(3)), Ok(()));
    assert_eq!(partition.check_epoch(LeaderEpoch(2)), Err(ErrorCode::FencedLeaderEpoch));
    assert_eq!(partition.check_epoch(LeaderEpoch(4)), Err(ErrorCode::UnknownLeaderEpoch));
}

#[test]
fn c52_diverging_epochs() {
    let partition = Partition::new(PartitionInit {
        log_start: Offset(5),
        high_watermark: Offset(30),
        log_end: Offset(30),
        ..init()
    });
    let ask = |epoch, offset, known: Option<(i32, i64)>| {
        let known = known.map(|(epoch, end)| (LeaderEpoch(epoch), Offset(end)));
        partition
            .diverging_epoch(LeaderEpoch(epoch), Offset(offset), known)
            .map(|found| found.map(|(epoch, end)| (epoch.0, end.0)))
    };
    assert_eq!(ask(-1, 10, None), Ok(None));
    assert_eq!(ask(2, 10, Some((2, 20))), Ok(None));
    assert_eq!(ask(2, 20, Some((2, 20))), Ok(None));
    assert_eq!(ask(2, 21, Some((2, 20))), Ok(Some((2, 20))));
    assert_eq!(ask(2, 10, Some((1, 20))), Ok(Some((1, 20))));
    assert_eq!(ask(9, 10, None), Err(ErrorCode::OffsetOutOfRange));
    assert_eq!(ask(1, 4, Some((1, 20))), Err(ErrorCode::OffsetOutOfRange));
}

#[test]
fn c58_c60_special_timestamps() {
    let mut partition = Partition::new(PartitionInit {
        log_start: Offset(5),
        high_watermark: Offset(30),
        log_end: Offset(30),
        ..init()
    });
    append(&mut partition, &plain(1), None, &mut Effects::default());
    let ask = |spec| partition.list_offset(spec, Isolation::ReadUncommitted);
    assert_eq!(ask(OffsetSpec::Latest), Ok(ListOffset::Bound(Offset(30))));
    assert_eq!(ask(OffsetSpec::Earliest), Ok(ListOffset::Bound(Offset(5))));
    assert_eq!(ask(OffsetSpec::EarliestLocal), Ok(ListOffset::Bound(Offset(5))));
    assert_eq!(ask(OffsetSpec::LastTiered), Ok(ListOffset::Nothing));
    assert_eq!(ask(OffsetSpec::EarliestPendingUpload), Ok(ListOffset::Nothing));
    let upper = Offset(30);
    assert_eq!(ask(OffsetSpec::MaxTimestamp), Ok(ListOffset::SearchMax { upper }));
    let at = Timestamp(7);
    assert_eq!(ask(OffsetSpec::At(at)), Ok(ListOffset::Search { at, upper }));

    for (value, since) in [(-1, 0), (-2, 0), (-3, 7), (-4, 8), (-5, 9), (-6, 11)] {
        for version in 0..=11 {
            let answer = OffsetSpec::from_wire(value, version);
            assert_eq!(answer.is_ok(), version >= since, "{value} at {version}");
            assert!(answer.is_ok() || answer == Err(ErrorCode::UnsupportedVersion));
        }
    }
    assert_eq!(OffsetSpec::from_wire(-7, 11), Err(ErrorCode::UnsupportedVersion));
    assert_eq!(OffsetSpec::from_wire(0, 1), Ok(OffsetSpec::At(Timestamp(0))));
}

#[test]
fn c61_no_latest_offset_while_the_high_watermark_is_behind_the_epoch() {
    let start = PartitionInit { log_end: Offset(10), high_watermark: Offset(4), ..init() };
    let mut partition = Partition::with_replicator(start, Manual::default());
    let ask = |p: &Partition<Manual>, spec| p.list_offset(spec, Isolation::ReadUncommitted);
    assert_eq!(ask(&partition, OffsetSpec::Latest), Err(ErrorCode::OffsetNotAvailable));
    assert!(ask(&partition, OffsetSpec::Earliest).is_ok());
    let mut effects = Effects::default();
    wait(&mut partition, 1, 4, Isolation::ReadUncommitted, (1, 1));
    partition.commit(Offset(10), &mut effects);
    assert_eq!(effects.wake.len(), 1);
    assert_eq!(ask(&partition, OffsetSpec::Latest), Ok(ListOffset::Bound(Offset(10))));
}

#[test]
fn c43_state_survives_a_restart_by_snapshot_and_replay() {
    let mut partition = Partition::new(init());
    let mut effects = Effects::default();
    append(&mut partition, &idempotent(1, 0, 2), None, &mut effects);
    let (at, bytes) = partition.snapshot();
    assert_eq!(at, Offset(2));
    append(&mut partition, &idempotent(1, 2, 3), None, &mut effects);
    let mut producers = ProducerStates::from_snapshot(&bytes).unwrap();
    producers.apply(&producer_batch(&idempotent(1, 2, 3), Offset(2)).unwrap());
    let start =
        PartitionInit { log_end: Offset(5), high_watermark: Offset(5), producers, ..init() };
    let mut partition = Partition::new(start);
    let duplicate = partition.admit(&idempotent(1, 2, 3), Acks::All).unwrap();
    assert!(matches!(duplicate, Admitted::Duplicate { base_offset: Offset(2), .. }));
    assert!(partition.admit(&idempotent(1, 5, 1), Acks::All).is_ok());
    assert_eq!(
        partition.admit(&idempotent(1, 6, 1), Acks::All),
        Err(ErrorCode::OutOfOrderSequenceNumber)
    );
    assert_eq!(partition.expire_producers(Timestamp(9 + 86_400_000), 86_400_000), 1);
    assert!(partition.admit(&idempotent(1, 6, 1), Acks::All).is_ok());
}

#[test]
fn transactions_are_refused_until_there_is_a_coordinator() {
    let partition = Partition::new(init());
    let batch = BatchSummary { is_transactional: true, ..idempotent(1, 0, 1) };
    assert_eq!(partition.admit(&batch, Acks::All), Err(ErrorCode::InvalidTxnState));
    let batch = BatchSummary { is_transactional: true, ..plain(1) };
    assert_eq!(partition.admit(&batch, Acks::All), Err(ErrorCode::InvalidRecord));
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_do_what_they_say() {
    use crate::model::planted::{Bug, arm};

    let mut effects = Effects::default();
    arm(Some(Bug::HighWatermarkPastDurable));
    let mut partition = Partition::new(init());
    append(&mut partition, &idempotent(1, 0, 1), None, &mut effects);
    assert_eq!(partition.offsets().high_watermark, Offset(1));
    assert_eq!(partition.offsets().durable, Offset(0));

    arm(Some(Bug::ProducerStateNotRolledBack));
    let mut partition = Partition::new(init());
    append(&mut partition, &idempotent(1, 0, 1), None, &mut effects);
    partition.truncate(Offset(0), &mut effects);
    assert_eq!(partition.producers().len(), 1);
    arm(None);
}
