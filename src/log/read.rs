//! Reads: from tail chunks without a copy, else from the segment file by one
//! aligned read that runs ahead. Whole batches only, never beyond the bound
//! that the caller gives, never beyond the log's known end.

use std::rc::Rc;

use super::error::{Error, Result};
use super::segment::head::{BatchHead, HEADER_LEN};
use super::segment::index::{OFFSET_ENTRY, OffsetEntry};
use super::segment::names::Kind;
use super::segment::tail::Mark;
use super::set::{ColdRead, LogHandle, ReadOutcome, Slices};
use super::state::Shared;
use crate::io::{ChunkSlice, Env, File as _, OpenMode};
use crate::model::Offset;

/// Bytes after an index entry within which its next batch is looked for.
const INDEX_PAGE: u64 = 4096;

impl<E: Env> Shared<E> {
    /// See `LogSet::read`.
    pub(crate) fn read(&self, read: ColdRead) -> ReadOutcome {
        let state = self.state.borrow();
        let Some(log) = state.log(read.handle) else { return ReadOutcome::OutOfRange };
        let end = log.end();
        if read.from < log.log_start || read.from > end {
            return ReadOutcome::OutOfRange;
        }
        let upper = read.upper.min(end);
        if read.from >= upper {
            return ReadOutcome::Empty;
        }
        let segment = log.open.iter().rev().find(|s| s.base <= read.from);
        let Some(segment) = segment else { return ReadOutcome::Cold(read) };
        let Some(start) = segment.find(read.from) else { return ReadOutcome::Cold(read) };
        if start.pos >= segment.end_pos {
            return ReadOutcome::Empty;
        }
        let limit = start.pos.saturating_add(read.max_bytes as u64);
        let mut to = segment.boundary(start, upper, limit);
        if to.pos == start.pos {
            if !read.at_least_one {
                return ReadOutcome::Hot(Slices::new());
            }
            let head = segment.head_at(start.pos);
            if head.end() > upper {
                return ReadOutcome::Empty;
            }
            to = Mark { offset: head.end(), pos: start.pos + head.len as u64 };
        }
        let mut out = Slices::new();
        segment.slices(start.pos, to.pos, &mut out);
        ReadOutcome::Hot(out)
    }

    /// See `LogSet::read_cold`. What a file gives is checked: damage is told to
    /// whoever reads it, and ends what is read before it.
    pub(crate) async fn read_cold(self: &Rc<Self>, read: ColdRead) -> Result<Slices> {
        let found = self.read_batches(read).await;
        let state = self.state.borrow();
        match state.log(read.handle) {
            None => Err(Error::Gone),
            // What is below the log start is judged by no epoch any more, and
            // its files may be gone.
            Some(log) if read.from < log.log_start => Err(Error::OutOfRange(read.from)),
            // A file that cannot be opened is told like one that cannot be read.
            Some(_) => found.map_err(|error| error.at(0, read.from)),
        }
    }

    async fn read_batches(self: &Rc<Self>, read: ColdRead) -> Result<Slices> {
        let (base, end) = self.segment_of(read.handle, read.from)?;
        let start = self.locate(read.handle, base, read.from, end).await?;
        // Look at as much as is wanted, and at the header of the next one.
        let want = (start.pos + read.max_bytes as u64).min(end.pos);
        let to = want.max(start.pos + HEADER_LEN as u64).min(end.pos);
        let cold = &self.config.pools.cold;
        let pieces = match self.read_range(cold, read.handle, base, start.pos, to).await {
            // A bad sector further on must not hide what is before it.
            Err(Error::Io { .. }) => return self.read_first(&read, base, start, end).await,
            pieces => pieces?,
        };
        match self.sound_bytes(read.handle, base, start, &pieces, read.upper)? {
            0 if read.at_least_one => self.read_first(&read, base, start, end).await,
            len => Ok(part(&pieces, 0, len)),
        }
    }

    /// The batch at `start`, unless it is beyond the bounds.
    async fn read_first(
        self: &Rc<Self>,
        read: &ColdRead,
        base: Offset,
        start: Mark,
        end: Mark,
    ) -> Result<Slices> {
        let (head, bytes) = self.read_batch(read.handle, base, start, end).await?;
        let fits = read.at_least_one || head.len <= read.max_bytes;
        Ok(if fits && head.end() <= read.upper { bytes } else { Slices::new() })
    }

