//! The part of an open segment that is in memory: aligned chunks that hold the
//! segment's bytes at their file alignment, so that whole blocks are written
//! behind from where readers read them.
//!
//! Owned by the shard. Invariants: chunks are contiguous and full but for the
//! last; bytes at or above `written` are in memory, bytes below are in the
//! file; bytes below `head` are not in memory. So `head <= max(written, start
//! of a partly written block)` — the block that `head` lies in may have its
//! beginning only in the file.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use smallvec::SmallVec;

use super::head::{BatchHead, HEADER_LEN};
use super::index::{IndexBuilder, IndexedBatch};
use crate::io::{ChunkMut, ChunkSlice, Pool, TailChunk};
use crate::log::config::BLOCK;
use crate::model::{LeaderEpoch, Offset, Timestamp};

/// Bytes between two marks, at least.
const MARK_BYTES: u64 = 4096;

/// `pos` rounded down to a block.
pub(crate) const fn block_of(pos: u64) -> u64 {
    pos & !(BLOCK - 1)
}

/// A batch boundary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) offset: Offset,
    pub(crate) pos: u64,
}

struct Chunk {
    pos: u64,
    bytes: TailChunk,
    /// Bytes of the segment that it is for: all its memory, or what a
    /// truncation has left of it.
    span: u64,
}

impl Chunk {
    fn new(pos: u64, chunk: ChunkMut) -> Self {
        let bytes = chunk.into_tail();
        Self { pos, span: bytes.capacity() as u64, bytes }
    }

    fn end(&self) -> u64 {
        self.pos + self.span
    }

    /// Bytes of the segment in it, from its start on.
    fn len(&self) -> u64 {
        self.span.min(self.bytes.len() as u64)
    }

    fn room(&self) -> usize {
        (self.span - self.len()) as usize
    }
}

/// A batch to append.
pub(crate) struct Incoming<'a> {
    /// The header, patched.
    pub(crate) head: &'a [u8; HEADER_LEN],
    /// What follows it.
    pub(crate) rest: &'a [u8],
    pub(crate) base: Offset,
    pub(crate) end: Offset,
    pub(crate) max_timestamp: Timestamp,
}

/// A segment that still takes batches, or one that closes.
pub(crate) struct OpenSegment {
    pub(crate) base: Offset,
    pub(crate) end_offset: Offset,
    pub(crate) end_pos: u64,
    /// The file holds everything below; a multiple of the block.
    pub(crate) written: u64,
    /// The batch that `written` lies in: its start and its end, equal when
    /// `written` is no further than the segment's last boundary.
    pub(crate) straddle: (Mark, Mark),
    /// Its file exists, and the directory that names it is synced.
    pub(crate) created: bool,
    /// Both index files exist, and the directory that names them is synced.
    pub(crate) indexes_named: bool,
    /// Its file has blocks up to here, written or not.
    pub(crate) allocated: u64,
    /// The partial last block was also put into the file, up to here.
    pub(crate) partial: u64,
    head: u64,
    chunks: VecDeque<Chunk>,
    marks: VecDeque<Mark>,
    pub(crate) index: IndexBuilder,
    /// Largest timestamp of the first batch and wall time of its arrival.
    pub(crate) first: Option<(Timestamp, i64)>,
    next_chunk: usize,
}

impl OpenSegment {
    pub(crate) fn new(base: Offset, index_interval: u64) -> Self {
        let start = Mark { offset: base, pos: 0 };
        let index = IndexBuilder::new(base, index_interval);
        Self { created: false, ..Self::resume(start, (start, start), base, index) }
    }

    /// A segment whose bytes up to `end` are all in its file; `straddle` is the
    /// batch that the last block's start lies in.
    pub(crate) fn resume(
        end: Mark,
        straddle: (Mark, Mark),
        base: Offset,
        index: IndexBuilder,
    ) -> Self {
        Self {
            base,
            straddle,
            end_offset: end.offset,
            end_pos: end.pos,
            written: block_of(end.pos),
            created: true,
            indexes_named: false,
            allocated: 0,
            partial: end.pos,
            head: end.pos,
            chunks: VecDeque::new(),
            marks: VecDeque::new(),
            index,
            first: None,
            next_chunk: BLOCK as usize,
        }
    }

    /// First byte that is in memory.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Bytes in memory, with the room of the last chunk.
    pub(crate) fn memory(&self) -> usize {
        self.chunks.iter().map(|c| c.bytes.capacity()).sum()
    }

