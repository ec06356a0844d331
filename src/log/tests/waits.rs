//! Waits that could close a circle, one test each: what a full journal, a
//! truncation, reclaim and write-behind want of each other.

use super::*;
use crate::io::{Env as _, Task as _};

/// Steps within which each of these histories comes to rest, many times over.
const STEPS: u64 = 4_000_000;

fn tight(cap_files: u64) -> LogSetConfig {
    let mut config = config();
    let small = JournalConfig {
        first_file_bytes: 1 << 20,
        file_bytes: 1 << 20,
        cap_bytes: cap_files << 20,
        in_flight: 1,
    };
    (config.disk, config.os) = (small, small);
    config
}

/// Nothing of it is committed unless a test says so: it must not roll, since a
/// segment that has ended is closed when it is committed.
fn numbered(id: u64) -> KnownLog {
    KnownLog {
        log_id: LogId(id),
        config: LogConfig { segment_bytes: 8 << 20, ..LogConfig::default() },
        partition: PartitionIndex(id as i32),
        ..known(DurabilityClass::Disk)
    }
}

fn numbered_up_to(last: u64) -> Vec<KnownLog> {
    (1..=last).map(numbered).collect()
}

async fn start_all(
    env: &SimEnv,
    config: LogSetConfig,
    logs: &[KnownLog],
) -> (LogSet<SimEnv>, Vec<LogHandle>) {
    use crate::io::FileSystem as _;
    env.fs().create_dir_all(Path::new("/data")).await.unwrap();
    env.fs().sync_dir(Path::new("/")).await.unwrap();
    let (set, _) = LogSet::recover(env.clone(), config, &[]).await.unwrap();
    let mut handles = Vec::new();
    for known in logs {
        handles.push(set.create(known).await.unwrap());
    }
    (set, handles)
}

/// Appends once; false when the log is full for the moment.
fn try_append(set: &LogSet<SimEnv>, handle: LogHandle, size: usize) -> bool {
    let bytes = batch(&[(1, size)], Compression::None);
    let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
    let base = set.bounds(handle).unwrap().2;
    match set.append(handle, &bytes, &summary, base, latest(set, handle)) {
        Ok(_) => true,
        Err(AppendError::Full) => false,
        Err(error) => panic!("{error}"),
    }
}

fn comes_to_rest<T>(sim: &Sim, seed: u64, future: impl Future<Output = T>) -> T {
    sim.crash_after(Some(STEPS));
    let outcome = sim.run(future);
    outcome.unwrap_or_else(|stop| panic!("seed {seed} does not come to rest: {stop:?}"))
}

fn journal_bytes(sim: &Sim) -> u64 {
    let files = sim.files(NodeIndex(0)).into_iter();
    let journals = files.filter(|(p, _)| p.extension().is_some_and(|e| e == "journal"));
    journals.map(|(_, bytes)| bytes.len() as u64).sum()
}

/// Reclaim waits for segments that ended to be committed, and so for what is
/// queued: that must never need the file which reclaim is about to free.
#[test]
fn what_is_queued_finds_room_without_reclaim() {
    for seed in 0..20 {
        let sim = Sim::new(seed);
        let env = sim.env();
        comes_to_rest(&sim, seed, async {
            let (set, handles) = start_all(&env, tight(2), &[known(DurabilityClass::Disk)]).await;
            for _ in 0..6 {
                // More than all files hold, if the log took it.
                for _ in 0..4000 {
                    if !try_append(&set, handles[0], 900) {
                        break;
                    }
                }
                until_durable(&env, &set, handles[0]).await;
            }
        });
        assert!(journal_bytes(&sim) <= 2 * (2 << 20), "seed {seed}");
    }
}

/// A truncation holds its log until its frame is durable, and reclaim waits for
/// it; the frame must get its room all the same.
#[test]
fn truncations_end_while_the_journal_is_at_its_cap() {
    for seed in 0..10 {
        let sim = Sim::new(seed);
        let env = sim.env();
        comes_to_rest(&sim, seed, async {
            let (set, handles) = start_all(&env, tight(2), &numbered_up_to(12)).await;
            let done = Rc::new(std::cell::Cell::new(0));
            for round in 0..3i32 {
                for &handle in &handles[1..] {
                    append_only(&env, &set, handle, 300_000).await;
                    append_only(&env, &set, handle, 500).await;
                }
                while try_append(&set, handles[0], 900) {}
                for &handle in &handles[1..] {
                    let (set, done) = (set.clone(), done.clone());
                    let (to, epoch) = (Offset(0), LeaderEpoch(2 + round));
                    let cut = async move {
                        set.truncate(handle, to, epoch).await.unwrap();
                        done.set(done.get() + 1);
                    };
                    env.spawn(cut).detach();
                }
                while done.get() < 11 * (round + 1) {
                    try_append(&set, handles[0], 900);
                    set.flush();
                    // Only the first log commits.
                    let durable = set.bounds(handles[0]).unwrap().1;
                    set.set_high_watermark(handles[0], durable);
                    env.sleep(std::time::Duration::from_millis(1)).await;
                }
                // What it had uncommitted would fill one file after the other,
                // and no large append would find room.
                loop {
                    let (_, durable, end) = set.bounds(handles[0]).unwrap();
                    set.set_high_watermark(handles[0], durable);
                    if durable == end {
                        break;
                    }
                    env.sleep(std::time::Duration::from_millis(1)).await;
                }
            }
        });
    }
}

