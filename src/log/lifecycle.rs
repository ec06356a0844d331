//! Logs come, go and stop: creation, deletion with unlinks at a limited rate,
//! the clean stop.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::checkpoint::Floor;
use super::config::{DurabilityClass, KnownLog};
use super::epoch_cache::EpochCache;
use super::error::{Error, FatalReason, Result};
use super::journal::frame::{FrameHeader, FrameKind};
use super::rebuild::make_dir;
use super::reclaim::Leaving;
use super::segment::tail::OpenSegment;
use super::set::LogHandle;
use super::state::{Log, Shared};
use crate::io::{Env, File as _, FileSystem as _, Task as _};
use crate::model::{LeaderEpoch, Offset};

/// End of the name of a directory that is being deleted.
const DELETED: &str = "-delete";

impl<E: Env> Shared<E> {
    /// See `LogSet::create`.
    pub(crate) async fn create(self: &Rc<Self>, known: &KnownLog) -> Result<LogHandle> {
        let dir = self.config.data_dir.join(known.dir_name());
        self.signal.wait(|| (!self.state.borrow().leaving.contains(&dir)).then_some(())).await;
        // What an earlier incarnation left under the name goes first.
        if self.env.fs().read_dir(&dir).await.is_ok_and(|found| !found.is_empty()) {
            self.put_aside(&dir, known.log_id.0 ^ self.env.random()).await?;
        }
        make_dir(self, &dir, known).await?;
        let mut epochs = EpochCache::default();
        let epoch = known.epoch_to_start.unwrap_or(LeaderEpoch(0));
        epochs.assign(epoch, Offset::ZERO);
        let interval = known.config.index_interval_bytes;
        let handle = self.state.borrow_mut().insert(|handle| Log {
            known: known.clone(),
            handle,
            dir,
            epochs,
            log_start: Offset::ZERO,
            start_wanted: Offset::ZERO,
            droppable: Offset::ZERO,
            snapshot_at: Offset::ZERO,
            high_watermark: Offset::ZERO,
            journal_durable: Offset::ZERO,
            durable: Offset::ZERO,
            closed: Default::default(),
            open: [OpenSegment::new(Offset::ZERO, interval)].into(),
            floor: Floor::start_of(0),
            bypass_from: None,
            bypass_flight: None,
            segment_busy: false,
            behind_queued: false,
            round: 0,
            truncating: false,
            truncate_to: None,
            bytes_since_snapshot: 0,
            snapshots: 0,
            snapshot_begun: None,
        });
        let open = FrameHeader::bare(FrameKind::Open, known.log_id, epoch);
        self.queue_patiently(handle, open, &[known.dir_name().as_bytes()]).await?;
        Ok(handle)
    }

    /// See `LogSet::delete`.
    pub(crate) async fn delete(self: &Rc<Self>, handle: LogHandle) -> Result<()> {
        // Whoever writes by path would write into a successor's directory.
        self.claim_quiet(handle).await?;
        let log = {
            let mut state = self.state.borrow_mut();
            let log = state.log(handle).map(|_| handle.slot as usize).ok_or(Error::Gone)?;
            state.bypassing.retain(|h| *h != handle);
            let log = state.logs.remove(log);
            state.leaving.push(log.dir.clone());
            log
        };
        self.files.forget(handle, |_| false);
        self.wake();
        let aside = self.put_aside(&log.dir, log.known.log_id.0).await;
        self.state.borrow_mut().leaving.retain(|dir| *dir != log.dir);
        self.signal.notify();
        aside
    }

