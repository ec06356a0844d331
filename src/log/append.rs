//! The hot path: append, flush and what follows a finished journal write. All
//! synchronous; a group write is the only task it starts.

use std::io::IoSlice;
use std::rc::Rc;

use smallvec::SmallVec;

use super::AppendError;
use super::config::{BLOCK, DurabilityClass, MAX_BYPASS_PER_ROUND, MAX_JOURNALED_BATCH};
use super::error::{Error, FatalReason};
use super::journal::frame::{FrameHeader, FrameKind};
use super::journal::writer::{Ack, Write};
use super::segment::head::HEADER_LEN;
use super::segment::tail::{Incoming, Mark, OpenSegment};
use super::set::{Appended, LogHandle};
use super::state::{FileOf, Log, Shared, State};
use crate::io::{ChunkMut, Env, File as _, Task as _};
use crate::model::{LeaderEpoch, LogId, Offset, Timestamp};
use crate::record::{BatchSummary, patch_base};

/// Bytes after which a producer snapshot is wanted.
const SNAPSHOT_BYTES: u64 = 64 << 20;

/// A batch of at least this size is written to a journal of class `os` from
/// the tail; smaller ones are copied, which costs less than a part of a write.
const FROM_TAIL_MIN: usize = 4096;

/// Least bytes of a chunk of a tail that needs as many, unless memory is short.
const CHUNK_MIN: usize = 128 * 1024;

/// Times that written chunks are dropped for one of `CHUNK_MIN` bytes.
const DROPS_MAX: u32 = 8;

type Outcome<T> = std::result::Result<T, AppendError>;

/// What `append` is asked to take.
struct NewBatch<'a> {
    bytes: &'a [u8],
    summary: &'a BatchSummary,
    base: Offset,
    epoch: LeaderEpoch,
}

impl NewBatch<'_> {
    fn end(&self) -> Offset {
        self.base.plus(i64::from(self.summary.last_offset_delta) + 1)
    }
}

impl<E: Env> Shared<E> {
    /// See `LogSet::append`.
    pub(crate) fn append(
        self: &Rc<Self>,
        handle: LogHandle,
        batch: &[u8],
        summary: &BatchSummary,
        base: Offset,
        epoch: LeaderEpoch,
    ) -> Outcome<Appended> {
        self.make_way(DurabilityClass::Os);
        let result = self.try_append(handle, &NewBatch { bytes: batch, summary, base, epoch });
        let (stalled, pressed) = {
            let state = self.state.borrow();
            (
                state.journals.iter().any(|j| j.wants_file() || j.wants_reclaim()),
                !state.behind.is_empty(),
            )
        };
        if stalled {
            self.kick_keeper();
        }
        if pressed {
            self.kick_behind();
        }
        result
    }

    fn try_append(self: &Rc<Self>, handle: LogHandle, batch: &NewBatch<'_>) -> Outcome<Appended> {
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        let log = state.takes(handle)?;
        assert_eq!(batch.base, log.end(), "appends go to the log's end ({})", log.known.dir_name());
        let rolls = log.must_roll(batch, &self.env);
        if rolls && log.bypass_from.is_some() {
            // What waits for a bypass belongs to the segment that closes.
            drop(guard);
            self.start_bypasses();
            return Err(AppendError::Full);
        }
        let bypasses = state.admit(handle, batch.bytes.len(), &self.config)?;
        if rolls {
            state.roll(handle, batch.base);
        }
        let chunks = state.reserve_tail(handle, batch.bytes.len(), &self.config)?;
        let (head, rest) = batch.bytes.split_at(HEADER_LEN);
        let mut patched: [u8; HEADER_LEN] =
            head.try_into().expect("split_at gave the header's length");
        patch_base(&mut patched, batch.base, batch.epoch);
        let (base, end) = (batch.base, batch.end());
        let max_timestamp = batch.summary.max_timestamp;
        let log = state.log_mut(handle).ok_or(AppendError::Gone)?;
        let boundary = log.active().end();
        let segment = log.active_mut();
        segment.first.get_or_insert_with(|| (max_timestamp, self.env.wall_ms()));
        let incoming = Incoming { head: &patched, rest, base, end, max_timestamp };
        let position = segment.append(&incoming, chunks);
        log.epochs.assign(batch.epoch, base);
        let snapshot_at = log.snapshot_due(batch.bytes.len() as u64, rolls, base);
        if bypasses {
            state.await_bypass(handle, boundary, batch.bytes.len() as u64);
        } else {
            state.journal_batch(handle, position, &incoming, batch.epoch);
        }
        state.consider_behind(handle, self.config.write_behind_bytes);
        Ok(Appended { end_offset: end, snapshot_at })
    }

