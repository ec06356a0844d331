//! Entry points for fuzz targets: whatever the bytes, no panic.

use super::checkpoint::{Checkpoint, Floor};
use super::config::BLOCK;
use super::journal::files::FileHeader;
use super::journal::reader::{Chain, Replay, beyond_flight, scan};
use crate::model::LogId;

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
