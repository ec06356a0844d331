//! Traits that stand for the machine. One type parameter, `E: Env`, carries
//! all of them; `io::glommio` implements them on a shard's executor and ring,
//! `io::sim` on a simulated machine under a seeded scheduler.
//!
//! Everything here belongs to one shard and is `!Send` by intent.

use std::future::Future;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::chunk::{ChunkMut, ChunkSlice};

/// A spawned task. Dropping the handle cancels the task at its next await;
/// `detach` lets it run to its end.
pub trait Task {
    /// Lets the task run on without a handle.
    fn detach(self);
}

/// The machine as one shard sees it. Cloning is cheap.
pub trait Env: Clone + 'static {
    /// Files and directories.
    type Fs: FileSystem;
    /// Handle of a spawned task.
    type Task: Task;

    /// The file system.
    fn fs(&self) -> &Self::Fs;

    /// Monotonic time since an arbitrary start.
    fn monotonic(&self) -> Duration;

    /// Wall-clock time in milliseconds since the Unix epoch.
    fn wall_ms(&self) -> i64;

    /// 64 random bits.
    fn random(&self) -> u64;

    /// Starts a task on this shard. It may run up to its first await inside
    /// this call (glommio does that): register what it will look for first.
    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> Self::Task;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static;

    /// Whether this shard has worked for a whole slice since its reactor last
    /// looked at completions. Every long loop asks and then awaits `pause`.
    fn slice_over(&self) -> bool;

    /// Gives way to the reactor and to every other task, the only way to do so.
    fn pause(&self) -> impl Future<Output = ()> + 'static;
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMode {
    /// Open for writing, not only reading.
    pub write: bool,
    /// Create it when absent.
    pub create: bool,
    /// Fail when it exists (with `create`).
    pub exclusive: bool,
    /// Bypass the page cache: positions, lengths and memory are then
    /// multiples of 4096.
    pub direct: bool,
    /// Every write is durable when it completes (O_DSYNC).
    pub sync: bool,
}

impl OpenMode {
    /// Existing file, direct reads.
    pub const READ: Self =
        Self { write: false, create: false, exclusive: false, direct: true, sync: false };
    /// Existing or new file, direct reads and writes.
    pub const DIRECT: Self =
        Self { write: true, create: true, exclusive: false, direct: true, sync: false };
    /// As `DIRECT`, each write durable on completion.
    pub const DIRECT_SYNC: Self = Self { sync: true, ..Self::DIRECT };
    /// Existing or new file through the page cache.
    pub const BUFFERED: Self = Self { direct: false, ..Self::DIRECT };
    /// Existing file, reads through the page cache.
    pub const READ_BUFFERED: Self = Self { direct: false, ..Self::READ };
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Last component of the path.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Length in bytes (files).
    pub len: u64,
}

/// Room of a file system, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// What this process may still take.
    pub usable: u64,
}

/// Files and directories. Paths are absolute. Every operation that changes a
/// directory is durable only after `sync_dir` of that directory.
pub trait FileSystem: Clone + 'static {
    /// An open file.
    type File: File;

    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> impl Future<Output = io::Result<Self::File>>;
    /// Creates a directory and its parents; existing ones are no error.
    fn create_dir_all(&self, path: &Path) -> impl Future<Output = io::Result<()>>;
    /// Lists a directory, in no order.
    fn read_dir(&self, path: &Path) -> impl Future<Output = io::Result<Vec<DirEntry>>>;
    /// Renames, replacing a file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> impl Future<Output = io::Result<()>>;
    /// Unlinks a file.
    fn remove_file(&self, path: &Path) -> impl Future<Output = io::Result<()>>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> impl Future<Output = io::Result<()>>;
    /// fsync of a directory.
    fn sync_dir(&self, path: &Path) -> impl Future<Output = io::Result<()>>;
    /// syncfs of the file system that holds `path`.
    fn sync_fs(&self, path: &Path) -> impl Future<Output = io::Result<()>>;
    /// Room of the file system that holds `path` (statvfs).
    fn space(&self, path: &Path) -> impl Future<Output = io::Result<Space>>;
    /// Length of a file in bytes; `NotFound` when absent.
    fn len(&self, path: &Path) -> impl Future<Output = io::Result<u64>>;
    /// A whole small file through the page cache (checkpoints).
    fn read(&self, path: &Path) -> impl Future<Output = io::Result<Vec<u8>>>;
    /// Writes a whole small file and fsyncs it, in place (use a temporary name
    /// and `rename` for atomicity).
    fn write(&self, path: &Path, bytes: Vec<u8>) -> impl Future<Output = io::Result<()>>;
}

/// An open file. Cloning shares the descriptor; the last drop closes it.
pub trait File: Clone + 'static {
    /// Where it was opened (for messages).
    fn path(&self) -> &PathBuf;

    /// Reads from byte `pos` into the whole block of `buf`, from its start, and
    /// sets its length: the bytes read, fewer than its capacity only at the end
    /// of the file. Queued within this call; large reads are split inside.
    fn read_at(
        &self,
        buf: ChunkMut,
        pos: u64,
    ) -> impl Future<Output = (io::Result<usize>, ChunkMut)> + 'static;

    /// Writes all of `data` at byte `pos`. Queued within this call, in the order
    /// of the calls, and started at the end of the pump's round; writes under
    /// way together may complete in any order. The memory is kept alive until
    /// the kernel is done with it, also when the future is dropped (of a write
    /// over 1 MiB only the first part may happen then).
    fn write_at(
        &self,
        data: ChunkSlice,
        pos: u64,
    ) -> impl Future<Output = io::Result<()>> + 'static;

    /// Writes all of `data` at byte `pos` at once, inside this call, through
    /// the page cache (class `os` journals only: 6 us against 36-66 us by ring).
    fn write_now(&self, data: &[u8], pos: u64) -> io::Result<()> {
        self.write_parts_now(&mut [IoSlice::new(data)], pos)
    }
    /// As `write_now`, of parts that follow each other in the file. Uses
    /// `parts` up.
    fn write_parts_now(&self, parts: &mut [IoSlice<'_>], pos: u64) -> io::Result<()>;

    /// fdatasync.
    fn sync_data(&self) -> impl Future<Output = io::Result<()>> + 'static;
    /// ftruncate.
    fn set_len(&self, len: u64) -> impl Future<Output = io::Result<()>> + 'static;
    /// fallocate of a range of bytes, extending the file to its end.
    fn allocate(&self, range: Range<u64>) -> impl Future<Output = io::Result<()>> + 'static;
}
