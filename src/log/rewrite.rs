//! Recovery's writes: what frames vouch for goes into the segments, block by
//! block, after a check that the bytes which extents vouch for are there.

use std::path::Path;
use std::rc::Rc;

use super::checkpoint::Floor;
use super::complete::REMEDY;
use super::config::BLOCK;
use super::error::{Error, FatalReason, Result};
use super::journal::reader::{Piece, Replay, Source};
use super::recovery::{Recovery, read_journal};
use super::segment::names::{self, Kind};
use super::segment::tail::block_of;
use super::segment_io::{READ_BYTES, read_aligned};
use super::state::{FileOf, Shared};
use crate::io::{ChunkMut, Env, File as _, FileSystem as _, OpenMode};
use crate::model::Offset;

/// Bytes below the floor are in the segment only. Writing the rest behind a hole
/// would hide that they are gone from a walk that begins beyond it.
pub(crate) async fn check_floor<E: Env>(
    shared: &Rc<Shared<E>>,
    dir: &Path,
    replay: &Replay,
) -> Result<()> {
    let floor = replay.floor;
    let needed = match replay.segment.0 == floor.segment {
        // In class `os` the rest of the batch that the floor is in may be gone,
        // and an earlier start may have cut the file there.
        true => floor.pos.min(replay.end.pos),
        false => floor.pos,
    };
    let path = names::path(dir, Offset(floor.segment), Kind::Log);
    let len = match shared.env.fs().len(&path).await {
        Ok(len) => len,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => 0,
        Err(e) => return Err(Error::io(&path, e)),
    };
    if len >= needed {
        return Ok(());
    }
    let path = path.display();
    let detail = format!("{path}: {len} bytes, although {needed} were synced: {REMEDY}");
    Err(Error::Fatal { reason: FatalReason::LostBelowFloor, detail })
}

/// Cuts the replay at the first extent whose bytes never arrived.
pub(crate) async fn check_extents<E: Env>(
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
pub(crate) struct Rewriter<'a, E: Env> {
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
    pub(crate) fn new(shared: &'a Rc<Shared<E>>, dir: &'a Path, floor: Floor) -> Self {
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

    pub(crate) async fn piece(&mut self, recovery: &Recovery<E>, piece: &Piece) -> Result<()> {
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

    /// Ends a segment at `end`, or where its bytes end.
    async fn finish(&mut self, end: Option<u64>) -> Result<()> {
        self.write_out().await?;
        let file = self.open().await?;
        let end = end.unwrap_or(self.next);
        let cut = file.set_len(end).await;
        cut.map_err(|e| Error::write(FatalReason::SegmentWrite, file.path(), e))?;
        self.file = None;
        self.shared.sync_file_later(file);
        Ok(())
    }

    pub(crate) async fn end(mut self, replay: &Replay) -> Result<()> {
        if replay.pieces.is_empty() {
            let path = names::path(self.dir, self.segment, Kind::Log);
            let len = self.shared.env.fs().len(&path).await;
            if len.is_ok_and(|len| len == replay.end.pos) {
                return Ok(());
            }
        }
        self.finish(Some(replay.end.pos)).await?;
        self.shared.sync_dir_later(self.dir);
        Ok(())
    }
}
