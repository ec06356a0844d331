//! Retention: where a log should begin by the age and size of its segments,
//! and how what lies before its start leaves the disk.
//!
//! Order, so that a crash anywhere neither loses what is at or above a log
//! start nor brings back what is below it: a checkpoint says the new start,
//! then readers see it; the floor rises past the segments that go, and a second
//! checkpoint says so; then files are renamed, and unlinked later at a limited
//! rate. A recovery sweeps away what a rename that was lost left behind.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::error::{Error, Result};
use super::reclaim::Leaving;
use super::segment::names::{self, Kind};
use super::set::LogHandle;
use super::state::{Log, Shared};
use crate::io::{Env, FileSystem as _, Task as _};
use crate::model::planted::{Bug, armed};
use crate::model::{Offset, Timestamp};

/// End of the name of a file that waits for its unlinking, as in Kafka.
pub(crate) const DROPPED: &str = ".deleted";

/// Longest sleep of the task that unlinks; a file with less delay may come.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Looks for a log that nobody writes, and the time between two of them. A
/// write that waits for space keeps its log; the next round comes to it again.
const CLAIM_TRIES: u32 = 200;
const CLAIM_WAIT: Duration = Duration::from_millis(5);

/// A segment as retention sees it.
struct Candidate {
    base: Offset,
    end: Offset,
    len: u64,
    /// `None` when only its files know.
    largest: Option<Timestamp>,
    /// The active one: it can go only after a roll.
    is_last: bool,
}

impl<E: Env> Shared<E> {
    /// See `LogSet::retained_from`.
    pub(crate) async fn retained_from(
        self: &Rc<Self>,
        handle: LogHandle,
        now_ms: i64,
    ) -> Result<Option<Offset>> {
        let (candidates, start, watermark, config) = {
            let state = self.state.borrow();
            // A start that waits for space: see `advance_log_starts`.
            if state.closing || !state.ready {
                return Ok(None);
            }
            let log = state.log(handle).ok_or(Error::Gone)?;
            (log.candidates(), log.log_start, log.high_watermark, log.known.config)
        };
        let bytes: u64 = candidates.iter().map(|segment| segment.len).sum();
        let limit = u64::try_from(config.retention_bytes).ok();
        let mut surplus = limit.map_or(-1, |limit| signed(bytes).saturating_sub(signed(limit)));
        let mut keep = None;
        for segment in candidates {
            if segment.end > watermark || segment.is_last && segment.len == 0 {
                break;
            }
            let before_start = !segment.is_last && segment.end <= start;
            let too_much = limit.is_some() && surplus >= signed(segment.len);
            let goes = before_start
                || too_much
                || config.retention_ms >= 0
                    && self.is_older(handle, &segment, now_ms, config.retention_ms).await?;
            if !goes {
                break;
            }
            surplus -= signed(segment.len);
            if segment.is_last && !self.roll_at(handle, segment.end) {
                break;
            }
            keep = Some(segment.end.max(start));
        }
        Ok(keep)
    }

    /// Whether the newest record of a segment is older than `limit_ms`.
    async fn is_older(
        self: &Rc<Self>,
        handle: LogHandle,
        segment: &Candidate,
        now_ms: i64,
        limit_ms: i64,
    ) -> Result<bool> {
        let largest = match segment.largest {
            Some(largest) => largest,
            None => self.load_largest(handle, segment.base).await?,
        };
        // Records without a timestamp have no age: Kafka takes the time of
        // the file then, which a copy or a restore makes anew.
        Ok(largest.0 >= 0 && now_ms.saturating_sub(largest.0) > limit_ms)
    }

    /// Starts a new segment at the log's end, where everything is committed;
    /// `false` when that is not so any more.
    fn roll_at(&self, handle: LogHandle, end: Offset) -> bool {
        let mut state = self.state.borrow_mut();
        if state.fatal.is_some() || state.closing {
            return false;
        }
        let Some(log) = state.log(handle) else { return false };
        let at_rest = log.is_journaled() && !log.truncating && log.truncate_to.is_none();
        if !at_rest || log.end() != end || log.high_watermark < end || log.active().end_pos == 0 {
            return false;
        }
        state.roll(handle, end);
        true
    }

