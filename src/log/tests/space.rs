//! Full disks: what is refused, what goes on, and that all comes back.

use std::time::Duration;

use super::*;
use crate::io::{Env as _, FileSystem as _};

const NODE: NodeIndex = NodeIndex(0);
const RESERVE: &str = "/data/journal/reserve-0";

fn with_reserve(bytes: u64) -> LogSetConfig {
    LogSetConfig {
        reserve: ReserveSize::Fixed(bytes),
        no_space_retry: Duration::from_millis(20),
        ..config()
    }
}

/// The log of test `known`, and one that stands for the metadata log.
fn both(class: DurabilityClass) -> [KnownLog; 2] {
    let metadata = KnownLog {
        log_id: LogId::METADATA,
        topic: Arc::from("__cluster_metadata"),
        class: DurabilityClass::Disk,
        ..known(class)
    };
    [known(class), metadata]
}

async fn recover(
    env: &SimEnv,
    config: LogSetConfig,
    class: DurabilityClass,
) -> (LogSet<SimEnv>, Vec<Recovered>) {
    env.fs().create_dir_all(Path::new("/data")).await.unwrap();
    env.fs().sync_dir(Path::new("/")).await.unwrap();
    LogSet::recover(env.clone(), config, &both(class)).await.unwrap()
}

fn used(sim: &Sim) -> u64 {
    sim.files(NODE).iter().map(|(_, bytes)| (bytes.len() as u64).next_multiple_of(4096)).sum()
}

/// Leaves so many bytes of the disk free.
fn leave(sim: &Sim, bytes: u64) {
    let capacity = used(sim) + bytes;
    sim.faults(NODE, |f| f.set_capacity(Some(capacity)));
}

fn len_of(sim: &Sim, path: &str) -> Option<usize> {
    let files = sim.files(NODE);
    files.iter().find(|(p, _)| p == Path::new(path)).map(|(_, bytes)| bytes.len())
}

fn try_append(
    set: &LogSet<SimEnv>,
    handle: LogHandle,
    size: usize,
) -> std::result::Result<Appended, AppendError> {
    let bytes = batch(&[(1, size)], Compression::None);
    let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
    let base = set.bounds(handle).unwrap().2;
    let done = set.append(handle, &bytes, &summary, base, LeaderEpoch(1));
    set.flush();
    commit(set);
    done
}

/// Appends until the disk is full; gives the number of batches.
async fn fill(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle, size: usize) -> i64 {
    let mut taken = 0;
    loop {
        match try_append(set, handle, size) {
            Ok(_) => taken += 1,
            Err(AppendError::Full) => env.sleep(Duration::from_millis(1)).await,
            Err(AppendError::NoSpace) => return taken,
            Err(error) => panic!("{error}"),
        }
        assert!(taken < 20_000, "the disk is never full");
    }
}

async fn until(env: &SimEnv, mut ready: impl FnMut() -> bool) {
    while !ready() {
        env.sleep(Duration::from_millis(5)).await;
    }
}

