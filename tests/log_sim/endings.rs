//! How an incarnation ends when no crash ends it: the clean stop, the end that
//! a fault calls for, and what must go on by itself once trouble has passed.

use std::rc::Rc;
use std::time::Duration;

use millstream::io::Env as _;
use millstream::io::sim::Sim;
use millstream::log::FatalReason;

use crate::driver::Shard;
use crate::errors;
use crate::files;
use crate::history::{End, NODE};

/// Virtual time after which a shard that should have noticed has not.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the process has to end, when a write or a sync has failed: the
/// log may not keep it to itself.
pub(crate) async fn fatal_is_told(shard: &Shard) {
    let hits = shard.env.fault_hits();
    let Some(hit) = hits.iter().find(|hit| errors::ends_process(hit)) else { return };
    let until = shard.env.monotonic() + PATIENCE;
    while !shard.dead.get() && shard.env.monotonic() < until {
        shard.signal.raise();
        shard.env.sleep(Duration::from_millis(1)).await;
    }
    assert!(shard.dead.get(), "{hit:?} had no consequence");
}

/// Counts how the process ended.
pub(crate) fn count_fatal(shard: &Shard) {
    let Some((reason, _)) = shard.set.fatal() else { return };
    let mut events = shard.shared.events.borrow_mut();
    let count = match reason {
        FatalReason::JournalWrite => &mut events.journal_writes_failed,
        FatalReason::Sync => &mut events.syncs_failed,
        FatalReason::SegmentWrite => &mut events.segment_writes_failed,
        FatalReason::Checkpoint => &mut events.checkpoints_failed,
        other => panic!("a running shard ended with {other:?}"),
    };
    *count += 1;
}

/// After a full disk or a lack of descriptors: everything goes on, unasked.
pub(crate) async fn resumes(shard: &Rc<Shard>) {
    let until = shard.env.monotonic() + PATIENCE;
    let wait = async |what: &str| {
        shard.signal.raise();
        shard.env.sleep(Duration::from_millis(1)).await;
        assert!(shard.env.monotonic() < until, "after the trouble {what}");
    };
    while shard.parts.borrow().values().any(|p| p.busy) {
        wait("a truncation does not end").await;
    }
    let ids: Vec<_> = shard.parts.borrow().keys().copied().collect();
    for id in &ids {
        while !shard.produce(*id) {
            wait("an append is refused").await;
        }
    }
    for id in ids {
        loop {
            let handle = shard.parts.borrow()[&id].handle;
            let (_, durable, end) = shard.set.bounds(handle).expect("nobody deletes it now");
            if durable == end {
                break;
            }
            wait("a record does not become durable").await;
        }
    }
    shard.shared.events.borrow_mut().resumed += 1;
}

/// A clean stop: everything is in the files, exactly.
pub(crate) async fn close(shard: &Rc<Shard>, sim: &Sim) -> End {
    // A start that waits for space leaves all in the journals.
    while !shard.set.is_ready() && !shard.dead.get() {
        shard.env.sleep(Duration::from_millis(1)).await;
    }
    shard.shared.tell(|| "close".to_owned());
    let closed = shard.set.close().await;
    if !shard.check(closed) {
        return End::Fatal;
    }
    let hits = shard.env.fault_hits();
    assert!(!hits.iter().any(errors::ends_process), "{hits:?}, and a clean stop");
    let mut events = shard.shared.events.borrow_mut();
    events.clean_stops += 1;
    let mut model = shard.shared.model.borrow_mut();
    for log in model.logs.values_mut() {
        log.closed();
        events.appends += log.live.len() as u64;
    }
    drop(model);
    drop(events);
    check_files(shard, sim, true);
    let segments =
        sim.files(NODE).iter().filter(|(p, _)| p.extension().is_some_and(|e| e == "log")).count();
    let logs = shard.shared.model.borrow().logs.len();
    shard.shared.events.borrow_mut().rolls += segments.saturating_sub(logs) as u64;
    End::Closed
}

/// Files against the model, but for the rot that the test itself has made.
pub(crate) fn check_files(shard: &Shard, sim: &Sim, exact: bool) {
    let mut files = sim.files(NODE).into_iter().collect();
    let model = shard.shared.model.borrow();
    for log in model.logs.values() {
        log.damages.iter().for_each(|d| d.undo(&mut files));
    }
    for log in model.logs.values() {
        files::check(&files, log, exact);
    }
}