/// Reclaim copies what lies above the floors of many logs, all of it
/// uncommitted: more than is kept for it. The journal goes beyond its cap, and
/// comes back.
#[test]
fn reclaim_gets_more_room_than_is_left() {
    for seed in 0..10 {
        let sim = Sim::new(seed);
        let env = sim.env();
        comes_to_rest(&sim, seed, async {
            let (set, handles) = start_all(&env, tight(3), &numbered_up_to(21)).await;
            for _ in 0..12 {
                for &handle in &handles[1..] {
                    append_only(&env, &set, handle, 4_000).await;
                }
            }
            for _ in 0..2500 {
                while !try_append(&set, handles[0], 900) {
                    set.flush();
                    let durable = set.bounds(handles[0]).unwrap().1;
                    set.set_high_watermark(handles[0], durable);
                    env.sleep(std::time::Duration::from_millis(1)).await;
                }
            }
            for &handle in &handles {
                until_durable(&env, &set, handle).await;
            }
            for _ in 0..2500 {
                append(&env, &set, handles[0], &batch(&[(1, 900)], Compression::None)).await;
            }
            until_durable(&env, &set, handles[0]).await;
            env.sleep(std::time::Duration::from_secs(1)).await;
        });
        assert!(journal_bytes(&sim) <= 2 * (3 << 20), "seed {seed}: {}", journal_bytes(&sim));
    }
}

/// Frames that were queued within a minute, copies of reclaim among them.
async fn frames_of_a_minute(env: &SimEnv, set: &LogSet<SimEnv>) -> u64 {
    let frames = || set.shared.state.borrow().journals[0].queued_serial;
    let before = frames();
    env.sleep(std::time::Duration::from_secs(60)).await;
    frames() - before
}

/// Appends to a log and commits it alone.
async fn append_and_commit(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle, count: usize) {
    for _ in 0..count {
        while !try_append(set, handle, 900) {
            env.sleep(std::time::Duration::from_millis(1)).await;
        }
        set.flush();
        set.set_high_watermark(handle, set.bounds(handle).unwrap().1);
    }
    all_durable(env, set, handle).await;
    set.set_high_watermark(handle, set.bounds(handle).unwrap().1);
}

/// Uncommitted data that fills more of the journal than reclaim lets be full is
/// not copied round and round; once it is committed, all goes on at once.
#[test]
fn copies_of_uncommitted_data_come_to_rest() {
    for seed in 0..6 {
        let sim = Sim::new(seed);
        let env = sim.env();
        let ends = comes_to_rest(&sim, seed, async {
            let (set, handles) = start_all(&env, tight(6), &numbered_up_to(6)).await;
            for _ in 0..4 {
                for &handle in &handles[1..] {
                    append_only(&env, &set, handle, 200_000).await;
                }
            }
            frames_of_a_minute(&env, &set).await;
            let copies = frames_of_a_minute(&env, &set).await;
            assert!(copies <= 2 * 60, "seed {seed}: {copies} copies in a minute");
            for &handle in &handles {
                until_durable(&env, &set, handle).await;
            }
            let before = env.monotonic();
            append_and_commit(&env, &set, handles[0], 2500).await;
            let took = env.monotonic() - before;
            assert!(took.as_secs() < 15, "seed {seed}: {took:?} for 2,500 appends");
            frames_of_a_minute(&env, &set).await;
            let copies = frames_of_a_minute(&env, &set).await;
            assert_eq!(copies, 0, "seed {seed}: of what is committed");
            handles.iter().map(|handle| set.bounds(*handle).unwrap().2).collect::<Vec<_>>()
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Power);
        let env = sim.env();
        sim.run_until(async {
            let known = numbered_up_to(6);
            let (set, found) = LogSet::recover(env.clone(), tight(6), &known).await.unwrap();
            for (log, end) in found.iter().zip(ends) {
                assert_eq!(log.log_end, end, "seed {seed}");
                read_all(&set, log.handle, 1 << 20).await;
            }
        });
    }
}

/// What a log has above its floor is copied once for each life of a file, not
/// once for each file that had held some of it.
#[test]
fn a_copy_stands_for_all_older_files() {
    for seed in 0..6 {
        let sim = Sim::new(seed);
        let env = sim.env();
        comes_to_rest(&sim, seed, async {
            let (set, handles) = start_all(&env, tight(6), &numbered_up_to(2)).await;
            // Some of it in each file; together less than one holds.
            for _ in 0..4 {
                append_only(&env, &set, handles[1], 220_000).await;
                append_and_commit(&env, &set, handles[0], 750).await;
            }
            let copies = frames_of_a_minute(&env, &set).await;
            assert!(copies <= 10, "seed {seed}: {copies} copies");
        });
    }
}

/// Tail memory is full of what a truncation drops.
#[test]
fn a_truncation_needs_no_memory_that_it_frees() {
    for seed in 0..10 {
        let sim = Sim::new(seed);
        let env = sim.env();
        comes_to_rest(&sim, seed, async {
            // A group each, a block at least: the journal must have room for all.
            let mut config = tight(12);
            config.pools.tail = Pool::new("tail", 1 << 20).unwrap();
            let (set, handles) = start_all(&env, config, &numbered_up_to(2)).await;
            for &handle in &handles {
                while try_append(&set, handle, 700) {
                    set.flush();
                    env.sleep(std::time::Duration::from_micros(100)).await;
                }
                all_durable(&env, &set, handle).await;
            }
            assert!(!try_append(&set, handles[1], 700), "there is tail memory left");
            assert!(set.shared.state.borrow().journals[0].admits_append(1000));
            let to = Offset(set.bounds(handles[0]).unwrap().2.0 / 4);
            set.truncate(handles[0], to, LeaderEpoch(2)).await.unwrap();
            assert!(try_append(&set, handles[1], 700));
        });
    }
}
