//! Tests of the whole layer on the simulated machine.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::io::Pool;
use crate::io::sim::{Crash, NodeIndex, Sim, SimEnv};
use crate::model::{LeaderEpoch, LogId, Offset, PartitionIndex, ShardId, Timestamp, TopicId};
use crate::record::{BatchBuilder, BatchView, Compression, NewRecord};

mod bounds;
mod damage;
mod lost_journals;
mod retention;
mod shares;
mod snapshots;
mod space;
mod truncation;
mod waits;

fn config() -> LogSetConfig {
    let pool = |name, bytes| Pool::new(name, bytes).unwrap();
    let pools = LogPools {
        tail: pool("tail", 8 << 20),
        journal: pool("journal", 4 << 20),
        cold: pool("cold", 16 << 20),
        upkeep: pool("upkeep", 4 << 20),
    };
    let small = JournalConfig {
        first_file_bytes: 1 << 20,
        file_bytes: 1 << 20,
        cap_bytes: 6 << 20,
        in_flight: 2,
    };
    LogSetConfig {
        disk: small,
        os: small,
        write_behind_bytes: 32 * 1024,
        reserve: ReserveSize::Fixed(0),
        ..LogSetConfig::new("/data".into(), ShardId(0), pools)
    }
}

fn known(class: DurabilityClass) -> KnownLog {
    KnownLog {
        log_id: LogId(7),
        topic: Arc::from("events"),
        partition: PartitionIndex(3),
        topic_id: TopicId([5; 16]),
        class,
        epoch_to_start: None,
        config: LogConfig { segment_bytes: 64 * 1024, ..LogConfig::default() },
    }
}

fn batch(records: &[(i64, usize)], compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(compression);
    for (timestamp, size) in records {
        let value = vec![b'x'; *size];
        builder.push(&NewRecord {
            timestamp: Timestamp(*timestamp),
            value: Some(&value),
            ..NewRecord::default()
        });
    }
    builder.build().unwrap()
}

fn latest(set: &LogSet<SimEnv>, handle: LogHandle) -> LeaderEpoch {
    set.latest_epoch(handle).unwrap().epoch
}

