//! The face of the layer: what partitions and the shard call.
//!
//! Thin: each method is one line into the module that does it.

use std::path::Path;
use std::rc::Rc;

use smallvec::SmallVec;

use super::recovery::Recovery;
use super::state::Shared;
use super::{AppendError, EpochEntry, FatalReason, KnownLog, LogConfig, LogSetConfig, Result};
use crate::io::{ChunkSlice, Env, FileSystem as _, Space};
use crate::model::{LeaderEpoch, LogId, Offset, Timestamp, TopicId};
use crate::record::BatchSummary;

/// An open log of a [`LogSet`]; never valid again after `delete`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogHandle {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Whole batches in order, in as many pieces as the memory they lie in; a
/// batch may cross from one piece to the next.
pub type Slices = SmallVec<[ChunkSlice; 4]>;

/// What `append` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The log's end after the batch.
    pub end_offset: Offset,
    /// The producer state *before* this batch is wanted as a snapshot at this
    /// offset (a roll, or 64 MiB since the last): see `put_producer_snapshot`.
    pub snapshot_at: Option<Offset>,
}

/// Where the records asked for are.
#[derive(Debug)]
pub enum ReadOutcome {
    /// Here, without a copy.
    Hot(Slices),
    /// In a file: pass it to `read_cold`.
    Cold(ColdRead),
    /// Before the log's start or beyond its end.
    OutOfRange,
    /// Nothing below the upper bound yet.
    Empty,
}

/// A read that needs the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColdRead {
    pub(crate) handle: LogHandle,
    pub(crate) from: Offset,
    pub(crate) upper: Offset,
    pub(crate) max_bytes: usize,
    pub(crate) at_least_one: bool,
}

/// First record at or after a timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampOffset {
    /// The record's offset.
    pub offset: Offset,
    /// The record's own timestamp.
    pub timestamp: Timestamp,
    /// Leader epoch that it was written in, as the log's history says.
    pub epoch: LeaderEpoch,
}

/// A batch after the producer snapshot of a recovered log.
#[derive(Clone, Copy, Debug)]
pub struct RecoveredBatch {
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Its header.
    pub summary: BatchSummary,
}

/// What a log was found to hold at start.
#[derive(Debug)]
pub struct Recovered {
    /// Handle in the set.
    pub handle: LogHandle,
    /// The incarnation.
    pub log_id: LogId,
    /// First offset that may be read.
    pub log_start: Offset,
    /// The next offset to assign.
    pub log_end: Offset,
    /// The epoch that starts now.
    pub epoch: LeaderEpoch,
    /// Latest producer snapshot at or below the end, with its offset.
    pub snapshot: Option<(Offset, Vec<u8>)>,
    /// Batches with a producer id after the snapshot, in order.
    pub batches_after: Vec<RecoveredBatch>,
}

/// All logs of one shard. Cloning shares it; belongs to one executor.
pub struct LogSet<E: Env> {
    pub(crate) shared: Rc<Shared<E>>,
}

impl<E: Env> Clone for LogSet<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<E: Env> LogSet<E> {
    /// [`Recovery`] in one call, for callers that know all logs beforehand.
    pub async fn recover(
        env: E,
        config: LogSetConfig,
        known: &[KnownLog],
    ) -> Result<(Self, Vec<Recovered>)> {
        let mut recovery = Recovery::scan(env, config).await?;
        let mut found = Vec::with_capacity(known.len());
        for log in known {
            found.push(recovery.recover_log(log).await?);
        }
        Ok((recovery.finish().await?, found))
    }

