//! Recovery of one log: checks what its frames vouch for, writes the bytes
//! above its floor into its segments, rebuilds indexes, epochs and what the
//! producers need.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::rc::Rc;

use super::checkpoint::{Floor, LogEntry};
use super::config::{BLOCK, KnownLog};
use super::epoch_cache::EpochCache;
use super::error::{Error, FatalReason, Result};
use super::journal::reader::{Piece, Replay, Source};
use super::recovery::{Recovery, read_journal};
use super::scan::Walk;
use super::segment::head::BatchHead;
use super::segment::index::{
    IndexBuilder, IndexedBatch, OFFSET_ENTRY, TIME_ENTRY, valid_offsets, valid_times,
};
use super::segment::names::{self, Kind};
use super::segment::tail::{Mark, OpenSegment, block_of};
use super::segment_io::{READ_BYTES, read_aligned};
use super::set::{Recovered, RecoveredBatch};
use super::state::{ClosedSegment, FileOf, Log, Shared};
use crate::io::{ChunkMut, Env, File as _, FileSystem as _, OpenMode};
use crate::model::{LeaderEpoch, LogId, Offset, ProducerId};
use crate::record::BatchView;

/// Restores a log from its floor and its frames and puts it into the set.
pub(crate) async fn rebuild<E: Env>(
    recovery: &Recovery<E>,
    known: &KnownLog,
    entry: Option<LogEntry>,
    mut replay: Replay,
) -> Result<Recovered> {
    let shared = recovery.set.shared.clone();
    let dir = shared.config.data_dir.join(known.dir_name());
    make_dir(&shared, &dir, known).await?;
    check_extents(recovery, &dir, &mut replay).await?;
    let mut rewriter = Rewriter::new(&shared, &dir, replay.floor);
    for piece in &replay.pieces {
        rewriter.piece(recovery, piece).await?;
    }
    rewriter.end(&replay).await?;
    let segments = sweep(&shared, &dir, &replay).await?;
    // In class `os` the records themselves may be gone.
    let log_start = super::recovery::entry_start(entry.as_ref()).min(replay.end.offset);
    let mut epochs = EpochCache::default();
    for (epoch, start) in entry.iter().flat_map(|e| &e.epochs) {
        epochs.assign(LeaderEpoch(*epoch), Offset(*start));
    }
    let snapshot = latest_snapshot(&shared, &dir, replay.end.offset).await?;
    let mut scan = Scan {
        shared: &shared,
        dir: &dir,
        known,
        epochs,
        trusted: entry.as_ref().map_or(Floor::start_of(0), |e| e.floor),
        wanted_from: snapshot.as_ref().map_or(log_start, |(at, _)| *at),
        epochs_from: entry.as_ref().map_or(Floor::start_of(0), |e| e.floor),
        batches: Vec::new(),
    };
    let active = scan.all(&segments, &replay).await?;
    let (mut epochs, batches_after) = (scan.epochs, scan.batches);
    let latest = epochs.latest().map_or(LeaderEpoch::NONE, |e| e.epoch).max(replay.epoch);
    let epoch = known.epoch_to_start.unwrap_or(LeaderEpoch(latest.0 + 1));
    epochs.assign(epoch, replay.end.offset);
    let end = replay.end.offset;
    let (boundary, _) = active.straddle;
    let floor = Floor {
        segment: active.base.0,
        pos: active.written,
        boundary_pos: boundary.pos,
        boundary_offset: boundary.offset.0,
    };
    let closed = segments.closed;
    let handle = shared.state.borrow_mut().insert(|handle| Log {
        known: known.clone(),
        handle,
        dir,
        epochs,
        log_start,
        high_watermark: end,
        journal_durable: end,
        durable: end,
        closed,
        open: VecDeque::from([active]),
        floor,
        bypass_from: None,
        bypass_flight: None,
        segment_busy: false,
        behind_queued: false,
        round: 0,
        truncating: false,
        truncate_to: None,
        bytes_since_snapshot: 0,
        snapshots: 0,
    });
    Ok(Recovered {
        handle,
        log_id: LogId(known.log_id.0),
        log_start,
        log_end: end,
        epoch,
        snapshot,
        batches_after,
    })
}

