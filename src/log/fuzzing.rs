//! Entry points for fuzz targets: whatever the bytes, no panic.

use super::checkpoint::{Checkpoint, Floor};
use super::config::{BLOCK, DurabilityClass};
use super::journal::files::FileHeader;
use super::journal::frame::{FRAME_ALIGN, FRAME_HEADER, FrameHeader, FrameKind};
use super::journal::group::{FileIdentity, GROUP_HEADER, GroupHeader};
use super::journal::reader::{Chain, Replay, beyond_flight, scan};
use crate::model::{LogId, Timestamp};
use crate::record::{BatchBuilder, Compression, NewRecord};

/// Replays the bytes of a journal file as a start would, and returns how many
/// frames counted.
pub fn replay_bytes(bytes: &[u8]) -> usize {
    let _ = Checkpoint::decode(bytes);
    let Some(header) = FileHeader::decode(bytes) else { return 0 };
    let mut pos = BLOCK as usize;
    let mut chain = Chain::default();
    let mut replays = ahash::AHashMap::<LogId, Replay>::new();
    let mut frames = 0;
    scan(bytes, true, header.identity, &mut pos, &mut chain, |_, frame, at| {
        frames += 1;
        replays
            .entry(frame.header.log_id)
            .or_insert_with(|| Replay::new(Floor::start_of(0)))
            .apply(&frame.header, 0, at);
    });
    for replay in replays.values_mut() {
        assert_eq!(replay.pieces.last().map_or(replay.end.offset, |p| p.end), replay.end.offset);
        replay.cut(0);
    }
    let _ = beyond_flight(bytes, header.identity, pos, chain.last.map_or(1, |(n, _)| n + 1));
    frames
}

/// Makes a journal file out of whatever the bytes say about frames: a fuzzer
/// guesses no checksums. 80 bytes are read as a frame's header, the bytes after
/// it as its payload; four frames make a group.
#[must_use]
pub fn journal_of(mut bytes: &[u8]) -> Vec<u8> {
    let file = FileIdentity { sequence: 7, salt: 9 };
    let header = FileHeader { class: DurabilityClass::Disk, shard: 0, identity: file, capacity: 0 };
    let mut out = header.encode().to_vec();
    out.resize(BLOCK as usize, 0);
    let (mut number, mut previous_crc) = (1, 0);
    while !bytes.is_empty() {
        let mut body = Vec::new();
        let mut crc = crc32fast::Hasher::new();
        let mut frames = 0;
        while frames < 4
            && let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEADER>()
        {
            bytes = rest;
            let Some(mut frame) = FrameHeader::decode(head) else { continue };
            let payload = match frame.kind {
                FrameKind::Data => a_batch(),
                _ => {
                    let (payload, rest) = bytes.split_at(bytes.len().min(bytes.len() / 8 + 1));
                    bytes = rest;
                    payload.to_vec()
                }
            };
            frame.payload_len = payload.len() as u32;
            frame.payload_crc = crc32fast::hash(&payload);
            let encoded = frame.encode();
            crc.update(&encoded);
            crc.update(&payload[..frame.covered()]);
            body.extend_from_slice(&encoded);
            body.extend_from_slice(&payload);
            body.resize(body.len().next_multiple_of(FRAME_ALIGN), 0);
            frames += 1;
        }
        if frames == 0 {
            break;
        }
        let header = GroupHeader {
            file,
            number,
            len: (GROUP_HEADER + body.len()) as u32,
            frames,
            previous_crc,
            body_crc: crc.finalize(),
        };
        let (encoded, crc) = header.encode();
        out.extend_from_slice(&encoded);
        out.extend_from_slice(&body);
        out.resize(out.len().next_multiple_of(BLOCK as usize), 0);
        (number, previous_crc) = (number + 1, crc);
    }
    out
}

fn a_batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(&NewRecord { timestamp: Timestamp(1), key: None, value: None, headers: &[] });
    builder.build().expect("nothing to compress")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_journal_is_replayed() {
        let reset = FrameHeader::bare(FrameKind::Reset, LogId(1), crate::model::LeaderEpoch(2));
        let data = FrameHeader { kind: FrameKind::Data, ..reset };
        let bytes = [data.encode(), [0; FRAME_HEADER], data.encode(), reset.encode()].concat();
        assert_eq!(replay_bytes(&journal_of(&bytes)), 3);
        assert_eq!(replay_bytes(&bytes), 0);
    }
}
