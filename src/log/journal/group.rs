//! A group: what one journal write holds. It starts on a block, is padded with
//! zeros to the next, and carries the number and checksum that chain it to the
//! group before. Byte table in `docs/formats.md`.
//!
//! The group's checksum covers its header, all frame headers and the first 61
//! bytes of each batch; the rest of a batch is covered by the batch's own
//! CRC-32C and any other payload by its frame. A group counts as a whole or
//! not at all.

use super::frame::{FRAME_ALIGN, FRAME_HEADER, FrameHeader, FrameKind, frame_len, part};
use crate::io::{ChunkMut, ChunkSlice};
use crate::record::BatchView;

/// Bytes of a group header.
pub(crate) const GROUP_HEADER: usize = 64;
/// Blocks that groups start at.
pub(crate) const GROUP_ALIGN: usize = 4096;
const MAGIC: u32 = u32::from_le_bytes(*b"MSG1");
/// Longest group that a reader believes in, in bytes.
pub(crate) const GROUP_LIMIT: usize = 64 << 20;

/// Which file a group belongs to: neither repeats, so that groups of a file's
/// earlier lives are not mistaken for new ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileIdentity {
    pub(crate) sequence: u64,
    pub(crate) salt: u64,
}

/// The header of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupHeader {
    pub(crate) file: FileIdentity,
    pub(crate) number: u64,
    /// Bytes of header and frames, padding not counted.
    pub(crate) len: u32,
    pub(crate) frames: u32,
    /// Checksum of the group before.
    pub(crate) previous_crc: u32,
    /// Checksum of the covered bytes of the frames.
    pub(crate) body_crc: u32,
}

impl GroupHeader {
    /// The bytes, and the checksum by which the next group names this one.
    pub(crate) fn encode(&self) -> ([u8; GROUP_HEADER], u32) {
        let mut out = [0u8; GROUP_HEADER];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.file.salt.to_le_bytes());
        out[16..24].copy_from_slice(&self.file.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&self.number.to_le_bytes());
        out[32..36].copy_from_slice(&self.len.to_le_bytes());
        out[36..40].copy_from_slice(&self.frames.to_le_bytes());
        out[40..44].copy_from_slice(&self.previous_crc.to_le_bytes());
        out[44..48].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc32fast::hash(&out[8..]);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        (out, crc)
    }

    /// Reads a header whose checksum holds.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, u32)> {
        let bytes = bytes.get(..GROUP_HEADER)?;
        let crc = u32::from_le_bytes(part(bytes, 4));
        if u32::from_le_bytes(part(bytes, 0)) != MAGIC || crc32fast::hash(&bytes[8..]) != crc {
            return None;
        }
        let header = Self {
            file: FileIdentity {
                salt: u64::from_le_bytes(part(bytes, 8)),
                sequence: u64::from_le_bytes(part(bytes, 16)),
            },
            number: u64::from_le_bytes(part(bytes, 24)),
            len: u32::from_le_bytes(part(bytes, 32)),
            frames: u32::from_le_bytes(part(bytes, 36)),
            previous_crc: u32::from_le_bytes(part(bytes, 40)),
            body_crc: u32::from_le_bytes(part(bytes, 44)),
        };
        let len = header.len as usize;
        (GROUP_HEADER..=GROUP_LIMIT).contains(&len).then_some((header, crc))
    }
}

/// A group being filled. Its place is decided when it is submitted.
///
/// A payload is copied into the group, or stays where it lies and is written
/// from there.
pub(crate) struct GroupBuilder {
    buf: ChunkMut,
    /// Payloads that stay where they lie, each with the bytes of `buf` before it.
    elsewhere: Vec<(usize, ChunkSlice)>,
    elsewhere_bytes: usize,
    body: crc32fast::Hasher,
    frames: u32,
}

/// A group that is ready to be written.
pub(crate) struct Sealed {
    buf: ChunkSlice,
    elsewhere: Vec<(usize, ChunkSlice)>,
    len: usize,
    /// The checksum by which the next group names this one.
    pub(crate) crc: u32,
}

impl Sealed {
    /// Bytes on the medium.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes when all of them lie in one piece, as direct writes need.
    pub(crate) fn whole(&self) -> &ChunkSlice {
        assert!(self.elsewhere.is_empty(), "a group for a direct write copies its payloads");
        &self.buf
    }

    /// The bytes in their order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        let before = self.elsewhere.iter().flat_map(move |(end, payload)| {
            let start = std::mem::replace(&mut at, *end);
            [&self.buf[start..*end], &payload[..]]
        });
        let rest = self.elsewhere.last().map_or(0, |(end, _)| *end);
        before.chain([&self.buf[rest..]])
    }
}

impl GroupBuilder {
    /// Starts in `buf`, which must hold a header.
    pub(crate) fn new(mut buf: ChunkMut) -> Self {
        buf.set_len(GROUP_HEADER);
        Self {
            buf,
            elsewhere: Vec::new(),
            elsewhere_bytes: 0,
            body: crc32fast::Hasher::new(),
            frames: 0,
        }
    }

