//! Reading journals back: which groups of a file count, and what the frames of
//! one log add up to. Pure: the caller loads bytes and says where they end.
//!
//! Invariant: a log's state is its floor plus its frames in journal order. A
//! `DATA` or `EXTENT` frame counts only at the log's end of that moment; a
//! `RESET` drops a suffix; a `TAIL` replaces everything above its floor, which
//! was synced before the frame was queued.

use super::frame::{FrameHeader, FrameKind};
use super::group::{self, FileIdentity, FrameView, GROUP_ALIGN, GroupHeader};
use crate::log::checkpoint::Floor;
use crate::log::config::MAX_IN_FLIGHT;
use crate::log::segment::tail::Mark;
use crate::model::{LeaderEpoch, Offset};

/// Where a chain of groups stands: number and checksum of the last valid one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chain {
    pub(crate) last: Option<(u64, u32)>,
}

/// Why a scan of a file stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The loaded bytes end inside a group that may be valid.
    NeedMore,
    /// The group here does not count.
    Bad,
}

/// Number of the group at `pos`, when its header is one of this file.
pub(crate) fn number_at(bytes: &[u8], pos: usize, file: FileIdentity) -> Option<u64> {
    let (header, _) = GroupHeader::decode(bytes.get(pos..)?)?;
    (header.file == file).then_some(header.number)
}

/// Walks valid groups from `pos` on; `complete` says that no more bytes exist.
pub(crate) fn scan(
    bytes: &[u8],
    complete: bool,
    file: FileIdentity,
    pos: &mut usize,
    chain: &mut Chain,
    mut each: impl FnMut(u64, &FrameView<'_>, u64),
) -> Stop {
    loop {
        let here = bytes.get(*pos..).unwrap_or(&[]);
        if here.len() < GROUP_ALIGN && !complete {
            return Stop::NeedMore;
        }
        let Some((header, crc)) = GroupHeader::decode(here) else { return Stop::Bad };
        let follows = match chain.last {
            Some((number, before)) => header.number == number + 1 && header.previous_crc == before,
            None => true,
        };
        if header.file != file || !follows {
            return Stop::Bad;
        }
        if here.len() < header.len as usize && !complete {
            return Stop::NeedMore;
        }
        let Ok(frames) = group::parse(&header, here) else { return Stop::Bad };
        for frame in &frames {
            each(header.number, frame, (*pos + frame.payload_at) as u64);
        }
        chain.last = Some((header.number, crc));
        *pos += (header.len as usize).next_multiple_of(GROUP_ALIGN);
    }
}

/// The first group after `pos` that no crash explains, if the group expected
/// at `bad` is missing: one beyond what can have been in flight with it.
pub(crate) fn beyond_flight(bytes: &[u8], file: FileIdentity, pos: usize, bad: u64) -> Option<u64> {
    let start = pos.next_multiple_of(GROUP_ALIGN);
    (start..bytes.len()).step_by(GROUP_ALIGN).find_map(|at| {
        let (header, _) = GroupHeader::decode(&bytes[at..])?;
        let far = header.file == file && header.number >= bad + MAX_IN_FLIGHT as u64;
        (far && group::parse(&header, &bytes[at..]).is_ok()).then_some(header.number)
    })
}

/// Numbers of the first and the last valid group of a file that has no header,
/// among those from `from` on. Whatever an earlier life has left is older.
pub(crate) fn without_header(bytes: &[u8], from: u64) -> Option<(u64, u64)> {
    let mut found: Option<(u64, u64)> = None;
    for at in (GROUP_ALIGN..bytes.len()).step_by(GROUP_ALIGN) {
        let Some((header, _)) = GroupHeader::decode(&bytes[at..]) else { continue };
        let number = header.number;
        if number >= from && group::parse(&header, &bytes[at..]).is_ok() {
            let (first, last) = found.unwrap_or((number, number));
            found = Some((first.min(number), last.max(number)));
        }
    }
    found
}

/// Where the bytes of a piece are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// In journal file `file` at byte `at`.
    Journal { file: usize, at: u64 },
    /// The first `in_segment` bytes in the segment itself, if their CRC-32 is
    /// `crc`; the rest in journal file `file` at byte `at`.
    Extent { in_segment: u64, crc: u32, file: usize, at: u64 },
}

/// A run of a log's bytes that a frame vouches for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) segment: Offset,
    pub(crate) pos: u64,
    pub(crate) len: u64,
    pub(crate) base: Offset,
    pub(crate) end: Offset,
    pub(crate) source: Source,
}

/// What the frames of one log add up to.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) floor: Floor,
    pub(crate) pieces: Vec<Piece>,
    /// Segment of the log's end, and the end.
    pub(crate) segment: Offset,
    pub(crate) end: Mark,
    /// The newest epoch that a frame named.
    pub(crate) epoch: LeaderEpoch,
    /// The checkpoint's floor: segments before its own are closed for good.
    checkpoint: Floor,
}

