//! The kernel's side of the ring: owns every operation, with its descriptor and
//! its memory, from the moment it is queued until its own final completion.
//!
//! That ownership is what makes the rest of the ring safe code. One of two files
//! of the ring with `unsafe`. It knows operations, and nothing of connections.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use slab::Slab;

use super::buffers::{Buffers, GROUP, LARGE_GROUP};
use super::event::{RingConfig, TaskRun};
use super::send::Gather;
use crate::io::{ChunkMut, ChunkSlice};

/// User data of entries whose completion interests nobody.
const NOBODY: u64 = u64::MAX;

/// How long a dropped ring waits for its cancelled operations.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Makes the eventfd that a ring signals.
pub(super) fn new_eventfd() -> io::Result<OwnedFd> {
    // SAFETY: takes no memory.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor, kept open while an operation uses it.
#[derive(Clone)]
pub(super) enum Descriptor {
    Socket(Rc<OwnedFd>),
    File(Arc<File>),
}

impl Descriptor {
    fn raw(&self) -> types::Fd {
        types::Fd(match self {
            Self::Socket(socket) => socket.as_raw_fd(),
            Self::File(file) => file.as_raw_fd(),
        })
    }
}

/// What the kernel is asked to do, with the memory for it.
pub(super) enum Work {
    /// Accept one connection.
    Accept,
    /// Receive once into a provided buffer, perhaps a large one.
    Receive { large: bool },
    /// Receive again and again into provided buffers.
    ReceiveMany,
    /// Receive until `chunk` holds `want` bytes, or the stream ends.
    ReceiveInto { chunk: ChunkMut, want: usize },
    /// Send the current part of the list.
    Send(Box<Gather>),
    /// Read `len` bytes at `pos` of the file into `chunk` at `at`.
    Read { chunk: ChunkMut, at: usize, len: usize, pos: u64 },
    /// Write `data` from byte `at` on to `pos` of the file.
    Write { data: ChunkSlice, at: usize, len: usize, pos: u64 },
    /// fdatasync.
    SyncData,
    /// Allocate the blocks of `range`, extending the file.
    Allocate { range: Range<u64> },
}

impl Work {
    /// Whether it ends by itself, without a peer that sends or connects.
    fn is_finite(&self) -> bool {
        !matches!(
            self,
            Self::Accept | Self::Receive { .. } | Self::ReceiveMany | Self::ReceiveInto { .. }
        )
    }
}

/// Identifies a queued operation, to cancel it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpId(u64);

struct Op<O> {
    user_data: u64,
    descriptor: Descriptor,
    work: Work,
    owner: O,
}

/// One completion.
pub(super) struct Done<O> {
    /// Whose operation it was.
    pub(super) owner: O,
    /// The kernel's answer: a count, or what failed.
    pub(super) result: io::Result<u32>,
    /// The provided buffer that was filled.
    pub(super) buffer: Option<u16>,
    /// The operation, when this is its last completion.
    pub(super) finished: Option<Work>,
}

/// The ring and its operations; `O` names an operation's owner.
pub(super) struct Driver<O> {
    ring: IoUring,
    ops: Slab<Op<O>>,
    generation: u32,
    /// Entries that found the submission queue full.
    backlog: VecDeque<squeue::Entry>,
    buffers: Vec<Rc<Buffers>>,
    finite: usize,
    pub(super) enters: u64,
    pub(super) submitted: u64,
    pub(super) completed: u64,
}

impl<O: Clone> Driver<O> {
    /// Makes the ring, registers the buffers and the eventfd (silent at first).
    pub(super) fn new(
        config: &RingConfig,
        buffers: Vec<Rc<Buffers>>,
        eventfd: RawFd,
    ) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder
            .setup_cqsize(config.completions)
            .setup_clamp()
            .setup_submit_all()
            .setup_single_issuer()
            .setup_taskrun_flag();
        match config.task_run {
            TaskRun::Coop => builder.setup_coop_taskrun(),
            TaskRun::Defer => builder.setup_defer_taskrun(),
        };
        let mut ring = builder.build(config.entries)?;
        for group in &buffers {
            let (address, len) = (group.queue_address(), group.queue_len());
            // SAFETY: the queue lives in `buffers`, which outlives the ring: see `drop`.
            unsafe {
                ring.submitter().register_buf_ring_with_flags(address, len, group.group, 0)?;
            }
        }
        ring.submitter().register_eventfd(eventfd)?;
        ring.completion().disable_eventfd();
        Ok(Self {
            ring,
            ops: Slab::new(),
            generation: 0,
            backlog: VecDeque::new(),
            buffers,
            finite: 0,
            enters: 0,
            submitted: 0,
            completed: 0,
        })
    }

    /// Queues an operation; `submit` hands it to the kernel.
    pub(super) fn queue(&mut self, descriptor: Descriptor, work: Work, owner: O) -> OpId {
        let entry = self.ops.vacant_entry();
        let slot = u32::try_from(entry.key()).expect("fewer operations than 2^32");
        // Never NOBODY: that would take 2^32 operations at a time.
        let user_data = u64::from(self.generation) << 32 | u64::from(slot);
        self.generation = self.generation.wrapping_add(1);
        self.finite += usize::from(work.is_finite());
        let op = entry.insert(Op { user_data, descriptor, work, owner });
        let prepared = prepare(op.descriptor.raw(), &mut op.work).user_data(user_data);
        self.push(prepared);
        OpId(user_data)
    }

    /// Asks the kernel to end an operation; its final completion still comes.
    pub(super) fn cancel(&mut self, op: OpId) {
        self.push(opcode::AsyncCancel::new(op.0).build().user_data(NOBODY));
    }

    fn push(&mut self, entry: squeue::Entry) {
        self.submitted += 1;
        if self.backlog.is_empty() {
            // SAFETY: descriptor and memory of the entry are in `ops` until the
            // operation's last completion (a cancel has neither).
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return;
            }
            self.enter();
        }
        self.backlog.push_back(entry);
        self.push_backlog();
    }

    fn push_backlog(&mut self) {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                break;
            }
            self.backlog.pop_front();
        }
    }

    /// Hands over what is queued and lets the kernel post what it prepared.
    /// No system call when there is neither.
    pub(super) fn submit(&mut self) {
        loop {
            self.push_backlog();
            if self.is_submitted() && !self.kernel_has_more() {
                return;
            }
            if !self.enter() || self.is_submitted() {
                return;
            }
        }
    }

    /// One system call; whether it succeeded.
    fn enter(&mut self) -> bool {
        self.enters += 1;
        match self.ring.submit() {
            Ok(_) => true,
            Err(error) => match error.raw_os_error() {
                // The completion queue is full, or memory is short just now: the
                // entries stay queued, and the next round tries again.
                Some(libc::EBUSY | libc::EAGAIN | libc::EINTR | libc::ENOMEM) => false,
                _ => panic!("io_uring_enter: {error}"),
            },
        }
    }

    /// Whether everything queued has been handed over.
    pub(super) fn is_submitted(&mut self) -> bool {
        self.backlog.is_empty() && self.ring.submission().is_empty()
    }

    /// Whether the kernel holds completions that only a system call brings.
    pub(super) fn kernel_has_more(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Whether completions lie in the queue.
    pub(super) fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Operations under way that end by themselves.
    pub(super) fn finite(&self) -> usize {
        self.finite
    }

    /// Lets completions signal the eventfd, or not.
    pub(super) fn signal(&mut self, on: bool) {
        let queue = self.ring.completion();
        if on {
            queue.enable_eventfd();
            // The kernel adds work, then reads the flag; we set the flag, then
            // (in the caller) look for work. One of the two sees the other.
            fence(Ordering::SeqCst);
        } else {
            queue.disable_eventfd();
        }
    }

    /// The next completion that interests somebody.
    pub(super) fn next(&mut self) -> Option<Done<O>> {
        loop {
            let completion = self.ring.completion().next()?;
            self.completed += 1;
            let user_data = completion.user_data();
            if user_data == NOBODY {
                continue;
            }
            return Some(self.done(user_data, completion.result(), completion.flags()));
        }
    }

    fn done(&mut self, user_data: u64, result: i32, flags: u32) -> Done<O> {
        let slot = (user_data & u64::from(u32::MAX)) as usize;
        let op = self.ops.get(slot).expect("an operation stays until its last completion");
        assert_eq!(op.user_data, user_data, "completion of an operation that is over");
        let owner = op.owner.clone();
        let finished = if cqueue::more(flags) { None } else { Some(self.ops.remove(slot).work) };
        if finished.as_ref().is_some_and(Work::is_finite) {
            self.finite -= 1;
        }
        let result = match u32::try_from(result) {
            Ok(count) => Ok(count),
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        };
        Done { owner, result, buffer: cqueue::buffer_select(flags), finished }
    }

    /// Takes over the descriptor that an accept returned.
    pub(super) fn accepted(count: u32) -> OwnedFd {
        // SAFETY: the kernel has just made this descriptor for us, and the one
        // caller passes the result of an accept's completion once.
        unsafe { OwnedFd::from_raw_fd(count as RawFd) }
    }
}