    /// See `LogSet::advance_log_starts`.
    pub(crate) async fn advance_log_starts(
        self: &Rc<Self>,
        moves: &[(LogHandle, Offset)],
    ) -> Result<()> {
        let (closing, ready) = {
            let state = self.state.borrow();
            (state.closing, state.ready)
        };
        if closing {
            return Err(Error::Gone);
        }
        if !ready {
            // Until a start has its first frames, a checkpoint would make void
            // what the old journals hold.
            return Err(Error::no_space(self.config.journal_dir()));
        }
        let mut ahead = Vec::with_capacity(moves.len());
        for &(handle, to) in moves {
            if let Some(log) = self.state.borrow_mut().log_mut(handle)
                && to > log.log_start
            {
                let to = to.min(log.high_watermark);
                log.start_wanted = log.start_wanted.max(to);
                ahead.push((handle, to));
            }
        }
        if !ahead.is_empty() && !armed(Bug::LogStartNotPersisted) {
            self.write_checkpoint().await?;
        }
        for (handle, to) in ahead {
            if let Some(log) = self.state.borrow_mut().log_mut(handle) {
                log.log_start = log.log_start.max(to);
                log.epochs.truncate_before(log.log_start);
            }
        }
        Ok(())
    }

    /// See `LogSet::drop_segments`.
    pub(crate) async fn drop_segments(self: &Rc<Self>, handles: &[LogHandle]) -> Result<usize> {
        if !self.state.borrow().ready {
            return Ok(0);
        }
        let mut lifted = false;
        for &handle in handles {
            match self.lift_floor(handle).await {
                Ok(moved) => lifted |= moved,
                // What needs no floor raised can go all the same.
                Err(error) if error.passes() || matches!(error, Error::Gone) => {}
                Err(error @ Error::Fatal { .. }) => return Err(error),
                Err(error) => tracing::warn!(%error, "segments before a log start stay for now"),
            }
        }
        let behind = |handle: &LogHandle| {
            let state = self.state.borrow();
            state.log(*handle).is_some_and(|log| log.droppable < log.droppable_by_now())
        };
        if lifted || handles.iter().any(behind) {
            self.write_checkpoint().await?;
        }
        let mut dropped = 0;
        for &handle in handles {
            if !self.claim_soon(handle).await? {
                continue;
            }
            let done = self.drop_claimed(handle).await;
            self.release(handle);
            match self.gone_or(handle, done) {
                Ok(count) => dropped += count,
                Err(Error::Gone) => {}
                Err(error @ Error::Fatal { .. }) => return Err(error),
                // The next start removes what is left of them.
                Err(error) => tracing::warn!(%error, "dropped segments stay on disk"),
            }
            if self.env.slice_over() {
                self.env.pause().await;
            }
        }
        self.kick_dropper();
        Ok(dropped)
    }

    /// Marks a log busy, unless somebody else does for long.
    async fn claim_soon(&self, handle: LogHandle) -> Result<bool> {
        for _ in 0..CLAIM_TRIES {
            self.check()?;
            match self.state.borrow_mut().log_mut(handle) {
                None => return Ok(false),
                Some(log) if log.segment_busy => {}
                Some(log) => {
                    log.segment_busy = true;
                    return Ok(true);
                }
            }
            self.env.sleep(CLAIM_WAIT).await;
        }
        Ok(false)
    }

