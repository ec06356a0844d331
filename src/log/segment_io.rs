//! Files of segments: opening, reading a range from memory and file together,
//! writing blocks behind, closing, syncing. Async; the state is borrowed
//! between awaits only.

use std::rc::Rc;

use smallvec::SmallVec;

use super::config::BLOCK;
use super::error::{Error, FatalReason, Result, is_no_descriptor};
use super::files_lru::FileKey;
use super::segment::index::IndexBytes;
use super::segment::names::{self, Kind};
use super::segment::tail::block_of;
use super::set::{LogHandle, Slices};
use super::state::{ClosedSegment, FileOf, Shared};
use super::together;
use crate::io::{ChunkMut, ChunkSlice, Env, File as _, FileSystem as _, OpenMode, Pool};
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

/// Bytes written to an index at once.
const INDEX_WRITE_BYTES: usize = 256 * 1024;
/// Bytes read from a segment at once.
pub(crate) const READ_BYTES: u64 = 1 << 20;

/// Writes of one file under way together.
const WRITES_AT_ONCE: usize = 16;

/// A write of whole blocks.
type Blocks = Vec<(u64, ChunkSlice)>;

impl<E: Env> Shared<E> {
    /// Path of one of a log's files.
    pub(crate) fn path(
        &self,
        handle: LogHandle,
        offset: Offset,
        kind: Kind,
    ) -> Result<std::path::PathBuf> {
        let state = self.state.borrow();
        let log = state.log(handle).ok_or(Error::Gone)?;
        Ok(names::path(&log.dir, offset, kind))
    }

