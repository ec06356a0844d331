//! The state of one shard's logs, and one log. No I/O here: what changes state
//! synchronously is in `append`, what awaits is in `behind`, `reclaim`,
//! `recovery`, `truncate` and `read`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use slab::Slab;

use super::checkpoint::Floor;
use super::config::{DurabilityClass, KnownLog, LogSetConfig};
use super::epoch_cache::EpochCache;
use super::error::{Error, FatalReason};
use super::files_lru::FilesLru;
use super::journal::writer::Journal;
use super::reclaim::Keeper;
use super::segment::tail::{Mark, OpenSegment};
use super::set::LogHandle;
use super::signal::Signal;
use super::space::Reserve;
use super::unsynced::Unsynced;
use crate::io::{Env, FileSystem};
use crate::model::{Offset, Timestamp};

/// The file type of an environment.
pub(crate) type FileOf<E> = <<E as Env>::Fs as FileSystem>::File;

/// A closed segment: all of it is in its file and synced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedSegment {
    pub(crate) len: u64,
    /// The offset after its last batch.
    pub(crate) end: Offset,
    /// Largest timestamp, once somebody has asked.
    pub(crate) max_timestamp: Option<Timestamp>,
    /// The operator knows that it could not be read for that.
    pub(crate) told_unreadable: bool,
}

impl ClosedSegment {
    pub(crate) fn new(len: u64, end: Offset, max_timestamp: Option<Timestamp>) -> Self {
        Self { len, end, max_timestamp, told_unreadable: false }
    }
}

/// A bypass whose segment write is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BypassFlight {
    /// Nothing at or above this offset may be acknowledged.
    pub(crate) start: Offset,
    /// Bytes of its batches.
    pub(crate) bytes: u64,
}

/// One partition's log.
pub(crate) struct Log {
    pub(crate) known: KnownLog,
    pub(crate) handle: LogHandle,
    pub(crate) dir: PathBuf,
    pub(crate) epochs: EpochCache,
    pub(crate) log_start: Offset,
    /// What the next checkpoint says; `log_start` follows when it is stored.
    pub(crate) start_wanted: Offset,
    /// Segments that end here or before are needed by no checkpoint.
    pub(crate) droppable: Offset,
    /// Producer snapshots on disk, as far as known, oldest first.
    pub(crate) snapshots_stored: Vec<Offset>,
    pub(crate) high_watermark: Offset,
    /// What the journal holds in order, bypassed bytes not considered.
    pub(crate) journal_durable: Offset,
    /// What was reported last.
    pub(crate) durable: Offset,
    pub(crate) closed: BTreeMap<Offset, ClosedSegment>,
    /// Closing segments, then the active one; never empty.
    pub(crate) open: VecDeque<OpenSegment>,
    /// What the next checkpoint says.
    pub(crate) floor: Floor,
    /// Where bytes begin that no frame vouches for yet.
    pub(crate) bypass_from: Option<Mark>,
    /// Bytes that wait for a bypass.
    pub(crate) bypass_waits: u64,
    pub(crate) bypass_flight: Option<BypassFlight>,
    /// A task is writing its segments.
    pub(crate) segment_busy: bool,
    pub(crate) behind_queued: bool,
    /// Truncations so far.
    pub(crate) round: u32,
    pub(crate) truncating: bool,
    /// A truncation was asked for: nothing beyond is reported or appended.
    pub(crate) truncate_to: Option<Offset>,
    pub(crate) bytes_since_snapshot: u64,
    /// Producer snapshots being stored.
    pub(crate) snapshots: u32,
    /// It is being deleted: nobody waits for space on its behalf any more.
    pub(crate) leaving: bool,
    /// Where these were taken: no two at once write the same file.
    pub(crate) snapshots_begun: Vec<Offset>,
}

impl Log {
    /// A log whose one segment is all in its file, committed up to its end.
    pub(crate) fn at_rest(
        handle: LogHandle,
        known: &KnownLog,
        dir: PathBuf,
        active: OpenSegment,
    ) -> Log {
        let end = active.end_offset;
        let (boundary, _) = active.straddle;
        Log {
            known: known.clone(),
            handle,
            dir,
            epochs: EpochCache::default(),
            log_start: Offset::ZERO,
            start_wanted: Offset::ZERO,
            droppable: Offset::ZERO,
            snapshots_stored: Vec::new(),
            high_watermark: end,
            journal_durable: end,
            durable: end,
            closed: BTreeMap::new(),
            floor: Floor {
                segment: active.base.0,
                pos: active.written,
                boundary_pos: boundary.pos,
                boundary_offset: boundary.offset.0,
            },
            open: VecDeque::from([active]),
            bypass_from: None,
            bypass_waits: 0,
            bypass_flight: None,
            segment_busy: false,
            behind_queued: false,
            round: 0,
            truncating: false,
            truncate_to: None,
            bytes_since_snapshot: 0,
            snapshots: 0,
            leaving: false,
            snapshots_begun: Vec::new(),
        }
    }

