//! The end of a start: fresh journals, each log's first frame, a checkpoint,
//! and the old journals go.
//!
//! When the disk is so full that not even this is possible, what was recovered
//! can be read all the same: the steps left are done once there is space, and
//! appends are refused until then.

use std::rc::Rc;

use super::config::DurabilityClass;
use super::error::{Error, Result};
use super::recovery::Recovery;
use super::segment::names::Kind;
use super::set::{LogHandle, LogSet};
use super::state::Shared;
use crate::io::{Env, FileSystem as _, OpenMode, Task as _};
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

/// What is left to do. Each step may be tried again after it failed for want
/// of space.
struct Finishing<E: Env> {
    recovery: Recovery<E>,
    /// The journals go on after what was found.
    continued: bool,
    /// Logs without their first frame; `None` until the journals are there.
    unstarted: Option<Vec<LogHandle>>,
}

impl<E: Env> Recovery<E> {
    /// Starts each log's epoch in a fresh journal, checkpoints and deletes the
    /// old journals: the set takes appends from now on. On a full disk this
    /// goes on in the background ([`LogSet::is_ready`]).
    ///
    /// The checkpoint must come after the first frames are durable: its floors
    /// lie inside batches whose rest may be in a `TAIL` or `EXTENT` of the old
    /// journal that begins below them, and so would not count any more.
    pub async fn finish(self) -> Result<LogSet<E>> {
        let set = self.set.clone();
        let shared = set.shared.clone();
        for ((class, shard), groups) in &self.groups {
            if *shard == shared.config.shard.0 {
                shared.state.borrow_mut().journals[class.index()].first_group = groups.first;
            }
        }
        let mut finishing = Finishing { recovery: self, continued: false, unstarted: None };
        loop {
            match finishing.step_on().await {
                Ok(()) => break,
                Err(error @ Error::NoSpace { .. }) => {
                    if shared.give_up_reserve(&error).await {
                        continue;
                    }
                    shared.state.borrow_mut().no_space = true;
                    finishing.recovery.shared().sync_recovered().await?;
                    tracing::error!(
                        "{error}: no new journals can be made, so producers are refused; what is \
                         there can be read. Free space"
                    );
                    shared.env.spawn(async move { finishing.finish_later().await }).detach();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(set)
    }
}

impl<E: Env> Finishing<E> {
    async fn finish_later(mut self) {
        let shared = self.recovery.shared().clone();
        loop {
            shared.env.sleep(shared.config.no_space_retry).await;
            match self.step_on().await {
                Ok(()) => return tracing::info!("the start has ended: there is space again"),
                Err(Error::NoSpace { .. }) => {}
                Err(error) => {
                    shared.poison_by(&error);
                    tracing::error!("{error}: the start is tried again");
                }
            }
            if shared.is_poisoned() || shared.state.borrow().closing {
                return;
            }
        }
    }

    async fn step_on(&mut self) -> Result<()> {
        let shared = self.recovery.shared().clone();
        if !shared.state.borrow().started {
            self.start_logs(&shared).await?;
            shared.state.borrow_mut().started = true;
        }
        shared.write_checkpoint().await?;
        self.delete_old(&shared).await?;
        // Their blocks come free when they are closed.
        self.recovery.files.clear();
        shared.resume_deletions().await?;
        shared.kick_dropper();
        shared.state.borrow_mut().ready = true;
        shared.kick_reserve();
        shared.kick_keeper();
        shared.wake();
        Ok(())
    }

    async fn start_logs(&mut self, shared: &Rc<Shared<E>>) -> Result<()> {
        if self.unstarted.is_none() {
            shared.write_rebuilt_indexes().await?;
            // Before any frame: a `TAIL` says that its segment is synced.
            shared.sync_recovered().await?;
            if !std::mem::replace(&mut self.continued, true) {
                self.continue_journals(shared);
            }
            for class in DurabilityClass::ALL {
                if !shared.state.borrow().journals[class.index()].has_file() {
                    let bytes = shared.config.journal(class).first_file_bytes;
                    shared.make_file_of(class, bytes).await?;
                }
            }
            let mut state = shared.state.borrow_mut();
            state.writable = true;
            self.unstarted = Some(state.logs.iter().map(|(_, l)| l.handle).collect());
        }
        let unstarted = self.unstarted.as_mut().expect("set above");
        while let Some(handle) = unstarted.last().copied() {
            if !armed(Bug::NoResetAtRecovery) {
                match shared.restart(handle).await {
                    // Deleted while the start waited for space.
                    Ok(()) | Err(Error::Gone) => {}
                    Err(error) => return Err(error),
                }
            }
            unstarted.pop();
            if shared.env.slice_over() {
                shared.env.pause().await;
            }
        }
        for class in DurabilityClass::ALL {
            shared.settle(class).await?;
        }
        shared.sync_page_cache_journal().await?;
        for journal in &mut shared.state.borrow_mut().journals {
            journal.forget_before_run();
        }
        Ok(())
    }

    fn continue_journals(&self, shared: &Rc<Shared<E>>) {
        let mut state = shared.state.borrow_mut();
        for class in DurabilityClass::ALL {
            let chain = self.recovery.chains.get(&(class, shared.config.shard.0));
            let journal = &mut state.journals[class.index()];
            match chain.and_then(|c| c.last) {
                Some((number, crc)) => journal.continue_after(number, crc),
                // Older numbers were used, even if none of their groups is left.
                None if journal.first_group > 0 => {
                    journal.continue_after(journal.first_group - 1, 0);
                }
                None => {}
            }
        }
    }

    async fn delete_old(&self, shared: &Rc<Shared<E>>) -> Result<()> {
        let dir = shared.config.journal_dir();
        let checkpoints = self.recovery.old_checkpoints.iter().map(|name| dir.join(name));
        let journals = self.recovery.files.iter().map(|f| f.path.clone());
        for path in journals.chain(checkpoints) {
            match shared.env.fs().remove_file(&path).await {
                Ok(()) => {}
                // An earlier try came as far as here.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(&path, e)),
            }
        }
        shared.sync_dir(&dir).await
    }
}

impl<E: Env> Shared<E> {
    /// Below a floor both indexes are believed: what recovery has built anew
    /// is synced before a checkpoint says where the floors are.
    async fn write_rebuilt_indexes(self: &Rc<Self>) -> Result<()> {
        let rebuilt: Vec<_> = {
            let state = self.state.borrow();
            let fresh = state.logs.iter().map(|(_, log)| log).filter(|log| {
                let index = &log.active().index;
                !index.pending().is_empty() || !index.pending_times().is_empty()
            });
            fresh.map(|log| (log.handle, log.floor)).collect()
        };
        for (handle, floor) in rebuilt {
            let base = Offset(floor.segment);
            self.write_indexes(handle, base, Some(floor.boundary_pos), false).await?;
            self.sync_indexes_later(handle, base).await?;
        }
        Ok(())
    }

    async fn sync_indexes_later(&self, handle: LogHandle, base: Offset) -> Result<()> {
        let mode = OpenMode { create: false, ..OpenMode::BUFFERED };
        for kind in [Kind::Index, Kind::TimeIndex] {
            let path = self.path(handle, base, kind)?;
            match self.env.fs().open(&path, mode).await {
                Ok(file) => self.sync_file_later(file),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(&path, e)),
            }
        }
        let dir = self.state.borrow().log(handle).ok_or(Error::Gone)?.dir.clone();
        self.sync_dir_later(&dir);
        Ok(())
    }

    /// A log's first frame in the fresh journal: the epoch that starts, and
    /// what lies above the floor.
    async fn restart(self: &Rc<Self>, handle: LogHandle) -> Result<()> {
        let (frame, partial) = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            (log.reset_frame(), log.above_floor() != Some(0))
        };
        if partial {
            return self.queue_tail(handle).await;
        }
        self.queue_patiently(handle, frame, &[]).await
    }
}