fn prepare(fd: types::Fd, work: &mut Work) -> squeue::Entry {
    match work {
        Work::Accept => opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut())
            .flags(libc::SOCK_CLOEXEC)
            .build(),
        Work::Receive { large } => opcode::Recv::new(fd, std::ptr::null_mut(), 0)
            .buf_group(if *large { LARGE_GROUP } else { GROUP })
            .build()
            .flags(squeue::Flags::BUFFER_SELECT),
        Work::ReceiveMany => opcode::RecvMulti::new(fd, GROUP).build(),
        Work::ReceiveInto { chunk, want } => {
            let at = chunk.len();
            let space = &mut chunk.space_mut()[at..*want];
            opcode::Recv::new(fd, space.as_mut_ptr(), length(space.len()))
                .flags(libc::MSG_WAITALL)
                .build()
        }
        Work::Send(gather) => {
            let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
            match gather.single() {
                Some((first, len)) => {
                    opcode::Send::new(fd, first, length(len)).flags(flags).build()
                }
                None => opcode::SendMsg::new(fd, gather.header()).flags(flags as u32).build(),
            }
        }
        Work::Read { chunk, at, len, pos } => {
            let space = &mut chunk.space_mut()[*at..*at + *len];
            opcode::Read::new(fd, space.as_mut_ptr(), length(*len)).offset(*pos).build()
        }
        Work::Write { data, at, len, pos } => {
            let part = &data[*at..*at + *len];
            opcode::Write::new(fd, part.as_ptr(), length(*len)).offset(*pos).build()
        }
        Work::SyncData => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
        Work::Allocate { range } => {
            let len = range.end - range.start;
            opcode::Fallocate::new(fd, len).offset(range.start).mode(0).build()
        }
    }
}

