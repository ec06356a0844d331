//! A full disk: producers are refused, and the reserve is given up so that
//! what was accepted, and with it reclaim, still goes through.
//!
//! The reserve is one file of the journal directory whose blocks nobody uses.
//! Invariant: producers are taken in only while it is there or not wanted, so
//! what has to be written after it was given up is bounded by the journals and
//! by large appends under way. Short descriptors are another matter: cached
//! files are closed for them.

use std::path::PathBuf;
use std::rc::Rc;

use futures_lite::future::or;

use super::config::{BLOCK, RESERVE_BYTES_PER_LOG, RESERVE_FIXED_BYTES, ReserveSize};
use super::error::{Error, FatalReason, Result, is_no_descriptor};
use super::set::LogHandle;
use super::state::{FileOf, Shared, State};
use crate::io::{Env, File as _, FileSystem as _, OpenMode, Task as _};

/// Start of the names of reserve files; the shard's number follows.
const PREFIX: &str = "reserve-";
/// The reserve grows for so many new logs at once.
const RESERVE_LOGS_STEP: u64 = 1024;

/// What the shard knows of its reserve.
pub(crate) struct Reserve<F> {
    file: Option<F>,
    /// Bytes of the disk that it holds.
    held: u64,
    /// It was given up or could not be made: no appends until it is there.
    missing: bool,
    /// The file system cannot do it.
    impossible: bool,
    /// An earlier process made it; how large it is on disk is not known for sure.
    found: bool,
    /// Somebody changes the file.
    busy: bool,
    /// A task makes it.
    maker_running: bool,
}

impl<F> Default for Reserve<F> {
    fn default() -> Self {
        Self {
            file: None,
            held: 0,
            missing: false,
            impossible: false,
            found: false,
            busy: false,
            maker_running: false,
        }
    }
}

impl<F> Reserve<F> {
    /// It was given up or could not be made, and is not there yet.
    pub(super) fn was_given_up(&self) -> bool {
        self.missing
    }
}

/// Whether it is the disk that is full, not the table of descriptors.
pub(super) fn is_disk_full(error: &Error) -> bool {
    matches!(error, Error::NoSpace { source, .. } if !is_no_descriptor(source))
}

impl<E: Env> State<E> {
    /// A write went well: appends may go on, unless the reserve is missing or
    /// the start has not ended.
    pub(crate) fn space_found(&mut self) {
        if self.ready && !self.reserve.missing {
            self.no_space = false;
        }
    }

    /// Bytes that the reserve should have if the journals had `more`.
    fn reserve_wanted(&self, size: ReserveSize, more: u64) -> u64 {
        let bytes = match size {
            ReserveSize::Fixed(bytes) => bytes,
            ReserveSize::AsNeeded => {
                let journals: u64 = self.journals.iter().map(|j| j.total_bytes).sum();
                let bytes = journals + more;
                let logs = (self.logs.len() as u64).next_multiple_of(RESERVE_LOGS_STEP);
                bytes + bytes / 64 + logs * RESERVE_BYTES_PER_LOG + RESERVE_FIXED_BYTES
            }
        };
        bytes.next_multiple_of(BLOCK)
    }
}

impl<E: Env> Shared<E> {
    fn reserve_path(&self) -> PathBuf {
        self.config.journal_dir().join(format!("{PREFIX}{}", self.config.shard))
    }

    /// Finds the reserve that an earlier process has left, for this start to
    /// give up if it must. Those of other shards go.
    pub(crate) async fn find_reserve(&self) -> Result<()> {
        let dir = self.config.journal_dir();
        let listed = self.env.fs().read_dir(&dir).await.map_err(|e| Error::io(&dir, e))?;
        let own = self.reserve_path();
        for entry in listed.into_iter().filter(|e| e.name.starts_with(PREFIX)) {
            let path = dir.join(&entry.name);
            if path == own {
                let reserve = &mut self.state.borrow_mut().reserve;
                (reserve.held, reserve.found) = (entry.len, true);
            } else {
                let removed = self.env.fs().remove_file(&path).await;
                removed.map_err(|e| Error::io(&path, e))?;
            }
        }
        Ok(())
    }

