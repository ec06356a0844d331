//! Bytes of one connection on their way to whole frames.
//!
//! A frame that lies whole in one received buffer is handed out in place; one
//! that spans buffers is gathered in memory of the receive pool, which grows
//! with what has arrived and not with what was announced, so that a frame
//! header alone costs nothing. Refuses to know what a frame means.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::io::{ChunkMut, Pool};
use crate::wire::WireError;
use crate::wire::frame::{LENGTH_BYTES, check_length};

/// Most memory taken for a frame before its bytes have arrived.
const GATHER_FIRST_MAX: usize = 128 << 10;

/// Bytes up to which what waits is kept on the heap, when its received buffer
/// goes back.
const KEPT_ON_HEAP: usize = 1 << 10;

/// What there is to handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// A whole frame: ask `frame`, then `consume` it.
    Frame,
    /// More bytes are needed.
    Starving,
    /// The receive pool has no memory for the frame under way.
    NoMemory,
}

/// Memory of frames under way: a pool that grows frames as they arrive, and a
/// reserve from which a frame that finds none or no more there gets all it
/// lacks. So connections that hold the pool together, by frames or by bytes kept
/// for later, do not wait for each other for ever: whatever has the reserve
/// ends, and gives back what it had of the pool.
#[derive(Clone, Debug)]
pub struct FrameMemory {
    /// For all frames.
    pub pool: Pool,
    /// For those that cannot grow; holds at least one of the largest frames.
    pub reserve: Pool,
}

enum Whole {
    /// In the first received buffer, from here, of this length.
    InPlace(usize, usize),
    /// In the gathered chunk.
    Gathered,
}

struct Gather {
    chunk: ChunkMut,
    want: usize,
}

/// Bytes that have arrived, and where they lie.
enum Arrived<B> {
    /// In a received buffer.
    Lent(B),
    /// On the heap, a few.
    Small(Box<[u8]>),
    /// In memory of the receive pool.
    Kept(ChunkMut),
}

impl<B: Deref<Target = [u8]>> Deref for Arrived<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lent(buffer) => buffer,
            Self::Small(bytes) => bytes,
            Self::Kept(chunk) => chunk,
        }
    }
}

/// Input of one connection. `B` is a received buffer, given back when dropped.
pub struct Input<B> {
    inbox: VecDeque<Arrived<B>>,
    /// Bytes of the first buffer already used.
    used: usize,
    prefix: [u8; LENGTH_BYTES],
    prefix_len: usize,
    gather: Option<Gather>,
    whole: Option<Whole>,
    frame_max: usize,
}

impl<B: Deref<Target = [u8]>> Input<B> {
    /// Empty input that refuses frames over `frame_max` bytes.
    #[must_use]
    pub fn new(frame_max: usize) -> Self {
        Self {
            inbox: VecDeque::new(),
            used: 0,
            prefix: [0; LENGTH_BYTES],
            prefix_len: 0,
            gather: None,
            whole: None,
            frame_max,
        }
    }

    /// Adds bytes in the order of arrival.
    pub fn push(&mut self, buffer: B) {
        if !buffer.is_empty() {
            self.inbox.push_back(Arrived::Lent(buffer));
        }
    }

    /// Whether it holds received buffers.
    #[must_use]
    pub fn holds_buffers(&self) -> bool {
        self.inbox.iter().any(|arrived| matches!(arrived, Arrived::Lent(_)))
    }

    /// Gives the received buffers back and keeps what they hold elsewhere.
    /// `false` when there is no memory for that; then nothing has changed.
    pub fn give_back(&mut self, memory: &FrameMemory) -> bool {
        if !self.holds_buffers() {
            return true;
        }
        let bytes = self.inbox.iter().map(|arrived| arrived.len()).sum::<usize>() - self.used;
        let mut skip = self.used;
        let rests = self.inbox.iter().map(|arrived| &arrived[std::mem::take(&mut skip)..]);
        let kept = if bytes <= KEPT_ON_HEAP {
            Arrived::Small(rests.flatten().copied().collect())
        } else {
            let Some(mut chunk) = memory.pool.take(bytes) else { return false };
            rests.for_each(|rest| chunk.extend(rest));
            Arrived::Kept(chunk)
        };
        self.inbox.clear();
        self.inbox.push_back(kept);
        self.used = 0;
        if let Some(Whole::InPlace(at, _)) = &mut self.whole {
            *at = 0;
        }
        true
    }

