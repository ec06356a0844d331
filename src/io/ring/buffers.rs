//! The provided buffers that the kernel receives into.
//!
//! A buffer belongs to the kernel from `give` until the completion that names
//! it, and to one [`ReceivedBuf`] from then until that is dropped. The kernel
//! takes the oldest of its queue, so it gets no more than the armed receives
//! can use; the rest waits in a stack, and the same few buffers are used again
//! while they are in the processor's cache. One of two files of the ring with
//! `unsafe`; tested by the whole of `ring/tests.rs`.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::bell::Bell;
use super::event::ConnId;
use crate::io::ChunkMut;

/// Group of the ordinary buffers.
pub(super) const GROUP: u16 = 0;
/// Group of the large buffers, for connections with much to receive.
pub(super) const LARGE_GROUP: u16 = 1;

/// The buffers of one group and the queue that offers them to the kernel.
pub(super) struct Buffers {
    pub(super) group: u16,
    /// Memory of the queue's entries, shared with the kernel.
    entries: *mut BufRingEntry,
    _entries_memory: ChunkMut,
    data: *mut u8,
    _data_memory: ChunkMut,
    buffer_bytes: usize,
    count: u16,
    /// Entries of the queue, a power of two.
    queue_len: u16,
    tail: Cell<u16>,
    /// Buffers in the kernel's queue, and how many there should be.
    offered: Cell<u16>,
    wanted: Cell<u32>,
    /// Buffers that are with nobody; the last given back is the next used.
    spare: RefCell<Vec<u16>>,
    held: Cell<u32>,
    /// Connections whose buffers came back since the ring last looked.
    returned: RefCell<Vec<ConnId>>,
    /// Whether somebody waits for a buffer of any group, so that a return rings
    /// the bell.
    pub(super) awaited: Rc<Cell<bool>>,
    bell: Bell,
}

impl Buffers {
    /// `count` buffers of `buffer_bytes` in `data`; the queue lies in `entries`.
    pub(super) fn new(
        group: u16,
        mut entries: ChunkMut,
        mut data: ChunkMut,
        buffer_bytes: usize,
        count: u16,
        (awaited, bell): (Rc<Cell<bool>>, Bell),
    ) -> Rc<Self> {
        let queue_len = count.next_power_of_two();
        assert!(entries.capacity() >= usize::from(queue_len) * size_of::<BufRingEntry>());
        assert!(data.capacity() >= usize::from(count) * buffer_bytes);
        assert!(u32::try_from(buffer_bytes).is_ok());
        entries.space_mut().fill(0);
        let buffers = Self {
            group,
            entries: entries.as_mut_ptr().cast(),
            _entries_memory: entries,
            data: data.as_mut_ptr(),
            _data_memory: data,
            buffer_bytes,
            count,
            queue_len,
            tail: Cell::new(0),
            offered: Cell::new(0),
            wanted: Cell::new(0),
            spare: RefCell::new((0..count).rev().collect()),
            held: Cell::new(0),
            returned: RefCell::default(),
            awaited,
            bell,
        };
        Rc::new(buffers)
    }

    /// `receives` more can take a buffer each.
    pub(super) fn want(&self, receives: u32) {
        self.wanted.set(self.wanted.get() + receives);
        self.offer();
    }

    /// One receive less can take a buffer.
    pub(super) fn want_less(&self) {
        self.wanted.set(self.wanted.get() - 1);
    }

    fn offer(&self) {
        while u32::from(self.offered.get()) < self.wanted.get()
            && let Some(id) = self.spare.borrow_mut().pop()
        {
            self.offered.set(self.offered.get() + 1);
            self.give(id);
        }
    }

    /// Address of the queue, for its registration.
    pub(super) fn queue_address(&self) -> u64 {
        self.entries as u64
    }

    /// Entries of the queue, for its registration.
    pub(super) fn queue_len(&self) -> u16 {
        self.queue_len
    }

    /// Number of buffers.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Bytes of one buffer.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Whether one more receive would find a buffer for sure.
    pub(super) fn has_for_another(&self) -> bool {
        self.wanted.get() + self.held.get() < u32::from(self.count)
    }

    /// Buffers that are with connections.
    pub(super) fn held(&self) -> u32 {
        self.held.get()
    }

    /// Whether three of four buffers are with connections: the last quarter is
    /// for those that hold none.
    pub(super) fn is_short(&self) -> bool {
        self.held.get() * 4 >= u32::from(self.count) * 3
    }

    /// Whether buffers came back since `take_returned`.
    pub(super) fn has_returned(&self) -> bool {
        !self.returned.borrow().is_empty()
    }

    /// One connection for each buffer that came back.
    pub(super) fn take_returned(&self, into: &mut Vec<ConnId>) {
        into.append(&mut self.returned.borrow_mut());
    }

    /// Wraps a buffer that a completion named, with its first `len` bytes.
    pub(super) fn received(self: &Rc<Self>, id: u16, len: usize, conn: ConnId) -> ReceivedBuf {
        assert!(id < self.count && len <= self.buffer_bytes, "buffer {id} with {len} bytes");
        self.held.set(self.held.get() + 1);
        self.offered.set(self.offered.get() - 1);
        ReceivedBuf { buffers: self.clone(), id, start: 0, end: len, conn }
    }

    fn address(&self, id: u16) -> *mut u8 {
        // SAFETY: `id < count`, and the block holds `count * buffer_bytes`.
        unsafe { self.data.add(usize::from(id) * self.buffer_bytes) }
    }

    fn give(&self, id: u16) {
        let tail = self.tail.get();
        // SAFETY: the index is masked to the queue's length; the kernel reads an
        // entry only after the tail below has passed it, and at most `count`
        // buffers exist, so it does not read this one now.
        let entry = unsafe { &mut *self.entries.add(usize::from(tail & (self.queue_len - 1))) };
        entry.set_addr(self.address(id) as u64);
        entry.set_len(self.buffer_bytes as u32);
        entry.set_bid(id);
        let tail = tail.wrapping_add(1);
        self.tail.set(tail);
        // SAFETY: the tail lies in the first entry's reserved field, aligned, in
        // memory that lives as long as `self`; kernel and we access it atomically.
        let shared = unsafe { &*BufRingEntry::tail(self.entries).cast::<AtomicU16>() };
        shared.store(tail, Ordering::Release);
    }
}

/// Received bytes in a buffer of the ring, to be read in place. Dropping it
/// gives the buffer back.
pub struct ReceivedBuf {
    buffers: Rc<Buffers>,
    id: u16,
    start: usize,
    end: usize,
    conn: ConnId,
}

impl ReceivedBuf {
    /// Leaves the first `count` bytes out from now on.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "{count} of {} bytes", self.end - self.start);
        self.start += count;
    }
}

impl std::ops::Deref for ReceivedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the completion handed the buffer to this value alone, the
        // kernel does not write it before `give`, and `start..end` lies in it.
        unsafe {
            let first = self.buffers.address(self.id).add(self.start);
            std::slice::from_raw_parts(first, self.end - self.start)
        }
    }
}

impl Drop for ReceivedBuf {
    fn drop(&mut self) {
        let buffers = &self.buffers;
        buffers.spare.borrow_mut().push(self.id);
        buffers.offer();
        buffers.held.set(buffers.held.get() - 1);
        buffers.returned.borrow_mut().push(self.conn);
        if buffers.awaited.get() {
            buffers.bell.wake_parked();
        }
    }
}

impl std::fmt::Debug for ReceivedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceivedBuf({} bytes)", self.len())
    }
}
