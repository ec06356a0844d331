//! `FileSystem` and `File` over a simulated disk: checks the caller's manners
//! (alignment of direct I/O), then queues an operation that completes later.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::disk::{Fate, Ino};
use super::faults::FaultOp;
use super::rng::Rng;
use super::world::{How, Killed, Node, Op, World};
use crate::io::chunk::{ChunkMut, ChunkSlice, PAGE};
use crate::io::env::{DirEntry, File, FileSystem, OpenMode, Space};

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// The outcome of an operation. Dropping it changes nothing: the operation
/// and its memory live until it completes.
struct Pending<T>(Rc<RefCell<Slot<T>>>);

impl<T> Future for Pending<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.0.borrow_mut();
        match slot.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// What an operation is, for the trace and for crash reports.
struct Label {
    name: &'static str,
    path: Rc<PathBuf>,
    pos: u64,
    len: usize,
    data: Option<ChunkSlice>,
}

impl Label {
    fn new(name: &'static str, path: &Path) -> Self {
        Self { name, path: Rc::new(path.to_owned()), pos: 0, len: 0, data: None }
    }
}

/// The file system of a node, as one incarnation sees it.
#[derive(Clone)]
pub struct SimFs {
    world: Rc<World>,
    node: usize,
    incarnation: u64,
}

impl SimFs {
    pub(super) fn new(world: Rc<World>, node: usize, incarnation: u64) -> Self {
        Self { world, node, incarnation }
    }

    /// Queues an operation; a dead incarnation's never completes.
    fn submit<T: 'static>(
        &self,
        label: Label,
        effect: impl FnOnce(&mut Node, &mut Rng, How) -> Option<T> + 'static,
    ) -> Pending<T> {
        let slot = Rc::new(RefCell::new(Slot { value: None, waker: None }));
        let target = slot.clone();
        let mut inner = self.world.inner.borrow_mut();
        if inner.nodes[self.node].incarnation == self.incarnation {
            let effect = Box::new(move |node: &mut Node, rng: &mut Rng, how: How| {
                let value = effect(node, rng, how);
                let mut slot = target.borrow_mut();
                slot.value = value;
                if let Some(waker) = slot.waker.take() {
                    waker.wake();
                }
            });
            let Label { name, path, pos, len, data } = label;
            inner.submit(Op { node: self.node, name, path, pos, len, data, effect });
        }
        Pending(slot)
    }

    /// An operation on names, without a result and all or nothing.
    fn name_op(
        &self,
        name: &'static str,
        path: &Path,
        act: impl FnOnce(&mut Node) -> io::Result<()> + 'static,
    ) -> Pending<io::Result<()>> {
        self.submit(Label::new(name, path), move |node, _, how| match how {
            How::Finish => Some(act(node)),
            How::Orphan(Fate::Dropped) => None,
            How::Orphan(_) => act(node).ok().and(None),
        })
    }

    /// An operation that makes something durable.
    fn sync_op(
        &self,
        name: &'static str,
        path: &Path,
        act: impl FnOnce(&mut Node, &mut Rng, io::Result<()>, u64) -> io::Result<()> + 'static,
    ) -> Pending<io::Result<()>> {
        let upto = self.world.inner.borrow().nodes[self.node].disk.seq();
        let label = Label::new(name, path);
        let text = path.display().to_string();
        self.submit(label, move |node, rng, how| match how {
            How::Finish => {
                let verdict = node.faults.check(FaultOp::Sync, &text, rng);
                Some(act(node, rng, verdict, upto))
            }
            How::Orphan(_) => None,
        })
    }
}

/// How long the file can become, up to `end`: a disk gives space in blocks.
fn room_up_to(node: &Node, ino: Ino, end: u64) -> u64 {
    let Some(capacity) = node.faults.capacity else { return end };
    let has = node.disk.len(ino).next_multiple_of(PAGE as u64);
    if end <= has {
        return end;
    }
    let free = capacity.saturating_sub(node.disk.used());
    end.min(has + free / PAGE as u64 * PAGE as u64)
}

/// Room for `end` bytes in this file, or ENOSPC.
fn check_room(node: &Node, ino: Ino, end: u64) -> io::Result<()> {
    match room_up_to(node, ino, end) {
        room if room < end => Err(errno(libc::ENOSPC)),
        _ => Ok(()),
    }
}

