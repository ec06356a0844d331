//! Whether what a segment's file gives is what was written to it. Batches are
//! found by an index entry that they confirm and by headers that chain, and
//! are answered only when offset, leader epoch and checksum are right. Damage
//! costs the batches up to the next index entry's and nothing else, and its
//! error names file, position and offset.

use std::rc::Rc;

use super::error::{Error, Result};
use super::read::{head_in, part};
use super::scan::Walk;
use super::segment::head::{BatchHead, HEADER_LEN};
use super::segment::index::{OffsetEntry, TimeEntry};
use super::segment::names::Kind;
use super::segment::tail::Mark;
use super::set::{LogHandle, Slices};
use super::state::{FileOf, Shared};
use crate::io::{ChunkSlice, Env};
use crate::model::Offset;
use crate::record::Crc32c;

/// Bytes read at once when a batch is looked for between two index entries.
const LOCATE_BYTES: u64 = 16 * 1024;
/// Index entries tried, each before the last, until the segment is walked from
/// its start.
const ENTRIES_TRIED: usize = 3;
/// Where the checksum of a batch lies, and from where on it covers the batch.
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;

/// Where a segment is and how far it goes.
#[derive(Clone, Copy)]
struct Place {
    handle: LogHandle,
    base: Offset,
    end: Mark,
}

impl<E: Env> Shared<E> {
    /// The boundary of the batch that holds `offset`, by index and walk.
    pub(crate) async fn locate(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        offset: Offset,
        end: Mark,
    ) -> Result<Mark> {
        let place = Place { handle, base, end };
        let mut relative = u32::try_from(offset.0 - base.0).unwrap_or(u32::MAX);
        for _ in 0..ENTRIES_TRIED {
            let entry = match self.index_lookup(handle, base, relative).await {
                Err(error @ Error::Io { .. }) => {
                    tracing::warn!(%error, "an offset index cannot be read");
                    None
                }
                entry => entry?,
            };
            let Some(entry) = entry else { break };
            if let Some(mark) = self.walk_from(place, Some(entry), offset).await? {
                return Ok(mark);
            }
            let path = self.path(handle, base, Kind::Index)?;
            tracing::warn!(path = %path.display(), ?entry, "an index entry names no batch");
            let Some(lower) = entry.relative.checked_sub(1) else { break };
            relative = lower;
        }
        Ok(self.walk_from(place, None, offset).await?.unwrap_or(end))
    }

