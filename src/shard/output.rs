//! Bytes of one connection on their way out: encoded heads in memory of the
//! send pool, record slices in between without a copy.

use crate::io::ring::SendPiece;
use crate::io::{ChunkSlice, Pool, TailChunk};

/// First size of a head chunk in bytes; later ones double.
const HEAD_MIN: usize = 4 << 10;
/// Largest head chunk in bytes.
const HEAD_MAX: usize = 64 << 10;

/// Encoded answers that have not been handed to the ring.
pub struct Output {
    pool: Pool,
    head: Option<TailChunk>,
    /// Bytes of `head` that are in `pieces` already.
    cut: usize,
    pieces: Vec<SendPiece>,
    bytes: usize,
    next_head: usize,
}

impl Output {
    /// Empty output with heads from `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool, head: None, cut: 0, pieces: Vec::new(), bytes: 0, next_head: HEAD_MIN }
    }

    /// Adds encoded bytes. When the send pool is used up they stay on the heap
    /// and `false` is answered: the caller encodes nothing more for this
    /// connection until a send has ended.
    pub fn write(&mut self, mut data: &[u8]) -> bool {
        self.bytes += data.len();
        loop {
            if let Some(head) = &mut self.head {
                let take = head.room().min(data.len());
                let _ = head.append(&data[..take], |_| {});
                data = &data[take..];
            }
            if data.is_empty() {
                return true;
            }
            self.cut_head();
            self.cut = 0;
            self.head = None;
            let size = self.next_head.max(data.len().min(HEAD_MAX));
            match self.pool.take(size) {
                Some(chunk) => self.head = Some(chunk.into_tail()),
                None => {
                    self.pieces.push(SendPiece::Vec(data.to_vec()));
                    return false;
                }
            }
            self.next_head = (size * 2).min(HEAD_MAX);
        }
    }

    /// Adds record bytes without a copy.
    pub fn slice(&mut self, slice: ChunkSlice) {
        self.bytes += slice.len();
        self.cut_head();
        self.pieces.push(SendPiece::Chunk(slice));
    }

    /// Adds an encoded answer that is too large to copy.
    pub fn owned(&mut self, data: Vec<u8>) {
        self.bytes += data.len();
        self.cut_head();
        self.pieces.push(SendPiece::Vec(data));
    }

    fn cut_head(&mut self) {
        if let Some(head) = &self.head
            && head.len() > self.cut
        {
            self.pieces.push(SendPiece::Chunk(head.slice(self.cut..head.len())));
            self.cut = head.len();
        }
    }

    /// Bytes waiting.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Everything that waits, in order; `spare` becomes the next list. An idle
    /// connection is left without memory of the pool.
    pub fn take(&mut self, spare: Vec<SendPiece>) -> Vec<SendPiece> {
        self.cut_head();
        self.head = None;
        self.cut = 0;
        self.bytes = 0;
        self.next_head = HEAD_MIN;
        std::mem::replace(&mut self.pieces, spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[SendPiece]) -> Vec<u8> {
        pieces.iter().flat_map(|p| p.to_vec()).collect()
    }

    #[test]
    fn order_is_kept_between_heads_and_slices() {
        let pool = Pool::new("send", 1 << 20).unwrap();
        let mut records = pool.take(10).unwrap();
        records.extend(b"RECORDS");
        let records = records.freeze();
        let mut out = Output::new(pool.clone());
        assert!(out.write(b"one"));
        assert!(out.write(b"two"));
        out.slice(records.slice(0..3));
        assert!(out.write(b"three"));
        out.slice(records.slice(3..7));
        out.owned(b"end".to_vec());
        assert_eq!(out.bytes(), 3 + 3 + 3 + 5 + 4 + 3);
        let pieces = out.take(Vec::new());
        assert_eq!(joined(&pieces), b"onetwoRECthreeORDSend");
        assert_eq!(pieces.len(), 5, "neighbouring heads are one piece");
        drop((pieces, records));
        assert_eq!(pool.used(), 0, "an idle connection holds nothing");
    }

    #[test]
    fn long_heads_and_a_full_pool_lose_nothing() {
        let pool = Pool::new("send", 8 << 10).unwrap();
        let mut out = Output::new(pool.clone());
        let data: Vec<u8> = (0..20_000u32).map(|i| i as u8).collect();
        assert!(!out.write(&data), "the pool is too small and says so");
        assert_eq!(joined(&out.take(Vec::new())), data);
    }
}
