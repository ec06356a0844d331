//! Idempotence by script, the snapshot file, and exact rollback.

use proptest::prelude::*;

use super::*;
use crate::model::{ErrorCode, Offset, ProducerEpoch, ProducerId, Timestamp};

fn batch(id: i64, epoch: i16, sequence: i32, count: i32, offset: i64) -> ProducerBatch {
    ProducerBatch {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        base_sequence: sequence,
        base_offset: Offset(offset),
        last_offset_delta: count - 1,
        max_timestamp: Timestamp(1000 + offset),
        is_transactional: false,
        is_control: false,
    }
}

/// Runs the scripts of the fixture: each line is one batch, or a command.
#[test]
fn c39_to_c43_scripts() {
    let text = include_str!("../fixtures/idempotence.txt");
    let mut states = ProducerStates::default();
    let mut end = 0;
    for (at, line) in text.lines().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        match words.first().copied() {
            None | Some("#") => {}
            Some("case") => (states, end) = (ProducerStates::default(), 0),
            Some("restart") => {
                states = ProducerStates::from_snapshot(&states.to_snapshot()).unwrap();
            }
            Some("truncate") => {
                end = number(1);
                states.truncate(Offset(end));
            }
            Some("expire") => assert_eq!(
                states.expire(Timestamp(number(1)), number(2)),
                number(4) as usize,
                "line {}",
                at + 1
            ),
            Some("send") => {
                let new =
                    batch(number(1), number(2) as i16, number(3) as i32, number(4) as i32, end);
                let answer = match states.check(&new) {
                    Ok(Verdict::New) => {
                        states.apply(&new);
                        end = new.last_offset().0 + 1;
                        format!("new {}", new.base_offset)
                    }
                    Ok(Verdict::Duplicate(known)) => {
                        assert_eq!(known.timestamp.0, 1000 + known.first_offset().0);
                        format!("duplicate {}", known.first_offset())
                    }
                    Err(code) => code.code().to_string(),
                };
                assert_eq!(answer, words[6..].join(" "), "line {}: {line}", at + 1);
            }
            Some(other) => panic!("line {}: {other}", at + 1),
        }
    }
}

#[test]
fn c43_snapshot_is_byte_for_byte_kafkas() {
    // Written by ProducerStateManager.writeSnapshot of Kafka 4.4.
    let kafka = include_bytes!("../fixtures/kafka-4.4.snapshot");
    let entries = decode_snapshot(kafka).unwrap();
    assert_eq!(entries.len(), 3);
    let plain = &entries[0];
    assert_eq!((plain.producer_id, plain.epoch), (ProducerId(1000), ProducerEpoch(3)));
    assert_eq!((plain.last_sequence(), plain.last_timestamp), (41, Timestamp(1_700_000_000_123)));
    let last = plain.last_batch().unwrap();
    assert_eq!((last.first_offset(), last.last_offset), (Offset(90), Offset(99)));
    let open = &entries[1];
    assert_eq!((open.txn_first_offset, open.coordinator_epoch), (Some(Offset(77)), 5));
    assert!(entries[2].batches().is_empty());
    assert_eq!(encode_snapshot(&entries.iter().collect::<Vec<_>>()), kafka);

    let states = ProducerStates::from_snapshot(kafka).unwrap();
    assert_eq!(states.first_undecided(), Some(Offset(77)));
    assert_eq!(states.to_snapshot(), kafka);
}

#[test]
fn damaged_snapshots_are_refused() {
    let mut states = ProducerStates::default();
    states.apply(&batch(1, 0, 0, 2, 0));
    let good = states.to_snapshot();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(decode_snapshot(&bad).is_err(), "byte {at} bit {bit}");
        }
        assert!(decode_snapshot(&good[..at]).is_err(), "cut at {at}");
    }
    let mut version = good.clone();
    version[1] = 2;
    assert_eq!(decode_snapshot(&version), Err(SnapshotError::Version(2)));
}

#[test]
fn open_transactions_from_a_log_hold_and_free_the_stable_offset() {
    let mut states = ProducerStates::default();
    let mut data = batch(1, 0, 0, 1, 10);
    data.is_transactional = true;
    assert_eq!(states.check(&data), Err(ErrorCode::InvalidTxnState));
    states.apply(&data);
    assert_eq!(states.first_undecided(), Some(Offset(10)));
    let mut plain = batch(1, 0, 1, 1, 11);
    assert_eq!(states.check(&plain), Err(ErrorCode::InvalidTxnState));
    plain.is_transactional = true;
    assert_eq!(states.check(&plain), Ok(Verdict::New));
    let marker = ProducerBatch { is_control: true, base_sequence: -1, ..batch(1, 0, 0, 1, 12) };
    states.apply(&marker);
    assert_eq!(states.first_undecided(), None);
    states.truncate(Offset(12));
    assert_eq!(states.first_undecided(), Some(Offset(10)));
    states.truncate(Offset(10));
    assert!(states.is_empty() && states.first_undecided().is_none());
}

proptest! {
    /// What is left after a truncation is what a replay of the rest gives.
    #[test]
    fn rollback_is_exact(
        sends in prop::collection::vec((0..3_i64, 0..3_i16, 1..4_i32, any::<bool>()), 1..60),
        settled in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut states = ProducerStates::default();
        let mut batches = Vec::new();
        let mut end = 0;
        for (id, bump, count, again) in sends {
            let entry = states.get(ProducerId(id));
            let epoch = entry.map_or(0, |e| e.epoch.0.max(0));
            let next = entry.map_or(0, |e| sequence_plus(e.last_sequence(), 1));
            let new = if bump == 2 && !again {
                batch(id, epoch + 1, 0, count, end)
            } else {
                batch(id, epoch, next, count, end)
            };
            if states.check(&new) == Ok(Verdict::New) {
                states.apply(&new);
                end += i64::from(count);
                batches.push(new);
            }
        }
        let settled = settled.index(batches.len());
        let cut = settled + cut.index(batches.len() - settled);
        let at = |index: usize| batches[index].base_offset;
        states.settle(at(settled));
        states.truncate(at(cut));
        let mut replayed = ProducerStates::default();
        batches[..cut].iter().for_each(|batch| replayed.apply(batch));
        prop_assert_eq!(states.to_snapshot(), replayed.to_snapshot());
        for id in 0..3 {
            prop_assert_eq!(states.get(ProducerId(id)), replayed.get(ProducerId(id)));
        }
    }
}