    /// Walks from the batch of an index entry, or from the segment's start, to
    /// the batch that holds `offset`; `None` when the entry names no batch.
    async fn walk_from(
        self: &Rc<Self>,
        place: Place,
        entry: Option<OffsetEntry>,
        offset: Offset,
    ) -> Result<Option<Mark>> {
        let Place { handle, base, end } = place;
        let in_file = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            log.segment(base).map_or(end.pos, |s| s.head())
        };
        let file = self.segment_file(handle, base).await?;
        let mut at = Mark { offset: base, pos: entry.map_or(0, |e| u64::from(e.position)) };
        let pool = &self.config.pools.cold;
        let mut walk = Walk::new(&self.env, &file, pool, at, in_file).reading(LOCATE_BYTES);
        let mut named = entry;
        let mut before = None;
        while at.pos < end.pos {
            let head = self.header(&mut walk, place, at).await;
            if let Some(entry) = named.take() {
                let last = base.plus(i64::from(entry.relative));
                at.offset = match head {
                    Ok(Some(head)) if head.end().plus(-1) == last => head.base,
                    Ok(_) | Err(Error::Unreadable { .. }) => return Ok(None),
                    Err(error) => return Err(error),
                };
            }
            let head = match head? {
                Some(head) if head.base == at.offset => head,
                found => {
                    // The header before may have led here.
                    if let Some(before) = before {
                        self.read_batch(handle, base, before, end).await?;
                    }
                    let what = found.map_or("no batch header", |_| "another base offset");
                    return Err(self.corrupt(handle, base, at, what));
                }
            };
            if head.end() > offset {
                return Ok(Some(at));
            }
            before = Some(at);
            at = Mark { offset: head.end(), pos: at.pos + head.len as u64 };
        }
        if named.is_some() {
            return Ok(None);
        }
        match before {
            // A length that has changed may lead past the segment's end.
            Some(before) if at != end => {
                self.read_batch(handle, base, before, end).await?;
                Err(self.corrupt(handle, base, before, "batches that do not fill the segment"))
            }
            _ => Ok(Some(at)),
        }
    }

    /// Header of the batch at `at`, from the file or from memory.
    async fn header(
        self: &Rc<Self>,
        walk: &mut Walk<'_, E, FileOf<E>>,
        place: Place,
        at: Mark,
    ) -> Result<Option<BatchHead>> {
        let to = at.pos + HEADER_LEN as u64;
        if to > place.end.pos {
            return Ok(None);
        }
        if to <= walk.end() {
            walk.at = at;
            return walk.header_only().await.map_err(|e| e.at(at.pos, at.offset));
        }
        let pieces =
            self.read_range(&self.config.pools.cold, place.handle, place.base, at.pos, to).await;
        Ok(head_in(&pieces.map_err(|e| e.at(at.pos, at.offset))?, 0))
    }

    /// The batch at a boundary, checked, wherever a fetch would end.
    pub(crate) async fn read_batch(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        at: Mark,
        end: Mark,
    ) -> Result<(BatchHead, Slices)> {
        let unreadable = |error: Error| error.at(at.pos, at.offset);
        let to = (at.pos + HEADER_LEN as u64).min(end.pos);
        let pieces = self
            .read_range(&self.config.pools.cold, handle, base, at.pos, to)
            .await
            .map_err(unreadable)?;
        let Some(head) = head_in(&pieces, 0) else {
            return Err(self.corrupt(handle, base, at, "no batch header"));
        };
        let to = at.pos + head.len as u64;
        if to > end.pos {
            return Err(self.corrupt(handle, base, at, "a batch that leaves the segment"));
        }
        let pieces = self
            .read_range(&self.config.pools.cold, handle, base, at.pos, to)
            .await
            .map_err(unreadable)?;
        self.sound_bytes(handle, base, at, &pieces, Offset(i64::MAX))?;
        Ok((head, pieces))
    }

    /// Bytes of the whole batches below `upper` at the start of `pieces`, up to
    /// the first that is not what was written; an error when that is the first
    /// of all.
    pub(crate) fn sound_bytes(
        &self,
        handle: LogHandle,
        base: Offset,
        start: Mark,
        pieces: &[ChunkSlice],
        upper: Offset,
    ) -> Result<usize> {
        let total: usize = pieces.iter().map(|p| p.len()).sum();
        let mut at = start;
        let mut done = 0;
        while done + HEADER_LEN <= total {
            let what = match head_in(pieces, done) {
                Some(head) if head.base != at.offset => "another base offset",
                Some(head) if done + head.len > total => break,
                Some(head) => match self.fault(handle, &head, &part(pieces, done, head.len)) {
                    Some(what) => what,
                    None if head.end() > upper => break,
                    None => {
                        done += head.len;
                        at = Mark { offset: head.end(), pos: at.pos + head.len as u64 };
                        continue;
                    }
                },
                None => "no batch header",
            };
            if done > 0 {
                break;
            }
            return Err(self.corrupt(handle, base, at, what));
        }
        Ok(done)
    }

    /// What is wrong with a whole batch: its checksum covers all from the
    /// attributes on; before them only the leader epoch is left to check.
    fn fault(
        &self,
        handle: LogHandle,
        head: &BatchHead,
        batch: &[ChunkSlice],
    ) -> Option<&'static str> {
        let mut crc = Crc32c::new();
        let mut at = 0;
        let mut stored = [0; 4];
        for piece in batch {
            for (i, byte) in stored.iter_mut().enumerate() {
                let place = (CRC_AT + i).wrapping_sub(at);
                *byte = piece.get(place).copied().unwrap_or(*byte);
            }
            crc.update(&piece[CRC_FROM.saturating_sub(at).min(piece.len())..]);
            at += piece.len();
        }
        if crc.value() != u32::from_be_bytes(stored) {
            return Some("another checksum");
        }
        let state = self.state.borrow();
        // By the last record: the log may start inside the batch, and its
        // history starts where the log does.
        let epoch = state.log(handle)?.epochs.at(head.end().plus(-1))?;
        (epoch != head.epoch).then_some("another leader epoch")
    }

    /// The boundary behind the batch that a time index entry names, when that
    /// has its timestamp.
    pub(crate) async fn batch_of_time(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        entry: TimeEntry,
    ) -> Result<Option<Mark>> {
        let last = base.plus(i64::from(entry.relative));
        let end = match self.segment_of(handle, last) {
            Ok((found, end)) if found == base => end,
            Ok(_) | Err(Error::OutOfRange(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let at = match self.locate(handle, base, last, end).await {
            Ok(at) if at == end => return Ok(None),
            Err(Error::Corrupt { .. }) => return Ok(None),
            at => at?,
        };
        match self.read_batch(handle, base, at, end).await {
            Ok((head, _)) => {
                let named = head.end().plus(-1) == last && head.max_timestamp == entry.timestamp;
                let pos = at.pos + head.len as u64;
                Ok(named.then_some(Mark { offset: head.end(), pos }))
            }
            Err(Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn corrupt(&self, handle: LogHandle, base: Offset, at: Mark, what: &'static str) -> Error {
        let path = self.path(handle, base, Kind::Log).unwrap_or_default();
        Error::Corrupt { path, position: at.pos, offset: at.offset, what }
    }
}
