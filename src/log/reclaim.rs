//! The keeper: makes journal files in the background, frees the oldest ones
//! and writes checkpoints.
//!
//! Freeing a file: every log with frames in it either gets a `TAIL` frame at
//! the journal's head (few bytes above its floor) or is written behind and
//! synced, which raises its floor, and gets a `TAIL` for what remains, unless
//! frames in later files vouch for all of that: a log that is written to without
//! pause would otherwise copy what arrived during the sync, which the journal
//! may have no room for. Order: segment sync, directory sync, `TAIL` durable,
//! checkpoint, new life.

use std::rc::Rc;
use std::time::Duration;

use super::checkpoint::{self, Checkpoint, Floor, LogEntry};
use super::config::{BLOCK, DurabilityClass, SMALL_TAIL_BYTES};
use super::error::{Error, FatalReason, Result};
use super::journal::files::{self, NewFile};
use super::journal::writer::{Journal, Rest};
use super::segment::tail::block_of;
use super::set::LogHandle;
use super::state::{FileOf, Log, Shared, State};
use super::together;
use crate::io::{Env, FileSystem as _, Task as _};
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

/// Above this many logs to sync, one `syncfs` is cheaper. So many are synced at
/// once.
pub(crate) const SYNC_EACH_MAX: usize = 32;
/// Pause before a cold procedure that lacked memory tries again.
pub(super) const RETRY: Duration = Duration::from_millis(1);

/// What a background task does: two of them, because reclaim may have to wait
/// for the room that a new file gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Duty {
    Make,
    Reclaim,
}

/// One of the two tasks.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Keeper {
    running: bool,
    /// Index of the class that it served last.
    last: usize,
}

/// A log whose frames up to an offset are about to leave the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) handle: LogHandle,
    pub(crate) end: Offset,
}

impl<E: Env> Shared<E> {
    /// Starts the keeper's two tasks unless they run or have nothing to do.
    pub(crate) fn kick_keeper(self: &Rc<Self>) {
        for duty in [Duty::Make, Duty::Reclaim] {
            {
                let mut state = self.state.borrow_mut();
                let idle = state.fatal.is_some() || !state.writable || state.due(duty).is_none();
                if idle || std::mem::replace(&mut state.keepers[duty as usize].running, true) {
                    continue;
                }
            }
            let shared = self.clone();
            self.env.spawn(async move { shared.run_keeper(duty).await }).detach();
        }
    }

    async fn run_keeper(self: Rc<Self>, duty: Duty) {
        let mut waited = false;
        loop {
            let class = {
                let mut state = self.state.borrow_mut();
                let due = if state.fatal.is_some() { None } else { state.due(duty) };
                let keeper = &mut state.keepers[duty as usize];
                keeper.running = due.is_some();
                if let Some(class) = due {
                    keeper.last = class.index();
                } else if waited {
                    // What it waited for is not needed any more.
                    state.space_found();
                }
                due
            };
            let Some(class) = class else {
                self.signal.notify();
                return;
            };
            let result = match duty {
                Duty::Make => self.make_file(class).await.map(|()| true),
                Duty::Reclaim => self.reclaim(class).await,
            };
            let result = result.map_err(|error| error.or_fatal(FatalReason::SegmentWrite));
            waited = result.is_err();
            match result {
                Ok(true) => self.state.borrow_mut().space_found(),
                Ok(false) => {}
                Err(Error::NoMemory(_) | Error::Gone) => self.env.sleep(RETRY).await,
                Err(error @ Error::Fatal { .. }) => self.poison_by(&error),
                Err(error) if duty == Duty::Make => self.stay_small(class, &error).await,
                Err(error) => {
                    tracing::warn!(%error, "the journal waits for space");
                    self.wait_for_space(&error).await;
                }
            }
            self.submit(class);
            self.wake();
        }
    }

    /// Makes a file of the ordinary size, and room for what it will hold. Where
    /// that found no space, and once the reserve was given up, only a group that
    /// waits for a file gets one, a small one: it was accepted, and reclaim
    /// waits for it.
    async fn make_file(&self, class: DurabilityClass) -> Result<()> {
        let config = self.config.journal(class);
        let waits = {
            let state = self.state.borrow();
            let journal = &state.journals[class.index()];
            let waits = journal.stalled_bytes();
            waits.filter(|_| state.reserve.was_given_up() || journal.cramped)
        };
        let bytes = match waits {
            Some(group) => config.first_file_bytes.max(group + BLOCK),
            None => {
                self.extend_reserve(config.file_bytes).await?;
                config.file_bytes
            }
        };
        let made = self.make_file_of(class, bytes).await;
        let journal = &mut self.state.borrow_mut().journals[class.index()];
        journal.refused = waits.is_some() && made.is_err();
        if made.is_ok() {
            journal.cramped = waits.is_some();
        }
        made
    }

