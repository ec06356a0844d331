//! Faults that the simulation has found around truncations, one test each.

use super::*;
use crate::io::{Env as _, Task as _};

/// Large batches go past the journal into segments of 64 KiB, nothing is
/// committed; the first cut closes the segments before it, the second cuts
/// into one of these.
#[test]
fn a_cut_may_reach_into_a_segment_that_a_cut_has_closed() {
    for (seed, kind) in (0..20).flat_map(|s| [(s, Crash::Process), (s, Crash::Power)]) {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            for _ in 0..6 {
                append_only(&env, &set, found.handle, 300_000).await;
                append_only(&env, &set, found.handle, 1_000).await;
                all_durable(&env, &set, found.handle).await;
            }
            set.truncate(found.handle, Offset(10), LeaderEpoch(2)).await.unwrap();
            set.truncate(found.handle, Offset(3), LeaderEpoch(3)).await.unwrap();
            assert_eq!(set.bounds(found.handle).unwrap().2, Offset(3));
            for _ in 0..3 {
                append(&env, &set, found.handle, &batch(&[(1, 2000)], Compression::None)).await;
            }
            until_durable(&env, &set, found.handle).await;
        });
        drop(env);
        let (sim, _) = sim.crash(kind);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            assert_eq!(found.log_end, Offset(6), "seed {seed}");
            assert_eq!(read_all(&set, found.handle, 10_000).await.len() / 100_000, 6);
        });
    }
}

/// A snapshot taken before a truncation speaks of records that are gone,
/// however late it reaches the disk.
#[test]
fn a_snapshot_belongs_to_the_moment_it_was_taken() {
    for seed in 0..20 {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            for _ in 0..4 {
                append_only(&env, &set, found.handle, 100).await;
            }
            let storing = set.put_producer_snapshot(found.handle, vec![1], Offset(3));
            let late = env.clone();
            env.spawn(async move {
                late.sleep(std::time::Duration::from_millis(20)).await;
                let _ = storing.await;
            })
            .detach();
            set.truncate(found.handle, Offset(2), LeaderEpoch(2)).await.unwrap();
            for _ in 0..4 {
                append(&env, &set, found.handle, &batch(&[(1, 100)], Compression::None)).await;
            }
            until_durable(&env, &set, found.handle).await;
            env.sleep(std::time::Duration::from_millis(50)).await;
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Process);
        let env = sim.env();
        sim.run_until(async {
            let (_, found) = start(&env, DurabilityClass::Disk).await;
            assert_eq!((found.log_end, found.snapshot), (Offset(6), None), "seed {seed}");
        });
    }
}

/// Index entries that did not fit on a full disk are written later.
#[test]
fn index_entries_survive_a_full_disk() {
    let sim = Sim::new(3);
    let env = sim.env();
    let count = sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let node = NodeIndex(0);
        let add = async || {
            let bytes = batch(&[(1, 2500)], Compression::None);
            let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
            let base = set.bounds(found.handle).unwrap().2;
            let done = set.append(found.handle, &bytes, &summary, base, latest(&set, found.handle));
            set.flush();
            commit(&set);
            env.sleep(std::time::Duration::from_millis(5)).await;
            done.is_ok()
        };
        while !add().await {}
        let used: u64 = sim.files(node).iter().map(|(_, bytes)| bytes.len() as u64).sum();
        sim.faults(node, |f| f.set_capacity(Some(used + 70_000)));
        for _ in 0..100 {
            add().await;
        }
        sim.faults(node, |f| f.set_capacity(None));
        for _ in 0..500 {
            add().await;
        }
        let end = set.bounds(found.handle).unwrap().2;
        set.close().await.unwrap();
        end
    });
    assert!(count > Offset(200), "{count}");
    let mut segments = 0;
    for (path, bytes) in sim.files(NodeIndex(0)) {
        if path.extension().is_some_and(|e| e == "index") && !bytes.is_empty() {
            assert!(bytes.chunks(8).all(|entry| entry != [0; 8]), "{}", path.display());
            segments += 1;
        }
    }
    assert!(segments > 5, "{segments}");
}
