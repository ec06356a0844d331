//! Bounds: bytes ahead of an append, syncs of a stop, and whose directories a
//! start deletes.

use std::time::Duration;

use super::*;
use crate::io::{Env as _, FileSystem as _, Task as _};
use crate::record::BatchSummary;

fn summary_of(bytes: &[u8]) -> BatchSummary {
    BatchView::parse(bytes).unwrap().0.summary().unwrap()
}

fn another(index: i32, class: DurabilityClass) -> KnownLog {
    KnownLog {
        log_id: LogId(100 + u64::try_from(index).unwrap()),
        partition: PartitionIndex(index),
        ..known(class)
    }
}

/// However much one partition sends in a round, the next one's append waits
/// behind no more than the limit, in flight included.
#[test]
fn nobody_waits_behind_more_than_the_limit() {
    let sim = Sim::new(1);
    let env = sim.env();
    sim.run_until(async {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        let settings = LogSetConfig { journal_queue_bytes: 256 << 10, ..config() };
        let logs = [another(0, DurabilityClass::Disk), another(1, DurabilityClass::Disk)];
        let (set, found) = LogSet::recover(env.clone(), settings, &logs).await.unwrap();
        let (greedy, other) = (found[0].handle, found[1].handle);
        let bytes = batch(&[(1, 20_000)], Compression::None);
        let summary = summary_of(&bytes);
        let push = |log| {
            let base = set.bounds(log).unwrap().2;
            set.append(log, &bytes, &summary, base, LeaderEpoch(1))
        };
        let mut ahead = 0;
        let mut turns = 0;
        for _ in 0..40 {
            while push(greedy).is_ok() {
                ahead += bytes.len();
            }
            assert!(ahead <= (256 << 10) + bytes.len(), "{ahead} bytes are ahead");
            assert_eq!(push(other).unwrap_err(), AppendError::Full);
            set.flush();
            // Until a group is durable the limit holds.
            assert_eq!(push(other).unwrap_err(), AppendError::Full);
            let (mut durable, before) = (Vec::new(), set.bounds(greedy).unwrap().1);
            while set.bounds(greedy).unwrap().1 == before {
                env.sleep(Duration::from_micros(100)).await;
                set.flush();
            }
            set.drain_durable(&mut durable);
            for (log, upto) in durable {
                set.set_high_watermark(log, upto);
            }
            let done = (set.bounds(greedy).unwrap().1.0 - before.0) as usize * bytes.len();
            ahead -= done;
            if push(other).is_ok() {
                turns += 1;
                until_durable(&env, &set, other).await;
                ahead = 0;
            }
        }
        assert_eq!(turns, 40, "whoever comes first when a group is done is taken in");
    });
}

/// Class `os` is written at once instead.
#[test]
fn class_os_writes_instead_of_waiting() {
    let sim = Sim::new(2);
    let env = sim.env();
    sim.run_until(async {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        let settings = LogSetConfig { journal_queue_bytes: 256 << 10, ..config() };
        let logs = [another(0, DurabilityClass::Os)];
        let (set, found) = LogSet::recover(env.clone(), settings, &logs).await.unwrap();
        let bytes = batch(&[(1, 20_000)], Compression::None);
        let summary = summary_of(&bytes);
        for i in 0..40 {
            let done = set.append(found[0].handle, &bytes, &summary, Offset(i), LeaderEpoch(1));
            assert!(done.is_ok(), "{done:?}");
        }
        let (_, durable, end) = set.bounds(found[0].handle).unwrap();
        assert!(durable.0 >= 40 - 14 && end == Offset(40), "{durable} of {end} is written");
    });
}

/// A stop with hundreds of logs to write syncs the file system, not each file;
/// one that is deleted meanwhile does not stop it.
#[test]
fn a_stop_with_many_logs_syncs_few_times() {
    const LOGS: i32 = 300;
    for seed in 0..3 {
        let sim = Sim::new(seed);
        let env = sim.env();
        let class = DurabilityClass::ALL[seed as usize % 2];
        let logs: Vec<_> = (0..LOGS).map(|i| another(i, class)).collect();
        sim.run_until(async {
            env.fs().create_dir_all(Path::new("/data")).await.unwrap();
            env.fs().sync_dir(Path::new("/")).await.unwrap();
            let (set, found) = LogSet::recover(env.clone(), config(), &logs).await.unwrap();
            for log in &found {
                append(&env, &set, log.handle, &batch(&[(1, 500)], Compression::None)).await;
            }
            for log in &found {
                until_durable(&env, &set, log.handle).await;
            }
            sim.keep_trace();
            let (deleting, gone) = (set.clone(), found[250].handle);
            env.spawn(async move { deleting.delete(gone).await.unwrap() }).detach();
            set.close().await.unwrap();
            let syncs = sim.trace().iter().filter(|line| line.contains("sync")).count();
            // Each new segment's name is synced in its directory.
            assert!(syncs < LOGS as usize + 40, "{syncs} syncs");
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Power);
        let env = sim.env();
        sim.run_until(async {
            let logs: Vec<_> = logs.iter().filter(|l| l.partition.0 != 250).cloned().collect();
            let (_, found) = LogSet::recover(env.clone(), config(), &logs).await.unwrap();
            assert!(found.iter().all(|log| log.log_end == Offset(1)), "seed {seed}");
        });
    }
}

/// A crash between a removal and the rename leaves a directory: it goes when
/// its topic was removed, and stays when nobody knows it.
#[test]
fn only_directories_of_removed_topics_go() {
    let sim = Sim::new(4);
    let env = sim.env();
    let removed = TopicId([9; 16]);
    sim.run_until(async {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        let (set, _) = LogSet::recover(env.clone(), config(), &[]).await.unwrap();
        let of = |topic: &str, id| KnownLog {
            topic: Arc::from(topic),
            topic_id: id,
            log_id: LogId(u64::from(id.0[0])),
            ..known(DurabilityClass::Disk)
        };
        for log in
            [of("gone", removed), of("kept", TopicId([1; 16])), of("alien", TopicId([2; 16]))]
        {
            set.create(&log).await.unwrap();
        }
        for dir in ["/data/gone-notes", "/data/gone-7"] {
            env.fs().create_dir_all(Path::new(dir)).await.unwrap();
            let about = Path::new(dir).join("mine.txt");
            env.fs().write(&about, b"a user's".to_vec()).await.unwrap();
        }
        set.close().await.unwrap();
        let known = [of("kept", TopicId([1; 16]))];
        let (set, _) = LogSet::recover(env.clone(), config(), &known).await.unwrap();
        // Also the topic that is still there: the metadata may know it anew.
        set.delete_removed(&[removed, TopicId([1; 16])]).await.unwrap();
        let names = async || {
            let found = env.fs().read_dir(Path::new("/data")).await.unwrap();
            let mut names: Vec<_> = found.into_iter().map(|e| e.name).collect();
            names.sort();
            names
        };
        while names().await.iter().any(|name| name.ends_with("-delete")) {
            env.sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(names().await, ["alien-3", "gone-7", "gone-notes", "journal", "kept-3"]);
    });
}