    /// Whether the peer stopped in the middle of a frame.
    #[must_use]
    pub fn mid_frame(&self) -> bool {
        self.prefix_len > 0 || self.gather.is_some() || !self.inbox.is_empty()
    }

    /// Whether a frame under way holds memory.
    #[must_use]
    pub fn holds_memory(&self) -> bool {
        self.gather.is_some()
    }

    /// Moves on until a whole frame is there or something is missing.
    pub fn advance(&mut self, memory: &FrameMemory) -> Result<Progress, WireError> {
        loop {
            if self.whole.is_some() {
                return Ok(Progress::Frame);
            }
            if let Some(gather) = &mut self.gather {
                if gather.chunk.len() == gather.want {
                    self.whole = Some(Whole::Gathered);
                    continue;
                }
                if gather.chunk.room() == 0 && !grow(gather, memory) {
                    return Ok(Progress::NoMemory);
                }
            }
            let Some(front) = self.inbox.front() else { return Ok(Progress::Starving) };
            let rest = &front[self.used..];
            if let Some(gather) = &mut self.gather {
                let missing = gather.want - gather.chunk.len();
                let take = missing.min(rest.len()).min(gather.chunk.room());
                gather.chunk.extend(&rest[..take]);
                self.use_up(take);
                continue;
            }
            if self.prefix_len < LENGTH_BYTES {
                let take = (LENGTH_BYTES - self.prefix_len).min(rest.len());
                self.prefix[self.prefix_len..self.prefix_len + take].copy_from_slice(&rest[..take]);
                self.prefix_len += take;
                self.use_up(take);
                if self.prefix_len == LENGTH_BYTES {
                    self.announced()?;
                }
                continue;
            }
            let want = self.announced()?;
            if want <= rest.len() {
                self.whole = Some(Whole::InPlace(self.used, want));
                continue;
            }
            let first = memory.pool.take(want.min(GATHER_FIRST_MAX));
            // The pool may be full of what was kept for those who wait for it.
            let Some(chunk) = first.or_else(|| memory.reserve.take(want)) else {
                return Ok(Progress::NoMemory);
            };
            self.gather = Some(Gather { chunk, want });
        }
    }

    fn announced(&self) -> Result<usize, WireError> {
        check_length(i32::from_be_bytes(self.prefix), self.frame_max)
    }

    fn use_up(&mut self, bytes: usize) {
        self.used += bytes;
        if self.inbox.front().is_some_and(|front| self.used >= front.len()) {
            self.inbox.pop_front();
            self.used = 0;
        }
    }

    /// The whole frame that `advance` found, without its length prefix.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        match self.whole.as_ref().expect("advance answered Frame") {
            Whole::InPlace(at, len) => &self.inbox[0][*at..*at + *len],
            Whole::Gathered => self.gather.as_ref().map_or(&[], |gather| &gather.chunk[..]),
        }
    }

    /// Drops the frame that `frame` showed.
    pub fn consume(&mut self) {
        match self.whole.take().expect("advance answered Frame") {
            Whole::InPlace(_, len) => self.use_up(len),
            Whole::Gathered => self.gather = None,
        }
        self.prefix_len = 0;
    }

    /// Drops everything that has arrived.
    pub fn clear(&mut self) {
        *self = Self::new(self.frame_max);
    }

    /// When a large frame is under way and nothing is buffered: its memory and
    /// the bytes it lacks, to be received into directly. Give it back with
    /// `resume_gather`.
    pub fn take_gather(&mut self, worth: usize) -> Option<(ChunkMut, usize)> {
        let gather = self.gather.as_ref()?;
        let missing = gather.want - gather.chunk.len();
        if !self.inbox.is_empty() || missing.min(gather.chunk.room()) < worth {
            return None;
        }
        self.gather.take().map(|gather| (gather.chunk, gather.want))
    }

    /// Gives back what `take_gather` lent, with the bytes that arrived.
    pub fn resume_gather(&mut self, chunk: ChunkMut, want: usize) {
        self.gather = Some(Gather { chunk, want });
    }
}