fn open_inode(node: &mut Node, path: &Path, mode: OpenMode) -> io::Result<Ino> {
    if node.faults.open_limit.is_some_and(|limit| node.open_files >= limit) {
        return Err(errno(libc::EMFILE));
    }
    match node.disk.lookup_file(path) {
        Ok(_) if mode.create && mode.exclusive => Err(errno(libc::EEXIST)),
        Err(e) if e.kind() == io::ErrorKind::NotFound && mode.create => node.disk.create(path),
        other => other,
    }
}

impl FileSystem for SimFs {
    type File = SimFile;

    async fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SimFile> {
        let wanted = path.to_owned();
        let text = path.display().to_string();
        let ino = self
            .submit(Label::new("open", path), move |node, rng, how| match how {
                How::Finish => Some(
                    node.faults
                        .check(FaultOp::Open, &text, rng)
                        .and_then(|()| open_inode(node, &wanted, mode))
                        .inspect(|ino| {
                            node.disk.opened(*ino, 1);
                            node.open_files += 1;
                        }),
                ),
                How::Orphan(Fate::Dropped) => None,
                How::Orphan(_) => open_inode(node, &wanted, mode).ok().and(None),
            })
            .await?;
        let open = OpenFile { fs: self.clone(), ino, mode, path: Rc::new(path.to_owned()) };
        Ok(SimFile(Rc::new(open)))
    }

    async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let dir = path.to_owned();
        self.name_op("mkdir", path, move |node| node.disk.create_dir_all(&dir)).await
    }

    async fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let dir = path.to_owned();
        self.submit(Label::new("readdir", path), move |node, rng, _| {
            Some(node.disk.read_dir(&dir).map(|entries| {
                let mut list: Vec<DirEntry> = entries
                    .into_iter()
                    .map(|(name, is_dir, len)| DirEntry { name, is_dir, len })
                    .collect();
                for i in (1..list.len()).rev() {
                    list.swap(i, rng.index(i + 1));
                }
                list
            }))
        })
        .await
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (from.to_owned(), to.to_owned());
        self.name_op("rename", to, move |node| node.disk.rename(&old, &new)).await
    }

    async fn remove_file(&self, path: &Path) -> io::Result<()> {
        let file = path.to_owned();
        self.name_op("unlink", path, move |node| node.disk.remove(&file, false)).await
    }

    async fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let dir = path.to_owned();
        self.name_op("rmdir", path, move |node| node.disk.remove(&dir, true)).await
    }

    async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let dir = path.to_owned();
        self.sync_op("syncdir", path, move |node, _, verdict, upto| {
            verdict.and_then(|()| node.disk.sync_dir(&dir, upto))
        })
        .await
    }

    async fn sync_fs(&self, path: &Path) -> io::Result<()> {
        self.sync_op("syncfs", path, move |node, _, verdict, upto| {
            verdict.map(|()| node.disk.sync_all(upto))
        })
        .await
    }

    async fn space(&self, path: &Path) -> io::Result<Space> {
        self.submit(Label::new("statvfs", path), move |node, _, _| {
            let total = node.faults.capacity.unwrap_or(u64::MAX);
            Some(Ok(Space { total, usable: total.saturating_sub(node.disk.used()) }))
        })
        .await
    }

    async fn len(&self, path: &Path) -> io::Result<u64> {
        let file = path.to_owned();
        self.submit(Label::new("stat", path), move |node, _, _| {
            Some(node.disk.lookup_file(&file).map(|ino| node.disk.len(ino)))
        })
        .await
    }

    async fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = path.to_owned();
        let text = path.display().to_string();
        self.submit(Label::new("readall", path), move |node, rng, _| {
            let verdict = node.faults.check(FaultOp::Read, &text, rng);
            Some(verdict.and_then(|()| {
                let ino = node.disk.lookup_file(&file)?;
                let mut bytes = vec![0; node.disk.len(ino) as usize];
                node.disk.read(ino, 0, &mut bytes);
                Ok(bytes)
            }))
        })
        .await
    }

    async fn write(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let mode = OpenMode::BUFFERED;
        let file = self.open(path, mode).await?;
        file.set_len(0).await?;
        let text = path.display().to_string();
        let ino = file.0.ino;
        let label = Label { len: bytes.len(), ..Label::new("write", path) };
        self.submit(label, move |node, rng, how| match how {
            How::Finish => Some(
                node.faults
                    .check(FaultOp::Write, &text, rng)
                    .and_then(|()| check_room(node, ino, bytes.len() as u64))
                    .map(|()| node.disk.write(ino, 0, &bytes, false)),
            ),
            How::Orphan(fate) => {
                node.disk.write_part(ino, 0, &bytes, fate, rng);
                None
            }
        })
        .await?;
        file.sync_data().await
    }
}