    /// A journal that finds no space for another file goes on with those that
    /// it has, as at its cap, and tries again.
    async fn stay_small(self: &Rc<Self>, class: DurabilityClass, error: &Error) {
        let (was_cramped, stuck) = {
            let journal = &mut self.state.borrow_mut().journals[class.index()];
            let was_cramped = std::mem::replace(&mut journal.cramped, true);
            (was_cramped, journal.stalled && journal.is_stuck())
        };
        if !was_cramped {
            let name = class.name();
            tracing::warn!(
                "{error}: the journal of class {name} does not grow until there is space"
            );
        }
        self.kick_keeper();
        // A stop does not wait for space.
        self.signal.notify();
        if stuck {
            return self.wait_for_space(error).await;
        }
        self.env.sleep(self.config.no_space_retry).await;
    }

    pub(crate) async fn make_file_of(&self, class: DurabilityClass, bytes: u64) -> Result<()> {
        let new = {
            let mut state = self.state.borrow_mut();
            let journal = &mut state.journals[class.index()];
            journal.total_bytes += bytes;
            journal.next_sequence += 1;
            journal.next_slot += 1;
            NewFile {
                class,
                shard: self.config.shard.0,
                slot: journal.next_slot,
                sequence: journal.next_sequence,
                bytes,
            }
        };
        let dir = self.config.journal_dir();
        let made = files::make(&self.env, &dir, &self.config.pools.upkeep, new).await;
        let mut state = self.state.borrow_mut();
        let journal = &mut state.journals[class.index()];
        match made {
            Ok(file) => {
                journal.ready.push_back(file);
                Ok(())
            }
            Err(error) => {
                journal.total_bytes -= bytes;
                Err(error)
            }
        }
    }

    /// Frees the oldest full file of a journal.
    pub(super) async fn reclaim_oldest(self: &Rc<Self>, class: DurabilityClass) -> Result<()> {
        let logs: Vec<Leaving> = {
            let state = self.state.borrow();
            let Some(oldest) = state.journals[class.index()].full.front() else { return Ok(()) };
            let leaving = |(handle, end): (&_, &_)| Leaving { handle: *handle, end: *end };
            let mut logs: Vec<_> = oldest.logs.iter().map(leaving).collect();
            logs.sort_unstable_by_key(|l| (l.handle.slot, l.handle.generation));
            logs
        };
        let mut raised = Vec::new();
        // Copies of more than that would gain too little.
        let mut budget = self.config.journal(class).file_bytes / 4;
        for leaving in logs {
            let carried = self.carry(leaving, &mut budget).await;
            match self.gone_or(leaving.handle, carried) {
                Ok(true) => raised.push(leaving),
                Ok(false) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
            if self.env.slice_over() {
                self.env.pause().await;
            }
        }
        self.raise_floors(class, &raised).await?;
        self.settle(class).await?;
        self.state.borrow_mut().journals[class.index()].forget_oldest();
        self.write_checkpoint().await?;
        self.free_oldest(class).await?;
        self.state.borrow_mut().journals[class.index()].freed();
        Ok(())
    }

    /// Gets the frames of one log out of the oldest file's care. `true` when
    /// its floor has to rise.
    async fn carry(self: &Rc<Self>, leaving: Leaving, budget: &mut u64) -> Result<bool> {
        let handle = leaving.handle;
        self.journaled(handle).await?;
        let above = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            if leaving.end <= log.floor.boundary() {
                return Ok(false);
            }
            log.above_floor()
        };
        match above {
            Some(0) => Ok(false),
            Some(n) if n <= SMALL_TAIL_BYTES.min(*budget) => {
                *budget -= n;
                self.queue_tail_from(handle, leaving.end).await.map(|()| false)
            }
            _ => {
                self.write_behind(handle, false).await?;
                Ok(true)
            }
        }
    }

    /// Completes when nothing of the log is on its way past the journal.
    pub(crate) async fn journaled(self: &Rc<Self>, handle: LogHandle) -> Result<()> {
        loop {
            self.start_bypasses();
            let class = match self.state.borrow().log(handle) {
                Some(log) if log.is_journaled() && !log.truncating => return Ok(()),
                Some(log) => log.class(),
                None => return Err(Error::Gone),
            };
            self.submit(class);
            self.check()?;
            let state = &self.state;
            let mut first = true;
            self.signal
                .wait(|| {
                    let state = state.borrow();
                    let ready = state.fatal.is_some()
                        || state.log(handle).is_none_or(|l| l.is_journaled() && !l.truncating);
                    (ready || !std::mem::take(&mut first)).then_some(())
                })
                .await;
        }
    }