    /// Whether the start has come to its end: on a full disk the last steps
    /// wait for space, and appends are refused until then.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.state.borrow().ready
    }

    /// Whether appends and new logs find space, as far as the last try told.
    #[must_use]
    pub fn has_space(&self) -> bool {
        let state = self.shared.state.borrow();
        state.ready && !state.no_space
    }

    /// Makes an empty log and its directory.
    pub async fn create(&self, known: &KnownLog) -> Result<LogHandle> {
        self.shared.noted(self.shared.create(known).await)
    }

    /// Changes a log's settings; those of segments hold from the next roll on.
    pub fn set_config(&self, handle: LogHandle, config: LogConfig) {
        if let Some(log) = self.shared.state.borrow_mut().log_mut(handle) {
            log.known.config = config;
        }
    }

    /// Takes a log out of service: its directory is renamed durably now and
    /// unlinked in the background.
    pub async fn delete(&self, handle: LogHandle) -> Result<()> {
        self.shared.noted(self.shared.delete(handle).await)
    }

    /// Deletes the directories of partitions that are in no log of this set and
    /// whose topic is one of `removed`: a crash came between a removal that is
    /// durable and the directory's rename. Others are left alone.
    pub async fn delete_removed(&self, removed: &[TopicId]) -> Result<()> {
        self.shared.delete_removed(removed).await
    }

    /// Appends one validated batch at the log's end, `base_offset`: copies it
    /// into the tail with base offset and epoch patched, and queues it for the
    /// journal. Durable when `drain_durable` says so.
    pub fn append(
        &self,
        handle: LogHandle,
        batch: &[u8],
        summary: &BatchSummary,
        base_offset: Offset,
        epoch: LeaderEpoch,
    ) -> std::result::Result<Appended, AppendError> {
        self.shared.append(handle, batch, summary, base_offset, epoch)
    }

    /// End of a pump round: class `os` writes its journal here, class `disk`
    /// starts a group, qualifying logs start their bypass.
    pub fn flush(&self) {
        self.shared.flush();
    }

    /// Moves durable progress out, in order: (log, everything below is durable).
    pub fn drain_durable(&self, out: &mut Vec<(LogHandle, Offset)>) {
        out.extend(self.shared.state.borrow_mut().events.drain(..));
    }

    /// Called when durable progress or a failure was noted outside `flush`.
    pub fn set_notifier(&self, notifier: Rc<dyn Fn()>) {
        *self.shared.notifier.borrow_mut() = Some(notifier);
    }

    /// Why the process must end, once something fatal happened.
    #[must_use]
    pub fn fatal(&self) -> Option<(FatalReason, String)> {
        self.shared.state.borrow().fatal.clone()
    }

    /// Says how far the log is committed; never beyond its durable offset.
    pub fn set_high_watermark(&self, handle: LogHandle, offset: Offset) {
        self.shared.set_high_watermark(handle, offset);
    }

    /// The first offset that retention keeps at wall time `now_ms`, when
    /// segments before it can go; for `advance_log_starts` and `drop_segments`
    /// then. Starts a new segment when the active one is among them.
    pub async fn retained_from(&self, handle: LogHandle, now_ms: i64) -> Result<Option<Offset>> {
        self.shared.retained_from(handle, now_ms).await
    }

    /// Raises first readable offsets, none beyond its high watermark. Durable
    /// when it returns, and only then seen by readers: a log start never goes
    /// back. After an error nothing has been seen; `Gone` once the set closes,
    /// `NoSpace` while a start waits for space.
    pub async fn advance_log_starts(&self, moves: &[(LogHandle, Offset)]) -> Result<()> {
        let advanced = self.shared.advance_log_starts(moves).await;
        advanced.inspect_err(|error| self.shared.poison_by(error))
    }

    /// Drops segments that lie wholly before their log's start, as far as what
    /// follows them is committed; returns how many. Their files are unlinked
    /// in the background, after the topic's delay.
    pub async fn drop_segments(&self, handles: &[LogHandle]) -> Result<usize> {
        let dropped = self.shared.drop_segments(handles).await;
        dropped.inspect_err(|error| self.shared.poison_by(error))
    }

    /// Bytes of a log's segments, unwritten ones included.
    #[must_use]
    pub fn size(&self, handle: LogHandle) -> Option<u64> {
        self.shared.size(handle)
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.shared.config.data_dir
    }

    /// Room of the file system that holds the data directory.
    pub async fn space(&self) -> Result<Space> {
        let dir = self.data_dir();
        self.shared.env.fs().space(dir).await.map_err(|e| super::Error::io(dir, e))
    }

    /// Offset of the newest producer snapshot that every start from now on will
    /// find and may use, 0 when there is none: it is on disk, and at or below
    /// the high watermark, so that what it speaks of is not lost in a crash.
    #[must_use]
    pub fn newest_snapshot(&self, handle: LogHandle) -> Option<Offset> {
        let state = self.shared.state.borrow();
        Some(state.log(handle)?.committed_snapshot().unwrap_or(Offset::ZERO))
    }

    /// First readable offset, durable end and end of a log.
    #[must_use]
    pub fn bounds(&self, handle: LogHandle) -> Option<(Offset, Offset, Offset)> {
        let state = self.shared.state.borrow();
        state.log(handle).map(|log| (log.log_start, log.durable, log.end()))
    }

    /// Batches from the one that holds `from` up to `upper` (exclusive, on a
    /// batch boundary) and `max_bytes`; the first batch in full when
    /// `at_least_one`.
    #[must_use]
    pub fn read(
        &self,
        handle: LogHandle,
        from: Offset,
        upper: Offset,
        max_bytes: usize,
        at_least_one: bool,
    ) -> ReadOutcome {
        self.shared.read(ColdRead { handle, from, upper, max_bytes, at_least_one })
    }

    /// Most bytes that `read_cold` can answer: it reads from one segment.
    #[must_use]
    pub fn cold_bytes_max(&self, read: &ColdRead) -> usize {
        let segment = self.shared.segment_of(read.handle, read.from);
        let bytes = segment.map_or(0, |(_, end)| end.pos);
        usize::try_from(bytes).unwrap_or(usize::MAX).min(read.max_bytes)
    }

    /// Does what `read` could not do from memory.
    pub async fn read_cold(&self, read: ColdRead) -> Result<Slices> {
        let _reading = self.shared.files.begin_read().await;
        loop {
            let view = self.shared.view(read.handle);
            let found = self.shared.read_cold(read).await;
            // A truncation beyond the bound, or retention, may take away what
            // was looked at.
            if found.is_ok() || view == self.shared.view(read.handle) {
                return self.shared.unless_gone(read.handle, found);
            }
        }
    }

    /// First record below `upper` with a timestamp of at least `timestamp`.
    pub async fn offset_for_timestamp(
        &self,
        handle: LogHandle,
        timestamp: Timestamp,
        upper: Offset,
    ) -> Result<Option<TimestampOffset>> {
        let _reading = self.shared.files.begin_read().await;
        loop {
            let view = self.shared.view(handle);
            let found = self.shared.offset_for_timestamp(handle, timestamp, upper).await;
            if matches!(found, Ok(Some(_))) || view == self.shared.view(handle) {
                return self.shared.unless_gone(handle, found);
            }
        }
    }

    /// Drops everything from `to` on (a batch boundary, not below the high
    /// watermark) and starts `epoch` there. Waits for space and memory. After
    /// an error other than `Gone` the log is as it was, while the partition has
    /// let go of the records: the process has to end.
    pub async fn truncate(&self, handle: LogHandle, to: Offset, epoch: LeaderEpoch) -> Result<()> {
        let done = self.shared.truncate(handle, to, epoch).await;
        self.shared.noted(self.shared.gone_or(handle, done))
    }

    /// Starts a leader epoch at the log's end without truncation.
    pub fn start_epoch(
        &self,
        handle: LogHandle,
        epoch: LeaderEpoch,
    ) -> std::result::Result<(), AppendError> {
        self.shared.start_epoch(handle, epoch)
    }

    /// The largest epoch at or below `epoch` and its end offset (KIP-320).
    #[must_use]
    pub fn end_of_epoch(
        &self,
        handle: LogHandle,
        epoch: LeaderEpoch,
    ) -> Option<(LeaderEpoch, Offset)> {
        let state = self.shared.state.borrow();
        let log = state.log(handle)?;
        log.epochs.end_of(epoch, log.end())
    }

    /// The latest epoch of the log.
    #[must_use]
    pub fn latest_epoch(&self, handle: LogHandle) -> Option<EpochEntry> {
        self.shared.state.borrow().log(handle)?.epochs.latest()
    }

    /// The epoch of the record at `offset`, or of the one that will be there.
    #[must_use]
    pub fn epoch_at(&self, handle: LogHandle, offset: Offset) -> Option<LeaderEpoch> {
        let state = self.shared.state.borrow();
        state.log(handle)?.epochs.at(offset)
    }

    /// Stores a producer snapshot taken at `at`; keeps the two latest, and the
    /// latest that is committed. `Ok` once it is on disk, whoever stored it, or
    /// is void. The call itself, not the first poll, is what a truncation comes
    /// before or after: make it where the state is taken, and spawn what it
    /// returns.
    pub fn put_producer_snapshot(
        &self,
        handle: LogHandle,
        bytes: Vec<u8>,
        at: Offset,
    ) -> impl Future<Output = Result<()>> + use<E> {
        super::snapshots::store(&self.shared, handle, bytes, at)
    }

    /// Clean stop: flushes, writes everything behind, checkpoints. On a full
    /// disk what is in the journals stays there.
    pub async fn close(&self) -> Result<()> {
        self.shared.noted(self.shared.close().await)
    }
}