/// Doubles the memory of a frame, up to its announced length: where it lies
/// when that is free, so that a large frame does not need its memory twice.
fn grow(gather: &mut Gather, memory: &FrameMemory) -> bool {
    let capacity = (gather.chunk.capacity() * 2).min(gather.want);
    if gather.chunk.extend_in_place(capacity) {
        return true;
    }
    let larger = memory.pool.take(capacity).or_else(|| memory.reserve.take(gather.want));
    let Some(mut larger) = larger else { return false };
    larger.extend(&gather.chunk);
    gather.chunk = larger;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(len: usize, seed: u8) -> Vec<u8> {
        let mut bytes = u32::try_from(len).unwrap().to_be_bytes().to_vec();
        bytes.extend((0..len).map(|i| seed.wrapping_add((i % 251) as u8)));
        bytes
    }

    fn only(pool: &Pool) -> FrameMemory {
        FrameMemory { pool: pool.clone(), reserve: Pool::new("reserve", 1).unwrap() }
    }

    /// A pool for not even two of four frames, a reserve for one; the frame.
    fn four_of_300_kib() -> (FrameMemory, Vec<u8>, Vec<Input<Vec<u8>>>) {
        let memory = FrameMemory {
            pool: Pool::new("receive", 512 << 10).unwrap(),
            reserve: Pool::new("reserve", 300 << 10).unwrap(),
        };
        (memory, framed(300 << 10, 5), (0..4).map(|_| Input::new(1 << 20)).collect())
    }

    fn collect(input: &mut Input<Vec<u8>>, memory: &FrameMemory, into: &mut Vec<Vec<u8>>) {
        while input.advance(memory).unwrap() == Progress::Frame {
            into.push(input.frame().to_vec());
            input.consume();
        }
    }

    #[test]
    fn c9_any_split_gives_the_same_frames() {
        let pool = Pool::new("receive", 64 << 10).unwrap();
        let memory = only(&pool);
        let stream = [framed(0, 1), framed(5, 2), framed(300, 3), framed(1, 4)].concat();
        let want: Vec<_> = [(0, 1), (5, 2), (300, 3), (1, 4)]
            .map(|(len, seed)| framed(len, seed)[4..].to_vec())
            .to_vec();
        for piece in 1..=stream.len() {
            let mut input = Input::new(1024);
            let mut got = Vec::new();
            for part in stream.chunks(piece) {
                input.push(part.to_vec());
                collect(&mut input, &memory, &mut got);
            }
            assert_eq!(got, want, "pieces of {piece} bytes");
            assert!(!input.mid_frame());
        }
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn c9_buffers_given_back_at_any_point_change_no_frame() {
        let pool = Pool::new("receive", 1 << 20).unwrap();
        let memory = only(&pool);
        let lens = [0, 5, 3000, 1, 700, 40];
        let stream: Vec<u8> = lens.iter().flat_map(|len| framed(*len, 7)).collect();
        let want: Vec<_> = lens.iter().map(|len| framed(*len, 7)[4..].to_vec()).collect();
        for piece in [1, 7, 500, 2000, stream.len()] {
            for every in 1..4 {
                let mut input = Input::new(4096);
                let mut got = Vec::new();
                for (at, part) in stream.chunks(piece).enumerate() {
                    input.push(part.to_vec());
                    // A whole frame may be waiting: it is shown again.
                    let whole = at % 2 == 0 && input.advance(&memory) == Ok(Progress::Frame);
                    let shown = if whole { input.frame().to_vec() } else { Vec::new() };
                    if at % every == 0 {
                        assert!(input.give_back(&memory) && !input.holds_buffers());
                    }
                    assert!(!whole || input.frame() == shown);
                    if at % 3 == 0 {
                        collect(&mut input, &memory, &mut got);
                    }
                }
                collect(&mut input, &memory, &mut got);
                assert!(got == want, "pieces of {piece} bytes, given back every {every}");
                assert!(!input.mid_frame());
            }
        }
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn few_bytes_are_kept_without_the_pool_and_many_are_not() {
        let memory = only(&Pool::new("receive", 4096).unwrap());
        let _all = memory.pool.take(4096).unwrap();
        let mut small = Input::new(1 << 20);
        small.push(framed(KEPT_ON_HEAP - 4, 1));
        assert!(small.give_back(&memory));
        assert_eq!(small.advance(&memory), Ok(Progress::Frame));
        let mut large = Input::new(1 << 20);
        large.push(framed(KEPT_ON_HEAP, 1));
        assert!(!large.give_back(&memory) && large.holds_buffers());
        assert_eq!(large.advance(&memory), Ok(Progress::Frame));
    }

    #[test]
    fn c1_announced_lengths_are_refused_before_memory_is_taken() {
        let pool = Pool::new("receive", 1 << 20).unwrap();
        let memory = only(&pool);
        let mut input = Input::new(100 << 20);
        input.push(0x7fff_ffff_u32.to_be_bytes().to_vec());
        assert_eq!(
            input.advance(&memory),
            Err(WireError::FrameTooLong { length: 0x7fff_ffff, limit: 100 << 20 })
        );
        let mut input = Input::new(100);
        input.push(vec![0xff; 4]);
        assert_eq!(input.advance(&memory), Err(WireError::NegativeFrame(-1)));
        assert_eq!(pool.high_water(), 0);
    }

    #[test]
    fn memory_follows_what_arrived() {
        let pool = Pool::new("receive", 4 << 20).unwrap();
        let memory = only(&pool);
        let mut input = Input::new(8 << 20);
        let frame = framed(1 << 20, 9);
        input.push(frame[..5].to_vec());
        assert_eq!(input.advance(&memory), Ok(Progress::Starving));
        assert!(pool.used() <= GATHER_FIRST_MAX);
        let mut got = Vec::new();
        for part in frame[5..].chunks(64 << 10) {
            input.push(part.to_vec());
            collect(&mut input, &memory, &mut got);
        }
        assert!(got == [frame[4..].to_vec()]);
    }

    #[test]
    fn one_frame_may_take_nearly_the_whole_pool() {
        let pool = Pool::new("receive", 1 << 20).unwrap();
        let memory = only(&pool);
        let mut input = Input::new(1 << 20);
        let frame = framed(1_000_000, 3);
        let mut got = Vec::new();
        for part in frame.chunks(64 << 10) {
            input.push(part.to_vec());
            collect(&mut input, &memory, &mut got);
        }
        assert!(got == [frame[4..].to_vec()]);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn a_full_pool_is_said_and_passes() {
        let pool = Pool::new("receive", 64 << 10).unwrap();
        let memory = only(&pool);
        let held = pool.take(64 << 10).unwrap();
        let mut input = Input::new(1 << 20);
        input.push(framed(10_000, 1)[..8].to_vec());
        assert_eq!(input.advance(&memory), Ok(Progress::NoMemory));
        drop(held);
        assert_eq!(input.advance(&memory), Ok(Progress::Starving));
        input.push(framed(10_000, 1)[8..].to_vec());
        assert_eq!(input.advance(&memory), Ok(Progress::Frame));
    }

    #[test]
    fn bytes_kept_for_later_that_hold_the_pool_end_through_the_reserve() {
        let (memory, frame, mut inputs) = four_of_300_kib();
        for input in &mut inputs {
            input.push(frame[..128 << 10].to_vec());
            assert!(input.give_back(&memory));
        }
        assert!(memory.pool.take(4096).is_none(), "all of it is theirs");
        for input in &mut inputs {
            assert_eq!(input.advance(&memory), Ok(Progress::Starving), "nobody can go on");
            input.push(frame[128 << 10..].to_vec());
            assert_eq!(input.advance(&memory), Ok(Progress::Frame));
            assert!(*input.frame() == frame[4..]);
            input.consume();
        }
        assert_eq!((memory.pool.used(), memory.reserve.used()), (0, 0));
    }

    #[test]
    fn frames_that_hold_the_pool_together_end_through_the_reserve() {
        let (memory, frame, mut inputs) = four_of_300_kib();
        for input in &mut inputs {
            input.push(frame[..100 << 10].to_vec());
            assert_eq!(input.advance(&memory), Ok(Progress::Starving));
        }
        assert!(memory.pool.take(4096).is_none(), "all of it is theirs");
        for input in &mut inputs {
            input.push(frame[100 << 10..].to_vec());
        }
        let mut done = 0;
        while done < 4 {
            let before = done;
            for input in &mut inputs {
                if input.advance(&memory) == Ok(Progress::Frame) {
                    assert!(*input.frame() == frame[4..]);
                    input.consume();
                    done += 1;
                }
            }
            assert!(done > before, "nobody can go on");
        }
        assert_eq!((memory.pool.used(), memory.reserve.used()), (0, 0));
    }
}