    /// Takes the chunks that `len` more bytes need; `None` when the pool is
    /// short. A chunk has one of `sizes`, the first for when memory lies in
    /// pieces, since each chunk is a write of its own later.
    pub(crate) fn reserve(
        &mut self,
        len: usize,
        pool: &Pool,
        sizes: RangeInclusive<usize>,
    ) -> Option<SmallVec<[ChunkMut; 2]>> {
        let (least, max_chunk) = sizes.into_inner();
        let mut room = self.chunks.back().map_or(0, Chunk::room);
        let mut lead = if self.chunks.is_empty() { (self.end_pos % BLOCK) as usize } else { 0 };
        let mut taken = SmallVec::new();
        let mut size = self.next_chunk;
        while room < len {
            // The smallest power of two that ends the need, at most the largest chunk.
            let want = (len - room + lead).next_power_of_two().clamp(size, max_chunk.max(size));
            let mut chunk = pool.take_one_of(least.min(want)..=want)?;
            chunk.set_len(lead);
            lead = 0;
            room += chunk.room();
            size = (size * 2).min(max_chunk);
            taken.push(chunk);
        }
        self.next_chunk = size;
        Some(taken)
    }

    /// Appends a batch into chunks reserved for it; returns its position.
    pub(crate) fn append(&mut self, batch: &Incoming<'_>, chunks: SmallVec<[ChunkMut; 2]>) -> u64 {
        if self.chunks.is_empty() {
            self.head = self.end_pos;
        }
        for chunk in chunks {
            let pos = match self.chunks.back() {
                Some(last) => last.end(),
                None => block_of(self.end_pos),
            };
            self.chunks.push_back(Chunk::new(pos, chunk));
        }
        let position = self.end_pos;
        self.write(batch.head);
        self.write(batch.rest);
        self.end_offset = batch.end;
        self.note(batch.base, position, batch.max_timestamp);
        position
    }

    fn note(&mut self, base: Offset, position: u64, max_timestamp: Timestamp) {
        if self.marks.back().is_none_or(|m| position - m.pos >= MARK_BYTES) {
            self.marks.push_back(Mark { offset: base, pos: position });
        }
        self.index.add(&IndexedBatch {
            last_offset: self.end_offset.plus(-1),
            max_timestamp,
            position,
            len: self.end_pos - position,
        });
    }

    fn write(&mut self, mut data: &[u8]) {
        let end = self.end_pos + data.len() as u64;
        while !data.is_empty() {
            // The chunk that the next byte belongs to: the first with room.
            let at = self.end_pos;
            let chunk = self
                .chunks
                .iter_mut()
                .rev()
                .find(|c| c.pos <= at)
                .expect("reserve took chunks for all bytes");
            let n = data.len().min(chunk.room());
            assert!(n > 0, "the chunk at {} is full at {at}", chunk.pos);
            let _ = chunk.bytes.append(&data[..n], |_| {});
            self.end_pos += n as u64;
            data = &data[n..];
        }
        debug_assert_eq!(self.end_pos, end);
    }

    /// Slices of the bytes from `start` to `end`, all in memory.
    pub(crate) fn slices(&self, start: u64, end: u64, out: &mut SmallVec<[ChunkSlice; 4]>) {
        assert!(
            start >= block_of(self.head) && end <= self.end_pos,
            "{start}..{end} not in memory"
        );
        for chunk in self.chunks_from(start) {
            if chunk.pos >= end {
                break;
            }
            let from = start.max(chunk.pos) - chunk.pos;
            let to = (end - chunk.pos).min(chunk.len());
            if from < to {
                out.push(chunk.bytes.slice(from as usize..to as usize));
            }
        }
    }

    fn chunks_from(&self, pos: u64) -> impl Iterator<Item = &Chunk> {
        let first = self.chunks.partition_point(|c| c.end() <= pos);
        self.chunks.range(first..)
    }

    /// Header of the batch at `pos`.
    pub(crate) fn head_at(&self, pos: u64) -> BatchHead {
        let mut bytes = [0u8; HEADER_LEN];
        let mut pieces = SmallVec::new();
        self.slices(pos, pos + HEADER_LEN as u64, &mut pieces);
        let mut at = 0;
        for piece in pieces {
            bytes[at..at + piece.len()].copy_from_slice(&piece);
            at += piece.len();
        }
        BatchHead::parse(&bytes).expect("the tail holds batches that were validated")
    }

    /// The boundary of the batch that holds `offset`, when it is in memory;
    /// `end` for the segment's end.
    pub(crate) fn find(&self, offset: Offset) -> Option<Mark> {
        if offset >= self.end_offset {
            return Some(self.end());
        }
        let n = self.marks.partition_point(|m| m.offset <= offset);
        let mark = *self.marks.get(n.checked_sub(1)?)?;
        Some(self.walk(mark, |_, next| next.offset <= offset))
    }

    /// The last boundary whose offset is at most `upper` and whose position is
    /// at most `limit`, from `from` on.
    pub(crate) fn boundary(&self, from: Mark, upper: Offset, limit: u64) -> Mark {
        if self.end_offset <= upper && self.end_pos <= limit {
            return self.end();
        }
        let n = self.marks.partition_point(|m| m.offset <= upper && m.pos <= limit);
        let start = match n.checked_sub(1).and_then(|n| self.marks.get(n)) {
            Some(mark) if mark.pos > from.pos => *mark,
            _ => from,
        };
        self.walk(start, |_, next| next.offset <= upper && next.pos <= limit)
    }

