//! Producer snapshots: files that hold the partition layer's producer state
//! before an offset, so that a start need not walk the whole log.
//!
//! Knows nothing of what is in them. Invariant: a snapshot speaks of a prefix
//! of the log as it is. So one that is being stored holds up truncations and
//! deletions, and one that was taken before a truncation is void. One beyond
//! the recovered end is void as well: the newest at or below the high watermark
//! stays, however many follow it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::{Error, FatalReason, Result};
use super::segment::names::{self, Kind};
use super::set::LogHandle;
use super::state::{Log, Shared};
use crate::io::{Env, FileSystem as _};
use crate::model::Offset;

/// Producer snapshots kept per log, besides the newest committed one.
const KEPT: usize = 2;

/// A snapshot on its way to disk, counted as long as it lives.
struct Storing<E: Env> {
    shared: Rc<Shared<E>>,
    handle: LogHandle,
    at: Offset,
}

impl<E: Env> Drop for Storing<E> {
    fn drop(&mut self) {
        // Held elsewhere only while a panic unwinds.
        if let Ok(mut state) = self.shared.state.try_borrow_mut()
            && let Some(log) = state.log_mut(self.handle)
        {
            log.snapshots -= 1;
            log.snapshots_begun.retain(|at| *at != self.at);
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
    let first = begin(shared, handle, at);
    let (shared, round) = (shared.clone(), shared.round(handle));
    async move {
        let mut begun = first?;
        let (storing, dir) = loop {
            match begun {
                Begun::Here(storing, dir) => break (storing, dir),
                Begun::Needless => return Ok(()),
                Begun::Elsewhere => shared.snapshot_ended(handle, at).await?,
            }
            begun = begin(&shared, handle, at)?;
            // A truncation does not wait for those that wait.
            if shared.round(handle) != round {
                return Ok(());
            }
        };
        let stored = shared.store_snapshot(handle, bytes, at, &dir).await;
        if let Some(log) = shared.state.borrow_mut().log_mut(handle)
            && stored.is_ok()
        {
            log.snapshots_stored.push(at);
            log.snapshots_stored.sort_unstable();
        }
        drop(storing);
        shared.noted(shared.gone_or(handle, stored))
    }
}

enum Begun<E: Env> {
    Here(Storing<E>, PathBuf),
    /// A roll and retention want the same, and it is on its way.
    Elsewhere,
    /// It is there, or a truncation that is under way makes it void.
    Needless,
}

fn begin<E: Env>(shared: &Rc<Shared<E>>, handle: LogHandle, at: Offset) -> Result<Begun<E>> {
    let mut state = shared.state.borrow_mut();
    let log = state.log_mut(handle).ok_or(Error::Gone)?;
    if at > log.truncate_to.unwrap_or(log.end()) || log.snapshots_stored.contains(&at) {
        return Ok(Begun::Needless);
    }
    if log.snapshots_begun.contains(&at) {
        return Ok(Begun::Elsewhere);
    }
    log.snapshots_begun.push(at);
    log.snapshots += 1;
    let dir = log.dir.clone();
    Ok(Begun::Here(Storing { shared: shared.clone(), handle, at }, dir))
}

impl Log {
    /// The newest snapshot that no crash and no truncation makes void.
    pub(crate) fn committed_snapshot(&self) -> Option<Offset> {
        let mut newest = self.snapshots_stored.iter().rev();
        newest.find(|at| **at <= self.high_watermark).copied()
    }
}

impl<E: Env> Shared<E> {
    fn round(&self, handle: LogHandle) -> Option<u32> {
        self.state.borrow().log(handle).map(|log| log.round)
    }

    /// Waits until a snapshot that another task stores is there or has failed.
    async fn snapshot_ended(&self, handle: LogHandle, at: Offset) -> Result<()> {
        let ended = || {
            let state = self.state.borrow();
            let ended = state.log(handle).is_none_or(|log| !log.snapshots_begun.contains(&at));
            (ended || state.fatal.is_some()).then_some(())
        };
        self.signal.wait(ended).await;
        self.check()
    }

    async fn store_snapshot(
        &self,
        handle: LogHandle,
        bytes: Vec<u8>,
        at: Offset,
        dir: &Path,
    ) -> Result<()> {
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
        let committed = {
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            let committed = older.iter().rev().find(|offset| **offset <= log.high_watermark);
            let first_kept = older.iter().rev().take(KEPT).next_back();
            log.snapshots_stored.retain(|o| Some(o) >= first_kept || Some(o) == committed);
            committed
        };
        for offset in older.iter().rev().skip(KEPT).filter(|o| Some(*o) != committed) {
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
            log.snapshots_stored.retain(|at| *at <= to);
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
