//! Log starts move up: by age, by size, on request; what a crash leaves.

use super::*;
use crate::io::{Env as _, FileSystem as _};
use crate::log::segment::names;

const DIR: &str = "/data/events-3";

fn limits(retention_ms: i64, retention_bytes: i64) -> LogConfig {
    LogConfig {
        retention_ms,
        retention_bytes,
        file_delete_delay: std::time::Duration::ZERO,
        ..known(DurabilityClass::Disk).config
    }
}

/// Batches of one record and 1,000 bytes, timestamps 0, 1, 2, …; some 60 to a
/// segment.
async fn fill(env: &SimEnv, set: &LogSet<SimEnv>, handle: LogHandle, count: i64) {
    let from = set.bounds(handle).unwrap().2.0;
    for i in from..from + count {
        append(env, set, handle, &batch(&[(i, 930)], Compression::None)).await;
    }
    until_durable(env, set, handle).await;
}

/// One look, as the shard takes it; segments dropped.
async fn enforce(set: &LogSet<SimEnv>, handle: LogHandle, now_ms: i64) -> usize {
    let Some(to) = set.retained_from(handle, now_ms).await.unwrap() else { return 0 };
    set.advance_log_starts(&[(handle, to)]).await.unwrap();
    set.drop_segments(&[handle]).await.unwrap()
}

/// Base offsets of the segments in the directory, and names that end otherwise.
async fn listed(env: &SimEnv) -> (Vec<i64>, usize) {
    let all = env.fs().read_dir(Path::new(DIR)).await.unwrap();
    let mut bases: Vec<i64> = all
        .iter()
        .filter_map(|entry| names::parse(&entry.name))
        .filter(|(_, kind)| *kind == names::Kind::Log)
        .map(|(base, _)| base.0)
        .collect();
    bases.sort_unstable();
    (bases, all.iter().filter(|entry| entry.name.ends_with(".deleted")).count())
}

/// Base offsets of a log's segments, written or not.
fn bases(set: &LogSet<SimEnv>, handle: LogHandle) -> Vec<i64> {
    let state = set.shared.state.borrow();
    let log = state.log(handle).unwrap();
    log.closed.keys().copied().chain(log.open.iter().map(|s| s.base)).map(|base| base.0).collect()
}

fn on_sim(test: impl AsyncFnOnce(SimEnv)) {
    let sim = Sim::new(3);
    let env = sim.env();
    sim.run_until(test(env));
}

#[test]
fn segments_go_by_age_and_the_active_one_after_a_roll() {
    on_sim(async |env| {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let handle = found.handle;
        fill(&env, &set, handle, 200).await;
        let before = bases(&set, handle);
        assert!(before.len() >= 3, "{before:?}");
        assert_eq!(enforce(&set, handle, 10_000).await, 0, "no limit is set");
        set.set_config(handle, limits(100, -1));
        assert_eq!(enforce(&set, handle, before[1] + 99).await, 0, "none is older than 100 ms");
        // The newest record of the first segment is one older than the second's first.
        assert_eq!(enforce(&set, handle, before[1] + 100).await, 1);
        assert_eq!(set.bounds(handle).unwrap().0, Offset(before[1]));
        assert_eq!(listed(&env).await.0[0], before[1]);
        // Everything is old: what is active too goes, and the log is empty.
        enforce(&set, handle, 10_000).await;
        let (log_start, _, end) = set.bounds(handle).unwrap();
        assert_eq!((log_start, end), (Offset(200), Offset(200)));
        assert_eq!(set.size(handle), Some(0));
        assert_eq!(enforce(&set, handle, 20_000).await, 0, "an empty segment stays");
        // And it goes on.
        fill(&env, &set, handle, 3).await;
        let bytes = read_all(&set, handle, 1 << 20).await;
        assert_eq!(BatchView::parse(&bytes).unwrap().0.base_offset(), Offset(200));
        set.close().await.unwrap();
    });
}

#[test]
fn segments_go_by_size_oldest_first() {
    on_sim(async |env| {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let handle = found.handle;
        fill(&env, &set, handle, 400).await;
        let before = set.size(handle).unwrap();
        set.set_config(handle, limits(-1, 150_000));
        assert!(enforce(&set, handle, 0).await > 1);
        let after = set.size(handle).unwrap();
        let log_start = set.bounds(handle).unwrap().0;
        assert!(before > 350_000 && (150_000..220_000).contains(&after), "{before}, {after}");
        // Without a checkpoint of its own the next look finds nothing to do.
        assert_eq!(enforce(&set, handle, 0).await, 0);
        assert_eq!(listed(&env).await.0[0], log_start.0);
        set.close().await.unwrap();
    });
}

#[test]
fn nothing_below_the_start_is_read_and_offsets_by_time_begin_there() {
    on_sim(async |env| {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let handle = found.handle;
        fill(&env, &set, handle, 300).await;
        // As a task would have it that was told so when the record was cold.
        let (from, upper) = (Offset(5), Offset(300));
        let cold = ColdRead { handle, from, upper, max_bytes: 5_000, at_least_one: true };
        assert!(!set.read_cold(cold).await.unwrap().is_empty());
        set.advance_log_starts(&[(handle, Offset(170))]).await.unwrap();
        set.set_config(handle, limits(-1, -1));
        assert!(enforce(&set, handle, 0).await > 0, "whole segments below the start go");
        let late = set.read_cold(cold).await;
        assert!(matches!(late, Err(Error::OutOfRange(_))), "{late:?}");
        for (from, readable) in [(0, false), (169, false), (170, true)] {
            let found = set.read(handle, Offset(from), Offset(300), 5_000, true);
            assert_eq!(!matches!(found, ReadOutcome::OutOfRange), readable, "{from}");
        }
        let first = set.offset_for_timestamp(handle, Timestamp(0), Offset(300)).await.unwrap();
        assert_eq!(first.map(|f| f.offset), Some(Offset(170)));
        // Never back, and never beyond what is committed.
        set.advance_log_starts(&[(handle, Offset(3))]).await.unwrap();
        assert_eq!(set.bounds(handle).unwrap().0, Offset(170));
        set.advance_log_starts(&[(handle, Offset(9_999))]).await.unwrap();
        assert_eq!(set.bounds(handle).unwrap().0, Offset(300));
        set.close().await.unwrap();
    });
}