    /// Raises the floors of logs that were written behind, after a sync, and
    /// queues what lies above them anew where a frame that leaves held some of it.
    pub(crate) async fn raise_floors(
        self: &Rc<Self>,
        class: DurabilityClass,
        logs: &[Leaving],
    ) -> Result<()> {
        let all_at_once = logs.len() > SYNC_EACH_MAX;
        let mut floors = Vec::new();
        for some in logs.chunks(SYNC_EACH_MAX) {
            let syncs = some.iter().map(|l| self.sync_to_floor(l.handle, class, !all_at_once));
            let synced = together::all(syncs.collect()).await;
            for (&Leaving { handle, end }, synced) in some.iter().zip(synced) {
                match self.gone_or(handle, synced) {
                    Ok((floor, round)) => floors.push((handle, floor, round, end)),
                    Err(Error::Gone) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if all_at_once && !armed(Bug::NoSegmentSyncBeforeRecycle) {
            let dir = &self.config.data_dir;
            let synced = self.env.fs().sync_fs(dir).await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, dir, &e))?;
        }
        for (handle, floor, round, end) in floors {
            let raised = self.take_floor(handle, floor, round);
            let queued = match raised {
                Some(true) => self.queue_tail_from(handle, end).await,
                Some(false) => self.raise_anew(handle, class, end).await,
                None => continue,
            };
            match self.gone_or(handle, queued) {
                Ok(()) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes a log's segment ready to be trusted up to its committed floor;
    /// returns that, and the truncations that it knows of.
    pub(crate) async fn sync_to_floor(
        self: &Rc<Self>,
        handle: LogHandle,
        class: DurabilityClass,
        sync: bool,
    ) -> Result<(Floor, u32)> {
        let (floor, round) = self.committed_floor(handle, class).await?;
        self.sync_below(handle, &floor, sync).await?;
        Ok((floor, round))
    }

    /// Raises a log's floor, unless somebody has raised it further; `false` when
    /// it was truncated meanwhile, perhaps below it.
    pub(super) fn take_floor(&self, handle: LogHandle, floor: Floor, round: u32) -> Option<bool> {
        let mut state = self.state.borrow_mut();
        let log = state.log_mut(handle)?;
        let same = log.round == round;
        let (to, is) = ((floor.segment, floor.pos), (log.floor.segment, log.floor.pos));
        if same && to > is {
            log.floor = floor;
        }
        Some(same)
    }

    /// Raises one floor until no truncation comes between, and queues what
    /// lies above it.
    async fn raise_anew(
        self: &Rc<Self>,
        handle: LogHandle,
        class: DurabilityClass,
        end: Offset,
    ) -> Result<()> {
        loop {
            let (floor, round) = self.sync_to_floor(handle, class, true).await?;
            if self.take_floor(handle, floor, round).ok_or(Error::Gone)? {
                return self.queue_tail_from(handle, end).await;
            }
        }
    }

    /// The floor that a log could have now, once all segments before its
    /// active one are closed and it lies below the high watermark.
    async fn committed_floor(
        self: &Rc<Self>,
        handle: LogHandle,
        class: DurabilityClass,
    ) -> Result<(Floor, u32)> {
        loop {
            {
                let state = self.state.borrow();
                let log = state.log(handle).ok_or(Error::Gone)?;
                if let Some(floor) = log.possible_floor() {
                    return Ok((floor, log.round));
                }
            }
            self.submit(class);
            let mut first = true;
            self.signal.wait(|| (!std::mem::take(&mut first)).then_some(())).await;
            self.check()?;
            self.write_behind(handle, false).await?;
        }
    }

    /// Makes a segment and its indexes ready to be trusted up to a floor.
    async fn sync_below(&self, handle: LogHandle, floor: &Floor, sync: bool) -> Result<()> {
        self.claim(handle).await?;
        let synced = self.sync_claimed(handle, floor, sync).await;
        self.release(handle);
        synced
    }

    async fn sync_claimed(&self, handle: LogHandle, floor: &Floor, sync: bool) -> Result<()> {
        let base = Offset(floor.segment);
        let indexes = self.write_indexes(handle, base, Some(floor.boundary_pos), sync);
        let bytes = async {
            if !sync {
                return Ok(());
            }
            let file = self.segment_file(handle, base).await?;
            self.sync_file(&file).await
        };
        // Both to their ends, whatever becomes of the other.
        let (indexes, bytes) = futures_lite::future::zip(indexes, bytes).await;
        indexes.and(bytes)
    }

    pub(super) fn class_of(&self, handle: LogHandle) -> Result<DurabilityClass> {
        self.state.borrow().log(handle).map(Log::class).ok_or(Error::Gone)
    }

    /// Writes the checkpoint of this shard, one at a time: one that begins after
    /// the call.
    pub(crate) async fn write_checkpoint(&self) -> Result<()> {
        let asked = self.state.borrow().checkpoint_sequence;
        let mine = self
            .signal
            .wait(|| {
                let mut state = self.state.borrow_mut();
                // Those who wait for one together need one.
                if state.checkpoint_stored > asked {
                    return Some(false);
                }
                (!std::mem::replace(&mut state.checkpointing, true)).then_some(true)
            })
            .await;
        if !mine {
            return Ok(());
        }
        let result = self.store_checkpoint().await;
        self.state.borrow_mut().checkpointing = false;
        self.signal.notify();
        result
    }

    async fn store_checkpoint(&self) -> Result<()> {
        let mut handles = Vec::new();
        let checkpoint = {
            let mut state = self.state.borrow_mut();
            assert!(state.started, "a checkpoint would make void what the old journals hold");
            state.checkpoint_sequence += 1;
            handles.extend(state.logs.iter().map(|(_, log)| (log.handle, log.droppable_by_now())));
            let logs = state.logs.iter().map(|(_, log)| log.entry()).collect();
            let groups = [state.journals[0].groups(), state.journals[1].groups()];
            Checkpoint { sequence: state.checkpoint_sequence, groups, logs }
        };
        let dir = self.config.journal_dir();
        checkpoint::store(&self.env, &dir, self.config.shard.0, &checkpoint).await?;
        let mut state = self.state.borrow_mut();
        state.checkpoint_stored = checkpoint.sequence;
        for (handle, upto) in handles {
            if let Some(log) = state.log_mut(handle) {
                log.droppable = log.droppable.max(upto);
            }
        }
        Ok(())
    }

    async fn free_oldest(&self, class: DurabilityClass) -> Result<()> {
        let (file, sequence) = {
            let mut state = self.state.borrow_mut();
            let journal = &mut state.journals[class.index()];
            journal.next_sequence += 1;
            (journal.full.pop_front(), journal.next_sequence)
        };
        let Some(mut file) = file else { return Ok(()) };
        let keep = {
            let journal = &self.state.borrow().journals[class.index()];
            let small = file.header.capacity < journal.config.file_bytes;
            (!small || journal.cramped) && !journal.is_beyond_cap()
        };
        if keep {
            files::recycle(&self.env, &mut file, &self.config.pools.upkeep, sequence).await?;
            self.state.borrow_mut().journals[class.index()].ready.push_back(file);
            return Ok(());
        }
        let removed = self.env.fs().remove_file(&file.path).await;
        removed.map_err(|e| Error::io(&file.path, e))?;
        self.sync_dir(&self.config.journal_dir()).await?;
        self.state.borrow_mut().journals[class.index()].total_bytes -= file.header.capacity;
        Ok(())
    }
}

impl<E: Env> State<E> {
    /// The class to serve next: the other one first, since one that has always
    /// something to do, or waits for space, must not hold it up.
    fn due(&self, duty: Duty) -> Option<DurabilityClass> {
        let due = |j: &&Journal<FileOf<E>>| match duty {
            Duty::Make => j.wants_file(),
            // Its checkpoint would make void what a start has not finished with.
            Duty::Reclaim => self.ready && j.wants_reclaim() && j.rest != Rest::Now,
        };
        let last = self.keepers[duty as usize].last;
        let in_turn = [1 - last, last].into_iter().map(|class| &self.journals[class]);
        in_turn.into_iter().find(due).map(|j| j.class)
    }
}

impl Log {
    /// Bytes above the floor; `None` when they are in more than one segment.
    pub(crate) fn above_floor(&self) -> Option<u64> {
        (!self.has_rolled()).then(|| self.active().end_pos - self.floor.pos)
    }

    /// Whether a segment has ended above the floor.
    pub(super) fn has_rolled(&self) -> bool {
        self.open.len() > 1 || self.active().base.0 != self.floor.segment
    }

    /// Whether a whole block above the floor is committed.
    pub(super) fn may_rise(&self) -> bool {
        let active = self.active();
        block_of(active.position_below(self.high_watermark, 0)) > self.floor.pos
    }

    pub(crate) fn possible_floor(&self) -> Option<Floor> {
        let segment = self.open.front().filter(|_| self.open.len() == 1)?;
        let (boundary, _) = segment.straddle;
        (boundary.offset <= self.high_watermark).then_some(Floor {
            segment: segment.base.0,
            pos: segment.written,
            boundary_pos: boundary.pos,
            boundary_offset: boundary.offset.0,
        })
    }

    /// The log in a checkpoint.
    pub(crate) fn entry(&self) -> LogEntry {
        LogEntry {
            log_id: self.known.log_id.0,
            name: self.known.dir_name(),
            log_start: self.start_wanted.0,
            floor: self.floor,
            // Later ones follow from the frames above the floor.
            epochs: self
                .epochs
                .entries()
                .iter()
                .filter(|e| e.start.0 < self.floor.boundary_offset)
                .map(|e| (e.epoch.0, e.start.0))
                .collect(),
        }
    }
}
