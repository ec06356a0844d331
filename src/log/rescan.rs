//! Recovery's reads: walks the batches of a recovered log by their headers,
//! from the last index entry that is believed: index entries, epochs, and what
//! the producers' state needs.

use std::path::Path;
use std::rc::Rc;

use super::checkpoint::Floor;
use super::config::{BLOCK, KnownLog};
use super::epoch_cache::EpochCache;
use super::error::{Error, FatalReason, Result};
use super::journal::reader::Replay;
use super::rebuild::Segments;
use super::scan::Walk;
use super::segment::head::BatchHead;
use super::segment::index::{
    IndexBuilder, IndexedBatch, OFFSET_ENTRY, TIME_ENTRY, valid_offsets, valid_times,
};
use super::segment::names::{self, Kind};
use super::segment::tail::{Mark, OpenSegment, block_of};
use super::set::RecoveredBatch;
use super::state::{FileOf, Shared};
use crate::io::{Env, File as _, FileSystem as _, OpenMode};
use crate::model::{Offset, ProducerId};
use crate::record::BatchView;

/// The walk over a recovered log's batches.
pub(crate) struct Scan<'a, E: Env> {
    pub(crate) shared: &'a Rc<Shared<E>>,
    pub(crate) dir: &'a Path,
    pub(crate) known: &'a KnownLog,
    pub(crate) epochs: EpochCache,
    /// The checkpoint's floor, not a later `TAIL`'s: indexes are synced and
    /// the checkpoint's epochs complete below it only.
    pub(crate) trusted: Floor,
    /// Batches from here on go to the producers' state.
    pub(crate) wanted_from: Offset,
    pub(crate) batches: Vec<RecoveredBatch>,
}

