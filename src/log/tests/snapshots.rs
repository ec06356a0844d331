//! Producer snapshots: when one counts, and which of them stay.

use std::pin::pin;

use futures_lite::future::poll_once;

use super::*;
use crate::io::sim::FaultOp;

/// What it was taken of may be lost in a crash, and the start then takes it
/// away: segments must not go because of it.
#[test]
fn a_snapshot_counts_when_it_is_committed() {
    let sim = Sim::new(3);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        for _ in 0..4 {
            append_only(&env, &set, found.handle, 100).await;
        }
        set.put_producer_snapshot(found.handle, vec![1], Offset(4)).await.unwrap();
        assert_eq!(set.newest_snapshot(found.handle), Some(Offset(0)));
        until_durable(&env, &set, found.handle).await;
        assert_eq!(set.newest_snapshot(found.handle), Some(Offset(4)));
    });
}

/// A roll and retention may want a snapshot of the same offset: the second is
/// told of it when it is there, and makes it itself when the first fails.
#[test]
fn the_second_of_two_equal_snapshots_waits_for_the_first() {
    for fails in [false, true] {
        let sim = Sim::new(3);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Disk).await;
            append(&env, &set, found.handle, &batch(&[(1, 100)], Compression::None)).await;
            until_durable(&env, &set, found.handle).await;
            if fails {
                sim.faults(NodeIndex(0), |f| f.plan(FaultOp::Write, ".tmp", 0, libc::ENOSPC));
            }
            let first = set.put_producer_snapshot(found.handle, vec![1], Offset(1));
            let mut second = pin!(set.put_producer_snapshot(found.handle, vec![1], Offset(1)));
            assert!(poll_once(second.as_mut()).await.is_none(), "the first is not there yet");
            assert_eq!(first.await.is_err(), fails);
            second.await.unwrap();
            assert_eq!(set.newest_snapshot(found.handle), Some(Offset(1)));
        });
    }
}

/// However many snapshots are beyond what is committed, a start finds one.
#[test]
fn the_newest_committed_snapshot_stays() {
    let sim = Sim::new(3);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, DurabilityClass::Disk).await;
        let bytes = batch(&[(1, 100)], Compression::None);
        append(&env, &set, found.handle, &bytes).await;
        until_durable(&env, &set, found.handle).await;
        set.put_producer_snapshot(found.handle, vec![1], Offset(1)).await.unwrap();
        let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
        for at in 1..5 {
            // Nothing flushes: it is lost.
            let epoch = latest(&set, found.handle);
            set.append(found.handle, &bytes, &summary, Offset(at), epoch).unwrap();
            let at = Offset(at + 1);
            set.put_producer_snapshot(found.handle, vec![2], at).await.unwrap();
        }
        assert_eq!(set.newest_snapshot(found.handle), Some(Offset(1)));
    });
    drop(env);
    let (sim, _) = sim.crash(Crash::Power);
    let env = sim.env();
    sim.run_until(async {
        let (_, found) = start(&env, DurabilityClass::Disk).await;
        assert_eq!((found.log_end, found.snapshot), (Offset(1), Some((Offset(1), vec![1]))));
    });
}