/// Makes a log's directory with its `partition.metadata`, unless it is there.
pub(crate) async fn make_dir<E: Env>(
    shared: &Rc<Shared<E>>,
    dir: &Path,
    known: &KnownLog,
) -> Result<()> {
    let fs = shared.env.fs();
    let path = dir.join("partition.metadata");
    let text = format!("version: 0\ntopic_id: {}\n", base64_url(&known.topic_id.0));
    if fs.read(&path).await.is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    fs.create_dir_all(dir).await.map_err(|e| Error::io(dir, e))?;
    let written = fs.write(&path, text.into_bytes()).await;
    written.map_err(|e| Error::write(FatalReason::Checkpoint, &path, e))?;
    shared.sync_dir(dir).await?;
    shared.sync_dir(&shared.config.data_dir).await
}

/// Kafka's text form of a topic id: base64 for URLs, without padding.
fn base64_url(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::with_capacity(22);
    for group in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for i in 0..=group.len() {
            out.push(DIGITS[(bits >> (18 - 6 * i) & 63) as usize] as char);
        }
    }
    out
}

/// Cuts the replay at the first extent whose bytes never arrived.
async fn check_extents<E: Env>(
    recovery: &Recovery<E>,
    dir: &Path,
    replay: &mut Replay,
) -> Result<()> {
    let shared = &recovery.set.shared;
    for index in 0..replay.pieces.len() {
        let piece = replay.pieces[index];
        let Source::Extent { in_segment, crc, .. } = piece.source else { continue };
        let path = names::path(dir, piece.segment, Kind::Log);
        let whole = in_segment <= piece.len;
        let arrived = whole
            && match shared.env.fs().open(&path, OpenMode::READ).await {
                Ok(file) => range_crc(shared, &file, piece.pos, in_segment).await? == Some(crc),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
                Err(e) => return Err(Error::io(&path, e)),
            };
        if !arrived {
            replay.cut(index);
            return Ok(());
        }
    }
    Ok(())
}

/// CRC-32 of a range of a file; `None` when the file is shorter.
async fn range_crc<E: Env>(
    shared: &Rc<Shared<E>>,
    file: &FileOf<E>,
    pos: u64,
    len: u64,
) -> Result<Option<u32>> {
    let mut hasher = crc32fast::Hasher::new();
    let mut at = pos;
    while at < pos + len {
        let to = (block_of(at) + READ_BYTES).min(pos + len);
        match read_aligned(file, &shared.config.pools.cold, at, to).await {
            Ok(bytes) => hasher.update(&bytes),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        at = to;
    }
    Ok(Some(hasher.finalize()))
}

/// Writes pieces into segments, block by block.
struct Rewriter<'a, E: Env> {
    shared: &'a Rc<Shared<E>>,
    dir: &'a Path,
    segment: Offset,
    file: Option<FileOf<E>>,
    /// Where the buffer goes.
    pos: u64,
    /// Where the pieces taken so far end.
    next: u64,
    buf: Option<ChunkMut>,
}

impl<'a, E: Env> Rewriter<'a, E> {
    fn new(shared: &'a Rc<Shared<E>>, dir: &'a Path, floor: Floor) -> Self {
        Self {
            shared,
            dir,
            segment: Offset(floor.segment),
            file: None,
            pos: floor.pos,
            next: floor.boundary_pos,
            buf: None,
        }
    }

    async fn piece(&mut self, recovery: &Recovery<E>, piece: &Piece) -> Result<()> {
        if piece.segment != self.segment {
            self.finish(None).await?;
            (self.segment, self.pos, self.next) = (piece.segment, 0, 0);
        }
        let mut at = piece.pos;
        let end = piece.pos + piece.len;
        while at < end {
            let (bytes, to) = self.load(recovery, piece, at, end).await?;
            self.feed(at, &bytes).await?;
            at = to;
        }
        self.next = end;
        Ok(())
    }

    async fn load(
        &self,
        recovery: &Recovery<E>,
        piece: &Piece,
        at: u64,
        end: u64,
    ) -> Result<(crate::io::ChunkSlice, u64)> {
        let shared = self.shared;
        let (split, file, journal_at) = match piece.source {
            Source::Journal { file, at } => (piece.pos, file, at),
            Source::Extent { in_segment, file, at, .. } => (piece.pos + in_segment, file, at),
        };
        if at < split {
            let to = (block_of(at) + READ_BYTES).min(split);
            let path = names::path(self.dir, piece.segment, Kind::Log);
            let file = shared.env.fs().open(&path, OpenMode::READ).await;
            let file = file.map_err(|e| Error::io(&path, e))?;
            return Ok((read_aligned(&file, &shared.config.pools.cold, at, to).await?, to));
        }
        let to = (at + READ_BYTES).min(end);
        let from = journal_at + (at - split);
        Ok((read_journal(shared, &recovery.files[file], from, to - at).await?, to))
    }