    /// See `LogSet::flush`.
    pub(crate) fn flush(self: &Rc<Self>) {
        self.flushing.set(true);
        self.start_bypasses();
        for class in DurabilityClass::ALL {
            self.submit(class);
        }
        self.flushing.set(false);
    }

    /// A journal that is written without waiting is never in anybody's way.
    fn make_way(self: &Rc<Self>, class: DurabilityClass) {
        if self.state.borrow().journals[class.index()].is_crowded() {
            self.flushing.set(true);
            self.submit(class);
            self.flushing.set(false);
        }
    }

    /// Starts every group write that may start.
    pub(crate) fn submit(self: &Rc<Self>, class: DurabilityClass) {
        loop {
            let (write, needs_keeper) = {
                let mut state = self.state.borrow_mut();
                if state.fatal.is_some() {
                    return;
                }
                let journal = &mut state.journals[class.index()];
                let write = journal.next_write();
                (write, journal.stalled || journal.wants_file() || journal.wants_reclaim())
            };
            if needs_keeper {
                self.kick_keeper();
            }
            let Some(write) = write else { return };
            match class {
                DurabilityClass::Os => {
                    let mut parts: Vec<_> = write.group.parts().map(IoSlice::new).collect();
                    let result = write.file.write_parts_now(&mut parts, write.pos);
                    self.group_done(class, &write, result);
                }
                DurabilityClass::Disk => self.spawn_write(class, write),
            }
        }
    }

    fn spawn_write(self: &Rc<Self>, class: DurabilityClass, write: Write<FileOf<E>>) {
        let shared = self.clone();
        self.env
            .spawn(async move {
                let result = write.file.write_at(write.group.whole().clone(), write.pos).await;
                shared.group_done(class, &write, result);
                shared.submit(class);
            })
            .detach();
    }

    fn group_done(
        &self,
        class: DurabilityClass,
        write: &Write<FileOf<E>>,
        result: std::io::Result<()>,
    ) {
        if let Err(source) = result {
            let error = Error::fatal(FatalReason::JournalWrite, write.file.path(), &source);
            self.poison_by(&error);
            return;
        }
        {
            let mut guard = self.state.borrow_mut();
            let state = &mut *guard;
            let (logs, events) = (&mut state.logs, &mut state.events);
            state.journals[class.index()].finished(write.number, |ack| {
                let log = logs.get_mut(ack.handle.slot as usize).filter(|l| l.handle == ack.handle);
                let Some(log) = log.filter(|l| l.round == ack.round) else { return };
                log.journal_durable = log.journal_durable.max(ack.end);
                let now = log.durable_now();
                if now > log.durable {
                    log.durable = now;
                    events.push_back((ack.handle, now));
                }
            });
        }
        self.wake();
    }

    /// See `LogSet::set_high_watermark`.
    pub(crate) fn set_high_watermark(self: &Rc<Self>, handle: LogHandle, offset: Offset) {
        let pressed = {
            let mut state = self.state.borrow_mut();
            let Some(log) = state.log_mut(handle) else { return };
            log.high_watermark = log.high_watermark.max(offset.min(log.end()));
            state.consider_behind(handle, self.config.write_behind_bytes);
            !state.behind.is_empty()
        };
        if pressed {
            self.kick_behind();
        }
        self.signal.notify();
    }

