//! Damage in closed segments below the floor: a range is lost, nothing else.

use super::*;
use crate::io::sim::FaultOp;
use crate::io::{Env as _, FileSystem as _};
use crate::model::{ProducerEpoch, ProducerId};

const NODE: NodeIndex = NodeIndex(0);
const FIRST: &str = "/data/events-3/00000000000000000000.log";

fn numbered(i: i32) -> Vec<u8> {
    let producer = ProducerId(i64::from(i % 3));
    let mut builder =
        BatchBuilder::new(Compression::None).producer(producer, ProducerEpoch(0), i / 3);
    let value = vec![b'x'; 900];
    builder.push(&NewRecord {
        timestamp: Timestamp(i64::from(i)),
        value: Some(&value),
        ..NewRecord::default()
    });
    builder.build().unwrap()
}

/// 200 batches of three producers in segments of 64 KiB, cleanly closed.
fn written(seed: u64) -> (Sim, usize) {
    let sim = Sim::new(seed);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        for i in 0..200 {
            append(&env, &set, found.handle, &numbered(i)).await;
        }
        until_durable(&env, &set, found.handle).await;
        set.close().await.unwrap();
    });
    drop(env);
    let len = numbered(0).len();
    (sim, len)
}

fn cold(handle: LogHandle, from: i64) -> ColdRead {
    let (from, upper) = (Offset(from), Offset(200));
    ColdRead { handle, from, upper, max_bytes: 30_000, at_least_one: true }
}

fn offsets(pieces: &Slices) -> Vec<i64> {
    let bytes: Vec<u8> = pieces.iter().flat_map(|p| p.to_vec()).collect();
    let batches = crate::record::batches(&bytes);
    batches.map(|b| b.unwrap().base_offset().0).collect()
}

/// Producers are known from the batches around the damage.
#[test]
fn batches_behind_a_damaged_one_count() {
    for seed in 0..4 {
        let (sim, len) = written(seed);
        let bad = 20;
        sim.flip_bit(NODE, Path::new(FIRST), (bad * len + 16) as u64, 0).unwrap();
        let (sim, _) = sim.crash(Crash::Process);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            let known: Vec<_> = found.batches_after.iter().map(|b| b.base_offset.0).collect();
            assert!((0..20).all(|offset| known.contains(&offset)), "{known:?}");
            // The index has an entry for each 4 KiB, so for every fourth or fifth.
            assert!((30..200).all(|offset| known.contains(&offset)), "{known:?}");
            assert!(!known.contains(&20) && known.is_sorted(), "{known:?}");
            let before = set.read_cold(cold(found.handle, 15)).await.unwrap();
            assert_eq!(offsets(&before), [15, 16, 17, 18, 19]);
            let error = set.read_cold(cold(found.handle, 20)).await.unwrap_err();
            let at = (bad * len) as u64;
            assert!(matches!(error, Error::Corrupt { position, .. } if position == at), "{error}");
            let after = set.read_cold(cold(found.handle, 30)).await.unwrap();
            assert_eq!(offsets(&after)[0], 30);
        });
    }
}