    /// The file of a segment: open ones for writing, closed ones for reading.
    /// A file that comes into being here has its name synced before use; only
    /// writers of a log that is marked busy get here before it exists, so that
    /// a deletion cannot make it appear in a successor's directory.
    pub(crate) async fn segment_file(&self, handle: LogHandle, base: Offset) -> Result<FileOf<E>> {
        let path = self.path(handle, base, Kind::Log)?;
        let (open, is_new, dir) = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            let open = log.segment(base);
            (open.is_some(), open.is_some_and(|s| !s.created), log.dir.clone())
        };
        let key = FileKey { handle, segment: base, kind: Kind::Log, writable: open };
        let mode = match open {
            true => OpenMode { create: is_new, ..OpenMode::DIRECT },
            false => OpenMode::READ,
        };
        let file = self
            .files
            .get(self.env.fs(), key, &path, mode)
            .await
            .map_err(|e| Error::io(&path, e))?;
        if is_new {
            self.sync_dir(&dir).await?;
            if let Some(log) = self.state.borrow_mut().log_mut(handle)
                && let Some(segment) = log.segment_mut(base)
            {
                segment.created = true;
            }
        }
        Ok(file)
    }

    /// fsync of a directory.
    pub(crate) async fn sync_dir(&self, dir: &std::path::Path) -> Result<()> {
        if armed(Bug::NoDirectorySync) {
            return Ok(());
        }
        match self.env.fs().sync_dir(dir).await {
            Ok(()) => Ok(()),
            // A log was deleted meanwhile, or descriptors ran out before the
            // directory was open: the disk did not lie.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || is_no_descriptor(&e) => {
                Err(Error::io(dir, e))
            }
            Err(e) => Err(Error::fatal(FatalReason::Sync, dir, &e)),
        }
    }

    /// An error about a log that was deleted meanwhile is no more than that.
    pub(crate) fn gone_or<T>(&self, handle: LogHandle, result: Result<T>) -> Result<T> {
        let gone = self.state.borrow().log(handle).is_none();
        if gone && result.is_err() { Err(Error::Gone) } else { result }
    }

    /// What was read of a log that was deleted meanwhile may be a successor's
    /// of the same name.
    pub(crate) fn unless_gone<T>(&self, handle: LogHandle, result: Result<T>) -> Result<T> {
        let gone = self.state.borrow().log(handle).is_none();
        if gone { Err(Error::Gone) } else { result }
    }

    /// The bytes from `from` to `to` of a segment, from memory as far as they
    /// are there, else from its file into memory of `pool`.
    pub(crate) async fn read_range(
        &self,
        pool: &Pool,
        handle: LogHandle,
        base: Offset,
        from: u64,
        to: u64,
    ) -> Result<Slices> {
        let mut memory = SmallVec::new();
        let file_end = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            match log.segment(base) {
                // A truncation came between the caller's look and this.
                Some(open) if open.end_pos < to => {
                    return Err(Error::OutOfRange(open.end_offset));
                }
                Some(open) => {
                    let split = open.head().clamp(from, to);
                    if split < to {
                        open.slices(split, to, &mut memory);
                    }
                    split
                }
                None => to,
            }
        };
        let mut out: Slices = SmallVec::new();
        let mut at = from;
        while at < file_end {
            let end = file_end.min(block_of(at) + READ_BYTES);
            out.push(self.read_file(pool, handle, base, at, end).await?);
            at = end;
        }
        out.extend(memory);
        Ok(out)
    }

    /// Bytes of a segment's file.
    async fn read_file(
        &self,
        pool: &Pool,
        handle: LogHandle,
        base: Offset,
        from: u64,
        to: u64,
    ) -> Result<ChunkSlice> {
        let file = self.segment_file(handle, base).await?;
        read_aligned(&file, pool, from, to).await
    }

    /// Blocks of an open segment from `from` (a block boundary) to `to`, ready
    /// to be written: whole chunks as they are, incomplete blocks copied and
    /// padded with zeros.
    async fn gather(
        &self,
        handle: LogHandle,
        base: Offset,
        from: u64,
        to: u64,
        file: &FileOf<E>,
    ) -> Result<Blocks> {
        debug_assert_eq!(from % BLOCK, 0);
        let head = self.open_segment(handle, base, |s| s.head())?;
        let beginning = if head > from {
            assert!(head - from < BLOCK, "blocks at {from} are neither in memory nor written");
            Some(read_aligned(file, &self.config.pools.upkeep, from, head).await?)
        } else {
            None
        };
        let first_whole = if beginning.is_some() { from + BLOCK } else { from };
        let last_whole = block_of(to).max(first_whole);
        let mut blocks = Vec::new();
        if let Some(beginning) = beginning {
            let mut block = self.spare_block()?;
            block.extend(&beginning);
            self.fill(handle, base, &mut block, head, to.min(from + BLOCK))?;
            blocks.push((from, block.freeze()));
        }
        if last_whole > first_whole {
            let pieces = self.open_segment(handle, base, |s| {
                let mut pieces = SmallVec::<[ChunkSlice; 4]>::new();
                s.slices(first_whole, last_whole, &mut pieces);
                pieces
            })?;
            let mut pos = first_whole;
            for piece in pieces {
                let len = piece.len() as u64;
                blocks.push((pos, piece));
                pos += len;
            }
        }
        if to > last_whole {
            let mut block = self.spare_block()?;
            self.fill(handle, base, &mut block, last_whole, to)?;
            blocks.push((last_whole, block.freeze()));
        }
        Ok(blocks)
    }

    fn spare_block(&self) -> Result<ChunkMut> {
        let pool = &self.config.pools.upkeep;
        let mut block = pool.take(BLOCK as usize).ok_or(Error::NoMemory(pool.name()))?;
        block.space_mut().fill(0);
        Ok(block)
    }

    fn fill(
        &self,
        handle: LogHandle,
        base: Offset,
        block: &mut ChunkMut,
        from: u64,
        to: u64,
    ) -> Result<()> {
        self.open_segment(handle, base, |s| {
            let mut pieces = SmallVec::<[ChunkSlice; 4]>::new();
            s.slices(from, to, &mut pieces);
            pieces.iter().for_each(|p| block.extend(p));
            block.pad_to(BLOCK as usize);
        })
    }

    pub(crate) fn open_segment<T>(
        &self,
        handle: LogHandle,
        base: Offset,
        look: impl FnOnce(&super::segment::tail::OpenSegment) -> T,
    ) -> Result<T> {
        let state = self.state.borrow();
        let log = state.log(handle).ok_or(Error::Gone)?;
        log.segment(base).map(look).ok_or(Error::Gone)
    }

    /// Writes the bytes from `from` to `to` into an open segment's file. The
    /// caller has marked the log as busy.
    pub(crate) async fn write_blocks(
        &self,
        handle: LogHandle,
        base: Offset,
        from: u64,
        to: u64,
    ) -> Result<FileOf<E>> {
        let file = self.segment_file(handle, base).await?;
        self.allocate_ahead(handle, base, to, &file).await?;
        let blocks = self.gather(handle, base, from, to, &file).await?;
        // Together, so that the device is told once.
        for some in blocks.chunks(WRITES_AT_ONCE) {
            let writes = some.iter().map(|(pos, bytes)| file.write_at(bytes.clone(), *pos));
            for written in together::all(writes.collect()).await {
                written.map_err(|e| Error::write(FatalReason::SegmentWrite, file.path(), e))?;
            }
        }
        Ok(file)
    }

    /// fdatasync of a segment.
    pub(crate) async fn sync_file(&self, file: &FileOf<E>) -> Result<()> {
        if armed(Bug::NoSegmentSyncBeforeRecycle) {
            return Ok(());
        }
        let result = file.sync_data().await;
        result.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))
    }

    /// Appends what is pending of a segment's indexes to their files: entries
    /// of batches below `below`, or all, and trims the files then. The caller
    /// has marked the log busy.
    pub(crate) async fn write_indexes(
        &self,
        handle: LogHandle,
        base: Offset,
        below: Option<u64>,
        sync: bool,
    ) -> Result<()> {
        let bytes = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            log.segment(base).map_or_else(IndexBytes::default, |s| s.index.pending_bytes(below))
        };
        let closing = below.is_none();
        let (offset, time) = (&bytes.offset, &bytes.time);
        together::all_well(vec![
            self.write_index(handle, base, Kind::Index, offset, (closing, sync)),
            self.write_index(handle, base, Kind::TimeIndex, time, (closing, sync)),
        ])
        .await?;
        let (dir, named) = {
            // Only now: an entry that did not fit on the disk is tried again.
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            let dir = log.dir.clone();
            let Some(segment) = log.segment_mut(base) else { return Ok(()) };
            segment.index.written(&bytes);
            (dir, segment.indexes_named)
        };
        if !sync || named {
            return Ok(());
        }
        // A cut may keep the name of one index and lose that of the other.
        let synced = self.sync_dir(&dir).await;
        // A deletion may have taken the directory away meanwhile.
        let mut state = self.state.borrow_mut();
        let log = state.log_mut(handle).ok_or(Error::Gone)?;
        synced?;
        let both = |(pos, bytes): &(u64, Vec<u8>)| *pos > 0 || !bytes.is_empty();
        if let Some(segment) = log.segment_mut(base) {
            segment.indexes_named = both(offset) && both(time);
        }
        Ok(())
    }

    async fn write_index(
        &self,
        handle: LogHandle,
        base: Offset,
        kind: Kind,
        (pos, bytes): &(u64, Vec<u8>),
        (closing, sync): (bool, bool),
    ) -> Result<()> {
        let mut pos = *pos;
        // Entries written before, without a sync, count too.
        if bytes.is_empty() && !closing && (!sync || pos == 0) {
            return Ok(());
        }
        let path = self.path(handle, base, kind)?;
        let failed = |e: std::io::Error| Error::write(FatalReason::SegmentWrite, &path, e);
        let key = FileKey { handle, segment: base, kind, writable: true };
        let file = self
            .files
            .get(self.env.fs(), key, &path, OpenMode::BUFFERED)
            .await
            .map_err(|e| Error::io(&path, e))?;
        for piece in bytes.chunks(INDEX_WRITE_BYTES) {
            let pool = &self.config.pools.upkeep;
            let mut chunk = pool.take(piece.len()).ok_or(Error::NoMemory(pool.name()))?;
            chunk.extend(piece);
            file.write_at(chunk.freeze(), pos).await.map_err(failed)?;
            pos += piece.len() as u64;
        }
        if closing {
            file.set_len(pos).await.map_err(failed)?;
        }
        if sync && !armed(Bug::NoSegmentSyncBeforeRecycle) {
            file.sync_data().await.map_err(|e| Error::fatal(FatalReason::Sync, &path, &e))?;
        }
        Ok(())
    }

    /// Ends the oldest open segment, whose successor takes the appends: last
    /// partial block, length, sync, indexes. The caller has marked the log busy.
    pub(crate) async fn close_segment(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
    ) -> Result<()> {
        let (from, to) = self.open_segment(handle, base, |s| (s.written, s.end_pos))?;
        let file = self.write_blocks(handle, base, from, to).await?;
        let cut = file.set_len(to).await;
        cut.map_err(|e| Error::write(FatalReason::SegmentWrite, file.path(), e))?;
        self.sync_file(&file).await?;
        self.write_indexes(handle, base, None, true).await?;
        // Without its time index the segment would hide from timestamps.
        let dir = {
            let state = self.state.borrow();
            state.log(handle).ok_or(Error::Gone)?.dir.clone()
        };
        self.sync_dir(&dir).await?;
        {
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            assert_eq!(log.open.front().map(|s| s.base), Some(base), "segments close in order");
            let segment = log.open.pop_front().expect("looked at above");
            let largest = Some(segment.index.max_timestamp());
            let closed = ClosedSegment::new(segment.end_pos, segment.end_offset, largest);
            log.closed.insert(base, closed);
        }
        self.write_epochs(handle, true).await
    }

    /// Writes `leader-epoch-checkpoint`, for Kafka's tools; ours is the
    /// checkpoint. Without `sync` the caller syncs the file system.
    pub(crate) async fn write_epochs(&self, handle: LogHandle, sync: bool) -> Result<()> {
        let (path, text) = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            (log.dir.join("leader-epoch-checkpoint"), log.epochs.to_text())
        };
        let temporary = path.with_extension("tmp");
        let fs = self.env.fs();
        let written = match sync {
            true => fs.write(&temporary, text.into_bytes()).await,
            false => match fs.open(&temporary, OpenMode::BUFFERED).await {
                Ok(file) => {
                    file.write_now(text.as_bytes(), 0).and(file.set_len(text.len() as u64).await)
                }
                Err(e) => Err(e),
            },
        };
        written.map_err(|e| Error::write(FatalReason::Checkpoint, &path, e))?;
        let renamed = fs.rename(&temporary, &path).await;
        renamed.map_err(|e| Error::write(FatalReason::Checkpoint, &path, e))
    }
}

/// Reads `from..to` of a direct file through an aligned buffer.
pub(crate) async fn read_aligned<F: crate::io::File>(
    file: &F,
    pool: &Pool,
    from: u64,
    to: u64,
) -> Result<ChunkSlice> {
    let start = block_of(from);
    let len = (to.next_multiple_of(BLOCK) - start) as usize;
    let buf = pool.take(len).ok_or(Error::NoMemory(pool.name()))?;
    let (result, mut buf) = file.read_at(buf, start).await;
    let n = result.map_err(|e| Error::io(file.path(), e))?;
    let need = (to - start) as usize;
    if n < need {
        let source = std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            format!("{n} of {need} bytes at position {start}"),
        );
        return Err(Error::Io { path: file.path().clone(), source });
    }
    buf.set_len(need);
    Ok(buf.freeze().slice((from - start) as usize..need))
}
