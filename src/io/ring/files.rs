//! Files on the ring: futures that own their memory.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Ring;
use crate::io::{ChunkMut, ChunkSlice, File};

/// A file that does its reads, writes, syncs and allocations on a ring.
/// Cloning shares the descriptor, which the last drop closes.
#[derive(Clone)]
pub struct OpenFile {
    path: PathBuf,
}

impl OpenFile {
    /// Takes over an open file; `path` is for messages.
    pub fn new(ring: &Ring, file: std::fs::File, path: &Path) -> Self {
        let _ = (ring, file);
        Self { path: path.to_owned() }
    }
}

/// One operation of a file on the ring. Dropping it leaves the operation to
/// finish by itself, with its memory.
pub struct FileOp;

impl Future for FileOp {
    type Output = io::Result<u32>;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        todo!()
    }
}

impl File for OpenFile {
    fn path(&self) -> &PathBuf {
        &self.path
    }
    fn read_at(
        &self,
        buf: ChunkMut,
        pos: u64,
    ) -> impl Future<Output = (io::Result<usize>, ChunkMut)> + 'static {
        let _ = pos;
        async move { (Ok(0), buf) }
    }
    fn write_at(
        &self,
        data: ChunkSlice,
        pos: u64,
    ) -> impl Future<Output = io::Result<()>> + 'static {
        let _ = (data, pos);
        async move { todo!() }
    }
    fn write_now(&self, data: &[u8], pos: u64) -> io::Result<()> {
        let _ = (data, pos);
        todo!()
    }
    fn sync_data(&self) -> impl Future<Output = io::Result<()>> + 'static {
        async move { todo!() }
    }
    fn set_len(&self, len: u64) -> impl Future<Output = io::Result<()>> + 'static {
        let _ = len;
        async move { todo!() }
    }
    fn allocate(&self, len: u64) -> impl Future<Output = io::Result<()>> + 'static {
        let _ = len;
        async move { todo!() }
    }
}
