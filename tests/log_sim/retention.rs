//! Log starts that move up: by DeleteRecords, and by retention with limits
//! drawn anew each time, which drops segments and starts new ones.

use std::rc::Rc;

use millstream::io::Env as _;
use millstream::log::{Error, LogConfig, LogHandle};
use millstream::model::{LogId, Offset};
use millstream::partition::Effects;

use crate::driver::Shard;

/// Raises the log start somewhere below the high watermark.
pub(crate) async fn delete_records(shard: &Rc<Shard>, id: LogId) {
    let (handle, to) = {
        let parts = shard.parts.borrow();
        let Some(part) = parts.get(&id) else { return };
        let offsets = part.machine.offsets();
        let room = offsets.high_watermark.0 - offsets.log_start.0;
        if room <= 0 {
            return;
        }
        (part.handle, offsets.log_start.plus(1 + shard.shared.below(room as u64) as i64))
    };
    advance(shard, vec![(id, handle, to)]).await;
}

/// One look at all logs, as the shard takes it now and then.
pub(crate) async fn enforce(shard: &Rc<Shard>) {
    let logs: Vec<_> = shard.parts.borrow().iter().map(|(id, p)| (*id, p.handle)).collect();
    let mut moves = Vec::new();
    for (id, handle) in logs {
        let limits = LogConfig {
            retention_ms: [-1, 0, 200, 2_000][shard.shared.index(4)],
            retention_bytes: [-1, 0, 40_000, 300_000][shard.shared.index(4)],
            file_delete_delay: std::time::Duration::from_millis(shard.shared.below(20)),
            ..shard.shared.plan.log
        };
        shard.set.set_config(handle, limits);
        let now = shard.env.wall_ms() + shard.shared.below(3_000) as i64;
        match shard.set.retained_from(handle, now).await {
            Ok(Some(to)) => moves.push((id, handle, to)),
            Ok(None) => {}
            Err(error) => drop(shard.check(Err(error))),
        }
    }
    let handles: Vec<_> = moves.iter().map(|(_, handle, _)| *handle).collect();
    if handles.is_empty() || !advance(shard, moves.clone()).await {
        return;
    }
    for (id, handle, to) in moves {
        remember_producers(shard, id, handle, to).await;
    }
    match shard.set.drop_segments(&handles).await {
        Ok(count) => {
            shard.shared.tell(|| format!("{count} segments dropped"));
            shard.shared.events.borrow_mut().segments_dropped += count as u64;
        }
        Err(error) => drop(shard.check(Err(error))),
    }
}

/// Whether the moves are in force.
async fn advance(shard: &Rc<Shard>, moves: Vec<(LogId, LogHandle, Offset)>) -> bool {
    let mut before = Vec::new();
    for (id, _, to) in &moves {
        // From now on a crash may find it so.
        if let Some(log) = shard.shared.model.borrow_mut().logs.get_mut(id) {
            before.push((*id, log.start.1));
            log.start.1 = log.start.1.max(to.0);
        }
        shard.shared.tell(|| format!("log start of {id} to {to}"));
    }
    let asked: Vec<_> = moves.iter().map(|(_, handle, to)| (*handle, *to)).collect();
    let waits = !shard.set.is_ready();
    let done = shard.set.advance_log_starts(&asked).await;
    if waits || matches!(done, Err(Error::Gone)) {
        // It came too late for a set that closes, or too early for a start that
        // waits for space, and has done nothing.
        assert!(!shard.check(done), "a log start moved before the start had ended");
        for (id, was) in before {
            if let Some(log) = shard.shared.model.borrow_mut().logs.get_mut(&id) {
                log.start.1 = was;
            }
        }
        return false;
    }
    if !shard.check(done) {
        return false;
    }
    for (id, handle, to) in moves {
        let mut parts = shard.parts.borrow_mut();
        let Some(part) = parts.get_mut(&id).filter(|p| p.handle == handle) else { continue };
        let Some((start, _, _)) = shard.set.bounds(handle) else { continue };
        let mut effects = Effects::default();
        part.machine.advance_log_start(start, &mut effects);
        assert!(effects.completed.is_empty(), "a log start decided on an append");
        // It is promised: no start may find less.
        let mut model = shard.shared.model.borrow_mut();
        let log = model.log(id);
        log.start.0 = log.start.0.max(to.0);
        assert!(start.0 >= to.0 && start.0 <= log.start.1, "log {id} starts at {start}");
    }
    true
}

/// Sometimes the snapshot is not to be had: then the next start may not know
/// producers all of whose batches are gone.
async fn remember_producers(shard: &Rc<Shard>, id: LogId, handle: LogHandle, to: Offset) {
    if shard.set.newest_snapshot(handle).is_none_or(|at| at >= to) || shard.shared.chance(300) {
        return;
    }
    let snapshot = {
        let parts = shard.parts.borrow();
        parts.get(&id).filter(|p| p.handle == handle && !p.busy).map(|p| p.machine.snapshot())
    };
    if let Some((at, bytes)) = snapshot {
        let stored = shard.set.put_producer_snapshot(handle, bytes, at).await;
        shard.check(stored);
    }
}