/// On a disk that fills up, all that was accepted becomes durable and leaves
/// the journal with the help of the reserve, the metadata log takes on, and
/// producers go on by themselves once there is room.
#[test]
fn the_reserve_carries_what_was_accepted() {
    for (seed, class) in (0..6).flat_map(|s| DurabilityClass::ALL.map(|c| (s, c))) {
        for size in [900, 300_000] {
            let sim = Sim::new(seed);
            let env = sim.env();
            let reserve = 20 << 20;
            let taken = sim.run_until(async {
                let (set, found) = recover(&env, with_reserve(reserve), class).await;
                let (log, metadata) = (found[0].handle, found[1].handle);
                until(&env, || len_of(&sim, RESERVE) == Some(reserve as usize)).await;
                leave(&sim, 3 << 20);
                let mut taken = fill(&env, &set, log, size).await;
                assert!(!set.has_space());
                until_durable(&env, &set, log).await;
                assert_eq!(len_of(&sim, RESERVE), Some(0), "it was given up");
                for _ in 0..50 {
                    let done = try_append(&set, metadata, 100);
                    assert!(done.is_ok(), "{done:?}");
                    until_durable(&env, &set, metadata).await;
                }
                assert_eq!(try_append(&set, log, size).unwrap_err(), AppendError::NoSpace);
                assert_eq!(
                    read_all(&set, log, 1 << 20).await.len() as i64 / taken / size as i64,
                    1
                );
                sim.faults(NODE, |f| f.set_capacity(None));
                until(&env, || set.has_space()).await;
                assert_eq!(len_of(&sim, RESERVE), Some(reserve as usize));
                append(&env, &set, log, &batch(&[(1, size)], Compression::None)).await;
                taken += 1;
                until_durable(&env, &set, log).await;
                taken
            });
            drop(env);
            let (sim, _) = sim.crash(Crash::Process);
            let env = sim.env();
            sim.run_until(async {
                let (_, found) = recover(&env, with_reserve(reserve), class).await;
                assert_eq!((found[0].log_end.0, found[1].log_end.0), (taken, 50), "seed {seed}");
            });
        }
    }
}

/// A journal that finds no room to grow is no reason to refuse: it is
/// reclaimed at the size that it has.
#[test]
fn a_journal_goes_on_with_the_files_it_has() {
    let sim = Sim::new(5);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = recover(&env, with_reserve(0), DurabilityClass::Disk).await;
        let log = found[0].handle;
        append(&env, &set, log, &batch(&[(1, 900)], Compression::None)).await;
        // The second file; a third does not fit beside the segments to come.
        until(&env, || journals(&sim, "disk") >= 2).await;
        for _ in 0..60 {
            leave(&sim, 600 << 10);
            for i in 0..20 {
                append(&env, &set, log, &batch(&[(i, 900)], Compression::None)).await;
            }
        }
        until_durable(&env, &set, log).await;
        assert_eq!(journals(&sim, "disk"), 2, "1,200 groups are more than two files of 1 MiB");
        assert!(set.has_space());
    });
}

/// Where there is room for what was accepted but not for blocks ahead, none are
/// taken, and nothing is refused; where there is room, they come again.
#[test]
fn blocks_ahead_take_no_space_from_others() {
    let sim = Sim::new(6);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = recover(&env, with_reserve(0), DurabilityClass::Os).await;
        let log = found[0].handle;
        set.set_config(log, LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() });
        let path = "/data/events-3/00000000000000000000.log";
        let bytes = batch(&[(1, 3_800)], Compression::None);
        append(&env, &set, log, &bytes).await;
        until(&env, || journals(&sim, "os") >= 2).await;
        env.sleep(Duration::from_millis(50)).await;
        leave(&sim, 50 << 10);
        for _ in 0..10 {
            append(&env, &set, log, &bytes).await;
        }
        until(&env, || len_of(&sim, path).is_some_and(|len| len > 0)).await;
        env.sleep(Duration::from_millis(50)).await;
        let len = len_of(&sim, path).unwrap();
        assert!(len <= 11 * bytes.len() && set.has_space(), "{len}");
        sim.faults(NODE, |f| f.set_capacity(None));
        for _ in 0..10 {
            append(&env, &set, log, &bytes).await;
        }
        until(&env, || len_of(&sim, path) > Some(21 * bytes.len())).await;
    });
}