struct OpenFile {
    fs: SimFs,
    ino: Ino,
    mode: OpenMode,
    path: Rc<PathBuf>,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // The world may be in the middle of a step: it counts at its next one.
        self.fs.world.closed.borrow_mut().push((self.fs.node, self.fs.incarnation, self.ino));
    }
}

/// An open file of a simulated disk.
#[derive(Clone)]
pub struct SimFile(Rc<OpenFile>);

impl SimFile {
    fn misaligned(&self, address: usize, len: usize, pos: u64) -> bool {
        self.0.mode.direct
            && !(address.is_multiple_of(PAGE)
                && len.is_multiple_of(PAGE)
                && pos.is_multiple_of(PAGE as u64))
    }

    fn label(&self, name: &'static str, pos: u64, len: usize) -> Label {
        Label { name, path: self.0.path.clone(), pos, len, data: None }
    }

    fn text(&self) -> String {
        self.0.path.display().to_string()
    }

    /// A change of the length: an operation like one on names.
    fn len_op(
        &self,
        name: &'static str,
        len: u64,
        act: impl FnOnce(&mut Node, Ino) -> io::Result<()> + 'static,
    ) -> Pending<io::Result<()>> {
        let (ino, writable) = (self.0.ino, self.0.mode.write);
        let label = self.label(name, len, 0);
        self.0.fs.submit(label, move |node, _, how| match how {
            How::Finish if !writable => Some(Err(errno(libc::EBADF))),
            How::Finish => Some(act(node, ino)),
            How::Orphan(Fate::Dropped) => None,
            How::Orphan(_) => act(node, ino).ok().and(None),
        })
    }
}

impl File for SimFile {
    fn path(&self) -> &PathBuf {
        &self.0.path
    }