/// Appends, waiting while the log is full; commits what is durable.
async fn append(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle, bytes: &[u8]) -> Offset {
    use crate::io::Env as _;
    let (view, _) = BatchView::parse(bytes).unwrap();
    let summary = view.summary().unwrap();
    loop {
        let base = set.bounds(handle).unwrap().2;
        let done = set.append(handle, bytes, &summary, base, latest(set, handle));
        set.flush();
        commit(set);
        match done {
            Ok(done) => return done.end_offset,
            Err(AppendError::Full) => env.sleep(std::time::Duration::from_millis(1)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

fn commit(set: &LogSet<SimEnv>) {
    let mut progress = Vec::new();
    set.drain_durable(&mut progress);
    for (handle, offset) in progress {
        set.set_high_watermark(handle, offset);
    }
}

async fn until_durable(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle) {
    use crate::io::Env as _;
    loop {
        set.flush();
        commit(set);
        let (_, durable, end) = set.bounds(handle).unwrap();
        if durable == end {
            return;
        }
        env.sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// Appends without committing anything.
async fn append_only(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle, size: usize) {
    use crate::io::Env as _;
    let bytes = batch(&[(1, size)], Compression::None);
    let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
    loop {
        let base = set.bounds(handle).unwrap().2;
        let done = set.append(handle, &bytes, &summary, base, latest(set, handle));
        set.flush();
        match done {
            Ok(_) => return,
            Err(AppendError::Full) => env.sleep(std::time::Duration::from_millis(1)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn all_durable(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle) {
    use crate::io::Env as _;
    loop {
        set.flush();
        let (_, durable, end) = set.bounds(handle).unwrap();
        if durable == end {
            return;
        }
        env.sleep(std::time::Duration::from_millis(1)).await;
    }
}

async fn read_all(set: &LogSet<SimEnv>, handle: LogHandle, max: usize) -> Vec<u8> {
    let (mut at, _, end) = set.bounds(handle).unwrap();
    let mut out = Vec::new();
    while at < end {
        let pieces = match set.read(handle, at, end, max, true) {
            ReadOutcome::Hot(pieces) => pieces,
            ReadOutcome::Cold(read) => set.read_cold(read).await.unwrap(),
            other => panic!("{other:?} at {at}"),
        };
        let bytes: Vec<u8> = pieces.iter().flat_map(|p| p.to_vec()).collect();
        let mut rest = &bytes[..];
        assert!(!rest.is_empty(), "nothing at {at}");
        while !rest.is_empty() {
            let (view, left) = BatchView::parse(rest).expect("whole batches only");
            assert!(view.verify_crc());
            at = view.last_offset().plus(1);
            rest = &rest[rest.len() - left..];
        }
        out.extend(bytes);
    }
    out
}

async fn start(env: &SimEnv, class: DurabilityClass) -> (LogSet<SimEnv>, Recovered) {
    use crate::io::{Env as _, FileSystem as _};
    env.fs().create_dir_all(Path::new("/data")).await.unwrap();
    env.fs().sync_dir(Path::new("/")).await.unwrap();
    let (set, mut found) = LogSet::recover(env.clone(), config(), &[known(class)]).await.unwrap();
    (set, found.remove(0))
}

fn survives(class: DurabilityClass, crash: Option<Crash>) {
    for seed in 0..12 {
        let sim = Sim::new(seed);
        let env = sim.env();
        let expected = sim.run_until(async {
            let (set, found) = start(&env, class).await;
            let wakes = Rc::new(std::cell::Cell::new(0));
            let counted = wakes.clone();
            set.set_notifier(Rc::new(move || counted.set(counted.get() + 1)));
            for i in 0..200i64 {
                let size = if i % 50 == 49 { 300_000 } else { 900 };
                let bytes = batch(&[(i, size), (i, 10)], Compression::None);
                append(&env, &set, found.handle, &bytes).await;
            }
            until_durable(&env, &set, found.handle).await;
            let hot = read_all(&set, found.handle, 10_000).await;
            assert_eq!(hot, read_all(&set, found.handle, 1).await);
            if crash.is_none() {
                set.close().await.unwrap();
            }
            hot
        });
        drop(env);
        let (sim, _) = sim.crash(crash.unwrap_or(Crash::Power));
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, class).await;
            assert_eq!(found.log_end, Offset(400), "seed {seed}");
            assert!(read_all(&set, found.handle, 7000).await == expected, "seed {seed}");
            let more = batch(&[(1, 100)], Compression::None);
            assert_eq!(append(&env, &set, found.handle, &more).await, Offset(401));
            until_durable(&env, &set, found.handle).await;
        });
    }
}

#[test]
fn class_disk_survives_power_cuts() {
    survives(DurabilityClass::Disk, Some(Crash::Power));
}

#[test]
fn class_os_survives_the_process() {
    survives(DurabilityClass::Os, Some(Crash::Process));
}

#[test]
fn a_clean_stop_survives_in_both_classes() {
    survives(DurabilityClass::Disk, None);
    survives(DurabilityClass::Os, None);
}

#[test]
fn an_open_segment_has_blocks_ahead_and_a_closed_one_none() {
    let sim = Sim::new(3);
    let env = sim.env();
    sim.run_until(async {
        use crate::io::{Env as _, FileSystem as _};
        let (set, found) = start(&env, DurabilityClass::Os).await;
        let path = Path::new("/data/events-3/00000000000000000000.log");
        let bytes = batch(&[(1, 3000)], Compression::None);
        for _ in 0..15 {
            append(&env, &set, found.handle, &bytes).await;
        }
        until_durable(&env, &set, found.handle).await;
        env.sleep(std::time::Duration::from_secs(1)).await;
        let held = 15 * bytes.len() as u64;
        let len = env.fs().len(path).await.unwrap();
        assert!(held < len && len <= 64 * 1024, "{len} for {held}");
        set.close().await.unwrap();
        assert_eq!(env.fs().len(path).await.unwrap(), held);
    });
}

#[test]
fn timestamps_agree_with_a_linear_scan() {
    for seed in 0..4 {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            use crate::io::Env as _;
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            let mut records = Vec::new();
            for i in 0..300i64 {
                let count = 1 + i % 4;
                let some: Vec<(i64, usize)> =
                    (0..count).map(|_| ((i * 10 + (env.random() % 60) as i64), 700)).collect();
                let codec = [Compression::None, Compression::Lz4][(i % 2) as usize];
                records.extend(some.iter().map(|r| r.0));
                append(&env, &set, found.handle, &batch(&some, codec)).await;
            }
            until_durable(&env, &set, found.handle).await;
            let end = Offset(records.len() as i64);
            for wanted in (-5..3100).step_by(13) {
                let scan = records.iter().position(|ts| *ts >= wanted);
                let got = set
                    .offset_for_timestamp(found.handle, Timestamp(wanted), end)
                    .await
                    .unwrap()
                    .map(|f| f.offset.0 as usize);
                assert_eq!(got, scan, "timestamp {wanted}");
            }
        });
    }
}

#[test]
fn a_corrupt_batch_harms_only_its_readers() {
    let sim = Sim::new(1);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        for i in 0..200 {
            append(&env, &set, found.handle, &batch(&[(i, 900)], Compression::None)).await;
        }
        until_durable(&env, &set, found.handle).await;
        set.close().await.unwrap();
    });
    let log = Path::new("/data/events-3/00000000000000000000.log");
    // The magic byte of the first batch.
    sim.flip_bit(NodeIndex(0), log, 16, 0).unwrap();
    drop(env);
    let (sim, _) = sim.crash(Crash::Process);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let read = ColdRead {
            handle: found.handle,
            from: Offset(0),
            upper: Offset(10),
            max_bytes: 100,
            at_least_one: true,
        };
        let error = set.read_cold(read).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { position: 0, .. }), "{error}");
        let far = set.read(found.handle, Offset(150), found.log_end, 5000, true);
        let ReadOutcome::Cold(far) = far else { panic!("{far:?}") };
        assert!(!set.read_cold(far).await.unwrap().is_empty());
    });
}