    /// See `LogSet::start_epoch`.
    pub(crate) fn start_epoch(&self, handle: LogHandle, epoch: LeaderEpoch) -> Outcome<()> {
        let frame = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(AppendError::Gone)?;
            if !log.is_journaled() || log.truncating {
                return Err(AppendError::Full);
            }
            FrameHeader { epoch, ..log.reset_frame() }
        };
        self.queue_frame(handle, frame, &[])?;
        if let Some(log) = self.state.borrow_mut().log_mut(handle) {
            let end = log.end();
            log.epochs.assign(epoch, end);
        }
        Ok(())
    }

    /// Queues a frame that carries no batch; `Full` when the pool is short.
    pub(crate) fn queue_frame(
        &self,
        handle: LogHandle,
        mut header: FrameHeader,
        payload: &[&[u8]],
    ) -> Outcome<u64> {
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        let log = state.log(handle).ok_or(AppendError::Gone)?;
        let (class, round) = (log.class(), log.round);
        let len: usize = payload.iter().map(|p| p.len()).sum();
        header.log_id = log.known.log_id;
        header.payload_len = u32::try_from(len).expect("frames are below 4 GiB");
        let mut crc = crc32fast::Hasher::new();
        payload.iter().for_each(|p| crc.update(p));
        header.payload_crc = crc.finalize();
        let journal = &mut state.journals[class.index()];
        if !journal.has_room(&self.config.pools.journal, len) {
            return Err(AppendError::Full);
        }
        let is_whole = header.kind == FrameKind::Tail;
        let ack = Ack { handle, round, end: header.end_offset, is_whole };
        Ok(journal.push(&header, payload, ack))
    }

    /// Completes when everything queued so far in a journal is durable. While the
    /// set closes it ends with `NoSpace` when a group finds no room on the disk.
    pub(crate) async fn settle(self: &Rc<Self>, class: DurabilityClass) -> super::Result<()> {
        let serial = self.state.borrow().journals[class.index()].queued_serial;
        self.submit(class);
        self.signal
            .wait(|| {
                let state = self.state.borrow();
                let journal = &state.journals[class.index()];
                if journal.durable_serial >= serial || state.fatal.is_some() {
                    return Some(Ok(()));
                }
                let ends = state.closing && journal.stalled && journal.refused;
                ends.then(|| Err(super::Error::no_space(self.config.journal_dir())))
            })
            .await?;
        self.check()
    }
}

impl<E: Env> State<E> {
    fn may_write(&self, metadata: bool) -> Outcome<()> {
        if let Some((reason, _)) = &self.fatal {
            return Err(AppendError::Poisoned(*reason));
        }
        if self.closing {
            return Err(AppendError::Gone);
        }
        if self.no_space && !(metadata && self.ready) {
            return Err(AppendError::NoSpace);
        }
        assert!(self.ready, "appends start after recovery has ended");
        Ok(())
    }

    /// The log, when appends to it may be taken now.
    fn takes(&self, handle: LogHandle) -> Outcome<&Log> {
        self.may_write(self.log(handle).is_some_and(Log::is_metadata))?;
        let log = self.log(handle).ok_or(AppendError::Gone)?;
        if log.truncate_to.is_some() { Err(AppendError::Full) } else { Ok(log) }
    }

    /// Makes sure that a batch of `len` bytes can go where it has to; `true` when
    /// that is past the journal.
    fn admit(
        &mut self,
        handle: LogHandle,
        len: usize,
        config: &super::LogSetConfig,
    ) -> Outcome<bool> {
        let bypasses = self.bypasses(handle, len, config);
        let ahead = self.bypass_bytes;
        if bypasses && ahead > 0 && ahead + len as u64 > config.bypass_bytes_max {
            return Err(AppendError::Full);
        }
        let log = self.log(handle).ok_or(AppendError::Gone)?;
        let (class, metadata) = (log.class(), log.is_metadata());
        let journal = &mut self.journals[class.index()];
        // Only a deletion makes room on a full disk: its record uses what is
        // kept for reclaim.
        let payload = if bypasses { BLOCK as usize } else { len };
        if !metadata && !journal.admits_append(payload) {
            return Err(if journal.is_stuck() { AppendError::NoSpace } else { AppendError::Full });
        }
        if !metadata && !bypasses && journal.is_crowded() {
            return Err(AppendError::Full);
        }
        if !bypasses && !journal.has_room(&config.pools.journal, len) {
            return Err(AppendError::Full);
        }
        Ok(bypasses)
    }

    /// Takes tail memory for `len` bytes, for which cached chunks go.
    fn reserve_tail(
        &mut self,
        handle: LogHandle,
        len: usize,
        config: &super::LogSetConfig,
    ) -> Outcome<SmallVec<[ChunkMut; 2]>> {
        // Small chunks make small writes: what the file has goes before they
        // are taken, but not all of it for memory that lies in pieces.
        let (mut least, mut drops, mut dropped) = (CHUNK_MIN, 0, true);
        let chunks = loop {
            let log = self.log_mut(handle).ok_or(AppendError::Gone)?;
            let sizes = least..=config.tail_chunk_bytes;
            match log.active_mut().reserve(len, &config.pools.tail, sizes) {
                Some(chunks) => break chunks,
                None if !dropped => return Err(AppendError::Full),
                None => {}
            }
            (dropped, drops) = (self.drop_cached(len), drops + 1);
            if !dropped || drops == DROPS_MAX {
                least = BLOCK as usize;
            }
        };
        self.chunk_order.extend(std::iter::repeat_n(handle, chunks.len()));
        Ok(chunks)
    }