/// No checksum covers the leader epoch of a batch: it is judged by the log's
/// own history, also where the log starts inside the batch, and never told.
#[test]
fn the_epoch_of_a_batch_is_not_believed() {
    const SIZE: i64 = 3;
    for start_at in [0, 61] {
        let sim = Sim::new(11);
        let env = sim.env();
        let records: Vec<_> = (0..SIZE).map(|i| (i, 900)).collect();
        let bytes = batch(&records, Compression::None);
        let epoch = sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            for _ in 0..80 {
                append(&env, &set, found.handle, &bytes).await;
            }
            until_durable(&env, &set, found.handle).await;
            set.advance_log_starts(&[(found.handle, Offset(start_at))]).await.unwrap();
            set.close().await.unwrap();
            found.epoch
        });
        let names = sim.run_until(async { env.fs().read_dir(Path::new("/data/events-3")).await });
        let mut logs: Vec<_> =
            names.unwrap().into_iter().map(|e| e.name).filter(|n| n.ends_with(".log")).collect();
        logs.sort();
        // The batch of 60..63, and the first of the segment that is written to.
        let active: i64 = logs.last().unwrap()[..20].parse().unwrap();
        for bad in [60, active] {
            let name = logs.iter().rfind(|name| name[..20].parse::<i64>().unwrap() <= bad).unwrap();
            let base: i64 = name[..20].parse().unwrap();
            let position = ((bad - base) / SIZE) as usize * bytes.len();
            let path = Path::new("/data/events-3").join(name);
            sim.flip_bit(NODE, &path, position as u64 + 14, 0).unwrap();
        }
        drop(env);
        let (sim, _) = sim.crash(Crash::Process);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            assert_eq!(latest(&set, found.handle), found.epoch);
            assert_eq!(set.epoch_at(found.handle, Offset(active)), Some(epoch));
            let upper = Offset(SIZE * 80);
            for bad in [60.max(start_at), active] {
                let read = ColdRead { upper, ..cold(found.handle, bad) };
                let error = set.read_cold(read).await.unwrap_err();
                let Error::Corrupt { what, .. } = error else { panic!("{error}") };
                assert_eq!(what, "another leader epoch");
            }
            let first = set.offset_for_timestamp(found.handle, Timestamp(0), upper).await;
            match start_at {
                0 => assert_eq!(first.unwrap().map(|f| f.epoch), Some(epoch)),
                _ => assert!(matches!(first, Err(Error::Corrupt { .. })), "{first:?}"),
            }
        });
    }
}

/// A segment that cannot be read at all, or is not there, harms its readers.
#[test]
fn a_lost_segment_does_not_stop_a_start() {
    for missing in [false, true] {
        let (sim, _) = written(7);
        let env = sim.env();
        if missing {
            sim.run_until(async { env.fs().remove_file(Path::new(FIRST)).await.unwrap() });
        } else {
            sim.faults(NODE, |f| f.rate(FaultOp::Read, FIRST, 1000, libc::EIO));
        }
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            assert_eq!(found.log_end, Offset(200));
            let known: Vec<_> = found.batches_after.iter().map(|b| b.base_offset.0).collect();
            assert!((70..200).all(|offset| known.contains(&offset)), "{known:?}");
            let error = set.read_cold(cold(found.handle, 3)).await.unwrap_err();
            match missing {
                true => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
                false => assert!(matches!(error, Error::Unreadable { .. }), "{error}"),
            }
            assert_eq!(offsets(&set.read_cold(cold(found.handle, 70)).await.unwrap())[0], 70);
            append(&env, &set, found.handle, &numbered(200)).await;
        });
    }
}

/// A segment in the middle that is gone is noticed by who reads there.
#[test]
fn a_missing_segment_in_the_middle_is_an_error() {
    let (sim, _) = written(8);
    let env = sim.env();
    sim.run_until(async {
        let listed = env.fs().read_dir(Path::new("/data/events-3")).await.unwrap();
        let mut logs: Vec<_> = listed.into_iter().filter(|e| e.name.ends_with(".log")).collect();
        logs.sort_by(|a, b| a.name.cmp(&b.name));
        let second: i64 = logs[1].name[..20].parse().unwrap();
        let path = Path::new("/data/events-3").join(&logs[1].name);
        env.fs().remove_file(&path).await.unwrap();
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let error = set.read_cold(cold(found.handle, second)).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        let before = set.read_cold(cold(found.handle, second - 1)).await.unwrap();
        assert_eq!(offsets(&before), [second - 1]);
    });
}

/// Sectors that went bad while it runs: the batches before them are served.
#[test]
fn a_bad_sector_does_not_hide_what_lies_before_it() {
    let (sim, _) = written(9);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        // Looking the batch up goes well, reading it and its successors fails.
        sim.faults(NODE, |f| f.plan(FaultOp::Read, FIRST, 1, libc::EIO));
        let one = set.read_cold(cold(found.handle, 5)).await.unwrap();
        assert_eq!(offsets(&one), [5], "the first batch alone");
    });
}

/// Base offsets of the segments in the directory, in order.
async fn bases(env: &SimEnv) -> Vec<i64> {
    let listed = env.fs().read_dir(Path::new("/data/events-3")).await.unwrap();
    let logs = listed.iter().filter_map(|e| e.name.strip_suffix(".log"));
    let mut bases: Vec<i64> = logs.map(|base| base.parse().unwrap()).collect();
    bases.sort_unstable();
    bases
}