    /// Renames a directory out of the way, durably, and has it unlinked.
    async fn put_aside(self: &Rc<Self>, dir: &Path, id: u64) -> Result<()> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = self.config.data_dir.join(format!("{name}.{id:016x}{DELETED}"));
        let renamed = self.env.fs().rename(dir, &aside).await;
        renamed.map_err(|e| Error::io(dir, e))?;
        self.sync_dir(&self.config.data_dir).await?;
        self.unlink_later(aside);
        Ok(())
    }

    /// Finds directories whose deletion a crash interrupted.
    pub(crate) async fn resume_deletions(self: &Rc<Self>) -> Result<()> {
        let dir = &self.config.data_dir;
        let listed = self.env.fs().read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
        for entry in listed.into_iter().filter(|e| e.is_dir && e.name.ends_with(DELETED)) {
            self.unlink_later(dir.join(entry.name));
        }
        Ok(())
    }

    fn unlink_later(self: &Rc<Self>, dir: PathBuf) {
        {
            let mut state = self.state.borrow_mut();
            state.unlinking.push_back(dir);
            if std::mem::replace(&mut state.unlinker_running, true) {
                return;
            }
        }
        let shared = self.clone();
        self.env.spawn(async move { shared.run_unlinker().await }).detach();
    }

    async fn run_unlinker(self: Rc<Self>) {
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                let next = state.unlinking.pop_front();
                state.unlinker_running = next.is_some();
                next
            };
            let Some(dir) = next else { return };
            if let Err(error) = self.unlink(&dir).await {
                // Only space is lost; the next start tries again.
                tracing::warn!(dir = %dir.display(), %error, "a deleted log stays on disk");
            }
        }
    }

    async fn unlink(&self, dir: &Path) -> std::io::Result<()> {
        for entry in self.env.fs().read_dir(dir).await? {
            self.env.fs().remove_file(&dir.join(entry.name)).await?;
            self.env.sleep(self.config.unlink_every).await;
        }
        self.env.fs().remove_dir(dir).await
    }

    /// See `LogSet::close`.
    pub(crate) async fn close(self: &Rc<Self>) -> Result<()> {
        self.state.borrow_mut().closing = true;
        self.flush();
        for class in DurabilityClass::ALL {
            self.settle(class).await?;
        }
        let logs: Vec<_> = self.state.borrow().logs.iter().map(|(_, l)| l.handle).collect();
        for &handle in &logs {
            self.journaled(handle).await?;
        }
        // A bypass that had to wait has queued its frame only now.
        for class in DurabilityClass::ALL {
            self.settle(class).await?;
        }
        let mut raised = [Vec::new(), Vec::new()];
        for handle in logs {
            let (class, clean) = {
                let mut state = self.state.borrow_mut();
                let log = state.log_mut(handle).ok_or(Error::Gone)?;
                // Nobody commits any more: what is durable is written.
                log.high_watermark = log.high_watermark.max(log.durable);
                (log.class(), log.above_floor() == Some(0))
            };
            if clean {
                // A truncation may have left bytes in the file.
                if self.state.borrow().log(handle).is_some_and(|l| l.active().created) {
                    self.cut_file(handle).await?;
                }
                continue;
            }
            self.write_behind(handle, true).await?;
            self.cut_file(handle).await?;
            // Whatever lies above the floor is queued anew.
            raised[class.index()].push(Leaving { handle, end: Offset(i64::MAX) });
        }
        for class in DurabilityClass::ALL {
            let closing = std::mem::take(&mut raised[class.index()]);
            self.raise_floors(class, &closing).await?;
            for Leaving { handle, .. } in closing {
                let close = {
                    let state = self.state.borrow();
                    let Some(log) = state.log(handle) else { continue };
                    FrameHeader { kind: FrameKind::Close, ..log.reset_frame() }
                };
                self.queue_patiently(handle, close, &[]).await?;
                self.write_epochs(handle).await?;
            }
            self.settle(class).await?;
        }
        self.sync_page_cache_journal().await?;
        self.write_checkpoint().await
    }

    /// After a start and after a clean stop also class `os` survives the loss
    /// of power: what its journal holds then is little, and it is synced.
    pub(crate) async fn sync_page_cache_journal(&self) -> Result<()> {
        let files: Vec<_> = {
            let state = self.state.borrow();
            let journal = &state.journals[DurabilityClass::Os.index()];
            journal.full.iter().chain(&journal.active).map(|f| f.file.clone()).collect()
        };
        for file in files {
            let synced = file.sync_data().await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))?;
        }
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