fn length(len: usize) -> u32 {
    u32::try_from(len).expect("an operation is at most 4 GiB")
}

impl<O> Drop for Driver<O> {
    fn drop(&mut self) {
        // The kernel must let go of the memory first: cancel all, and wait.
        let all = types::CancelBuilder::any();
        let cancel = opcode::AsyncCancel2::new(all).build().user_data(NOBODY);
        self.backlog.clear();
        let mut waits = 0;
        let step = Duration::from_millis(20);
        while !self.ops.is_empty() && step * waits < DRAIN_MAX {
            waits += 1;
            // SAFETY: a cancel has no memory. A full queue is emptied below.
            let _ = unsafe { self.ring.submission().push(&cancel) };
            let timeout = types::Timespec::from(step);
            let args = types::SubmitArgs::new().timespec(&timeout);
            let _ = self.ring.submitter().submit_with_args(1, &args);
            for completion in self.ring.completion() {
                let slot = (completion.user_data() & u64::from(u32::MAX)) as usize;
                if completion.user_data() != NOBODY && !cqueue::more(completion.flags()) {
                    self.ops.try_remove(slot);
                }
            }
        }
        for group in &self.buffers {
            let _ = self.ring.submitter().unregister_buf_ring(group.group);
        }
        if !self.ops.is_empty() {
            // Rather lose the memory than let the kernel write into it.
            std::mem::forget(std::mem::take(&mut self.ops));
            std::mem::forget(self.buffers.clone());
        }
    }
}