fn keep_100_ms(set: &LogSet<SimEnv>, handle: LogHandle) {
    let limit = LogConfig { retention_ms: 100, ..known(DurabilityClass::Disk).config };
    set.set_config(handle, limit);
}

/// Ages are those of the records, whatever is left of the time index.
#[test]
fn the_age_of_a_segment_needs_no_time_index() {
    let whole = |bytes: Vec<u8>| bytes;
    let gone = |_: Vec<u8>| Vec::new();
    let one_entry = |bytes: Vec<u8>| bytes[..12].to_vec();
    let torn = |bytes: Vec<u8>| bytes[..bytes.len() - 5].to_vec();
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 24 * 12].to_vec();
    let flipped = |mut bytes: Vec<u8>| {
        let last = bytes.len() - 12;
        bytes[last + 1] ^= 1;
        bytes
    };
    let damages: [fn(Vec<u8>) -> Vec<u8>; 6] = [whole, gone, one_entry, torn, half, flipped];
    for (seed, damage) in (20..).zip(damages) {
        let (sim, _) = written(seed);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            keep_100_ms(&set, found.handle);
            let times = Path::new(FIRST).with_extension("timeindex");
            let bytes = damage(env.fs().read(&times).await.unwrap());
            env.fs().write(&times, bytes).await.unwrap();
            // The newest record of the first segment is one older than the second's first.
            let second = bases(&env).await[1];
            let young = set.retained_from(found.handle, second + 99).await.unwrap();
            assert_eq!(young, None, "damage {seed}");
            let old = set.retained_from(found.handle, second + 100).await.unwrap();
            assert_eq!(old, Some(Offset(second)), "damage {seed}");
            let first = set.offset_for_timestamp(found.handle, Timestamp(second - 1), Offset(200));
            assert_eq!(first.await.unwrap().map(|f| f.offset), Some(Offset(second - 1)));
        });
    }
}

/// Neither index nor headers have a time then: no age, and that is known.
#[test]
fn records_without_timestamps_have_no_age() {
    let sim = Sim::new(30);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        for _ in 0..200 {
            append(&env, &set, found.handle, &batch(&[(-1, 900)], Compression::None)).await;
        }
        until_durable(&env, &set, found.handle).await;
        set.close().await.unwrap();
    });
    drop(env);
    let (sim, _) = sim.crash(Crash::Process);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        keep_100_ms(&set, found.handle);
        assert_eq!(set.retained_from(found.handle, 1 << 50).await.unwrap(), None);
        sim.faults(NODE, |f| f.rate(FaultOp::Read, FIRST, 1000, libc::EIO));
        let late = set.offset_for_timestamp(found.handle, Timestamp(0), Offset(200)).await;
        assert_eq!(late.unwrap(), None, "the segment need not be looked at again");
    });
}

/// Largest timestamps are asked for anew after an error that may pass; a time
/// index that cannot be read is not needed.
#[test]
fn a_segment_that_could_not_be_read_once_is_read_again() {
    const TIMES: &str = "00000000000000000000.timeindex";
    for (failing, known_at_once) in [(TIMES, true), (FIRST, false)] {
        let (sim, _) = written(10);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            keep_100_ms(&set, found.handle);
            sim.faults(NODE, |f| f.rate(FaultOp::Read, failing, 1000, libc::EIO));
            for _ in 0..2 {
                let from = set.retained_from(found.handle, 10_000).await.unwrap();
                assert_eq!(from, known_at_once.then_some(Offset(200)), "{failing}");
            }
            sim.faults(NODE, |f| f.clear());
            let from = set.retained_from(found.handle, 10_000).await.unwrap();
            assert_eq!(from, Some(Offset(200)), "{failing}");
        });
    }
}

/// What lies in a segment is found by time without its time index too.
#[test]
fn a_segment_without_its_time_index_is_not_passed_over() {
    for left in [None, Some(5)] {
        let (sim, _) = written(11);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            let times = Path::new(FIRST).with_extension("timeindex");
            let bytes = env.fs().read(&times).await.unwrap();
            env.fs().remove_file(&times).await.unwrap();
            if let Some(left) = left {
                env.fs().write(&times, bytes[..left].to_vec()).await.unwrap();
            }
            let first = set.offset_for_timestamp(found.handle, Timestamp(7), Offset(200)).await;
            assert_eq!(first.unwrap().map(|f| f.offset), Some(Offset(7)), "{left:?}");
        });
    }
}
