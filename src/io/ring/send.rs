//! What a connection sends: a list of owned pieces, gathered by the kernel.

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
