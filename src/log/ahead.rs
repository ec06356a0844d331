//! Blocks that the files of open segments have beyond what they hold (ADR 0045):
//! taken before they are written, given back when the disk is full. Whoever
//! changes them has marked the log busy.

use std::cell::Cell;
use std::rc::Rc;

use super::config::BLOCK;
use super::error::{Error, FatalReason, Result, is_no_space};
use super::reclaim::SYNC_EACH_MAX;
use super::set::LogHandle;
use super::space::is_disk_full;
use super::state::{FileOf, Log, Shared};
use crate::io::{Env, File as _, FileSystem as _, Task as _};
use crate::model::Offset;

/// Most bytes that a segment's file is made longer than what it holds.
const AHEAD_MAX: u64 = 16 << 20;

impl<E: Env> Shared<E> {
    /// Lets the active segment's file have blocks beyond `to` before they are
    /// written: a direct write that makes its file longer blocks a worker of
    /// the ring until it is done. While space is short, blocks are for what
    /// was accepted: nothing ahead then.
    pub(super) async fn allocate_ahead(
        &self,
        handle: LogHandle,
        base: Offset,
        to: u64,
        file: &FileOf<E>,
    ) -> Result<()> {
        let (have, want) = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            let segment = log.active();
            let last = segment.base == base && to > segment.allocated;
            if !last || state.no_space || state.closing {
                return Ok(());
            }
            // As much again as there is, so that small logs stay small.
            let want = to + to.min(AHEAD_MAX);
            let want = want.min(log.known.config.segment_bytes.max(to));
            (segment.blocks_in_file(), want.next_multiple_of(BLOCK))
        };
        // Without: the write itself says whether there is room.
        if want <= have || !self.seems_free(want - have).await {
            return Ok(());
        }
        let allocated = match file.allocate(have..want).await {
            Ok(()) => want,
            Err(e) if is_no_space(&e) => return self.give_back(file, have).await,
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => to.next_multiple_of(BLOCK),
            Err(e) => return Err(Error::fatal(FatalReason::SegmentWrite, file.path(), &e)),
        };
        let mut state = self.state.borrow_mut();
        let log = state.log_mut(handle).ok_or(Error::Gone)?;
        if let Some(segment) = log.segment_mut(base) {
            segment.allocated = allocated;
        }
        Ok(())
    }

    /// After an allocation that failed: what was had of it is missing elsewhere,
    /// and freed blocks can be had only when the change is on disk.
    pub(crate) async fn give_back(&self, file: &FileOf<E>, len: u64) -> Result<()> {
        let cut = file.set_len(len).await;
        cut.map_err(|e| Error::io(file.path(), e))?;
        let synced = file.sync_data().await;
        synced.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))
    }

    /// Gives back all blocks ahead if `error` says that the disk is full: those
    /// who wait need them more. `false` when there were none.
    pub(super) async fn give_back_ahead(self: &Rc<Self>, error: &Error) -> bool {
        let logs: Vec<LogHandle> = {
            let state = self.state.borrow();
            let ahead = state.logs.iter().filter(|(_, log)| log.file_ahead().is_some());
            ahead.map(|(_, log)| log.handle).collect()
        };
        if !is_disk_full(error) || logs.is_empty() {
            return false;
        }
        let shared = self.clone();
        let done = Rc::new(Cell::new(None));
        let told = done.clone();
        // A task of its own: whoever waits may lose interest half-way.
        let cutting = async move {
            let cut = shared.noted(shared.cut_files_ahead(&logs).await);
            let any = cut.is_ok_and(|any| any);
            if any {
                // Files that there was no space for can be tried again.
                let mut state = shared.state.borrow_mut();
                state.journals.iter_mut().for_each(|journal| journal.refused = false);
            }
            told.set(Some(any));
            shared.kick_keeper();
            // Bypasses may have waited for one of these logs.
            shared.wake();
        };
        self.env.spawn(cutting).detach();
        self.signal.wait(|| done.take()).await
    }

    async fn cut_files_ahead(&self, logs: &[LogHandle]) -> Result<bool> {
        let sync_each = logs.len() <= SYNC_EACH_MAX;
        let mut any = false;
        for &handle in logs {
            let free = {
                let mut state = self.state.borrow_mut();
                // Nothing that is busy is waited for: it may wait for this.
                let log = state.log_mut(handle).filter(|log| !log.segment_busy);
                log.map(|log| log.segment_busy = true).is_some()
            };
            if !free {
                continue;
            }
            let cut = self.cut_file_ahead(handle, sync_each).await;
            self.release(handle);
            match self.gone_or(handle, cut) {
                Ok(()) => any = true,
                Err(error @ Error::Fatal { .. }) => return Err(error),
                Err(Error::Gone) => {}
                Err(error) => tracing::warn!(%error, "blocks ahead are kept"),
            }
            if self.env.slice_over() {
                self.env.pause().await;
            }
        }
        if any && !sync_each {
            let dir = &self.config.data_dir;
            let synced = self.env.fs().sync_fs(dir).await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, dir, &e))?;
        }
        Ok(any)
    }

    async fn cut_file_ahead(&self, handle: LogHandle, sync: bool) -> Result<()> {
        loop {
            let ahead = self.state.borrow().log(handle).ok_or(Error::Gone)?.file_ahead();
            let Some((base, needed)) = ahead else { return Ok(()) };
            let file = self.segment_file(handle, base).await?;
            if sync {
                self.give_back(&file, needed).await?;
            } else {
                let cut = file.set_len(needed).await;
                cut.map_err(|e| Error::io(file.path(), e))?;
            }
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            if let Some(segment) = log.segment_mut(base) {
                segment.allocated = segment.allocated.min(needed);
            }
        }
    }
}

impl Log {
    /// An open segment whose file has blocks beyond what was accepted, and where
    /// those end that it needs.
    fn file_ahead(&self) -> Option<(Offset, u64)> {
        let needed = self.open.iter().map(|s| (s, s.end_pos.next_multiple_of(BLOCK)));
        needed
            .filter(|(s, needed)| s.allocated > *needed)
            .map(|(s, needed)| (s.base, needed))
            .next()
    }
}
