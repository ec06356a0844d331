//! Aligned memory from named pools, refcounted, allowed to cross shards.
//!
//! A pool is one reserved mapping of fixed size, so that its budget is a bound
//! on resident memory and not an estimate. Pages are touched on first use and
//! taken first-fit from the low end, so that an idle pool stays small. The
//! last drop of a block gives its pages back, on whatever thread that is.
//!
//! Invariants, each kept by the types below and asserted where it is cheap:
//! - a block is writable by exactly one holder: a [`ChunkMut`] (never shared),
//!   or a [`TailChunk`] beyond what it has published;
//! - a [`ChunkSlice`] covers published bytes only, and these never change.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Alignment and granularity of every block, in bytes: what direct I/O asks.
pub const PAGE: usize = 4096;

struct State {
    /// First page of each free run to its number of pages; runs never touch.
    free: BTreeMap<usize, usize>,
    used_pages: usize,
    high_water_pages: usize,
}

struct Inner {
    name: &'static str,
    base: NonNull<u8>,
    pages: usize,
    state: Mutex<State>,
}

// SAFETY: `base` is a mapping that lives as long as `Inner`; all bookkeeping is
// behind the mutex, and the bytes are reached only through blocks.
#[allow(unsafe_code)]
unsafe impl Send for Inner {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Inner {}

impl Drop for Inner {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `Pool::new` with this length, and no
        // block is left: each holds an `Arc` of this.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.pages * PAGE) };
    }
}

/// A named budget of aligned memory. Cloning shares it.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

impl Pool {
    /// Reserves `limit` bytes of address space (rounded up to whole pages)
    /// under `name`; fails when the system refuses the mapping.
    #[allow(unsafe_code)]
    pub fn new(name: &'static str, limit: usize) -> std::io::Result<Self> {
        let pages = limit.div_ceil(PAGE).max(1);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                pages * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).expect("mmap never answers null");
        let state =
            State { free: BTreeMap::from([(0, pages)]), used_pages: 0, high_water_pages: 0 };
        Ok(Self(Arc::new(Inner { name, base, pages, state: Mutex::new(state) })))
    }

    /// A block of at least `capacity` bytes, or `None` when the pool has no
    /// free run of that size: the caller waits or pushes back.
    #[must_use]
    pub fn take(&self, capacity: usize) -> Option<ChunkMut> {
        self.take_one_of(capacity..=capacity)
    }

    /// A block of the largest of `sizes` in bytes or, when the pool has no free
    /// run of it, the largest that it has, if that is among them.
    #[must_use]
    pub fn take_one_of(&self, sizes: RangeInclusive<usize>) -> Option<ChunkMut> {
        let (least, capacity) = sizes.into_inner();
        let want = capacity.div_ceil(PAGE).max(1);
        let mut state = self.0.lock();
        let found = state.free.iter().find(|(_, run)| **run >= want);
        let (&first, &run) = match found {
            Some(found) => found,
            None if least >= capacity => return None,
            None => {
                // The first of the largest, so that the low end is used first.
                let largest = state.free.iter().rev().max_by_key(|(_, run)| **run);
                largest.filter(|(_, run)| **run * PAGE >= least)?
            }
        };
        let pages = want.min(run);
        state.free.remove(&first);
        if run > pages {
            state.free.insert(first + pages, run - pages);
        }
        state.used_pages += pages;
        state.high_water_pages = state.high_water_pages.max(state.used_pages);
        drop(state);
        Some(ChunkMut {
            block: Arc::new(Block { pool: self.0.clone(), first_page: first, pages }),
            len: 0,
        })
    }

    /// The pool's name, for metrics and messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Size of the pool in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.pages * PAGE
    }

    /// Bytes handed out now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.lock().used_pages * PAGE
    }

    /// Most bytes ever handed out at once.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.0.lock().high_water_pages * PAGE
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} {}/{})", self.name(), self.used(), self.limit())
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // The critical sections cannot panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, first: usize, pages: usize) {
        let mut state = self.lock();
        state.used_pages -= pages;
        let (mut start, mut run) = (first, pages);
        if let Some((&before, &len)) = state.free.range(..first).next_back() {
            assert!(before + len <= first, "page {first} of pool {} freed twice", self.name);
            if before + len == first {
                state.free.remove(&before);
                (start, run) = (before, len + pages);
            }
        }
        if let Some(len) = state.free.remove(&(first + pages)) {
            run += len;
        }
        state.free.insert(start, run);
    }
}

struct Block {
    pool: Arc<Inner>,
    first_page: usize,
    pages: usize,
}

impl Block {
    fn capacity(&self) -> usize {
        self.pages * PAGE
    }

