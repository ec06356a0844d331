//! Recovery of one log: what its frames vouch for goes into its segments
//! (`rewrite`), files of no state go, indexes, epochs and what the producers
//! need are rebuilt (`rescan`). Nothing is synced here: `finish` does that for
//! all logs together, before the first new frame.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::checkpoint::{Floor, LogEntry};
use super::config::KnownLog;
use super::epoch_cache::EpochCache;
use super::error::{Error, FatalReason, Result};
use super::journal::reader::Replay;
use super::recovery::Recovery;
use super::rescan::Scan;
use super::retention::DROPPED;
use super::rewrite::{Rewriter, check_extents, check_floor};
use super::segment::names::{self, Kind};
use super::set::Recovered;
use super::state::{ClosedSegment, Log, Shared};
use crate::io::{Env, FileSystem as _};
use crate::model::{LeaderEpoch, LogId, Offset, TopicId};

/// Restores a log from its floor and its frames and puts it into the set.
pub(crate) async fn rebuild<E: Env>(
    recovery: &Recovery<E>,
    known: &KnownLog,
    entry: Option<LogEntry>,
    mut replay: Replay,
) -> Result<Recovered> {
    let shared = recovery.set.shared.clone();
    let dir = shared.config.data_dir.join(known.dir_name());
    make_dir(&shared, &dir, known).await?;
    // What a killed process has created is visible and yet may be durable or not.
    shared.sync_dir_later(&dir);
    shared.sync_dir_later(&shared.config.data_dir);
    rewrite(recovery, &dir, &mut replay).await?;
    // In class `os` the records themselves may be gone.
    let end = replay.end.offset;
    let log_start = super::recovery::entry_start(entry.as_ref()).min(end);
    let trusted = entry.as_ref().map_or(Floor::start_of(0), |e| e.floor);
    let segments = sweep(&shared, &dir, &replay, (log_start, trusted)).await?;
    let mut epochs = EpochCache::default();
    for (epoch, start) in entry.iter().flat_map(|e| &e.epochs) {
        epochs.assign(LeaderEpoch(*epoch), Offset(*start));
    }
    let snapshot = latest_snapshot(&shared, &dir, end).await?;
    let mut scan = Scan {
        shared: &shared,
        dir: &dir,
        known,
        epochs,
        trusted,
        wanted_from: snapshot.as_ref().map_or(log_start, |(at, _)| *at),
        batches: Vec::new(),
    };
    let active = scan.all(&segments, &replay).await?;
    let (mut epochs, batches_after) = (scan.epochs, scan.batches);
    let latest = epochs.latest().map_or(LeaderEpoch::NONE, |e| e.epoch).max(replay.epoch);
    let epoch = known.epoch_to_start.unwrap_or(LeaderEpoch(latest.0 + 1));
    epochs.assign(epoch, end);
    epochs.truncate_before(log_start);
    let snapshots_stored = snapshot.iter().map(|(at, _)| *at).collect();
    let handle = shared.state.borrow_mut().insert(|handle| Log {
        epochs,
        log_start,
        start_wanted: log_start,
        snapshots_stored,
        closed: segments.closed,
        ..Log::at_rest(handle, known, dir, active)
    });
    let log_id = LogId(known.log_id.0);
    Ok(Recovered { handle, log_id, log_start, log_end: end, epoch, snapshot, batches_after })
}

/// Gets what frames vouch for into the segments.
async fn rewrite<E: Env>(recovery: &Recovery<E>, dir: &Path, replay: &mut Replay) -> Result<()> {
    check_extents(recovery, dir, replay).await?;
    check_floor(&recovery.set.shared, dir, replay).await?;
    let mut rewriter = Rewriter::new(&recovery.set.shared, dir, replay.floor);
    for piece in &replay.pieces {
        rewriter.piece(recovery, piece).await?;
    }
    rewriter.end(replay).await
}

/// Makes a log's directory with its `partition.metadata`, unless it is there.
pub(crate) async fn make_dir<E: Env>(
    shared: &Rc<Shared<E>>,
    dir: &Path,
    known: &KnownLog,
) -> Result<()> {
    let fs = shared.env.fs();
    let path = dir.join("partition.metadata");
    let text = metadata_text(known.topic_id);
    if fs.read(&path).await.is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    fs.create_dir_all(dir).await.map_err(|e| Error::io(dir, e))?;
    let written = fs.write(&path, text.into_bytes()).await;
    written.map_err(|e| Error::write(FatalReason::Checkpoint, &path, e))?;
    shared.sync_dir(dir).await?;
    shared.sync_dir(&shared.config.data_dir).await
}