    /// Queues `len` bytes at `boundary` for the bypass of their log.
    fn await_bypass(&mut self, handle: LogHandle, boundary: Mark, len: u64) {
        self.bypass_bytes += len;
        let Some(log) = self.log_mut(handle) else { return };
        log.bypass_waits += len;
        if log.bypass_from.is_none() {
            log.bypass_from = Some(boundary);
            self.bypassing.push(handle);
        }
    }

    /// Whether a batch goes straight to the segment: it must when earlier
    /// bytes of its log do, or when it is too large for a group.
    fn bypasses(&self, handle: LogHandle, len: usize, config: &super::LogSetConfig) -> bool {
        let waits = self.log(handle).is_some_and(|l| l.bypass_from.is_some());
        waits
            || len > MAX_JOURNALED_BATCH
            || len >= config.bypass_bytes && self.bypassing.len() < MAX_BYPASS_PER_ROUND
    }

    /// Queues the frame of a batch that lies at `position` of the tail now.
    fn journal_batch(
        &mut self,
        handle: LogHandle,
        position: u64,
        batch: &Incoming<'_>,
        epoch: LeaderEpoch,
    ) {
        let log = self.logs.get(handle.slot as usize).expect("it has just grown by this batch");
        let (class, len) = (log.class(), batch.head.len() + batch.rest.len());
        let header = FrameHeader {
            base_offset: batch.base,
            end_offset: batch.end,
            segment: log.active().base,
            position,
            payload_len: u32::try_from(len).expect("batches are below 1 MiB here"),
            ..FrameHeader::bare(FrameKind::Data, log.known.log_id, epoch)
        };
        let ack = Ack { handle, round: log.round, end: batch.end, is_whole: false };
        let journal = &mut self.journals[class.index()];
        if class == DurabilityClass::Os && len >= FROM_TAIL_MIN {
            let mut payload = SmallVec::new();
            log.active().slices(position, log.active().end_pos, &mut payload);
            journal.push_from(&header, batch.head, &payload, ack);
        } else {
            journal.push(&header, &[&batch.head[..], batch.rest], ack);
        }
    }

    /// Closes the active segment and starts one at `base`.
    pub(crate) fn roll(&mut self, handle: LogHandle, base: Offset) {
        let Some(log) = self.log_mut(handle) else { return };
        let interval = log.known.config.index_interval_bytes;
        log.active_mut().index.close();
        log.open.push_back(OpenSegment::new(base, interval));
        self.queue_behind(handle, false);
    }

    /// Queues a log for write-behind when enough of it could be written.
    pub(crate) fn consider_behind(&mut self, handle: LogHandle, threshold: u64) {
        let Some(log) = self.log(handle) else { return };
        let active = log.active();
        let watermark = log.high_watermark;
        let closes = log.open.len() > 1 && watermark >= log.open[0].end_offset;
        let behind = active.end_pos - active.written >= threshold
            && active.position_below(watermark, 0) >= active.written + threshold / 2;
        if closes || behind {
            self.queue_behind(handle, false);
        }
    }
}

impl Log {
    fn is_metadata(&self) -> bool {
        self.known.log_id == LogId::METADATA
    }

    fn must_roll<E: Env>(&self, batch: &NewBatch<'_>, env: &E) -> bool {
        let (ts, len) = (batch.summary.max_timestamp, batch.bytes.len() as u64);
        let segment = self.active();
        let config = &self.known.config;
        if segment.end_pos == 0 {
            return false;
        }
        let aged = match segment.first {
            Some((Timestamp(first), _)) if first >= 0 && ts.0 >= 0 => ts.0 - first,
            Some((_, wall)) => env.wall_ms() - wall,
            None => 0,
        };
        segment.end_pos + len > config.segment_bytes
            || aged > config.segment_ms
            || (segment.index.offset_entries() + 1) * 8 >= config.segment_index_bytes
            || batch.end().0 - segment.base.0 > i64::from(i32::MAX)
    }

    fn snapshot_due(&mut self, len: u64, rolls: bool, base: Offset) -> Option<Offset> {
        let due = rolls || self.bytes_since_snapshot >= SNAPSHOT_BYTES;
        if due {
            self.bytes_since_snapshot = 0;
        }
        self.bytes_since_snapshot += len;
        due.then_some(base)
    }
}
