//! Open files of segments and indexes, opened on demand and closed least
//! recently used first: 10,000 partitions would need 30,000 descriptors.
//!
//! Owned by the shard. Never holds a borrow across an await; two tasks may
//! open the same file at once, and both descriptors are good.
//!
//! Reads of clients take turns: the end of one wakes the one that has waited
//! longest and no other, however many consumers lag.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

use ahash::AHashMap;

use super::segment::names::Kind;
use super::set::LogHandle;
use crate::base::{Giver, once};
use crate::io::{FileSystem, OpenMode};
use crate::model::Offset;

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
    turns: Rc<RefCell<Turns>>,
}

/// Whose turn it is to read.
struct Turns {
    free: usize,
    /// Whoever waits, longest first; only while none is free.
    waiting: VecDeque<Giver<Reading>>,
}

/// A read of a client under way. It may use two files that the LRU has let go of
/// meanwhile.
pub(crate) struct Reading(Rc<RefCell<Turns>>);

impl Drop for Reading {
    fn drop(&mut self) {
        let next = {
            let mut turns = self.0.borrow_mut();
            let next = loop {
                match turns.waiting.pop_front() {
                    Some(gone) if !gone.is_awaited() => {}
                    next => break next,
                }
            };
            turns.free += usize::from(next.is_none());
            next
        };
        // Whoever goes away before it looks drops this turn, for the next.
        if let Some(next) = next {
            next.give(Self(self.0.clone()));
        }
    }
}

impl<F: Clone> FilesLru<F> {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        let inner = Inner { open: AHashMap::new(), clock: 0 };
        let turns = Turns { free: (limit / 4).max(1), waiting: VecDeque::new() };
        Self { inner: RefCell::new(inner), limit, turns: Rc::new(RefCell::new(turns)) }
    }

    /// Waits until a further read of a client may use files: all of them together
    /// hold half as many beside the LRU as that keeps open, so that housekeeping
    /// finds descriptors.
    pub(crate) async fn begin_read(&self) -> Reading {
        let turn = {
            let mut turns = self.turns.borrow_mut();
            if turns.free > 0 {
                turns.free -= 1;
                return Reading(self.turns.clone());
            }
            let (giver, turn) = once();
            turns.waiting.push_back(giver);
            turn
        };
        turn.await.expect("whoever waits is given a turn, or is gone")
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
