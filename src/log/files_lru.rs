//! Open files of segments and indexes, opened on demand and closed least
//! recently used first: 10,000 partitions would need 30,000 descriptors.
//!
//! Owned by the shard. Never holds a borrow across an await; two tasks may
//! open the same file at once, and both descriptors are good.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use ahash::AHashMap;

use super::segment::names::Kind;
use super::set::LogHandle;
use crate::io::{Env, FileSystem, OpenMode};
use crate::model::Offset;

/// Between two looks of a read that waits for its turn.
const READ_WAIT: Duration = Duration::from_millis(1);

/// Which file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileKey {
    pub(crate) handle: LogHandle,
    pub(crate) segment: Offset,
    pub(crate) kind: Kind,
    /// A segment is opened for writing only while it is open.
    pub(crate) writable: bool,
}

struct Inner<F> {
    open: AHashMap<FileKey, (F, u64)>,
    clock: u64,
}

/// The open files of one shard.
pub(crate) struct FilesLru<F> {
    inner: RefCell<Inner<F>>,
    limit: usize,
    /// Reads under way that were counted.
    reads: Cell<usize>,
}

/// A read of a client under way. It may use two files that the LRU has let go of
/// meanwhile.
pub(crate) struct Reading<'a>(&'a Cell<usize>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<F: Clone> FilesLru<F> {
    pub(crate) fn new(limit: usize) -> Self {
        let inner = Inner { open: AHashMap::new(), clock: 0 };
        Self { inner: RefCell::new(inner), limit: limit.max(1), reads: Cell::new(0) }
    }

    /// Waits until a further read of a client may use files: all of them together
    /// hold half as many beside the LRU as that keeps open, so that housekeeping
    /// finds descriptors.
    pub(crate) async fn begin_read(&self, env: &impl Env) -> Reading<'_> {
        while self.reads.get() >= (self.limit / 4).max(1) {
            env.sleep(READ_WAIT).await;
        }
        self.reads.set(self.reads.get() + 1);
        Reading(&self.reads)
    }

    /// The file, opened with `mode` unless it is open already.
    pub(crate) async fn get<S: FileSystem<File = F>>(
        &self,
        fs: &S,
        key: FileKey,
        path: &Path,
        mode: OpenMode,
    ) -> std::io::Result<F> {
        if let Some(file) = self.touch(key) {
            return Ok(file);
        }
        let file = fs.open(path, mode).await?;
        let mut inner = self.inner.borrow_mut();
        inner.clock += 1;
        let clock = inner.clock;
        inner.open.insert(key, (file.clone(), clock));
        if inner.open.len() > self.limit {
            let oldest = inner.open.iter().min_by_key(|(_, (_, used))| *used).map(|(k, _)| *k);
            if let Some(oldest) = oldest {
                inner.open.remove(&oldest);
            }
        }
        Ok(file)
    }

    fn touch(&self, key: FileKey) -> Option<F> {
        let mut inner = self.inner.borrow_mut();
        inner.clock += 1;
        let clock = inner.clock;
        let (file, used) = inner.open.get_mut(&key)?;
        *used = clock;
        Some(file.clone())
    }

    /// Closes all files that nobody uses at this moment.
    pub(crate) fn forget_all(&self) {
        self.inner.borrow_mut().open.clear();
    }

    /// Closes the files of a log that `keep` does not want.
    pub(crate) fn forget(&self, handle: LogHandle, keep: impl Fn(Offset) -> bool) {
        self.inner.borrow_mut().open.retain(|k, _| k.handle != handle || keep(k.segment));
    }
}