    pub(crate) fn active(&self) -> &OpenSegment {
        self.open.back().expect("a log always has an active segment")
    }

    pub(crate) fn active_mut(&mut self) -> &mut OpenSegment {
        self.open.back_mut().expect("a log always has an active segment")
    }

    pub(crate) fn end(&self) -> Offset {
        self.active().end_offset
    }

    pub(crate) fn segment(&self, base: Offset) -> Option<&OpenSegment> {
        self.open.iter().find(|s| s.base == base)
    }

    pub(crate) fn segment_mut(&mut self, base: Offset) -> Option<&mut OpenSegment> {
        self.open.iter_mut().find(|s| s.base == base)
    }

    pub(crate) fn class(&self) -> DurabilityClass {
        self.known.class
    }

    /// The offset below which everything is durable.
    pub(crate) fn durable_now(&self) -> Offset {
        let bound = self.truncate_to.unwrap_or(self.journal_durable);
        let bound = self.bypass_flight.map_or(bound, |flight| bound.min(flight.start));
        self.journal_durable.min(bound)
    }

    /// Whether nothing of it is on its way past the journal.
    pub(crate) fn is_journaled(&self) -> bool {
        self.bypass_from.is_none() && self.bypass_flight.is_none()
    }
}

/// Everything of one shard, behind one `RefCell` that is never borrowed across
/// an await.
pub(crate) struct State<E: Env> {
    pub(crate) logs: Slab<Log>,
    pub(crate) next_generation: u32,
    pub(crate) journals: [Journal<FileOf<E>>; 2],
    pub(crate) events: VecDeque<(LogHandle, Offset)>,
    pub(crate) fatal: Option<(FatalReason, String)>,
    /// The disk was full at the last try, or the reserve is missing.
    pub(crate) no_space: bool,
    pub(crate) reserve: Reserve<FileOf<E>>,
    /// Bytes of all logs on their way past the journals.
    pub(crate) bypass_bytes: u64,
    /// Recovery writes to fresh journals.
    pub(crate) writable: bool,
    /// Each recovered log's first frame is durable: no checkpoint before.
    pub(crate) started: bool,
    /// Recovery has ended: appends are taken.
    pub(crate) ready: bool,
    /// `close` has begun.
    pub(crate) closing: bool,
    /// The keeper's two tasks, by duty.
    pub(crate) keepers: [Keeper; 2],
    pub(crate) checkpointing: bool,
    pub(crate) behind_running: bool,
    /// Logs to write behind; with `true`, their partial block too.
    pub(crate) behind: VecDeque<(LogHandle, bool)>,
    /// Whose tail chunks were filled, oldest first, one entry each.
    pub(crate) chunk_order: VecDeque<LogHandle>,
    /// Logs with bytes that wait for a bypass.
    pub(crate) bypassing: Vec<LogHandle>,
    pub(crate) unlinking: VecDeque<PathBuf>,
    pub(crate) unlinker_running: bool,
    /// Files of dropped segments, by the time of their unlinking.
    pub(crate) dropping: BTreeMap<(Duration, u64), PathBuf>,
    /// Files that were ever in `dropping`.
    pub(crate) dropped_files: u64,
    pub(crate) dropper_running: bool,
    /// Directories that are about to be renamed away.
    pub(crate) leaving: Vec<PathBuf>,
    pub(crate) checkpoint_sequence: u64,
    /// Sequence of the last checkpoint that this process stored.
    pub(crate) checkpoint_stored: u64,
    pub(crate) unsynced: Unsynced<FileOf<E>>,
}

impl<E: Env> State<E> {
    pub(crate) fn new(config: &LogSetConfig) -> Self {
        let queue = config.journal_queue_bytes;
        let journal = |class| Journal::new(class, *config.journal(class), queue);
        Self {
            logs: Slab::new(),
            next_generation: 0,
            journals: [journal(DurabilityClass::Disk), journal(DurabilityClass::Os)],
            events: VecDeque::new(),
            fatal: None,
            no_space: false,
            reserve: Reserve::default(),
            bypass_bytes: 0,
            writable: false,
            started: false,
            ready: false,
            closing: false,
            keepers: [Keeper::default(); 2],
            checkpointing: false,
            behind_running: false,
            behind: VecDeque::new(),
            chunk_order: VecDeque::new(),
            bypassing: Vec::new(),
            unlinking: VecDeque::new(),
            unlinker_running: false,
            dropping: BTreeMap::new(),
            dropped_files: 0,
            dropper_running: false,
            leaving: Vec::new(),
            checkpoint_sequence: 0,
            checkpoint_stored: 0,
            unsynced: Unsynced::default(),
        }
    }

