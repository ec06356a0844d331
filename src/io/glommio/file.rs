//! An open file: data operations on the ring, the rest on the blocking pool.

use std::future::Future;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::blocking::blocking;
use crate::io::env::File;
use crate::io::ring::{Ring, RingFile};
use crate::io::syscall;
use crate::io::{ChunkMut, ChunkSlice};

struct Inner {
    ring: Ring,
    file: RingFile,
    path: PathBuf,
}

/// A file of one shard. Cloning shares the descriptor, which the last drop
/// closes, operations under way included.
#[derive(Clone)]
pub struct GlommioFile(Rc<Inner>);

impl GlommioFile {
    /// Takes over an open file; `direct` says whether it bypasses the page
    /// cache, `path` is for messages.
    #[must_use]
    pub fn new(ring: &Ring, file: std::fs::File, direct: bool, path: &Path) -> Self {
        let file = RingFile { file: Arc::new(file), direct };
        Self(Rc::new(Inner { ring: ring.clone(), file, path: path.to_owned() }))
    }
}

impl File for GlommioFile {
    fn path(&self) -> &PathBuf {
        &self.0.path
    }

    fn read_at(
        &self,
        buf: ChunkMut,
        pos: u64,
    ) -> impl Future<Output = (io::Result<usize>, ChunkMut)> + 'static {
        self.0.ring.read_at(&self.0.file, buf, pos)
    }

    fn write_at(
        &self,
        data: ChunkSlice,
        pos: u64,
    ) -> impl Future<Output = io::Result<()>> + 'static {
        self.0.ring.write_at(&self.0.file, data, pos)
    }

    fn write_parts_now(&self, mut parts: &mut [IoSlice<'_>], mut pos: u64) -> io::Result<()> {
        // Empty parts at the front must not look like a write of nothing.
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match syscall::pwritev(&self.0.file.file, parts, pos) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut parts, written);
                    pos += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> impl Future<Output = io::Result<()>> + 'static {
        self.0.ring.sync_data(&self.0.file)
    }

    fn set_len(&self, len: u64) -> impl Future<Output = io::Result<()>> + 'static {
        // The ring can do it from Linux 6.9 on; we ask for 6.1.
        let file = self.0.file.file.clone();
        blocking(move || file.set_len(len))
    }

    fn allocate(&self, range: Range<u64>) -> impl Future<Output = io::Result<()>> + 'static {
        self.0.ring.allocate(&self.0.file, range)
    }
}