    /// After an error that passes by itself: appends are refused from now on.
    /// Returns when another try may go better.
    pub(crate) async fn wait_for_space(self: &Rc<Self>, error: &Error) {
        self.state.borrow_mut().no_space = true;
        if matches!(error, Error::NoSpace { source, .. } if is_no_descriptor(source)) {
            self.files.forget_all();
        }
        let given_up = self.give_up_reserve(error).await;
        // After it: those who wait may have what they need already.
        if self.give_back_ahead(error).await || given_up {
            return;
        }
        self.env.sleep(self.config.no_space_retry).await;
    }

    /// As `wait_for_space`, for the task that holds a log's segments; ends
    /// early when the log is deleted. `false` then.
    pub(crate) async fn wait_unless_leaving(
        self: &Rc<Self>,
        handle: LogHandle,
        error: &Error,
    ) -> bool {
        let stays = || self.state.borrow().log(handle).is_some_and(|log| !log.leaving);
        let leaves = self.signal.wait(|| (!stays()).then_some(()));
        or(leaves, self.wait_for_space(error)).await;
        stays()
    }

    /// Marks the reserve as being changed once nobody else does.
    async fn claim_reserve(&self) {
        self.signal
            .wait(|| {
                let reserve = &mut self.state.borrow_mut().reserve;
                (!std::mem::replace(&mut reserve.busy, true)).then_some(())
            })
            .await;
    }

    fn release_reserve(&self) {
        self.state.borrow_mut().reserve.busy = false;
        self.signal.notify();
    }

    async fn reserve_file(&self) -> Result<FileOf<E>> {
        if let Some(file) = &self.state.borrow().reserve.file {
            return Ok(file.clone());
        }
        let path = self.reserve_path();
        let file = self.env.fs().open(&path, OpenMode::BUFFERED).await;
        let file = file.map_err(|e| Error::io(&path, e))?;
        self.state.borrow_mut().reserve.file = Some(file.clone());
        Ok(file)
    }

    /// Frees the reserve's blocks if `error` says that the disk is full; `false`
    /// when it does not, or nothing is there.
    pub(crate) async fn give_up_reserve(self: &Rc<Self>, error: &Error) -> bool {
        if !is_disk_full(error) || self.state.borrow().reserve.held == 0 {
            return false;
        }
        let shared = self.clone();
        let cause = error.to_string();
        let done = Rc::new(std::cell::Cell::new(None));
        let told = done.clone();
        // A task of its own: whoever waits may lose interest half-way.
        let freeing = async move {
            shared.claim_reserve().await;
            let freed = shared.free_reserve(&cause).await;
            told.set(Some(freed));
            shared.release_reserve();
            shared.kick_reserve();
        };
        self.env.spawn(freeing).detach();
        self.signal.wait(|| done.take()).await
    }

    /// Whether so many bytes of the disk are free, as far as it says.
    pub(crate) async fn seems_free(&self, bytes: u64) -> bool {
        let space = self.env.fs().space(&self.config.data_dir).await;
        space.is_ok_and(|space| space.usable >= bytes)
    }

