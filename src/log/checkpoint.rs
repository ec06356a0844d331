//! The checkpoint of a shard: each log's floor and what belongs to it, in one
//! file that is replaced atomically. rkyv inside a header with version,
//! length and CRC; validated on read.

use std::path::{Path, PathBuf};

use rkyv::{Archive, Deserialize, Serialize};

use super::error::{Error, FatalReason, Result, is_no_descriptor};
use crate::io::{Env, FileSystem as _};
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

const MAGIC: &[u8; 8] = b"MSCKPT01";
pub(super) const HEADER_LEN: usize = 24;

/// Where a log's trusted segment bytes end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Archive, Serialize, Deserialize)]
pub(crate) struct Floor {
    /// Base offset of the segment.
    pub(crate) segment: i64,
    /// Bytes of it that are synced, a multiple of the block.
    pub(crate) pos: u64,
    /// Position of the last batch boundary at or below `pos`.
    pub(crate) boundary_pos: u64,
    /// Offset of the batch that starts there.
    pub(crate) boundary_offset: i64,
}

impl Floor {
    /// The last batch boundary that is synced.
    pub(crate) fn boundary(&self) -> Offset {
        Offset(self.boundary_offset)
    }

    /// The start of a log's or segment's first byte.
    pub(crate) const fn start_of(segment: i64) -> Self {
        Self { segment, pos: 0, boundary_pos: 0, boundary_offset: segment }
    }
}

/// One log.
#[derive(Clone, PartialEq, Eq, Debug, Archive, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    pub(crate) log_id: u64,
    /// For messages to people; the id identifies.
    pub(crate) name: String,
    pub(crate) log_start: i64,
    pub(crate) floor: Floor,
    /// (epoch, start offset), oldest first.
    pub(crate) epochs: Vec<(i32, i64)>,
}

/// What a journal held when a checkpoint was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Archive, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// The first group that still counts.
    pub(crate) first: u64,
    /// One beyond the last group that even a power cut has to leave.
    pub(crate) synced_end: u64,
    /// One beyond the last group that the end of the process has to leave.
    pub(crate) written_end: u64,
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Archive, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Greater in a newer one.
    pub(crate) sequence: u64,
    /// Per class, the groups of this shard's journal.
    pub(crate) groups: [Groups; 2],
    pub(crate) logs: Vec<LogEntry>,
}

impl Checkpoint {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let body = rkyv::to_bytes::<rkyv::rancor::Error>(self)
            .expect("serialising to memory has no way to fail");
        framed(&body)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_LEN)?;
        let crc = u32::from_le_bytes(header[8..12].try_into().ok()?);
        if &header[..8] != MAGIC || crc32fast::hash(&bytes[12..]) != crc {
            return None;
        }
        let len = u64::from_le_bytes(header[16..24].try_into().ok()?);
        let body = bytes.get(HEADER_LEN..)?;
        if body.len() as u64 != len {
            return None;
        }
        // The archive wants alignment that a slice of the file may not have.
        let mut aligned = rkyv::util::AlignedVec::<16>::new();
        aligned.extend_from_slice(body);
        rkyv::from_bytes::<Self, rkyv::rancor::Error>(&aligned).ok()
    }
}

/// The file whose body this is.
pub(super) fn framed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + body.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
    let crc = crc32fast::hash(&out[12..]);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
    out
}

fn path(dir: &Path, shard: u16) -> PathBuf {
    dir.join(format!("checkpoint-{shard}"))
}

/// Replaces the shard's checkpoint: temporary file, fsync, rename, fsync of
/// the directory.
pub(crate) async fn store<E: Env>(
    env: &E,
    dir: &Path,
    shard: u16,
    checkpoint: &Checkpoint,
) -> Result<()> {
    let path = path(dir, shard);
    let temporary = path.with_extension("tmp");
    let failed = |e: std::io::Error| Error::write(FatalReason::Checkpoint, &path, e);
    env.fs().write(&temporary, checkpoint.encode()).await.map_err(failed)?;
    env.fs().rename(&temporary, &path).await.map_err(failed)?;
    if !armed(Bug::NoDirectorySync) {
        env.fs().sync_dir(dir).await.map_err(|e| match is_no_descriptor(&e) {
            true => Error::io(dir, e),
            false => Error::fatal(FatalReason::Sync, dir, &e),
        })?;
    }
    Ok(())
}

/// Reads every shard's checkpoint of a directory.
pub(crate) async fn load_all<E: Env>(env: &E, dir: &Path) -> Result<Vec<(String, Checkpoint)>> {
    let mut found = Vec::new();
    let entries = env.fs().read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
    for entry in entries {
        if !entry.name.starts_with("checkpoint-") || entry.name.ends_with(".tmp") {
            continue;
        }
        let path = dir.join(&entry.name);
        let bytes = env.fs().read(&path).await.map_err(|e| Error::io(&path, e))?;
        match Checkpoint::decode(&bytes) {
            Some(checkpoint) => found.push((entry.name, checkpoint)),
            None => {
                return Err(Error::Fatal {
                    reason: FatalReason::CheckpointDamaged,
                    detail: path.display().to_string(),
                });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_every_flipped_byte() {
        let checkpoint = Checkpoint {
            sequence: 9,
            groups: [Groups { first: 7, synced_end: 9, written_end: 10 }, Groups::default()],
            logs: vec![LogEntry {
                log_id: 5,
                name: "t-0".into(),
                log_start: 3,
                floor: Floor { segment: 3, pos: 8192, boundary_pos: 8000, boundary_offset: 77 },
                epochs: vec![(1, 3), (2, 50)],
            }],
        };
        let bytes = checkpoint.encode();
        assert_eq!(Checkpoint::decode(&bytes), Some(checkpoint));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert_eq!(Checkpoint::decode(&bad), None, "byte {at}");
            assert_eq!(Checkpoint::decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