/// On a full disk a log gives back the blocks that it has ahead: to others that
/// wait for space, then to the reserve that was given up for them.
#[test]
fn blocks_ahead_go_to_those_who_wait() {
    const MIB: u64 = 1 << 20;
    for reserve in [0, 256 << 10] {
        let sim = Sim::new(7);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = recover(&env, with_reserve(reserve), DurabilityClass::Os).await;
            let log = found[0].handle;
            set.set_config(log, LogConfig { segment_bytes: 8 * MIB, ..LogConfig::default() });
            let other = KnownLog {
                log_id: LogId(9),
                topic: Arc::from("other"),
                ..known(DurabilityClass::Os)
            };
            let other = set.create(&other).await.unwrap();
            let path = "/data/events-3/00000000000000000000.log";
            let bytes = batch(&[(1, 3_800)], Compression::None);
            for _ in 0..150 {
                append(&env, &set, log, &bytes).await;
            }
            until_durable(&env, &set, log).await;
            env.sleep(Duration::from_secs(1)).await;
            let held = (150 * bytes.len()).next_multiple_of(4096);
            assert!(len_of(&sim, path) > Some(held + (400 << 10)), "{:?}", len_of(&sim, path));
            leave(&sim, 100 << 10);
            try_append(&set, other, 300_000).unwrap();
            env.sleep(Duration::from_secs(5)).await;
            commit(&set);
            assert_eq!(set.bounds(other).unwrap().1, Offset(1), "it found room");
            assert_eq!(len_of(&sim, path), Some(held));
            assert!(set.has_space(), "and the reserve too");
            assert_eq!(len_of(&sim, RESERVE).unwrap_or(0) as u64, reserve);
            for handle in [log, other] {
                assert!(!read_all(&set, handle, 1 << 20).await.is_empty());
            }
            set.close().await.unwrap();
        });
    }
}

/// Journal files of a class that have any bytes.
fn journals(sim: &Sim, class: &str) -> usize {
    let start = format!("/data/journal/{class}-");
    let files = sim.files(NODE);
    let of_class = |path: &Path| path.to_string_lossy().starts_with(&start);
    files.iter().filter(|(path, bytes)| of_class(path) && !bytes.is_empty()).count()
}

/// An append that waits for space does not hold up its log's deletion.
#[test]
fn a_deletion_does_not_wait_for_space() {
    for seed in 0..8 {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = recover(&env, with_reserve(0), DurabilityClass::Disk).await;
            let log = found[0].handle;
            append(&env, &set, log, &batch(&[(1, 900)], Compression::None)).await;
            until_durable(&env, &set, log).await;
            leave(&sim, 0);
            try_append(&set, log, 300_000).unwrap();
            until(&env, || !set.has_space()).await;
            set.delete(log).await.unwrap();
            until(&env, || len_of(&sim, "/data/events-3/partition.metadata").is_none()).await;
            // It waited for nothing else, so there is nothing left to refuse for.
            until(&env, || set.has_space()).await;
        });
    }
}

