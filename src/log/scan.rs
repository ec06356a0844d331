//! Walking the batches of a segment file from a known boundary, through a
//! window of aligned reads. Headers are believed only as far as they chain:
//! each base offset follows the end before.

use super::error::{Error, Result};
use super::segment::head::{BatchHead, HEADER_LEN};
use super::segment::tail::Mark;
use super::segment_io::{READ_BYTES, read_aligned};
use crate::io::{ChunkSlice, Env, File, Pool};

/// A walk through one file.
pub(crate) struct Walk<'a, E: Env, F> {
    env: &'a E,
    file: &'a F,
    pool: &'a Pool,
    /// Next batch boundary.
    pub(crate) at: Mark,
    end: u64,
    window: Option<(u64, ChunkSlice)>,
    window_bytes: u64,
}

impl<'a, E: Env, F: File> Walk<'a, E, F> {
    /// From the boundary `at` to byte `end`.
    pub(crate) fn new(env: &'a E, file: &'a F, pool: &'a Pool, at: Mark, end: u64) -> Self {
        Self { env, file, pool, at, end, window: None, window_bytes: READ_BYTES }
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Reads this many bytes at once.
    pub(crate) fn reading(mut self, bytes: u64) -> Self {
        self.window_bytes = bytes;
        self
    }

    /// An error about what is here.
    pub(crate) fn corrupt(&self, what: &'static str) -> Error {
        Error::Corrupt {
            path: self.file.path().clone(),
            position: self.at.pos,
            offset: self.at.offset,
            what,
        }
    }

    /// The bytes at the walk's place, at least `need` of them.
    async fn bytes(&mut self, need: u64) -> Result<ChunkSlice> {
        let at = self.at.pos;
        if at + need > self.end {
            return Err(self.corrupt("a batch leaves the segment"));
        }
        if let Some((start, window)) = &self.window {
            let window_end = start + window.len() as u64;
            if at >= *start && at + need <= window_end {
                return Ok(window.slice((at - start) as usize..window.len()));
            }
        }
        let to = (at + need.max(self.window_bytes)).min(self.end);
        let window = match read_aligned(self.file, self.pool, at, to).await {
            // Less may be had: memory, or sectors before a bad one.
            Err(Error::NoMemory(_) | Error::Io { .. }) => {
                read_aligned(self.file, self.pool, at, (at + need).min(self.end)).await?
            }
            other => other?,
        };
        self.window = Some((at, window.clone()));
        if self.env.slice_over() {
            self.env.pause().await;
        }
        Ok(window)
    }

    /// Header of the batch here; `None` at the end.
    pub(crate) async fn peek(&mut self) -> Result<Option<(BatchHead, ChunkSlice)>> {
        if self.at.pos >= self.end {
            return Ok(None);
        }
        let bytes = self.bytes(HEADER_LEN as u64).await?;
        let Some(head) = BatchHead::of(&bytes) else { return Err(self.corrupt("no batch header")) };
        if head.base != self.at.offset {
            return Err(self.corrupt("another base offset"));
        }
        if self.at.pos + head.len as u64 > self.end {
            return Err(self.corrupt("a batch leaves the segment"));
        }
        Ok(Some((head, bytes)))
    }

    /// Header of the batch here, when one is, wherever the batch ends. A read
    /// that failed says nothing about what is there.
    pub(crate) async fn header_only(&mut self) -> Result<Option<BatchHead>> {
        let bytes = self.bytes(HEADER_LEN as u64).await?;
        Ok(BatchHead::of(&bytes))
    }

    /// All bytes of the batch here.
    pub(crate) async fn batch(&mut self, head: &BatchHead) -> Result<ChunkSlice> {
        let bytes = self.bytes(head.len as u64).await?;
        Ok(bytes.slice(0..head.len))
    }

    /// Goes to the next batch.
    pub(crate) fn skip(&mut self, head: &BatchHead) {
        self.at = Mark { offset: head.end(), pos: self.at.pos + head.len as u64 };
    }
}
