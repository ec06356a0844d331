//! The clean stop: everything goes to the segments and is checkpointed, many
//! logs at a time, since a supervisor waits seconds only.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::config::DurabilityClass;
use super::error::{Error, FatalReason, Result};
use super::journal::frame::{FrameHeader, FrameKind};
use super::reclaim::{Leaving, SYNC_EACH_MAX};
use super::set::LogHandle;
use super::state::Shared;
use super::together::all_well;
use crate::io::{Env, File as _};
use crate::model::Offset;

/// Logs that are written at once.
const AT_ONCE: usize = 64;
/// Pause before a log that lacked memory is tried again.
const RETRY: Duration = Duration::from_millis(1);

impl<E: Env> Shared<E> {
    /// See `LogSet::close`.
    pub(crate) async fn close(self: &Rc<Self>) -> Result<()> {
        self.state.borrow_mut().closing = true;
        if !self.state.borrow().ready {
            tracing::warn!("the start has not ended for want of space: nothing is written");
            return Ok(());
        }
        loop {
            let error = match self.close_logs().await {
                Err(error @ Error::NoSpace { .. }) => error,
                other => return other.and_then(|()| self.check()),
            };
            if !self.give_up_reserve(&error).await && !self.give_back_ahead(&error).await {
                tracing::warn!(
                    "{error}: records stay in the journals, where the next start finds them"
                );
                return self.sync_page_cache_journal().await;
            }
        }
    }

    async fn close_logs(self: &Rc<Self>) -> Result<()> {
        self.flush();
        self.settle_all().await?;
        let logs: Vec<_> = self.state.borrow().logs.iter().map(|(_, l)| l.handle).collect();
        for &handle in &logs {
            match self.journaled(handle).await {
                Ok(()) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        // A bypass that had to wait has queued its frame only now.
        self.settle_all().await?;
        let dirty = {
            let state = self.state.borrow();
            state.logs.iter().filter(|(_, log)| log.above_floor() != Some(0)).count()
        };
        let sync_each = dirty <= SYNC_EACH_MAX;
        let written = RefCell::new([Vec::new(), Vec::new()]);
        for some in logs.chunks(AT_ONCE) {
            let closing = some.iter().map(|handle| async {
                if let Some(class) = self.write_all(*handle, sync_each).await? {
                    // Whatever lies above the floor is queued anew.
                    let leaving = Leaving { handle: *handle, end: Offset(i64::MAX) };
                    written.borrow_mut()[class.index()].push(leaving);
                }
                Ok(())
            });
            all_well(closing.collect()).await?;
        }
        let written = written.into_inner();
        for class in DurabilityClass::ALL {
            self.raise_floors(class, &written[class.index()]).await?;
            for &Leaving { handle, .. } in &written[class.index()] {
                let close = {
                    let state = self.state.borrow();
                    let Some(log) = state.log(handle) else { continue };
                    FrameHeader { kind: FrameKind::Close, ..log.reset_frame() }
                };
                match self.queue_patiently(handle, close, &[]).await {
                    Ok(()) | Err(Error::Gone) => {}
                    Err(error) => return Err(error),
                }
            }
            self.settle(class).await?;
        }
        self.sync_page_cache_journal().await?;
        self.write_checkpoint().await
    }

    async fn settle_all(self: &Rc<Self>) -> Result<()> {
        for class in DurabilityClass::ALL {
            self.settle(class).await?;
        }
        Ok(())
    }

    /// Gets all of a log into its files, its last block too; its class when
    /// there was something to write. Without `sync` the caller does that.
    async fn write_all(
        self: &Rc<Self>,
        handle: LogHandle,
        sync: bool,
    ) -> Result<Option<DurabilityClass>> {
        loop {
            let written = self.try_write_all(handle, sync).await;
            match self.gone_or(handle, written) {
                Err(Error::Gone) => return Ok(None),
                Err(Error::NoMemory(_)) => self.env.sleep(RETRY).await,
                other => return other,
            }
        }
    }

    async fn try_write_all(
        self: &Rc<Self>,
        handle: LogHandle,
        sync: bool,
    ) -> Result<Option<DurabilityClass>> {
        let (class, clean, truncated) = {
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            // Nobody commits any more: what is durable is written.
            log.high_watermark = log.high_watermark.max(log.durable);
            (log.class(), log.above_floor() == Some(0), log.round > 0 && log.active().created)
        };
        if clean {
            // A truncation may have left bytes in the file.
            if truncated {
                self.cut_file(handle).await?;
            }
            return Ok(None);
        }
        self.write_behind(handle, true).await?;
        self.cut_file(handle).await?;
        // Retention writes them too.
        self.claim(handle).await?;
        let written = self.write_epochs(handle, sync).await;
        self.release(handle);
        written?;
        if !sync {
            // Many at once: then little is left for when the floors rise.
            self.sync_to_floor(handle, class, false).await?;
        }
        Ok(Some(class))
    }

    /// After a start and after a clean stop also class `os` survives the loss
    /// of power: what its journal holds then is little, and it is synced.
    pub(crate) async fn sync_page_cache_journal(&self) -> Result<()> {
        let os = DurabilityClass::Os.index();
        let (files, end): (Vec<_>, u64) = {
            let state = self.state.borrow();
            let journal = &state.journals[os];
            let files = journal.full.iter().chain(&journal.active).map(|f| f.file.clone());
            (files.collect(), journal.written_end())
        };
        for file in files {
            let synced = file.sync_data().await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))?;
        }
        self.state.borrow_mut().journals[os].synced_end = end;
        Ok(())
    }

    /// Makes the active segment's file end where its batches end.
    async fn cut_file(&self, handle: LogHandle) -> Result<()> {
        let (base, end) = {
            let state = self.state.borrow();
            let segment = state.log(handle).ok_or(Error::Gone)?.active();
            (segment.base, segment.end_pos)
        };
        let file = self.segment_file(handle, base).await?;
        let cut = file.set_len(end).await;
        cut.map_err(|e| Error::write(FatalReason::SegmentWrite, file.path(), e))
    }
}
