//! The provided buffers that the kernel receives into.

/// Received bytes in a buffer of the ring. Dropping it gives the buffer back.
pub struct ReceivedBuf {
    _private: (),
}

impl std::ops::Deref for ReceivedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        todo!()
    }
}

impl std::fmt::Debug for ReceivedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceivedBuf({} bytes)", self.len())
    }
}
