//! Entry points for fuzz targets: whatever the bytes, no panic.

use super::checkpoint::{self, Checkpoint, Floor};
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
        for pair in replay.pieces.windows(2) {
            let [before, after] = pair else { continue };
            let rolls = after.segment == after.base && after.pos == 0;
            let goes_on = after.segment == before.segment && after.pos == before.pos + before.len;
            assert!(after.base == before.end && (goes_on || rolls), "{before:?} {after:?}");
        }
        replay.cut(0);
    }
    let _ = beyond_flight(bytes, header.identity, pos, chain.last.map_or(1, |(n, _)| n + 1));
    frames
}

/// Reads the bytes as the body of a checkpoint whose header is right, and says
/// whether they are one; what comes out must go in again.
pub fn checkpoint_body(bytes: &[u8]) -> bool {
    let Some(checkpoint) = Checkpoint::decode(&checkpoint::framed(bytes)) else { return false };
    assert_eq!(Checkpoint::decode(&checkpoint.encode()), Some(checkpoint));
    true
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
    use std::path::PathBuf;

    use super::*;
    use crate::log::checkpoint::{Groups, LogEntry};
    use crate::model::{LeaderEpoch, Offset};

    #[test]
    fn a_made_journal_is_replayed() {
        let reset = FrameHeader::bare(FrameKind::Reset, LogId(1), LeaderEpoch(2));
        let data = FrameHeader { kind: FrameKind::Data, ..reset };
        let bytes = [data.encode(), [0; FRAME_HEADER], data.encode(), reset.encode()].concat();
        assert_eq!(replay_bytes(&journal_of(&bytes)), 3);
        assert_eq!(replay_bytes(&bytes), 0);
    }

    /// A frame of log 1 at offset `at`, in a segment that starts at `segment`,
    /// where each offset before it took as many bytes as one batch of `Data`.
    fn frame(kind: FrameKind, segment: i64, at: i64) -> FrameHeader {
        let batch = a_batch().len() as u64;
        FrameHeader {
            base_offset: Offset(at),
            end_offset: Offset(at + 1),
            segment: Offset(segment),
            position: (at - segment) as u64 * batch,
            ..FrameHeader::bare(kind, LogId(1), LeaderEpoch(1))
        }
    }

    fn data(segment: i64, at: i64) -> FrameHeader {
        frame(FrameKind::Data, segment, at)
    }

    /// Input from which `journal_of` makes these frames.
    fn input(frames: &[FrameHeader]) -> Vec<u8> {
        frames.iter().rev().fold(Vec::new(), |after, frame| {
            let taken = |own: usize| (own + after.len()).min((own + after.len()) / 8 + 1);
            let payload = match frame.kind {
                FrameKind::Data => 0,
                _ => (0..).find(|own| taken(*own) == *own).expect("it grows more slowly"),
            };
            [&frame.encode()[..], &vec![b'p'; payload], &after].concat()
        })
    }

    /// What a run of the fuzzer starts from, each with how many frames it has.
    fn seeds() -> Vec<(&'static str, usize, Vec<u8>)> {
        let at = |kind, segment, at| frame(kind, segment, at);
        let reset = FrameHeader { end_offset: Offset(1), ..at(FrameKind::Reset, 0, 1) };
        let extent = FrameHeader { aux: 4096, segment_crc: 1, ..at(FrameKind::Extent, 0, 1) };
        let tail = FrameHeader { position: 4096, aux: 4000, ..at(FrameKind::Tail, 0, 9) };
        // Twelve bytes are the payload of a frame before one without.
        let behind = |frame: FrameHeader, position: u64, at: i64| FrameHeader {
            position: position + 12,
            ..data(frame.segment.0, at)
        };
        let (in_extent, in_tail) = (extent.position + extent.aux, tail.position);
        let other = FrameHeader { log_id: LogId(2), ..data(0, 0) };
        let append = [data(0, 0), data(0, 1), data(0, 2)];
        let far: Vec<_> = (0..40).map(|n| data(0, n)).collect();
        let mut damaged = journal_of(&input(&far[..8]));
        damaged[BLOCK as usize + GROUP_HEADER] ^= 1;
        let checkpoint = Checkpoint {
            sequence: 9,
            groups: [Groups { first: 7, synced_end: 9, written_end: 10 }, Groups::default()],
            logs: vec![LogEntry {
                log_id: 1,
                name: "events-0".into(),
                log_start: 3,
                floor: Floor { segment: 3, pos: 8192, boundary_pos: 8000, boundary_offset: 77 },
                epochs: vec![(1, 3), (2, 50)],
            }],
        };
        let body = checkpoint.encode()[checkpoint::HEADER_LEN..].to_vec();
        let opened = [at(FrameKind::Open, 0, 0), reset, data(0, 0), at(FrameKind::Close, 0, 1)];
        vec![
            ("append", 3, input(&append)),
            ("roll", 3, input(&[data(0, 0), data(1, 1), data(1, 2)])),
            ("reset", 4, input(&[data(0, 0), data(0, 1), reset, data(0, 1)])),
            ("extent", 3, input(&[data(0, 0), extent, behind(extent, in_extent, 2)])),
            ("tail", 3, input(&[data(0, 0), tail, behind(tail, in_tail, 10)])),
            ("open-close", 4, input(&opened)),
            ("two-logs", 4, input(&[data(0, 0), other, data(0, 1), other])),
            ("many-groups", 40, input(&far)),
            ("journal", 3, journal_of(&input(&append))),
            ("damaged-journal", 0, damaged),
            // A byte of each happens to be a kind of frame.
            ("checkpoint", 1, checkpoint.encode()),
            ("checkpoint-body", 1, body),
        ]
    }

    #[test]
    fn the_committed_seeds_are_of_the_present_format() {
        let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/recovery");
        let regenerate = std::env::var_os("MILLSTREAM_REGENERATE").is_some();
        for (name, frames, bytes) in seeds() {
            let path = dir.join(name);
            if regenerate {
                std::fs::write(&path, &bytes).unwrap();
            }
            let found = std::fs::read(&path).unwrap_or_default();
            let remedy = "run: MILLSTREAM_REGENERATE=1 cargo test --lib log::fuzzing";
            assert!(found == bytes, "seed {name} is not what the formats say; {remedy}");
            let is_journal = name.ends_with("journal");
            let journal = if is_journal { bytes.clone() } else { journal_of(&bytes) };
            assert_eq!(replay_bytes(&journal), frames, "{name}");
            // The archive is read from its end, so that a header before it is no harm.
            assert_eq!(checkpoint_body(&bytes), name.starts_with("checkpoint"), "{name}");
        }
    }
}