/// What `partition.metadata` holds.
pub(crate) fn metadata_text(id: TopicId) -> String {
    format!("version: 0\ntopic_id: {}\n", base64_url(&id.0))
}

/// Kafka's text form of a topic id: base64 for URLs, without padding.
fn base64_url(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::with_capacity(22);
    for group in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for i in 0..=group.len() {
            out.push(DIGITS[(bits >> (18 - 6 * i) & 63) as usize] as char);
        }
    }
    out
}

/// What the directory holds once everything unvouched is gone.
pub(crate) struct Segments {
    pub(crate) closed: BTreeMap<Offset, ClosedSegment>,
    pub(crate) active: Offset,
}

/// Removes files that belong to no state of the log any more: what no frame
/// vouches for, and what retention has dropped, whose renames a crash may have
/// undone. Of what is below the log start, segments that the checkpoint's floor
/// is in or before stay: a second crash would look for them.
async fn sweep<E: Env>(
    shared: &Rc<Shared<E>>,
    dir: &Path,
    replay: &Replay,
    (log_start, trusted): (Offset, Floor),
) -> Result<Segments> {
    let fs = shared.env.fs();
    let listed = fs.read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
    for entry in listed.iter().filter(|entry| entry.name.ends_with(DROPPED)) {
        shared.unlink_at(std::time::Duration::ZERO, dir.join(&entry.name));
    }
    let names = || listed.iter().filter_map(|entry| names::parse(&entry.name));
    let bases = names().filter(|(_, kind)| *kind == Kind::Log).map(|(base, _)| base);
    let first_kept = bases.chain([replay.segment]).filter(|base| *base <= log_start).max();
    let dropped = first_kept.unwrap_or(Offset::ZERO).min(Offset(trusted.segment));
    let rewritten: Vec<Offset> = replay.pieces.iter().map(|p| p.segment).collect();
    let counts = |base: Offset| {
        base.0 <= replay.floor.segment || rewritten.contains(&base) || base == replay.segment
    };
    let mut closed = BTreeMap::new();
    let mut removed = false;
    for entry in &listed {
        let Some((offset, kind)) = names::parse(&entry.name) else { continue };
        let vouched = match kind {
            Kind::Snapshot => offset <= replay.end.offset,
            _ => offset <= replay.segment && counts(offset),
        };
        let keep = vouched && offset >= dropped;
        if !keep {
            let path = dir.join(&entry.name);
            fs.remove_file(&path).await.map_err(|e| Error::io(&path, e))?;
            removed = true;
        } else if kind == Kind::Log && offset < replay.segment {
            let len = fs.len(&dir.join(&entry.name)).await;
            let len = len.map_err(|e| Error::io(dir, e))?;
            closed.insert(offset, ClosedSegment::new(len, replay.segment, None));
        }
    }
    if removed {
        shared.sync_dir_later(dir);
    }
    let bases: Vec<Offset> = closed.keys().copied().chain([replay.segment]).collect();
    for pair in bases.windows(2) {
        if let Some(segment) = closed.get_mut(&pair[0]) {
            segment.end = pair[1];
        }
    }
    Ok(Segments { closed, active: replay.segment })
}

async fn latest_snapshot<E: Env>(
    shared: &Rc<Shared<E>>,
    dir: &Path,
    end: Offset,
) -> Result<Option<(Offset, Vec<u8>)>> {
    let listed = shared.env.fs().read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
    let latest = listed
        .iter()
        .filter_map(|e| names::parse(&e.name))
        .filter(|(offset, kind)| *kind == Kind::Snapshot && *offset <= end)
        .map(|(offset, _)| offset)
        .max();
    let Some(offset) = latest else { return Ok(None) };
    let path = names::path(dir, offset, Kind::Snapshot);
    let bytes = shared.env.fs().read(&path).await.map_err(|e| Error::io(&path, e))?;
    Ok(Some((offset, bytes)))
}

#[cfg(test)]
mod tests {
    use super::base64_url;

    #[test]
    fn topic_ids_look_as_kafka_prints_them() {
        assert_eq!(base64_url(&[0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(base64_url(&[0xff; 16]), "_____________________w");
    }
}
