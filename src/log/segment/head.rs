//! The fields of a batch header that walking a segment needs, from bytes that
//! need not hold the whole batch. Pure.

use crate::model::{LeaderEpoch, Offset, Timestamp};
pub(crate) use crate::record::HEADER_LEN;

/// Largest batch that a walk believes in, in bytes.
const BATCH_LIMIT: usize = 256 << 20;

/// A batch by its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BatchHead {
    pub(crate) base: Offset,
    /// Total bytes, with the twelve before the length's end.
    pub(crate) len: usize,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) last_offset_delta: i32,
    pub(crate) max_timestamp: Timestamp,
}

impl BatchHead {
    /// Reads a header; `None` when it cannot be one.
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let int = |at: usize| i32::from_be_bytes(four(bytes, at));
        let long = |at: usize| i64::from_be_bytes(eight(bytes, at));
        let len = usize::try_from(int(8)).ok()? + 12;
        let head = Self {
            base: Offset(long(0)),
            len,
            epoch: LeaderEpoch(int(12)),
            last_offset_delta: int(23),
            max_timestamp: Timestamp(long(35)),
        };
        let sane = (HEADER_LEN..=BATCH_LIMIT).contains(&len)
            && bytes[16] == 2
            && head.last_offset_delta >= 0
            && head.base.0 >= 0;
        sane.then_some(head)
    }

    /// From the start of a longer slice.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        Self::parse(bytes.get(..HEADER_LEN)?.try_into().ok()?)
    }

    /// The offset after the batch.
    pub(crate) fn end(&self) -> Offset {
        self.base.plus(i64::from(self.last_offset_delta) + 1)
    }
}

fn four(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; 4] {
    bytes[at..at + 4].try_into().expect("constant bounds inside the header")
}

fn eight(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; 8] {
    bytes[at..at + 8].try_into().expect("constant bounds inside the header")
}