    async fn free_reserve(&self, cause: &str) -> bool {
        let held = self.state.borrow().reserve.held;
        if held == 0 {
            return false;
        }
        let freed = match self.reserve_file().await {
            Ok(file) => match file.set_len(0).await {
                // Freed blocks can be had only when the change is on disk.
                Ok(()) => file.sync_data().await,
                Err(e) => Err(e),
            }
            .map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e)),
            Err(error) => Err(error),
        };
        match freed {
            Ok(()) => {
                let mut state = self.state.borrow_mut();
                (state.reserve.held, state.reserve.found) = (0, false);
                state.reserve.missing = true;
                state.no_space = true;
                state.journals.iter_mut().for_each(|journal| journal.refused = false);
                tracing::error!(
                    "{cause}; the reserve of {held} bytes is given up: what was accepted is \
                     written with it, reads go on, producers are refused until that much is free \
                     again. Free space or delete topics"
                );
                true
            }
            Err(error) => {
                self.poison_by(&error);
                false
            }
        }
    }

    /// Makes the reserve as large as the journals want it, with `more` bytes.
    pub(crate) async fn extend_reserve(&self, more: u64) -> Result<()> {
        let wanted = self.state.borrow().reserve_wanted(self.config.reserve, more);
        {
            let reserve = &self.state.borrow().reserve;
            let there = reserve.held >= wanted && !reserve.missing && !reserve.found;
            if reserve.impossible || there {
                return Ok(());
            }
            if reserve.missing && more > 0 {
                // What is free is for those who wait for it.
                return Err(Error::no_space(self.reserve_path()));
            }
        }
        self.claim_reserve().await;
        let made = self.allocate_reserve(wanted).await;
        self.release_reserve();
        made
    }

    async fn allocate_reserve(&self, wanted: u64) -> Result<()> {
        let (held, found) = {
            let reserve = &self.state.borrow().reserve;
            (reserve.held, reserve.found)
        };
        if found && held > wanted {
            let file = self.reserve_file().await?;
            let cut = file.set_len(wanted).await;
            cut.map_err(|e| Error::io(file.path(), e))?;
        }
        if wanted > 0 && (held < wanted || found) {
            let file = self.reserve_file().await?;
            // A try that fails takes all there is from others, for a moment.
            if !found && !self.seems_free(wanted - held).await {
                return Err(Error::no_space(file.path().clone()));
            }
            if let Err(source) = file.allocate(0..wanted).await {
                let error = Error::io(file.path(), source);
                self.give_back(&file, held.min(wanted)).await?;
                if matches!(error, Error::NoSpace { .. }) {
                    return Err(error);
                }
                tracing::warn!(
                    "{error}: this file system keeps no reserve, so a full disk may stop the \
                     broker; use ext4 or XFS, or set millstream.reserve.bytes to 0"
                );
                self.state.borrow_mut().reserve.impossible = true;
            }
            // Also after a loss of power the next start finds it.
            let synced = file.sync_data().await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))?;
            self.sync_dir(&self.config.journal_dir()).await?;
        }
        let reserve = &mut self.state.borrow_mut().reserve;
        (reserve.missing, reserve.found) = (false, false);
        reserve.held = match () {
            () if reserve.impossible => 0,
            () if found => wanted,
            () => wanted.max(held),
        };
        Ok(())
    }

    /// Starts the task that makes the reserve unless it runs or nothing lacks.
    pub(crate) fn kick_reserve(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            let wanted = state.reserve_wanted(self.config.reserve, 0);
            let reserve = &state.reserve;
            let there = reserve.held >= wanted && !reserve.missing && !reserve.found;
            let idle = state.fatal.is_some() || !state.ready || there && !state.no_space;
            if idle || std::mem::replace(&mut state.reserve.maker_running, true) {
                return;
            }
        }
        let shared = self.clone();
        self.env.spawn(async move { shared.run_reserve().await }).detach();
    }

    async fn run_reserve(self: Rc<Self>) {
        // Those for whom it was given up come first.
        if self.state.borrow().reserve.missing {
            self.env.sleep(self.config.no_space_retry).await;
        }
        loop {
            // A stop needs the space more.
            if self.state.borrow().closing || self.is_poisoned() {
                break;
            }
            let Err(error) = self.extend_reserve(0).await else { break };
            self.poison_by(&error);
            {
                let mut state = self.state.borrow_mut();
                state.no_space = true;
                if !std::mem::replace(&mut state.reserve.missing, true) {
                    let wanted = state.reserve_wanted(self.config.reserve, 0);
                    tracing::warn!(
                        "{error}: the reserve of {wanted} bytes cannot be made, so the disk counts \
                         as full: reads go on, producers are refused. Free that much, delete \
                         topics, or set millstream.reserve.bytes lower"
                    );
                }
            }
            self.env.sleep(self.config.no_space_retry).await;
        }
        {
            let mut state = self.state.borrow_mut();
            state.reserve.maker_running = false;
            if state.no_space && !state.reserve.missing {
                state.no_space = false;
                tracing::info!("there is space again: producers are taken in");
            }
        }
        self.wake();
    }
}