    pub(crate) fn log(&self, handle: LogHandle) -> Option<&Log> {
        self.logs.get(handle.slot as usize).filter(|l| l.handle == handle)
    }

    pub(crate) fn log_mut(&mut self, handle: LogHandle) -> Option<&mut Log> {
        self.logs.get_mut(handle.slot as usize).filter(|l| l.handle == handle)
    }

    /// Puts a log in a free slot.
    pub(crate) fn insert(&mut self, make: impl FnOnce(LogHandle) -> Log) -> LogHandle {
        let entry = self.logs.vacant_entry();
        let slot = u32::try_from(entry.key()).expect("fewer than four billion logs");
        self.next_generation += 1;
        let handle = LogHandle { slot, generation: self.next_generation };
        entry.insert(make(handle));
        handle
    }

    /// Reports durable progress of a log, if there is any.
    pub(crate) fn report(&mut self, handle: LogHandle) -> bool {
        let Some(log) = self.log_mut(handle) else { return false };
        let now = log.durable_now();
        if now <= log.durable {
            return false;
        }
        log.durable = now;
        self.events.push_back((handle, now));
        true
    }

    /// Queues a log for write-behind.
    pub(crate) fn queue_behind(&mut self, handle: LogHandle, evict: bool) {
        let Some(log) = self.log_mut(handle) else { return };
        if !log.behind_queued {
            log.behind_queued = true;
            self.behind.push_back((handle, evict));
        }
    }

    /// Drops cached chunks, oldest first, until `need` bytes came free. Logs
    /// whose oldest chunk is in no file yet are queued for write-behind.
    pub(crate) fn drop_cached(&mut self, need: usize) -> bool {
        let mut freed = 0;
        let mut looks = self.chunk_order.len();
        while freed < need && looks > 0 {
            looks -= 1;
            let Some(handle) = self.chunk_order.pop_front() else { break };
            let Some(log) = self.log_mut(handle) else { continue };
            let oldest = log.open.iter_mut().find(|s| s.memory() > 0);
            let Some(segment) = oldest else { continue };
            match segment.drop_oldest() {
                0 => {
                    self.chunk_order.push_back(handle);
                    self.queue_behind(handle, true);
                }
                bytes => freed += bytes,
            }
        }
        freed >= need
    }
}

/// What all handles of a `LogSet` share.
pub(crate) struct Shared<E: Env> {
    pub(crate) env: E,
    pub(crate) config: LogSetConfig,
    pub(crate) state: RefCell<State<E>>,
    /// Anything that a cold procedure may wait for has changed.
    pub(crate) signal: Signal,
    pub(crate) files: FilesLru<FileOf<E>>,
    pub(crate) notifier: RefCell<Option<Rc<dyn Fn()>>>,
    /// A `flush` is running, which needs no notice.
    pub(crate) flushing: Cell<bool>,
}

impl<E: Env> Shared<E> {
    /// Notes the first fatal error; nothing is written from now on.
    pub(crate) fn poison(&self, reason: FatalReason, detail: String) {
        {
            let mut state = self.state.borrow_mut();
            if state.fatal.is_none() {
                state.fatal = Some((reason, detail));
            }
        }
        self.wake();
    }

    /// As `poison`, when the error is fatal.
    pub(crate) fn poison_by(&self, error: &Error) {
        if let Error::Fatal { reason, detail } = error {
            self.poison(*reason, detail.clone());
        }
    }

    /// The result, after the process was told to end if it says so: whoever
    /// asked for the operation may not look.
    pub(crate) fn noted<T>(&self, result: super::Result<T>) -> super::Result<T> {
        if let Err(error) = &result {
            self.poison_by(error);
        }
        result
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.borrow().fatal.is_some()
    }

    /// The fatal error as an `Err`, if there is one.
    pub(crate) fn check(&self) -> super::Result<()> {
        match &self.state.borrow().fatal {
            Some((reason, detail)) => Err(Error::Fatal { reason: *reason, detail: detail.clone() }),
            None => Ok(()),
        }
    }

    /// Wakes waiting procedures and, outside of a flush, the pump.
    pub(crate) fn wake(&self) {
        self.signal.notify();
        if !self.flushing.get() {
            let notifier = self.notifier.borrow().clone();
            if let Some(notify) = notifier {
                notify();
            }
        }
    }
}