    /// Raises the floor past the segments before the log start, unless what
    /// follows them is not committed yet or has no room: then a later round does.
    async fn lift_floor(self: &Rc<Self>, handle: LogHandle) -> Result<bool> {
        let (class, low) = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            let may = !state.no_space && !state.closing;
            let low = may && log.floor.segment < log.first_kept().0;
            (log.class(), low)
        };
        if !low || !self.claim_soon(handle).await? {
            return Ok(false);
        }
        let written = self.write_behind_claimed(handle, false).await;
        self.release(handle);
        self.gone_or(handle, written)?;
        let ready = {
            let state = self.state.borrow();
            state.log(handle).ok_or(Error::Gone)?.possible_floor().is_some()
        };
        if ready {
            // No frame leaves the journal here, so none has to be queued anew.
            self.raise_floors(class, &[Leaving { handle, end: Offset::ZERO }]).await?;
        }
        Ok(ready)
    }

    /// Takes the files of segments that no checkpoint needs out of the log's
    /// sight. Until they are unlinked they keep their names with a suffix.
    async fn drop_claimed(self: &Rc<Self>, handle: LogHandle) -> Result<usize> {
        let (dir, bases, delay) = {
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            let upto = match armed(Bug::SegmentsDroppedBeforeCheckpoint) {
                true => log.log_start,
                // Another's checkpoint may be ahead of what readers are told.
                false => log.droppable.min(log.log_start),
            };
            let goes = |(_, s): &(&Offset, &super::state::ClosedSegment)| s.end <= upto;
            let bases: Vec<Offset> = log.closed.iter().take_while(goes).map(|(b, _)| *b).collect();
            for base in &bases {
                log.closed.remove(base);
            }
            (log.dir.clone(), bases, log.known.config.file_delete_delay)
        };
        if bases.is_empty() {
            return Ok(0);
        }
        self.files.forget(handle, |base| !bases.contains(&base));
        let due = self.env.monotonic() + delay;
        for &base in &bases {
            for kind in [Kind::Log, Kind::Index, Kind::TimeIndex] {
                let path = names::path(&dir, base, kind);
                let aside = with_suffix(&path);
                match self.env.fs().rename(&path, &aside).await {
                    Ok(()) => self.unlink_at(due, aside),
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    Err(e) => return Err(Error::io(&path, e)),
                }
            }
        }
        match self.write_epochs(handle, true).await {
            // For Kafka's tools only, and for them the next roll writes it.
            Err(error) if error.passes() => {}
            other => other?,
        }
        Ok(bases.len())
    }

    /// Has a file unlinked at monotonic time `due`, or sooner on a full disk.
    pub(crate) fn unlink_at(&self, due: Duration, path: PathBuf) {
        let mut state = self.state.borrow_mut();
        state.dropped_files += 1;
        let number = state.dropped_files;
        state.dropping.insert((due, number), path);
    }

    /// Starts the task that unlinks, unless it runs or has nothing to do.
    pub(crate) fn kick_dropper(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            if state.dropping.is_empty() || std::mem::replace(&mut state.dropper_running, true) {
                return;
            }
        }
        let shared = self.clone();
        self.env.spawn(async move { shared.run_dropper().await }).detach();
    }

    async fn run_dropper(self: Rc<Self>) {
        loop {
            let now = self.env.monotonic();
            let next = {
                let mut state = self.state.borrow_mut();
                let hurry = state.no_space;
                let due = state.dropping.first_key_value().map(|((due, _), _)| *due);
                match due {
                    None => {
                        state.dropper_running = false;
                        return;
                    }
                    Some(due) if due <= now || hurry => Ok(state.dropping.pop_first()),
                    Some(due) => Err((due - now).min(LOOK_AGAIN)),
                }
            };
            match next {
                Err(wait) => self.env.sleep(wait).await,
                Ok(entry) => {
                    if let Some((_, path)) = entry {
                        self.unlink_dropped(&path).await;
                    }
                    self.env.sleep(self.config.unlink_every).await;
                }
            }
        }
    }

    async fn unlink_dropped(&self, path: &std::path::Path) {
        match self.env.fs().remove_file(path).await {
            Ok(()) => {}
            // Its whole log was deleted meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            // Only space is lost; the next start tries again.
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a deleted segment stays on disk");
            }
        }
    }

    /// What a reader's answer depends on besides the log's content.
    pub(crate) fn view(&self, handle: LogHandle) -> Option<(u32, Offset)> {
        self.state.borrow().log(handle).map(|log| (log.round, log.log_start))
    }

    /// Bytes of a log's segments.
    pub(crate) fn size(&self, handle: LogHandle) -> Option<u64> {
        let state = self.state.borrow();
        let log = state.log(handle)?;
        let closed: u64 = log.closed.values().map(|segment| segment.len).sum();
        Some(closed + log.open.iter().map(|segment| segment.end_pos).sum::<u64>())
    }
}

/// The name that a dropped file has until it is unlinked.
fn with_suffix(path: &std::path::Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(DROPPED);
    PathBuf::from(name)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Log {
    /// Its segments, oldest first.
    fn candidates(&self) -> Vec<Candidate> {
        let closed = self.closed.iter().map(|(base, segment)| Candidate {
            base: *base,
            end: segment.end,
            len: segment.len,
            largest: segment.max_timestamp,
            is_last: false,
        });
        let last = self.open.len() - 1;
        let open = self.open.iter().enumerate().map(|(at, segment)| Candidate {
            base: segment.base,
            end: segment.end_offset,
            len: segment.end_pos,
            largest: Some(segment.index.max_timestamp()),
            is_last: at == last,
        });
        closed.chain(open).collect()
    }

    /// Base of the segment that its start lies in.
    fn first_kept(&self) -> Offset {
        let open = self.open.iter().rev().map(|segment| segment.base);
        let mut bases = open.chain(self.closed.keys().rev().copied());
        bases.find(|base| *base <= self.log_start).unwrap_or(self.log_start)
    }

    /// Segments that end here or before are in no checkpoint written from now on.
    pub(crate) fn droppable_by_now(&self) -> Offset {
        self.start_wanted.min(Offset(self.floor.segment))
    }
}
