//! Producer snapshots: files that hold the partition layer's producer state
//! before an offset, so that a start need not walk the whole log.
//!
//! Knows nothing of what is in them. Invariant: a snapshot speaks of a prefix
//! of the log as it is. So one that is being stored holds up truncations and
//! deletions, and one that was taken before a truncation is void.

use std::path::Path;
use std::rc::Rc;

use super::error::{Error, FatalReason, Result};
use super::segment::names::{self, Kind};
use super::set::LogHandle;
use super::state::Shared;
use crate::io::{Env, FileSystem as _};
use crate::model::Offset;

/// Producer snapshots kept per log.
const KEPT: usize = 2;

/// A snapshot on its way to disk, counted as long as it lives.
struct Storing<E: Env> {
    shared: Rc<Shared<E>>,
    handle: LogHandle,
}

impl<E: Env> Drop for Storing<E> {
    fn drop(&mut self) {
        // Held elsewhere only while a panic unwinds.
        if let Ok(mut state) = self.shared.state.try_borrow_mut()
            && let Some(log) = state.log_mut(self.handle)
        {
            log.snapshots -= 1;
        }
        self.shared.signal.notify();
    }
}

/// See `LogSet::put_producer_snapshot`.
pub(crate) fn store<E: Env>(
    shared: &Rc<Shared<E>>,
    handle: LogHandle,
    bytes: Vec<u8>,
    at: Offset,
) -> impl Future<Output = Result<()>> + use<E> {
    let storing = begin(shared, handle, at);
    async move {
        let Some((storing, dir)) = storing? else { return Ok(()) };
        let shared = storing.shared.clone();
        let stored = shared.store_snapshot(bytes, at, &dir).await;
        if let Some(log) = shared.state.borrow_mut().log_mut(handle) {
            match &stored {
                Ok(()) => log.snapshot_at = log.snapshot_at.max(at),
                Err(_) => log.snapshot_begun = None,
            }
        }
        shared.noted(shared.gone_or(handle, stored))
    }
}

type Begun<E> = Option<(Storing<E>, std::path::PathBuf)>;

/// `None` when a truncation that is under way makes the snapshot void, or
/// when there is one of this offset: a roll and retention want the same.
fn begin<E: Env>(shared: &Rc<Shared<E>>, handle: LogHandle, at: Offset) -> Result<Begun<E>> {
    let mut state = shared.state.borrow_mut();
    let log = state.log_mut(handle).ok_or(Error::Gone)?;
    if at > log.truncate_to.unwrap_or(log.end()) || log.snapshot_begun == Some(at) {
        return Ok(None);
    }
    log.snapshot_begun = Some(at);
    log.snapshots += 1;
    let dir = log.dir.clone();
    Ok(Some((Storing { shared: shared.clone(), handle }, dir)))
}

impl<E: Env> Shared<E> {
    async fn store_snapshot(&self, bytes: Vec<u8>, at: Offset, dir: &Path) -> Result<()> {
        let fs = self.env.fs();
        let path = names::path(dir, at, Kind::Snapshot);
        let temporary = path.with_extension("tmp");
        let written = fs.write(&temporary, bytes).await;
        written.map_err(|e| Error::write(FatalReason::Checkpoint, &path, e))?;
        fs.rename(&temporary, &path).await.map_err(|e| Error::io(&path, e))?;
        let listed = fs.read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
        let mut older: Vec<Offset> = listed
            .iter()
            .filter_map(|e| names::parse(&e.name))
            .filter(|(offset, kind)| *kind == Kind::Snapshot && *offset <= at)
            .map(|(offset, _)| offset)
            .collect();
        older.sort_unstable();
        for offset in older.iter().rev().skip(KEPT) {
            let path = names::path(dir, *offset, Kind::Snapshot);
            match fs.remove_file(&path).await {
                Ok(()) => {}
                // Another snapshot of the same log took it already.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(&path, e)),
            }
        }
        self.sync_dir(dir).await
    }

    /// Marks a log busy once no snapshot of it is being stored either.
    pub(crate) async fn claim_quiet(&self, handle: LogHandle) -> Result<()> {
        loop {
            self.signal
                .wait(|| {
                    let state = self.state.borrow();
                    let free = state.log(handle).is_none_or(|l| l.snapshots == 0);
                    (free || state.fatal.is_some()).then_some(())
                })
                .await;
            self.claim(handle).await?;
            if self.state.borrow().log(handle).is_none_or(|l| l.snapshots == 0) {
                return Ok(());
            }
            self.release(handle);
        }
    }

    /// Removes snapshots beyond `to`, durably, before a truncation: they would
    /// speak of records that are no more.
    pub(crate) async fn drop_snapshots_after(&self, handle: LogHandle, to: Offset) -> Result<()> {
        let dir = {
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            if log.snapshot_at > to {
                log.snapshot_at = Offset::ZERO;
            }
            log.snapshot_begun = log.snapshot_begun.filter(|at| *at <= to);
            log.dir.clone()
        };
        let listed = self.env.fs().read_dir(&dir).await.map_err(|e| Error::io(&dir, e))?;
        let mut removed = false;
        for entry in listed {
            if names::parse(&entry.name).is_some_and(|(o, k)| k == Kind::Snapshot && o > to) {
                let path = dir.join(&entry.name);
                self.env.fs().remove_file(&path).await.map_err(|e| Error::io(&path, e))?;
                removed = true;
            }
        }
        if removed { self.sync_dir(&dir).await } else { Ok(()) }
    }
}