    #[allow(unsafe_code)]
    fn ptr(&self) -> *mut u8 {
        // SAFETY: the block lies within its pool's mapping.
        unsafe { self.pool.base.as_ptr().add(self.first_page * PAGE) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.give_back(self.first_page, self.pages);
    }
}

/// A block with one holder, who may write it. `len` bytes are filled.
pub struct ChunkMut {
    block: Arc<Block>,
    len: usize,
}

impl ChunkMut {
    /// Size of the block in bytes, a multiple of [`PAGE`].
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// Bytes filled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes the block hold `capacity` bytes where it lies. `false` when the
    /// pages behind it are taken; then nothing has changed.
    pub fn extend_in_place(&mut self, capacity: usize) -> bool {
        let block = Arc::get_mut(&mut self.block).expect("one holder before it is frozen");
        let need = capacity.div_ceil(PAGE);
        let Some(more) = need.checked_sub(block.pages).filter(|more| *more > 0) else {
            return true;
        };
        let behind = block.first_page + block.pages;
        let mut state = block.pool.lock();
        let Some(run) = state.free.get(&behind).copied().filter(|run| *run >= more) else {
            return false;
        };
        state.free.remove(&behind);
        if run > more {
            state.free.insert(behind + more, run - more);
        }
        state.used_pages += more;
        state.high_water_pages = state.high_water_pages.max(state.used_pages);
        drop(state);
        block.pages = need;
        true
    }

    /// Whether nothing is filled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity() - self.len
    }

    /// Says that the first `len` bytes are filled. Bytes never written before
    /// read as whatever the block held last, never as another pool's.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "length {len} over capacity {}", self.capacity());
        self.len = len;
    }

    /// The whole block, filled or not.
    #[allow(unsafe_code)]
    pub fn space_mut(&mut self) -> &mut [u8] {
        // SAFETY: one holder (no slice exists before `freeze`), mapped memory,
        // zeroed by the kernel before its first use.
        unsafe { std::slice::from_raw_parts_mut(self.block.ptr(), self.capacity()) }
    }

    /// The filled bytes, to patch.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        &mut self.space_mut()[..len]
    }

    /// Appends `data`; panics when it does not fit (ask `room` first).
    pub fn extend(&mut self, data: &[u8]) {
        let at = self.len;
        self.space_mut()[at..at + data.len()].copy_from_slice(data);
        self.len = at + data.len();
    }

    /// Fills with zeros up to the next multiple of `align` bytes.
    pub fn pad_to(&mut self, align: usize) {
        let end = self.len.next_multiple_of(align);
        let at = self.len;
        self.space_mut()[at..end].fill(0);
        self.len = end;
    }

    /// Address of the block, for the kernel.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.block.ptr()
    }

    /// Ends writing: the filled bytes, readable by many.
    #[must_use]
    pub fn freeze(self) -> ChunkSlice {
        ChunkSlice { start: 0, len: self.len, block: self.block }
    }

    /// Goes on as a chunk that publishes while it grows; what is filled is
    /// published.
    #[must_use]
    pub fn into_tail(self) -> TailChunk {
        TailChunk { block: self.block, published: self.len }
    }
}

impl fmt::Debug for ChunkMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkMut({} of {} bytes)", self.len, self.capacity())
    }
}

impl std::ops::Deref for ChunkMut {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: mapped memory, one holder, within capacity.
        unsafe { std::slice::from_raw_parts(self.block.ptr(), self.len) }
    }
}

/// An append-only chunk: its holder writes beyond what it has published,
/// readers keep slices of what it has.
pub struct TailChunk {
    block: Arc<Block>,
    published: usize,
}

impl TailChunk {
    /// Size of the block in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// Bytes published.
    #[must_use]
    pub fn len(&self) -> usize {
        self.published
    }

    /// Whether nothing is published.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.published == 0
    }

    /// Bytes that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity() - self.published
    }

    /// Copies `data` behind the published bytes, lets `patch` change the copy,
    /// then publishes it and returns where it lies; panics when it does not
    /// fit (ask `room` first).
    #[allow(unsafe_code)]
    pub fn append(&mut self, data: &[u8], patch: impl FnOnce(&mut [u8])) -> Range<usize> {
        assert!(data.len() <= self.room(), "{} bytes into {} left", data.len(), self.room());
        let at = self.published;
        // SAFETY: `at..at + data.len()` is within the block and unpublished, so
        // no slice covers it, and `&mut self` is the only writer.
        let space = unsafe { std::slice::from_raw_parts_mut(self.block.ptr().add(at), data.len()) };
        space.copy_from_slice(data);
        patch(space);
        self.published = at + data.len();
        at..self.published
    }

    /// A refcounted slice of published bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> ChunkSlice {
        assert!(
            range.start <= range.end && range.end <= self.published,
            "slice {range:?} of {} published bytes",
            self.published
        );
        ChunkSlice { block: self.block.clone(), start: range.start, len: range.len() }
    }
}

/// Refcounted immutable bytes of a block. Keeps the whole block alive.
#[derive(Clone)]
pub struct ChunkSlice {
    block: Arc<Block>,
    start: usize,
    len: usize,
}