    /// The segment that holds `offset`: its base and its end.
    pub(crate) fn segment_of(&self, handle: LogHandle, offset: Offset) -> Result<(Offset, Mark)> {
        let state = self.state.borrow();
        let log = state.log(handle).ok_or(Error::Gone)?;
        if let Some(open) = log.open.iter().rev().find(|s| s.base <= offset) {
            return Ok((open.base, open.end()));
        }
        match log.closed.range(..=offset).next_back() {
            Some((base, s)) => Ok((*base, Mark { offset: s.end, pos: s.len })),
            None if offset < log.log_start => Err(Error::OutOfRange(offset)),
            None => {
                let (path, what) = (log.dir.clone(), "the segment that holds it is missing");
                Err(Error::Corrupt { path, position: 0, offset, what })
            }
        }
    }

    /// The last entry of the offset index at or before `relative`.
    pub(crate) async fn index_lookup(
        &self,
        handle: LogHandle,
        base: Offset,
        relative: u32,
    ) -> Result<Option<OffsetEntry>> {
        let flushed = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            match log.segment(base) {
                Some(open) => {
                    let pending = open.index.pending();
                    let n = pending.partition_point(|e| e.relative <= relative);
                    if let Some(n) = n.checked_sub(1) {
                        return Ok(Some(pending[n]));
                    }
                    Some(open.index.flushed().0)
                }
                None => None,
            }
        };
        let entry = self
            .search_index(handle, base, Kind::Index, OFFSET_ENTRY, flushed, |bytes| {
                OffsetEntry::decode(bytes).relative <= relative
            })
            .await?;
        Ok(entry.map(|bytes| OffsetEntry::decode(&bytes)))
    }

    /// The last entry of an index file for which `before` holds.
    pub(crate) async fn search_index(
        &self,
        handle: LogHandle,
        base: Offset,
        kind: Kind,
        size: usize,
        entries: Option<u64>,
        before: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>> {
        use crate::io::FileSystem as _;
        let path = self.path(handle, base, kind)?;
        let entries = match entries {
            Some(entries) => entries,
            None => match self.env.fs().len(&path).await {
                Ok(len) => len / size as u64,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => 0,
                Err(e) => return Err(Error::io(&path, e)),
            },
        };
        if entries == 0 {
            return Ok(None);
        }
        let key = super::files_lru::FileKey { handle, segment: base, kind, writable: true };
        let mode = OpenMode { create: false, ..OpenMode::BUFFERED };
        let open = self.files.get(self.env.fs(), key, &path, mode).await;
        let file = open.map_err(|e| Error::io(&path, e))?;
        // Pages are halved by their first entries, then one page is searched.
        let per_page = INDEX_PAGE / size as u64;
        let (mut low, mut high) = (0, entries.div_ceil(per_page));
        let mut found = None;
        while low < high {
            let middle = (low + high) / 2;
            let first = middle * per_page;
            let count = per_page.min(entries - first) as usize;
            let pool = &self.config.pools.cold;
            let buf = pool.take(INDEX_PAGE as usize).ok_or(Error::NoMemory(pool.name()))?;
            let (read, mut buf) = file.read_at(buf, first * size as u64).await;
            let n = read.map_err(|e| Error::io(&path, e))?;
            buf.set_len(n.min(count * size));
            let page: Vec<&[u8]> = buf.chunks_exact(size).collect();
            let within = page.partition_point(|e| before(e));
            if within == 0 {
                high = middle;
            } else {
                found = Some(page[within - 1].to_vec());
                if within < page.len() {
                    break;
                }
                low = middle + 1;
            }
        }
        Ok(found)
    }
}

/// Header at byte `at` of consecutive pieces.
pub(crate) fn head_in(pieces: &[ChunkSlice], at: usize) -> Option<BatchHead> {
    let mut bytes = [0u8; HEADER_LEN];
    let mut filled = 0;
    for piece in part(pieces, at, HEADER_LEN) {
        bytes[filled..filled + piece.len()].copy_from_slice(&piece);
        filled += piece.len();
    }
    if filled == HEADER_LEN { BatchHead::parse(&bytes) } else { None }
}

/// `len` bytes from byte `from` of consecutive pieces, or what there is.
pub(crate) fn part(pieces: &[ChunkSlice], from: usize, len: usize) -> Slices {
    let (mut skip, mut left) = (from, len);
    let mut out = Slices::new();
    for piece in pieces {
        if skip >= piece.len() {
            skip -= piece.len();
            continue;
        }
        let n = left.min(piece.len() - skip);
        if n == 0 {
            break;
        }
        out.push(piece.slice(skip..skip + n));
        skip = 0;
        left -= n;
    }
    out
}