    fn read_at(
        &self,
        mut buf: ChunkMut,
        pos: u64,
    ) -> impl Future<Output = (io::Result<usize>, ChunkMut)> + 'static {
        let bad = self.misaligned(buf.as_mut_ptr() as usize, buf.capacity(), pos);
        let (ino, text) = (self.0.ino, self.text());
        let label = self.label("read", pos, buf.capacity());
        // Keeps the descriptor open until the read is over.
        let file = self.clone();
        self.0
            .fs
            .submit(label, move |node, rng, _| {
                let range = pos..pos + buf.capacity() as u64;
                let outcome = if bad {
                    Err(errno(libc::EINVAL))
                } else if node.disk.is_bad(ino, &range) {
                    Err(errno(libc::EIO))
                } else {
                    node.faults.check(FaultOp::Read, &text, rng).map(|()| {
                        let n = node.disk.read(ino, pos, buf.space_mut());
                        buf.set_len(n);
                        n
                    })
                };
                Some((outcome, buf, file))
            })
            .into_read()
    }

    fn write_at(
        &self,
        data: ChunkSlice,
        pos: u64,
    ) -> impl Future<Output = io::Result<()>> + 'static {
        let bad = self.misaligned(data.as_ptr() as usize, data.len(), pos);
        let (ino, text, mode) = (self.0.ino, self.text(), self.0.mode);
        let mut label = self.label("write", pos, data.len());
        label.data = Some(data.clone());
        self.0.fs.submit(label, move |node, rng, how| {
            if bad || !mode.write {
                return Some(Err(errno(if bad { libc::EINVAL } else { libc::EBADF })));
            }
            match how {
                How::Finish => Some(
                    check_room(node, ino, pos + data.len() as u64)
                        .and_then(|()| {
                            let verdict = node.faults.check(FaultOp::Write, &text, rng);
                            if verdict.is_err() {
                                node.disk.write_part(ino, pos, &data, Fate::Torn, rng);
                            }
                            verdict
                        })
                        .map(|()| node.disk.write(ino, pos, &data, mode.sync)),
                ),
                How::Orphan(fate) => {
                    node.disk.write_part(ino, pos, &data, fate, rng);
                    None
                }
            }
        })
    }

    fn write_parts_now(&self, parts: &mut [IoSlice<'_>], pos: u64) -> io::Result<()> {
        let data = parts.iter().flat_map(|part| &**part).copied().collect::<Vec<u8>>();
        let mut guard = self.0.fs.world.inner.borrow_mut();
        let inner = &mut *guard;
        let (path, len) = (self.0.path.clone(), data.len());
        inner.note(0x90 ^ pos ^ (len as u64) << 32, || {
            format!("inline write {} pos {pos} len {len}", path.display())
        });
        let node = &mut inner.nodes[self.0.fs.node];
        if node.incarnation != self.0.fs.incarnation {
            return Err(errno(libc::EIO));
        }
        if self.0.mode.direct || !self.0.mode.write {
            return Err(errno(libc::EINVAL));
        }
        check_room(node, self.0.ino, pos + data.len() as u64)?;
        node.faults.check(FaultOp::Write, &self.text(), &mut inner.rng)?;
        if inner.dies_here() {
            // The death comes in the middle of the copy to the page cache.
            let taken = &data[..inner.rng.index(data.len() + 1)];
            if !taken.is_empty() {
                inner.nodes[self.0.fs.node].disk.write(self.0.ino, pos, taken, false);
            }
            drop(guard);
            std::panic::resume_unwind(Box::new(Killed));
        }
        inner.nodes[self.0.fs.node].disk.write(self.0.ino, pos, &data, self.0.mode.sync);
        Ok(())
    }

    fn sync_data(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let ino = self.0.ino;
        self.0.fs.sync_op("sync", &self.0.path, move |node, rng, verdict, upto| {
            match &verdict {
                Ok(()) => node.disk.sync(ino, upto),
                Err(_) => node.disk.sync_failed(ino, upto, rng),
            }
            verdict
        })
    }

    fn set_len(&self, len: u64) -> impl Future<Output = io::Result<()>> + 'static {
        self.len_op("truncate", len, move |node, ino| {
            check_room(node, ino, len)?;
            node.disk.set_len(ino, len);
            Ok(())
        })
    }

    fn allocate(&self, range: Range<u64>) -> impl Future<Output = io::Result<()>> + 'static {
        let (ino, writable, len) = (self.0.ino, self.0.mode.write, range.end);
        let text = self.text();
        self.0.fs.submit(self.label("allocate", len, 0), move |node, rng, how| match how {
            How::Finish if !writable => Some(Err(errno(libc::EBADF))),
            How::Finish => match node.faults.check(FaultOp::Allocate, &text, rng) {
                Ok(()) => Some(allocate_up_to(node, ino, len, len)),
                Err(fault) => {
                    let has = node.disk.len(ino);
                    let got = has + rng.below(len.saturating_sub(has) + 1);
                    let _ = allocate_up_to(node, ino, got, len);
                    Some(Err(fault))
                }
            },
            How::Orphan(Fate::Dropped) => None,
            How::Orphan(_) => allocate_up_to(node, ino, len, len).ok().and(None),
        })
    }
}

/// Gives a file blocks up to `end`. As on ext4: without room for `wanted` bytes
/// it keeps what it got.
fn allocate_up_to(node: &mut Node, ino: Ino, end: u64, wanted: u64) -> io::Result<()> {
    let room = room_up_to(node, ino, end);
    let grown = node.disk.len(ino).max(room);
    node.disk.set_len(ino, grown);
    if room < wanted { Err(errno(libc::ENOSPC)) } else { Ok(()) }
}

type ReadOutcome = (io::Result<usize>, ChunkMut, SimFile);

impl Pending<ReadOutcome> {
    async fn into_read(self) -> (io::Result<usize>, ChunkMut) {
        let (outcome, buf, _file) = self.await;
        (outcome, buf)
    }
}
