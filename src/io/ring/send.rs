//! What a connection sends: a list of owned pieces, gathered by the kernel.

use std::io;

use bytes::Bytes;

use crate::io::ChunkSlice;

/// Owned bytes of a send. They live until the kernel is done with them.
#[derive(Clone)]
pub enum SendPiece {
    /// Encoded reply bytes.
    Vec(Vec<u8>),
    /// Shared bytes.
    Bytes(Bytes),
    /// Record batches from a tail chunk or a cold read, without a copy.
    Chunk(ChunkSlice),
}

impl std::ops::Deref for SendPiece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Vec(bytes) => bytes,
            Self::Bytes(bytes) => bytes,
            Self::Chunk(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for SendPiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            Self::Vec(_) => "Vec",
            Self::Bytes(_) => "Bytes",
            Self::Chunk(_) => "Chunk",
        };
        write!(f, "SendPiece::{kind}({} bytes)", self.len())
    }
}

/// Most vectors of one sendmsg (IOV_MAX).
const VECTORS_MAX: usize = 1024;

/// A list under way: which part the kernel has, and how far it came. Boxed, so
/// that the header's address holds.
pub(super) struct Gather {
    pieces: Vec<SendPiece>,
    vectors: Vec<libc::iovec>,
    header: libc::msghdr,
    /// The next byte to send: its piece, and where in the piece.
    piece: usize,
    byte: usize,
}

impl Gather {
    pub(super) fn new() -> Box<Self> {
        let header = libc::msghdr {
            msg_name: std::ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: std::ptr::null_mut(),
            msg_iovlen: 0,
            msg_control: std::ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        };
        Box::new(Self { pieces: Vec::new(), vectors: Vec::new(), header, piece: 0, byte: 0 })
    }

    /// Begins with `pieces`.
    pub(super) fn start(&mut self, pieces: Vec<SendPiece>) {
        self.pieces = pieces;
        (self.piece, self.byte) = (0, 0);
    }

    /// Prepares the next part of at most `bytes_max` bytes; false at the end.
    pub(super) fn next_part(&mut self, bytes_max: usize) -> bool {
        self.vectors.clear();
        let mut room = bytes_max;
        let mut skip = self.byte;
        for piece in &self.pieces[self.piece..] {
            let rest = &piece[std::mem::take(&mut skip)..];
            let len = rest.len().min(room);
            if len > 0 {
                let base = rest.as_ptr().cast_mut().cast();
                self.vectors.push(libc::iovec { iov_base: base, iov_len: len });
            }
            room -= len;
            if room == 0 || self.vectors.len() == VECTORS_MAX {
                break;
            }
        }
        !self.vectors.is_empty()
    }

    /// The part as one range, when it is one.
    pub(super) fn single(&self) -> Option<(*const u8, usize)> {
        match self.vectors.as_slice() {
            [one] => Some((one.iov_base.cast_const().cast(), one.iov_len)),
            _ => None,
        }
    }

    /// The part as a message.
    pub(super) fn header(&mut self) -> *const libc::msghdr {
        self.header.msg_iov = self.vectors.as_mut_ptr();
        self.header.msg_iovlen = self.vectors.len();
        &raw const self.header
    }

    /// Counts `sent` bytes as done; fails when the kernel took none.
    pub(super) fn advance(&mut self, sent: usize) -> io::Result<()> {
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let mut left = sent;
        while left > 0 {
            let rest = self.pieces[self.piece].len() - self.byte;
            if left < rest {
                self.byte += left;
                return Ok(());
            }
            left -= rest;
            (self.piece, self.byte) = (self.piece + 1, 0);
        }
        Ok(())
    }

    /// Frees the pieces and gives their list back, empty.
    pub(super) fn finish(&mut self) -> Vec<SendPiece> {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        if self.vectors.capacity() > 16 {
            self.vectors = Vec::new();
        }
        pieces
    }
}