/// A start on a disk without room serves what is there, and takes appends once
/// it has made its journals.
#[test]
fn a_start_on_a_full_disk_can_be_read() {
    for (seed, class) in (0..6).flat_map(|s| DurabilityClass::ALL.map(|c| (s, c))) {
        let sim = Sim::new(seed);
        let env = sim.env();
        let expected = sim.run_until(async {
            let (set, found) = recover(&env, with_reserve(0), class).await;
            for i in 0..100 {
                append(&env, &set, found[0].handle, &batch(&[(i, 900)], Compression::None)).await;
            }
            until_durable(&env, &set, found[0].handle).await;
            set.close().await.unwrap();
            read_all(&set, found[0].handle, 10_000).await
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Process);
        let env = sim.env();
        leave(&sim, 0);
        sim.run_until(async {
            let (set, found) = recover(&env, with_reserve(0), class).await;
            let log = found[0].handle;
            assert!(!set.is_ready());
            assert!(read_all(&set, log, 10_000).await == expected, "seed {seed}");
            assert_eq!(try_append(&set, log, 900).unwrap_err(), AppendError::NoSpace);
            sim.faults(NODE, |f| f.set_capacity(None));
            until(&env, || set.has_space()).await;
            append(&env, &set, log, &batch(&[(1, 900)], Compression::None)).await;
            until_durable(&env, &set, log).await;
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Process);
        let env = sim.env();
        sim.run_until(async {
            let (_, found) = recover(&env, with_reserve(0), class).await;
            assert_eq!(found[0].log_end, Offset(101), "seed {seed}");
        });
    }
}

/// A start whose records lie in the journals only waits until they fit into
/// the segments; with a reserve it need not wait.
#[test]
fn a_start_takes_the_reserve_for_its_segments() {
    for (seed, reserve) in (0..6).flat_map(|s| [(s, 0), (s, 8 << 20)]) {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let settings = LogSetConfig { write_behind_bytes: 1 << 20, ..with_reserve(reserve) };
            let (set, found) = recover(&env, settings, DurabilityClass::Disk).await;
            until(&env, || reserve == 0 || len_of(&sim, RESERVE) == Some(reserve as usize)).await;
            for i in 0..40 {
                append(&env, &set, found[0].handle, &batch(&[(i, 900)], Compression::None)).await;
            }
            until_durable(&env, &set, found[0].handle).await;
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Power);
        let env = sim.env();
        leave(&sim, 0);
        sim.run_until(async {
            let waits = std::cell::Cell::new(false);
            let starting = recover(&env, with_reserve(reserve), DurabilityClass::Disk);
            let room = async {
                env.sleep(Duration::from_secs(3)).await;
                waits.set(true);
                sim.faults(NODE, |f| f.set_capacity(None));
                std::future::pending().await
            };
            let (_, found) = futures_lite::future::or(starting, room).await;
            assert_eq!(found[0].log_end, Offset(40), "seed {seed}");
            assert_eq!(waits.get(), reserve == 0, "seed {seed}");
        });
    }
}

/// A class whose journal finds no room for a file does not keep the other from
/// one for which there is room.
#[test]
fn each_journal_gets_the_file_that_fits() {
    for class in DurabilityClass::ALL {
        let sim = Sim::new(3);
        let env = sim.env();
        sim.run_until(async {
            let mut settings = with_reserve(0);
            let large = JournalConfig { file_bytes: 16 << 20, cap_bytes: 96 << 20, ..settings.os };
            let of_other = match class {
                DurabilityClass::Disk => &mut settings.os,
                DurabilityClass::Os => &mut settings.disk,
            };
            *of_other = large;
            let (set, found) = recover(&env, settings, class).await;
            let other = match class {
                DurabilityClass::Disk => {
                    let known = KnownLog {
                        log_id: LogId(9),
                        topic: Arc::from("other"),
                        ..known(DurabilityClass::Os)
                    };
                    set.create(&known).await.unwrap()
                }
                DurabilityClass::Os => found[1].handle,
            };
            // The other journal wants its second file from now on, in vain.
            leave(&sim, 12 << 20);
            append(&env, &set, other, &batch(&[(1, 900)], Compression::None)).await;
            let log = found[0].handle;
            let most = async {
                for _ in 0..2_500 {
                    // Refused in a moment in which the try for the other's file has all space.
                    while try_append(&set, log, 900).is_err() {
                        set.flush();
                        commit(&set);
                        env.sleep(Duration::from_millis(1)).await;
                    }
                }
                until_durable(&env, &set, log).await;
            };
            let late = async {
                env.sleep(Duration::from_secs(60)).await;
                panic!("class {} waits for the other's file", class.name());
            };
            futures_lite::future::or(most, late).await;
        });
    }
}

/// A stop on a full disk without a reserve ends: what it could not write was
/// not acknowledged, or lies in the journals.
#[test]
fn a_stop_without_space_ends() {
    for class in DurabilityClass::ALL {
        let sim = Sim::new(4);
        let env = sim.env();
        let durable = sim.run_until(async {
            let (set, found) = recover(&env, with_reserve(0), class).await;
            let log = found[0].handle;
            append(&env, &set, log, &batch(&[(1, 900)], Compression::None)).await;
            until_durable(&env, &set, log).await;
            leave(&sim, 0);
            for _ in 0..2_000 {
                let _ = try_append(&set, log, 2_000);
                env.sleep(Duration::from_micros(100)).await;
            }
            let late = async {
                env.sleep(Duration::from_secs(60)).await;
                panic!("class {}: the stop does not end", class.name());
            };
            futures_lite::future::or(set.close(), late).await.unwrap();
            set.bounds(log).unwrap()
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Process);
        sim.faults(NODE, |f| f.set_capacity(None));
        let env = sim.env();
        sim.run_until(async {
            let (_, found) = recover(&env, with_reserve(0), class).await;
            assert!(found[0].log_end >= durable.1, "{:?} of {durable:?}", found[0].log_end);
        });
    }
}

/// Descriptors that ran out are waited for, and cached files are closed.
#[test]
fn short_descriptors_pass() {
    let sim = Sim::new(9);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = recover(&env, with_reserve(1 << 20), DurabilityClass::Disk).await;
        let log = found[0].handle;
        sim.faults(NODE, |f| f.set_open_limit(Some(0)));
        for _ in 0..100 {
            let _ = try_append(&set, log, 3_000);
            env.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(try_append(&set, log, 3_000).unwrap_err(), AppendError::NoSpace);
        sim.faults(NODE, |f| f.set_open_limit(None));
        until(&env, || set.has_space()).await;
        append(&env, &set, log, &batch(&[(1, 900)], Compression::None)).await;
        until_durable(&env, &set, log).await;
    });
}

/// Blocks of all files outside of the journals.
fn blocks_outside(sim: &Sim) -> u64 {
    let files = sim.files(NODE);
    let outside = files.iter().filter(|(path, _)| !path.starts_with("/data/journal"));
    outside.map(|(_, bytes)| (bytes.len() as u64).next_multiple_of(4096)).sum()
}

/// What a start writes to get everything out of the journals stays within what
/// the reserve has for it, beside its fixed part.
#[test]
fn emptying_the_journals_takes_no_more_than_the_reserve() {
    const ROUND_BYTES: u64 = 64 << 10;
    for (logs, size, index_interval_bytes) in
        [(1, 900, 4096), (1, 100_000, 4096), (60, 900, 4096), (30, 2_000, 1), (34, 65_600, 4096)]
    {
        let sim = Sim::new(1);
        let env = sim.env();
        let of = |i: usize| KnownLog {
            log_id: LogId(100 + i as u64),
            partition: PartitionIndex(i as i32),
            config: LogConfig { index_interval_bytes, ..LogConfig::default() },
            ..known(DurabilityClass::Disk)
        };
        let known: Vec<_> = (0..logs).map(of).collect();
        // Nothing leaves the journal before the crash.
        let settings = LogSetConfig { write_behind_bytes: 1 << 40, ..with_reserve(0) };
        let mut sent: u64 = 0;
        sim.run_until(async {
            env.fs().create_dir_all(Path::new("/data")).await.unwrap();
            env.fs().sync_dir(Path::new("/")).await.unwrap();
            let start = LogSet::recover(env.clone(), settings.clone(), &known);
            let (set, found) = start.await.unwrap();
            let bytes = batch(&[(1, size)], Compression::None);
            let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
            let len = bytes.len() as u64;
            for i in 0..2_300_000 / size {
                let log = found[i % logs].handle;
                let base = set.bounds(log).unwrap().2;
                set.append(log, &bytes, &summary, base, LeaderEpoch(1)).unwrap();
                sent += len;
                // Large groups: then the journals have little but records.
                if sent / ROUND_BYTES != (sent - len) / ROUND_BYTES {
                    until_durable(&env, &set, log).await;
                }
            }
            for log in &found {
                until_durable(&env, &set, log.handle).await;
            }
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Power);
        let env = sim.env();
        let before = blocks_outside(&sim);
        sim.run_until(async {
            LogSet::recover(env.clone(), settings, &known).await.unwrap();
        });
        let taken = blocks_outside(&sim) - before;
        let reserved = sent + sent / 64 + logs as u64 * 3 * 4096;
        assert!(taken >= sent, "{logs} logs, {size} bytes: {taken} for {sent} from the journals");
        assert!(taken <= reserved, "{logs} logs, {size} bytes: {taken} of {reserved}");
    }
}