    fn walk(&self, mut at: Mark, go: impl Fn(Mark, Mark) -> bool) -> Mark {
        while at.pos < self.end_pos {
            let head = self.head_at(at.pos);
            let next = Mark { offset: head.end(), pos: at.pos + head.len as u64 };
            if !go(at, next) {
                break;
            }
            at = next;
        }
        at
    }

    pub(crate) fn end(&self) -> Mark {
        Mark { offset: self.end_offset, pos: self.end_pos }
    }

    /// A position at or before the batch boundary of `offset`, found without
    /// walking; `floor` when it is not in memory.
    pub(crate) fn position_below(&self, offset: Offset, floor: u64) -> u64 {
        if offset >= self.end_offset {
            return self.end_pos;
        }
        let n = self.marks.partition_point(|m| m.offset <= offset);
        n.checked_sub(1).map_or(floor, |n| self.marks[n].pos)
    }

    /// After a truncation below `written`: the batch that `written` lies in now.
    pub(crate) fn set_straddle(&mut self, start: Mark, end: Mark) {
        let end = if start.pos == self.written { start } else { end };
        self.straddle = (start, end);
    }

    /// Notes that the file holds everything below `to` now.
    pub(crate) fn advance_written(&mut self, to: u64) {
        if to <= self.written {
            return;
        }
        let (_, next) = self.straddle;
        if next.pos <= to {
            let start = self.boundary(next, Offset(i64::MAX), to);
            let end = if start.pos < self.end_pos {
                let head = self.head_at(start.pos);
                Mark { offset: head.end(), pos: start.pos + head.len as u64 }
            } else {
                start
            };
            self.straddle = (start, end);
        }
        self.written = to;
    }

    /// Where the blocks end that its file has and must keep: beyond `written`
    /// there may be a partial one whose bytes are nowhere else.
    pub(crate) fn blocks_in_file(&self) -> u64 {
        let bytes = self.written.max(self.head).max(self.partial);
        bytes.next_multiple_of(BLOCK).max(self.allocated)
    }

    /// Drops the oldest chunk if the file holds all of it; says how many bytes
    /// came free.
    pub(crate) fn drop_oldest(&mut self) -> usize {
        let Some(first) = self.chunks.front() else { return 0 };
        let end = first.end();
        let full = first.room() == 0;
        // A last chunk that is not full goes only when nothing is missing in
        // the file: it went there as a partial block.
        let partial = self.partial == self.end_pos && self.written == block_of(self.end_pos);
        if !(full && end <= self.written || self.chunks.len() == 1 && partial) {
            return 0;
        }
        let freed = first.bytes.capacity();
        self.chunks.pop_front();
        self.head = if self.chunks.is_empty() { self.end_pos } else { end };
        while self.marks.front().is_some_and(|m| m.pos < self.head) {
            self.marks.pop_front();
        }
        if self.chunks.is_empty() {
            self.next_chunk = BLOCK as usize;
        }
        freed
    }

    /// Forgets everything from `to` on, a batch boundary. Bytes of the last
    /// chunk beyond it stay published to readers who hold them, so the rest of
    /// its last block is copied to one that `take` gives; `None` when it gives
    /// none.
    pub(crate) fn truncate(
        &mut self,
        to: Mark,
        take: impl FnOnce() -> Option<ChunkMut>,
    ) -> Option<()> {
        let keep_from = block_of(to.pos);
        let mut fresh = None;
        if to.pos > keep_from && to.pos > self.head {
            let mut chunk = take()?;
            let from = keep_from.max(self.head);
            let mut pieces = SmallVec::new();
            self.slices(from, to.pos, &mut pieces);
            chunk.set_len((from - keep_from) as usize);
            for piece in pieces {
                chunk.extend(&piece);
            }
            fresh = Some(chunk);
        }
        while self.chunks.back().is_some_and(|c| c.pos >= keep_from) {
            self.chunks.pop_back();
        }
        if let Some(last) = self.chunks.back_mut().filter(|c| c.pos + c.len() > keep_from) {
            last.span = keep_from - last.pos;
        }
        self.chunks.extend(fresh.map(|chunk| Chunk::new(keep_from, chunk)));
        self.end_pos = to.pos;
        self.end_offset = to.offset;
        self.written = self.written.min(keep_from);
        self.allocated = 0;
        if self.straddle.1.pos > to.pos {
            // The batch that began at `written` is gone; where the cut lies
            // below `written`, the caller says which batch it is now.
            self.straddle = (to, to);
        }
        self.partial = self.partial.min(to.pos);
        while self.marks.back().is_some_and(|m| m.pos >= to.pos) {
            self.marks.pop_back();
        }
        if self.chunks.is_empty() {
            self.head = to.pos;
        }
        Some(())
    }

    /// The epoch of the batch at a boundary in memory.
    pub(crate) fn epoch_at(&self, pos: u64) -> LeaderEpoch {
        self.head_at(pos).epoch
    }
}

#[cfg(test)]
mod tests;