#[test]
fn a_start_finds_the_log_start_and_sweeps_what_a_crash_left() {
    for seed in 0..20 {
        for crash in [Crash::Process, Crash::Power] {
            let sim = Sim::new(seed);
            let env = sim.env();
            let log_start = sim.run_until(async {
                let (set, found) = start(&env, DurabilityClass::Disk).await;
                fill(&env, &set, found.handle, 400).await;
                // Files are to be there at the crash.
                let late = LogConfig {
                    file_delete_delay: std::time::Duration::from_secs(60),
                    ..limits(-1, 150_000)
                };
                set.set_config(found.handle, late);
                assert!(enforce(&set, found.handle, 0).await > 1);
                assert!(listed(&env).await.1 > 3, "files wait for their unlinking");
                fill(&env, &set, found.handle, 20).await;
                set.bounds(found.handle).unwrap().0
            });
            drop(env);
            // After a power cut the renames may be undone, each alone.
            let (sim, _) = sim.crash(crash);
            let env = sim.env();
            sim.run_until(async {
                let (set, found) = start(&env, DurabilityClass::Disk).await;
                assert_eq!((found.log_start, found.log_end), (log_start, Offset(420)));
                let bytes = read_all(&set, found.handle, 1 << 20).await;
                let (first, _) = BatchView::parse(&bytes).unwrap();
                assert_eq!(first.base_offset(), log_start);
                assert_eq!(listed(&env).await.0[0], log_start.0, "seed {seed}");
                env.sleep(std::time::Duration::from_secs(1)).await;
                assert_eq!(listed(&env).await.1, 0, "what was renamed is unlinked");
                fill(&env, &set, found.handle, 5).await;
                set.close().await.unwrap();
            });
        }
    }
}

#[test]
fn files_wait_for_their_delay_unless_the_disk_is_full() {
    on_sim(async |env| {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let handle = found.handle;
        fill(&env, &set, handle, 200).await;
        let delay = std::time::Duration::from_secs(60);
        set.set_config(handle, LogConfig { file_delete_delay: delay, ..limits(-1, 0) });
        let dropped = enforce(&set, handle, 0).await;
        assert!(dropped > 2);
        env.sleep(delay / 2).await;
        assert_eq!(listed(&env).await.1, 3 * dropped);
        env.sleep(delay).await;
        assert_eq!(listed(&env).await.1, 0);
        fill(&env, &set, handle, 200).await;
        assert!(enforce(&set, handle, 0).await > 2);
        set.shared.state.borrow_mut().no_space = true;
        env.sleep(delay / 4).await;
        assert_eq!(listed(&env).await.1, 0);
    });
}

/// Records are in the old journals only until a start has its first frames: on
/// a disk that has no room for these nothing may write a checkpoint.
#[test]
fn a_start_that_waits_for_space_moves_no_log_start() {
    let node = NodeIndex(0);
    let sim = Sim::new(4);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        fill(&env, &set, found.handle, 100).await;
    });
    drop(env);
    let (sim, _) = sim.crash(Crash::Process);
    let used: usize = sim.files(node).iter().map(|(_, bytes)| bytes.len()).sum();
    sim.faults(node, |f| f.set_capacity(Some(used as u64 + 300_000)));
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        assert!(!set.is_ready() && found.log_end == Offset(100));
        set.set_config(found.handle, limits(0, 0));
        assert_eq!(enforce(&set, found.handle, 10_000).await, 0);
        let moved = set.advance_log_starts(&[(found.handle, Offset(7))]).await;
        assert!(matches!(moved, Err(Error::NoSpace { .. })), "{moved:?}");
    });
    drop(env);
    let (sim, _) = sim.crash(Crash::Power);
    sim.faults(node, |f| f.set_capacity(None));
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        assert_eq!((found.log_start, found.log_end), (Offset(0), Offset(100)));
        assert_eq!(read_all(&set, found.handle, 1 << 20).await.len(), 100 * found_len());
    });
}

fn found_len() -> usize {
    batch(&[(0, 930)], Compression::None).len()
}

/// Log starts that are moved together share their checkpoints.
#[test]
fn many_moves_at_once_write_few_checkpoints() {
    on_sim(async |env| {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let log = found.handle;
        fill(&env, &set, log, 50).await;
        let before = set.shared.state.borrow().checkpoint_sequence;
        let moves = (1..=40).map(|to| {
            let set = &set;
            async move { set.advance_log_starts(&[(log, Offset(to))]).await }
        });
        for moved in crate::log::together::all(moves.collect()).await {
            moved.unwrap();
        }
        assert_eq!(set.bounds(log).unwrap().0, Offset(40));
        let written = set.shared.state.borrow().checkpoint_sequence - before;
        assert!(written <= 2, "{written} checkpoints: the first, and one for all others");
    });
}