    /// Takes the bytes at `at`; those below the floor are in the file already.
    async fn feed(&mut self, at: u64, mut bytes: &[u8]) -> Result<()> {
        let start = self.pos + self.buf.as_ref().map_or(0, |b| b.len() as u64);
        assert!(at <= start, "pieces of a replay are contiguous: {at} after {start}");
        bytes = &bytes[(start - at).min(bytes.len() as u64) as usize..];
        while !bytes.is_empty() {
            let pool = &self.shared.config.pools.cold;
            if self.buf.is_none() {
                let buf = pool.take(256 * 1024).or_else(|| pool.take(BLOCK as usize));
                self.buf = Some(buf.ok_or(Error::NoMemory(pool.name()))?);
            }
            let buf = self.buf.as_mut().expect("taken above");
            let n = bytes.len().min(buf.room());
            buf.extend(&bytes[..n]);
            bytes = &bytes[n..];
            if buf.room() == 0 {
                self.write_out().await?;
            }
        }
        Ok(())
    }

    async fn open(&mut self) -> Result<FileOf<E>> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let path = names::path(self.dir, self.segment, Kind::Log);
        let file = self.shared.env.fs().open(&path, OpenMode::DIRECT).await;
        let file = file.map_err(|e| Error::io(&path, e))?;
        self.file = Some(file.clone());
        Ok(file)
    }

    async fn write_out(&mut self) -> Result<()> {
        let Some(mut buf) = self.buf.take() else { return Ok(()) };
        let file = self.open().await?;
        let len = buf.len() as u64;
        buf.pad_to(BLOCK as usize);
        let written = file.write_at(buf.freeze(), self.pos).await;
        written.map_err(|e| Error::write(FatalReason::SegmentWrite, file.path(), e))?;
        self.pos += len;
        Ok(())
    }

    /// Ends a segment at `end`, or where its bytes end, and syncs it.
    async fn finish(&mut self, end: Option<u64>) -> Result<()> {
        self.write_out().await?;
        let file = self.open().await?;
        let end = end.unwrap_or(self.next);
        let cut = file.set_len(end).await;
        cut.map_err(|e| Error::write(FatalReason::SegmentWrite, file.path(), e))?;
        let synced = file.sync_data().await;
        synced.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))?;
        self.file = None;
        Ok(())
    }

    async fn end(mut self, replay: &Replay) -> Result<()> {
        if replay.pieces.is_empty() {
            let path = names::path(self.dir, self.segment, Kind::Log);
            let len = self.shared.env.fs().len(&path).await;
            if len.is_ok_and(|len| len == replay.end.pos) {
                return Ok(());
            }
        }
        self.finish(Some(replay.end.pos)).await?;
        self.shared.sync_dir(self.dir).await
    }
}

/// What the directory holds once everything unvouched is gone.
struct Segments {
    closed: BTreeMap<Offset, ClosedSegment>,
    active: Offset,
}

/// Removes files that belong to no state of the log any more.
async fn sweep<E: Env>(shared: &Rc<Shared<E>>, dir: &Path, replay: &Replay) -> Result<Segments> {
    let fs = shared.env.fs();
    let listed = fs.read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
    let rewritten: Vec<Offset> = replay.pieces.iter().map(|p| p.segment).collect();
    let counts = |base: Offset| {
        base.0 <= replay.floor.segment || rewritten.contains(&base) || base == replay.segment
    };
    let mut closed = BTreeMap::new();
    let mut removed = false;
    for entry in &listed {
        let Some((offset, kind)) = names::parse(&entry.name) else { continue };
        let keep = match kind {
            Kind::Snapshot => offset <= replay.end.offset,
            _ => offset <= replay.segment && counts(offset),
        };
        if !keep {
            let path = dir.join(&entry.name);
            fs.remove_file(&path).await.map_err(|e| Error::io(&path, e))?;
            removed = true;
        } else if kind == Kind::Log && offset < replay.segment {
            let len = fs.len(&dir.join(&entry.name)).await;
            let len = len.map_err(|e| Error::io(dir, e))?;
            let segment = ClosedSegment { len, end: replay.segment, max_timestamp: None };
            closed.insert(offset, segment);
        }
    }
    if removed {
        shared.sync_dir(dir).await?;
    }
    let bases: Vec<Offset> = closed.keys().copied().chain([replay.segment]).collect();
    for pair in bases.windows(2) {
        if let Some(segment) = closed.get_mut(&pair[0]) {
            segment.end = pair[1];
        }
    }
    Ok(Segments { closed, active: replay.segment })
}