impl Replay {
    /// The log as its checkpoint has it; an empty one when it has none.
    pub(crate) fn new(floor: Floor) -> Self {
        Self {
            floor,
            pieces: Vec::new(),
            segment: Offset(floor.segment),
            end: Mark { offset: Offset(floor.boundary_offset), pos: floor.boundary_pos },
            epoch: LeaderEpoch::NONE,
            checkpoint: floor,
        }
    }

    /// Applies a frame of this log, whose payload lies in file `file` at `at`.
    pub(crate) fn apply(&mut self, frame: &FrameHeader, file: usize, at: u64) {
        match frame.kind {
            FrameKind::Data | FrameKind::Extent => self.extend(frame, file, at),
            FrameKind::Reset => self.reset(frame),
            FrameKind::Tail => self.tail(frame, file, at),
            FrameKind::Open | FrameKind::Close | FrameKind::State | FrameKind::Entry => {}
        }
    }

    fn extend(&mut self, frame: &FrameHeader, file: usize, at: u64) {
        let here = frame.segment == self.segment && frame.position == self.end.pos;
        let rolls = frame.segment > self.segment
            && frame.segment == frame.base_offset
            && frame.position == 0;
        let follows = frame.base_offset == self.end.offset
            && frame.end_offset > frame.base_offset
            && (here || rolls);
        // A checkpoint may put the floor inside the run of an extent.
        let spans_floor = frame.kind == FrameKind::Extent
            && self.pieces.is_empty()
            && frame.segment == self.segment
            && frame.position <= self.end.pos
            && (frame.base_offset..frame.end_offset).contains(&self.end.offset);
        let counts = follows || spans_floor;
        let payload = u64::from(frame.payload_len);
        if !counts {
            return;
        }
        let (len, source) = match frame.kind {
            FrameKind::Extent => {
                let Some(len) = frame.aux.checked_add(payload) else { return };
                let source =
                    Source::Extent { in_segment: frame.aux, crc: frame.segment_crc, file, at };
                (len, source)
            }
            _ => (payload, Source::Journal { file, at }),
        };
        let Some(end) = frame.position.checked_add(len) else { return };
        self.pieces.push(Piece {
            segment: frame.segment,
            pos: frame.position,
            len,
            base: frame.base_offset,
            end: frame.end_offset,
            source,
        });
        self.segment = frame.segment;
        self.end = Mark { offset: frame.end_offset, pos: end };
        self.epoch = self.epoch.max(frame.epoch);
    }

    fn reset(&mut self, frame: &FrameHeader) {
        self.epoch = self.epoch.max(frame.epoch);
        let to = frame.end_offset;
        while let Some(last) = self.pieces.pop_if(|p| p.base >= to) {
            self.segment = last.segment;
            self.end = Mark { offset: last.base, pos: last.pos };
        }
        let Some(last) = self.pieces.last_mut() else {
            // Nothing above the floor is left; below it nothing is dropped.
            self.back_to_floor();
            return;
        };
        self.segment = last.segment;
        if last.end > to {
            // Inside a run of batches: the frame says at which byte.
            let keep = frame.position.saturating_sub(last.pos).min(last.len);
            last.len = keep;
            last.end = to;
        }
        self.end = Mark { offset: last.end, pos: last.pos + last.len };
    }

    fn back_to_floor(&mut self) {
        self.segment = Offset(self.floor.segment);
        self.end =
            Mark { offset: Offset(self.floor.boundary_offset), pos: self.floor.boundary_pos };
    }

    fn tail(&mut self, frame: &FrameHeader, file: usize, at: u64) {
        // A floor may go down: a truncation cuts what a bypass wrote beyond
        // the high watermark. Going down is safe, because the journal loses
        // its oldest frames first: all that followed this one is still there.
        if !frame.position.is_multiple_of(GROUP_ALIGN as u64) || frame.aux > frame.position {
            return;
        }
        if frame.segment.0 < self.checkpoint.segment {
            // The log ended before the checkpoint's floor then, truncated: what
            // frames have put above it so far is gone, a floor too.
            self.epoch = self.epoch.max(frame.epoch);
            self.floor = self.checkpoint;
            self.pieces.clear();
            self.back_to_floor();
            return;
        }
        let len = u64::from(frame.payload_len);
        let Some(end) = frame.position.checked_add(len) else { return };
        self.floor = Floor {
            segment: frame.segment.0,
            pos: frame.position,
            boundary_pos: frame.aux,
            boundary_offset: frame.base_offset.0,
        };
        self.pieces.clear();
        self.pieces.push(Piece {
            segment: frame.segment,
            pos: frame.position,
            len,
            base: frame.base_offset,
            end: frame.end_offset,
            source: Source::Journal { file, at },
        });
        self.segment = frame.segment;
        self.end = Mark { offset: frame.end_offset, pos: end };
        self.epoch = self.epoch.max(frame.epoch);
    }

    /// Drops the piece at `index` and all after it: its bytes never arrived.
    pub(crate) fn cut(&mut self, index: usize) {
        self.pieces.truncate(index);
        match self.pieces.last() {
            Some(last) => {
                self.segment = last.segment;
                self.end = Mark { offset: last.end, pos: last.pos + last.len };
            }
            None => self.back_to_floor(),
        }
    }
}

#[cfg(test)]
mod tests;