impl<E: Env> Scan<'_, E> {
    /// Walks what has to be walked; returns the active segment.
    pub(crate) async fn all(
        &mut self,
        segments: &Segments,
        replay: &Replay,
    ) -> Result<OpenSegment> {
        let floor = Offset(self.trusted.segment);
        for (base, segment) in &segments.closed {
            let end = Mark { offset: segment.end, pos: segment.len };
            if *base >= floor {
                let (mut index, _) = self.segment(*base, end, None).await?;
                self.close_index(*base, &mut index).await?;
            } else if segment.end > self.wanted_from {
                self.read_closed(*base, end).await?;
            }
        }
        if segments.closed.range(floor..).next().is_some() {
            // Their index files may be new names.
            self.shared.sync_dir_later(self.dir);
        }
        let base = segments.active;
        let trusted = (base == floor).then_some(self.trusted.boundary_pos);
        let (index, straddle) = self.segment(base, replay.end, trusted).await?;
        self.trim_index(base, &index).await?;
        Ok(OpenSegment::resume(replay.end, straddle, base, index))
    }

    /// Walks one segment, from an index entry below `trusted` bytes or from
    /// its start; returns its index and the batch that its last block's start
    /// lies in.
    async fn segment(
        &mut self,
        base: Offset,
        end: Mark,
        trusted: Option<u64>,
    ) -> Result<(IndexBuilder, (Mark, Mark))> {
        let path = names::path(self.dir, base, Kind::Log);
        let file = self.shared.env.fs().open(&path, OpenMode::READ).await;
        let file = file.map_err(|e| Error::io(&path, e))?;
        let block = block_of(end.pos);
        let interval = self.known.config.index_interval_bytes;
        let (mut index, from) = match trusted {
            Some(limit) if self.wanted_from > base => {
                self.resume_index(&file, base, limit.min(block)).await?
            }
            _ => (IndexBuilder::new(base, interval), Mark { offset: base, pos: 0 }),
        };
        let mut straddle = (from, from);
        let env = &self.shared.env;
        let mut walk = Walk::new(env, &file, &self.shared.config.pools.cold, from, end.pos);
        while let Some((head, bytes)) = walk.peek().await.map_err(lost)? {
            let at = walk.at;
            index.add(&IndexedBatch {
                last_offset: head.end().plus(-1),
                max_timestamp: head.max_timestamp,
                position: at.pos,
                len: head.len as u64,
            });
            // No checksum covers the epoch of a batch in a segment: below the
            // floor the checkpoint says it, above it the frame.
            if head.base >= self.trusted.boundary() {
                self.epochs.assign(head.epoch, head.base);
            }
            if head.base >= self.wanted_from && has_producer(&bytes) {
                let whole = walk.batch(&head).await.map_err(lost)?;
                self.note(&head, &whole);
            }
            walk.skip(&head);
            if at.pos <= block {
                straddle = (at, walk.at);
            }
            if walk.at.pos <= block {
                straddle = (walk.at, walk.at);
            }
        }
        if walk.at.offset != end.offset {
            return Err(Error::Fatal {
                reason: FatalReason::LostBelowFloor,
                detail: format!(
                    "{}: ends at offset {} instead of {}",
                    path.display(),
                    walk.at.offset,
                    end.offset
                ),
            });
        }
        Ok((index, straddle))
    }

    pub(crate) fn note(&mut self, head: &BatchHead, whole: &[u8]) {
        let Ok((view, _)) = BatchView::parse(whole) else { return };
        let Ok(summary) = view.summary() else { return };
        self.batches.push(RecoveredBatch { base_offset: head.base, summary });
    }

    /// The index as far as its files are believable, below `limit` bytes and
    /// before the first batch that the producers want; and the boundary from
    /// which the walk goes on.
    pub(crate) async fn resume_index(
        &self,
        file: &FileOf<E>,
        base: Offset,
        limit: u64,
    ) -> Result<(IndexBuilder, Mark)> {
        let interval = self.known.config.index_interval_bytes;
        let start = (IndexBuilder::new(base, interval), Mark { offset: base, pos: 0 });
        let fs = self.shared.env.fs();
        let Ok(offsets) = fs.read(&names::path(self.dir, base, Kind::Index)).await else {
            return Ok(start);
        };
        let times = fs.read(&names::path(self.dir, base, Kind::TimeIndex)).await;
        let mut entries = valid_offsets(&offsets, limit);
        let wanted = self.wanted_from;
        entries.truncate(entries.partition_point(|e| base.plus(i64::from(e.relative)) < wanted));
        let Some(last) = entries.last().copied() else { return Ok(start) };
        let at = Mark { offset: base, pos: u64::from(last.position) };
        let env = &self.shared.env;
        let mut walk = Walk::new(env, file, &self.shared.config.pools.cold, at, at.pos + BLOCK);
        let head = match walk.header_only().await {
            Ok(Some(head)) if head.end().0 - 1 - base.0 == i64::from(last.relative) => head,
            _ => return Ok(start),
        };
        // The walk adds the last entry's batch again, which makes no new entry.
        let times = valid_times(&times.unwrap_or_default(), last.relative);
        let index = IndexBuilder::resume(
            base,
            interval,
            (entries.len() as u64, times.len() as u64),
            (Some(last), times.last().copied()),
        );
        Ok((index, Mark { offset: head.base, pos: at.pos }))
    }

    /// Cuts the index files to what is believed, so that nothing stale follows
    /// the entries to come.
    async fn trim_index(&self, base: Offset, index: &IndexBuilder) -> Result<()> {
        let (offsets, times) = index.flushed();
        let sizes = [
            (Kind::Index, offsets * OFFSET_ENTRY as u64),
            (Kind::TimeIndex, times * TIME_ENTRY as u64),
        ];
        let fs = self.shared.env.fs();
        for (kind, size) in sizes {
            let path = names::path(self.dir, base, kind);
            if !fs.len(&path).await.is_ok_and(|len| len > size) {
                continue;
            }
            let file = fs.open(&path, OpenMode::BUFFERED).await;
            let file = file.map_err(|e| Error::io(&path, e))?;
            let cut = file.set_len(size).await;
            cut.map_err(|e| Error::write(FatalReason::SegmentWrite, &path, e))?;
        }
        Ok(())
    }

    async fn close_index(&self, base: Offset, index: &mut IndexBuilder) -> Result<()> {
        index.close();
        let bytes = index.take(None);
        let fs = self.shared.env.fs();
        for (kind, content) in [(Kind::Index, bytes.offset.1), (Kind::TimeIndex, bytes.time.1)] {
            let path = names::path(self.dir, base, kind);
            let written = fs.write(&path, content).await;
            written.map_err(|e| Error::write(FatalReason::SegmentWrite, &path, e))?;
        }
        self.shared.sync_dir_later(self.dir);
        Ok(())
    }
}

pub(crate) fn has_producer(header: &[u8]) -> bool {
    let id: [u8; 8] = header[43..51].try_into().expect("a header was peeked");
    ProducerId(i64::from_be_bytes(id)) != ProducerId::NONE
}

/// A batch that does not chain below a recovered log's end is a lost one.
fn lost(error: Error) -> Error {
    match error {
        Error::Corrupt { .. } => {
            Error::Fatal { reason: FatalReason::LostBelowFloor, detail: error.to_string() }
        }
        other => other,
    }
}
