//! One journal frame: a fixed header and a payload, padded to 8 bytes. Byte
//! table in `docs/formats.md`. Little-endian.
//!
//! Pure: bytes in, values out.

use crate::model::{LeaderEpoch, LogId, Offset};
use crate::record::HEADER_LEN as BATCH_HEADER;

/// Bytes of a frame header.
pub(crate) const FRAME_HEADER: usize = 80;
/// Frames start at multiples of this.
pub(crate) const FRAME_ALIGN: usize = 8;

/// What a frame says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// A batch at the log's end.
    Data = 1,
    /// A range that was written straight to the segment, and its unaligned rest.
    Extent = 2,
    /// The log ends at this offset now, and an epoch starts.
    Reset = 3,
    /// The log is the segment up to a floor, then these raw bytes.
    Tail = 4,
    /// Reserved: term, vote and commit of a replicated log.
    State = 5,
    /// Reserved: a replicated entry that takes no offset.
    Entry = 6,
    /// A log came into service.
    Open = 7,
    /// A log was closed cleanly.
    Close = 8,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Data,
            2 => Self::Extent,
            3 => Self::Reset,
            4 => Self::Tail,
            5 => Self::State,
            6 => Self::Entry,
            7 => Self::Open,
            8 => Self::Close,
            _ => return None,
        })
    }
}

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) log_id: LogId,
    pub(crate) epoch: LeaderEpoch,
    /// Index of the replication log; 0 until there is one.
    pub(crate) replication_index: u64,
    /// `Tail`: the offset of the batch boundary at `aux`.
    pub(crate) base_offset: Offset,
    /// The log's end after the frame.
    pub(crate) end_offset: Offset,
    /// Base offset of the segment that `position` is in.
    pub(crate) segment: Offset,
    /// Byte position of the payload in the segment; `Extent`: of the range.
    pub(crate) position: u64,
    /// `Extent`: bytes of the range that are in the segment; the payload
    /// follows them. `Tail`: position of the last batch boundary at or below
    /// `position`.
    pub(crate) aux: u64,
    /// `Extent`: CRC-32 of the bytes in the segment.
    pub(crate) segment_crc: u32,
    /// CRC-32 of the payload, but for `Data`, whose batch has its own.
    pub(crate) payload_crc: u32,
    pub(crate) payload_len: u32,
}

/// Bytes that a frame with this payload takes.
pub(crate) const fn frame_len(payload: usize) -> usize {
    (FRAME_HEADER + payload).next_multiple_of(FRAME_ALIGN)
}

impl FrameHeader {
    /// A frame without payload.
    pub(crate) fn bare(kind: FrameKind, log_id: LogId, epoch: LeaderEpoch) -> Self {
        Self {
            kind,
            log_id,
            epoch,
            replication_index: 0,
            base_offset: Offset::ZERO,
            end_offset: Offset::ZERO,
            segment: Offset::ZERO,
            position: 0,
            aux: 0,
            segment_crc: 0,
            payload_crc: 0,
            payload_len: 0,
        }
    }

    pub(crate) fn encode(&self) -> [u8; FRAME_HEADER] {
        let mut out = [0u8; FRAME_HEADER];
        out[0] = self.kind as u8;
        out[4..8].copy_from_slice(&self.payload_len.to_le_bytes());
        out[8..16].copy_from_slice(&self.log_id.0.to_le_bytes());
        out[16..20].copy_from_slice(&self.epoch.0.to_le_bytes());
        out[20..24].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[24..32].copy_from_slice(&self.replication_index.to_le_bytes());
        out[32..40].copy_from_slice(&self.base_offset.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.end_offset.0.to_le_bytes());
        out[48..56].copy_from_slice(&self.segment.0.to_le_bytes());
        out[56..64].copy_from_slice(&self.position.to_le_bytes());
        out[64..72].copy_from_slice(&self.aux.to_le_bytes());
        out[72..76].copy_from_slice(&self.segment_crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER]) -> Option<Self> {
        Some(Self {
            kind: FrameKind::from_byte(bytes[0])?,
            payload_len: u32::from_le_bytes(part(bytes, 4)),
            log_id: LogId(u64::from_le_bytes(part(bytes, 8))),
            epoch: LeaderEpoch(i32::from_le_bytes(part(bytes, 16))),
            payload_crc: u32::from_le_bytes(part(bytes, 20)),
            replication_index: u64::from_le_bytes(part(bytes, 24)),
            base_offset: Offset(i64::from_le_bytes(part(bytes, 32))),
            end_offset: Offset(i64::from_le_bytes(part(bytes, 40))),
            segment: Offset(i64::from_le_bytes(part(bytes, 48))),
            position: u64::from_le_bytes(part(bytes, 56)),
            aux: u64::from_le_bytes(part(bytes, 64)),
            segment_crc: u32::from_le_bytes(part(bytes, 72)),
        })
    }

    /// Bytes of the payload that the group's checksum covers beside the header.
    pub(crate) fn covered(&self) -> usize {
        match self.kind {
            FrameKind::Data => BATCH_HEADER.min(self.payload_len as usize),
            _ => 0,
        }
    }
}

/// `N` bytes of a larger array, for `from_le_bytes`.
pub(crate) fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the caller's bounds are constants inside the header")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn header_round_trip(
            kind in 1u8..=8, log in any::<u64>(), epoch in any::<i32>(), base in any::<i64>(),
            end in any::<i64>(), segment in any::<i64>(), position in any::<u64>(),
            aux in any::<u64>(), crc in any::<u32>(), len in any::<u32>(),
        ) {
            let header = FrameHeader {
                kind: FrameKind::from_byte(kind).unwrap(),
                log_id: LogId(log),
                epoch: LeaderEpoch(epoch),
                replication_index: aux ^ log,
                base_offset: Offset(base),
                end_offset: Offset(end),
                segment: Offset(segment),
                position,
                aux,
                segment_crc: crc,
                payload_crc: !crc,
                payload_len: len,
            };
            prop_assert_eq!(FrameHeader::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn unknown_kinds_are_refused() {
        for byte in (9..=255).chain([0]) {
            let mut bytes = [0; FRAME_HEADER];
            bytes[0] = byte;
            assert_eq!(FrameHeader::decode(&bytes), None);
        }
    }
}