// SAFETY: a slice covers published bytes, which nobody writes any more; the
// block's own bookkeeping is behind its pool's mutex.
#[allow(unsafe_code)]
unsafe impl Send for ChunkSlice {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for ChunkSlice {}

impl ChunkSlice {
    /// A part of this slice.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        Self { block: self.block.clone(), start: self.start + range.start, len: range.len() }
    }

    /// Takes the block back for writing when this is its only holder.
    pub fn try_reclaim(mut self) -> Result<ChunkMut, Self> {
        // `get_mut` also orders the other holders' last reads before our writes.
        if Arc::get_mut(&mut self.block).is_some() {
            Ok(ChunkMut { block: self.block, len: 0 })
        } else {
            Err(self)
        }
    }

    /// The same bytes as `Bytes`, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl std::ops::Deref for ChunkSlice {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: published bytes of a live block.
        unsafe { std::slice::from_raw_parts(self.block.ptr().add(self.start), self.len) }
    }
}

impl AsRef<[u8]> for ChunkSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for ChunkSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkSlice({} bytes)", self.len)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a second thread is what is tested")]
mod tests {
    use super::*;

    #[test]
    fn budget_is_a_bound_and_pages_come_back() {
        let pool = Pool::new("test", 4 * PAGE).unwrap();
        let a = pool.take(1).unwrap();
        let b = pool.take(2 * PAGE).unwrap();
        assert!(pool.take(2 * PAGE).is_none());
        let c = pool.take(PAGE).unwrap();
        drop(b);
        assert_eq!(pool.used(), 2 * PAGE);
        drop(a);
        let d = pool.take(3 * PAGE).expect("neighbouring runs merge");
        assert_eq!(d.as_ptr() as usize % PAGE, 0);
        drop((c, d));
        assert_eq!(pool.used(), 0);
        assert_eq!(pool.high_water(), 4 * PAGE);
    }

    #[test]
    fn without_a_run_of_the_size_the_largest_is_taken() {
        let pool = Pool::new("test", 16 * PAGE).unwrap();
        // Free runs of 2, 3, 1 and 3 pages between blocks of one.
        let sizes = [2, 1, 3, 1, 1, 1, 3, 4];
        let mut blocks: Vec<_> = sizes.map(|pages| pool.take(pages * PAGE)).into();
        [0, 2, 4, 6].into_iter().for_each(|at| drop(blocks[at].take().unwrap()));
        assert!(pool.take_one_of(4 * PAGE..=8 * PAGE).is_none());
        assert!(pool.take(8 * PAGE).is_none());
        let largest = pool.take_one_of(PAGE..=8 * PAGE).unwrap();
        assert_eq!(largest.capacity(), 3 * PAGE);
        assert_eq!(pool.take_one_of(PAGE..=2 * PAGE).unwrap().capacity(), 2 * PAGE, "it fits");
        let all = [largest, pool.take_one_of(3 * PAGE..=8 * PAGE).unwrap()];
        assert_eq!(all[1].capacity(), 3 * PAGE);
        assert!(pool.take_one_of(3 * PAGE..=8 * PAGE).is_none());
    }

    #[test]
    fn a_block_grows_where_the_pages_behind_it_are_free() {
        let pool = Pool::new("test", 4 * PAGE).unwrap();
        let mut a = pool.take(PAGE).unwrap();
        a.extend(b"kept");
        let b = pool.take(PAGE).unwrap();
        assert!(!a.extend_in_place(2 * PAGE), "b lies behind it");
        drop(b);
        assert!(a.extend_in_place(3 * PAGE - 5));
        assert_eq!(
            (a.capacity(), &a.filled_mut()[..], pool.used()),
            (3 * PAGE, &b"kept"[..], 3 * PAGE)
        );
        assert!(!a.extend_in_place(5 * PAGE));
        assert!(a.extend_in_place(PAGE), "never smaller");
        let c = pool.take(PAGE).unwrap();
        assert!(pool.take(1).is_none());
        drop((a, c));
        assert_eq!((pool.used(), pool.take(4 * PAGE).is_some()), (0, true));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a slice crosses threads")]
    fn slices_outlive_the_writer_and_see_what_was_published() {
        let pool = Pool::new("test", 2 * PAGE).unwrap();
        let mut tail = pool.take(PAGE).unwrap().into_tail();
        let first = tail.append(b"hello", |b| b[0] = b'H');
        let slice = tail.slice(first);
        let _ = tail.append(b"world", |_| {});
        drop(tail);
        assert_eq!(&*slice, b"Hello");
        let bytes = std::thread::spawn(move || slice.into_bytes()).join().unwrap();
        assert_eq!(&bytes[..], b"Hello");
        assert_eq!(pool.used(), PAGE);
        drop(bytes);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    #[should_panic(expected = "published")]
    fn unpublished_bytes_are_out_of_reach() {
        let pool = Pool::new("test", PAGE).unwrap();
        let tail = pool.take(PAGE).unwrap().into_tail();
        let _ = tail.slice(0..1);
    }
}