async fn latest_snapshot<E: Env>(
    shared: &Rc<Shared<E>>,
    dir: &Path,
    end: Offset,
) -> Result<Option<(Offset, Vec<u8>)>> {
    let listed = shared.env.fs().read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
    let latest = listed
        .iter()
        .filter_map(|e| names::parse(&e.name))
        .filter(|(offset, kind)| *kind == Kind::Snapshot && *offset <= end)
        .map(|(offset, _)| offset)
        .max();
    let Some(offset) = latest else { return Ok(None) };
    let path = names::path(dir, offset, Kind::Snapshot);
    let bytes = shared.env.fs().read(&path).await.map_err(|e| Error::io(&path, e))?;
    Ok(Some((offset, bytes)))
}

/// The walk over a recovered log's batches.
struct Scan<'a, E: Env> {
    shared: &'a Rc<Shared<E>>,
    dir: &'a Path,
    known: &'a KnownLog,
    epochs: EpochCache,
    /// The checkpoint's floor, not a later `TAIL`'s: indexes and epochs are
    /// complete and synced below it only.
    trusted: Floor,
    /// Batches from here on go to the producers' state.
    wanted_from: Offset,
    /// The checkpoint's epochs end here; later ones follow from the batches.
    epochs_from: Floor,
    batches: Vec<RecoveredBatch>,
}

impl<E: Env> Scan<'_, E> {
    /// Walks what has to be walked; returns the active segment.
    async fn all(&mut self, segments: &Segments, replay: &Replay) -> Result<OpenSegment> {
        let floor = Offset(self.trusted.segment);
        for (base, segment) in &segments.closed {
            let end = Mark { offset: segment.end, pos: segment.len };
            if *base >= floor {
                let (mut index, _) = self.segment(*base, end, None).await?;
                self.close_index(*base, &mut index).await?;
            } else if segment.end > self.wanted_from || base.0 >= self.epochs_from.segment {
                // Its indexes are synced; only producers and epochs want it, so
                // damage in it harms its readers and not the start.
                if let Err(error @ Error::Fatal { .. }) =
                    self.segment(*base, end, Some(segment.len)).await
                {
                    tracing::error!(%error, "a closed segment is damaged");
                }
            }
        }
        if segments.closed.range(floor..).next().is_some() {
            // Their index files may be new names.
            self.shared.sync_dir(self.dir).await?;
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
        let known = match self.epochs_from.segment.cmp(&base.0) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => self.epochs_from.boundary_pos,
            std::cmp::Ordering::Greater => u64::MAX,
        };
        let trusted = trusted.map(|limit| limit.min(known));
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
            self.epochs.assign(head.epoch, head.base);
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

    fn note(&mut self, head: &BatchHead, whole: &[u8]) {
        let Ok((view, _)) = BatchView::parse(whole) else { return };
        let Ok(summary) = view.summary() else { return };
        self.batches.push(RecoveredBatch { base_offset: head.base, epoch: head.epoch, summary });
    }

    /// The index as far as its files are believable, below `limit` bytes and
    /// before the first batch that the producers want; and the boundary from
    /// which the walk goes on.
    async fn resume_index(
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
            Some(head) if head.end().0 - 1 - base.0 == i64::from(last.relative) => head,
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
        self.shared.sync_dir(self.dir).await
    }
}

fn has_producer(header: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::base64_url;

    #[test]
    fn topic_ids_look_as_kafka_prints_them() {
        assert_eq!(base64_url(&[0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(base64_url(&[0xff; 16]), "_____________________w");
    }
}