    /// Whether a frame with this payload fits.
    pub(crate) fn fits(&self, payload: usize) -> bool {
        // Payloads elsewhere count as if they were here: a group's size is
        // bounded however it is made.
        self.buf.room() >= frame_len(payload) + self.elsewhere_bytes
    }

    fn len(&self) -> usize {
        self.buf.len() + self.elsewhere_bytes
    }

    /// Bytes that the group takes on the medium.
    pub(crate) fn padded_len(&self) -> usize {
        self.len().next_multiple_of(GROUP_ALIGN)
    }

    /// As `padded_len`, with one more frame that fits.
    pub(crate) fn padded_len_with(&self, payload: usize) -> usize {
        (self.len() + frame_len(payload)).next_multiple_of(GROUP_ALIGN)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Adds a frame whose payload is copied from parts. `header.payload_len`
    /// must be their sum; for `Data` the first part holds the batch's header.
    pub(crate) fn push(&mut self, header: &FrameHeader, parts: &[&[u8]]) {
        self.begin(header, parts.first().copied().unwrap_or_default());
        for part in parts {
            self.buf.extend(part);
        }
        self.end(header);
    }

    /// As `push`, of a payload that stays where it lies until the group is
    /// written; `head` is its first bytes, a batch's header.
    pub(crate) fn push_from(&mut self, header: &FrameHeader, head: &[u8], payload: &[ChunkSlice]) {
        self.begin(header, head);
        for slice in payload {
            self.elsewhere.push((self.buf.len(), slice.clone()));
            self.elsewhere_bytes += slice.len();
        }
        self.end(header);
    }

    fn begin(&mut self, header: &FrameHeader, head: &[u8]) {
        let encoded = header.encode();
        self.body.update(&encoded);
        self.body.update(&head[..header.covered()]);
        self.buf.extend(&encoded);
    }

    fn end(&mut self, header: &FrameHeader) {
        let payload = header.payload_len as usize;
        self.pad(frame_len(payload) - FRAME_HEADER - payload);
        debug_assert_eq!(self.len() % FRAME_ALIGN, 0, "{payload} bytes were announced");
        self.frames += 1;
    }

    fn pad(&mut self, bytes: usize) {
        let at = self.buf.len();
        self.buf.space_mut()[at..at + bytes].fill(0);
        self.buf.set_len(at + bytes);
    }

    /// Writes the header and pads.
    pub(crate) fn seal(mut self, file: FileIdentity, number: u64, previous_crc: u32) -> Sealed {
        let header = GroupHeader {
            file,
            number,
            len: u32::try_from(self.len()).expect("groups are smaller than 4 GiB"),
            frames: self.frames,
            previous_crc,
            body_crc: self.body.clone().finalize(),
        };
        let (bytes, crc) = header.encode();
        self.buf.filled_mut()[..GROUP_HEADER].copy_from_slice(&bytes);
        let len = self.padded_len();
        self.pad(len - self.len());
        Sealed { buf: self.buf.freeze(), elsewhere: self.elsewhere, len, crc }
    }
}

/// Why a group does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadGroup {
    /// Fewer bytes than the header announces.
    Short,
    /// A frame leaves the group, or its kind is unknown.
    Frame,
    /// The checksum of headers does not match.
    Body,
    /// A payload does not match its checksum.
    Payload,
}

/// One frame of a valid group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameView<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
    /// Position of the payload from the start of the group.
    pub(crate) payload_at: usize,
}

/// Checks the whole group at the start of `bytes` and lists its frames.
pub(crate) fn parse<'a>(
    header: &GroupHeader,
    bytes: &'a [u8],
) -> Result<Vec<FrameView<'a>>, BadGroup> {
    let bytes = bytes.get(..header.len as usize).ok_or(BadGroup::Short)?;
    let mut frames = Vec::new();
    let mut body = crc32fast::Hasher::new();
    let mut at = GROUP_HEADER;
    for _ in 0..header.frames {
        let head = bytes.get(at..at + FRAME_HEADER).ok_or(BadGroup::Frame)?;
        let head: &[u8; FRAME_HEADER] = head.try_into().map_err(|_| BadGroup::Frame)?;
        let frame = FrameHeader::decode(head).ok_or(BadGroup::Frame)?;
        let payload_at = at + FRAME_HEADER;
        let payload = bytes
            .get(payload_at..)
            .and_then(|rest| rest.get(..frame.payload_len as usize))
            .ok_or(BadGroup::Frame)?;
        body.update(head);
        body.update(&payload[..frame.covered()]);
        frames.push(FrameView { header: frame, payload, payload_at });
        at += frame_len(payload.len());
    }
    if at != bytes.len() {
        return Err(BadGroup::Frame);
    }
    if body.finalize() != header.body_crc {
        return Err(BadGroup::Body);
    }
    frames.iter().all(payload_holds).then_some(frames).ok_or(BadGroup::Payload)
}

fn payload_holds(frame: &FrameView<'_>) -> bool {
    match frame.header.kind {
        FrameKind::Data => {
            matches!(BatchView::parse(frame.payload), Ok((batch, 0)) if batch.verify_crc())
        }
        _ => crc32fast::hash(frame.payload) == frame.header.payload_crc,
    }
}
