//! The provided buffers that the kernel receives into.
//!
//! A buffer belongs to the kernel from `give` until the completion that names
//! it, and to one [`ReceivedBuf`] from then until that is dropped. One of two
//! files of the ring with `unsafe`; tested by the whole of `ring/tests.rs`.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::bell::Bell;
use super::event::ConnId;
use crate::io::ChunkMut;

/// Group id of the provided buffers; the ring has one group.
pub(super) const GROUP: u16 = 0;

/// The buffers and the queue that offers them to the kernel.
pub(super) struct Buffers {
    /// Memory of the queue's entries, shared with the kernel.
    entries: *mut BufRingEntry,
    _entries_memory: ChunkMut,
    data: *mut u8,
    _data_memory: ChunkMut,
    buffer_bytes: usize,
    count: u16,
    tail: Cell<u16>,
    held: Cell<u32>,
    /// Connections whose buffers came back since the ring last looked.
    returned: RefCell<Vec<ConnId>>,
    /// Whether somebody waits for a buffer, so that a return rings the bell.
    pub(super) awaited: Cell<bool>,
    bell: Bell,
}

impl Buffers {
    /// `count` buffers of `buffer_bytes` in `data`; the queue lies in `entries`.
    pub(super) fn new(
        mut entries: ChunkMut,
        mut data: ChunkMut,
        buffer_bytes: usize,
        count: u16,
        bell: Bell,
    ) -> Rc<Self> {
        assert!(count.is_power_of_two(), "{count} buffers: not a power of two");
        assert!(entries.capacity() >= usize::from(count) * size_of::<BufRingEntry>());
        assert!(data.capacity() >= usize::from(count) * buffer_bytes);
        assert!(u32::try_from(buffer_bytes).is_ok());
        entries.space_mut().fill(0);
        let buffers = Self {
            entries: entries.as_mut_ptr().cast(),
            _entries_memory: entries,
            data: data.as_mut_ptr(),
            _data_memory: data,
            buffer_bytes,
            count,
            tail: Cell::new(0),
            held: Cell::new(0),
            returned: RefCell::default(),
            awaited: Cell::new(false),
            bell,
        };
        for id in 0..count {
            buffers.give(id);
        }
        Rc::new(buffers)
    }

    /// Address of the queue, for its registration.
    pub(super) fn queue_address(&self) -> u64 {
        self.entries as u64
    }

    /// Number of buffers.
    pub(super) fn count(&self) -> u16 {
        self.count
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
        let entry = unsafe { &mut *self.entries.add(usize::from(tail & (self.count - 1))) };
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
/// gives the buffer back to the kernel.
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
        buffers.give(self.id);
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
