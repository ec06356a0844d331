//! File operations on the ring: futures whose memory is the ring's until the
//! kernel is done with it, whatever becomes of the future.

use std::cell::RefCell;
use std::fs::File;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Ring;
use super::driver::{Descriptor, Done, Work};
use super::state::Owner;
use crate::io::chunk::PAGE;
use crate::io::{ChunkMut, ChunkSlice};

/// Most bytes of one operation: larger ones hung on older kernels when they
/// exceeded the device's `max_sectors`.
const PART_MAX: usize = 1 << 20;

/// Where an operation's answer waits for its future.
#[derive(Default)]
pub(super) struct FileSlot {
    answer: RefCell<Option<(io::Result<u32>, Work)>>,
    waker: RefCell<Option<Waker>>,
}

impl FileSlot {
    pub(super) fn complete(&self, done: Done<Owner>) {
        let work = done.finished.expect("a file operation completes once");
        self.answer.replace(Some((done.result, work)));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// One entry under way.
struct FileOp(Rc<FileSlot>);

impl Future for FileOp {
    type Output = (io::Result<u32>, Work);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(answer) = self.0.answer.take() {
            return Poll::Ready(answer);
        }
        // One waker per operation: glommio counts references in an i16.
        let mut waker = self.0.waker.borrow_mut();
        match waker.as_mut() {
            Some(old) => old.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

/// A file for the ring, and whether it bypasses the page cache.
#[derive(Clone, Debug)]
pub struct RingFile {
    /// The open file.
    pub file: Arc<File>,
    /// Opened with O_DIRECT.
    pub direct: bool,
}

impl Ring {
    fn file_op(&self, file: &RingFile, work: Work) -> FileOp {
        let slot = Rc::new(FileSlot::default());
        let descriptor = Descriptor::File(file.file.clone());
        self.queue(descriptor, work, Owner::File(slot.clone()));
        FileOp(slot)
    }

    /// Reads from byte `pos` on into the whole block of `chunk`, and sets its
    /// length to the bytes read: fewer than its capacity only at the end of the
    /// file. Queued at once, in parts of 1 MiB one after the other.
    pub fn read_at(
        &self,
        file: &RingFile,
        chunk: ChunkMut,
        pos: u64,
    ) -> impl Future<Output = (io::Result<usize>, ChunkMut)> + 'static {
        let (ring, file) = (self.clone(), file.clone());
        let part = move |ring: &Self, file: &RingFile, chunk: ChunkMut, at: usize| {
            let len = PART_MAX.min(chunk.capacity() - at);
            ring.file_op(file, Work::Read { chunk, at, len, pos: pos + at as u64 })
        };
        let mut op = part(&ring, &file, chunk, 0);
        async move {
            loop {
                let (result, Work::Read { mut chunk, at, len, .. }) = op.await else {
                    unreachable!("an operation gives back what it was given")
                };
                let count = match result {
                    Ok(count) => count as usize,
                    Err(error) if again(&error) => {
                        op = part(&ring, &file, chunk, at);
                        continue;
                    }
                    Err(error) => return (Err(error), chunk),
                };
                let at = at + count;
                // A direct read ends off the block grid at the end of file only.
                let end = count == 0 || count < len && file.direct && !at.is_multiple_of(PAGE);
                if end || at == chunk.capacity() {
                    chunk.set_len(at);
                    return (Ok(at), chunk);
                }
                op = part(&ring, &file, chunk, at);
            }
        }
    }

    /// Writes all of `data` at byte `pos`. Queued at once, in parts of 1 MiB
    /// one after the other.
    pub fn write_at(
        &self,
        file: &RingFile,
        data: ChunkSlice,
        pos: u64,
    ) -> impl Future<Output = io::Result<()>> + 'static {
        let (ring, file) = (self.clone(), file.clone());
        let part = move |ring: &Self, file: &RingFile, data: ChunkSlice, at: usize| {
            let len = PART_MAX.min(data.len() - at);
            ring.file_op(file, Work::Write { data, at, len, pos: pos + at as u64 })
        };
        let mut op = part(&ring, &file, data, 0);
        async move {
            loop {
                let (result, Work::Write { data, at, .. }) = op.await else {
                    unreachable!("an operation gives back what it was given")
                };
                let at = match result {
                    Ok(0) if !data.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => at + count as usize,
                    Err(error) if again(&error) => at,
                    Err(error) => return Err(error),
                };
                if at == data.len() {
                    return Ok(());
                }
                op = part(&ring, &file, data, at);
            }
        }
    }

    /// fdatasync. Queued at once.
    pub fn sync_data(&self, file: &RingFile) -> impl Future<Output = io::Result<()>> + 'static {
        let op = self.file_op(file, Work::SyncData);
        async move { op.await.0.map(|_| ()) }
    }

    /// fallocate of a range of bytes, extending the file to its end. Queued at
    /// once.
    pub fn allocate(
        &self,
        file: &RingFile,
        range: Range<u64>,
    ) -> impl Future<Output = io::Result<()>> + 'static {
        let (ring, file) = (self.clone(), file.clone());
        let work = move || Work::Allocate { range: range.clone() };
        let mut op = ring.file_op(&file, work());
        async move {
            loop {
                match op.await.0 {
                    Err(error) if again(&error) => op = ring.file_op(&file, work()),
                    result => return result.map(|_| ()),
                }
            }
        }
    }
}

/// Whether the operation was only interrupted.
fn again(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}
