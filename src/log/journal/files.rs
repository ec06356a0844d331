//! Journal files: their header, how they are made and how they are used again.
//!
//! A file's name is its slot, `<class>-<shard>-<slot>.journal`; which life it
//! is in says its header: a sequence that never repeats and a fresh salt, both
//! synced before the first group. A file is never appended to by a process
//! that found it at start.

use std::path::{Path, PathBuf};

use ahash::AHashMap;

use super::frame::part;
use super::group::FileIdentity;
use crate::io::{ChunkSlice, Env, File as _, FileSystem as _, OpenMode, Pool};
use crate::log::config::{BLOCK, DurabilityClass};
use crate::log::error::{Error, FatalReason, Result, is_no_descriptor};
use crate::log::set::LogHandle;
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

const MAGIC: &[u8; 8] = b"MSJRNL01";
/// Bytes of the header that mean something; the rest of its block is zero.
const HEADER_LEN: usize = 48;
/// Bytes written at once when a file is pre-written.
const PREWRITE_BYTES: usize = 256 * 1024;

/// The header of a journal file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHeader {
    pub(crate) class: DurabilityClass,
    pub(crate) shard: u16,
    pub(crate) identity: FileIdentity,
    pub(crate) capacity: u64,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0u8; HEADER_LEN];
        out[0..8].copy_from_slice(MAGIC);
        out[12..14].copy_from_slice(&(self.class.index() as u16).to_le_bytes());
        out[14..16].copy_from_slice(&self.shard.to_le_bytes());
        out[16..24].copy_from_slice(&self.identity.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&self.identity.salt.to_le_bytes());
        out[32..40].copy_from_slice(&self.capacity.to_le_bytes());
        let crc = crc32fast::hash(&out[12..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None` when the block is no header: the file then holds nothing.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_LEN)?;
        if &bytes[0..8] != MAGIC
            || u32::from_le_bytes(part(bytes, 8)) != crc32fast::hash(&bytes[12..])
        {
            return None;
        }
        let class = *DurabilityClass::ALL.get(usize::from(u16::from_le_bytes(part(bytes, 12))))?;
        Some(Self {
            class,
            shard: u16::from_le_bytes(part(bytes, 14)),
            identity: FileIdentity {
                sequence: u64::from_le_bytes(part(bytes, 16)),
                salt: u64::from_le_bytes(part(bytes, 24)),
            },
            capacity: u64::from_le_bytes(part(bytes, 32)),
        })
    }
}

/// A file in use, or ready for it.
pub(crate) struct JournalFile<F> {
    pub(crate) file: F,
    pub(crate) path: PathBuf,
    pub(crate) header: FileHeader,
    /// Where the next group goes.
    pub(crate) pos: u64,
    /// Number of its first group, once there is one.
    pub(crate) first_number: Option<u64>,
    /// Logs that have frames in it, each with the greatest end of these.
    pub(crate) logs: AHashMap<LogHandle, Offset>,
}

impl<F> JournalFile<F> {
    pub(crate) fn room(&self) -> u64 {
        self.header.capacity - self.pos
    }
}

/// Whether a name is a journal file's.
pub(crate) fn is_journal(name: &str) -> bool {
    name.ends_with(".journal")
}

/// The class and shard that a journal file's name tells: all that is known of
/// one whose header is gone.
pub(crate) fn owner_of(name: &str) -> Option<(DurabilityClass, u16)> {
    let mut parts = name.split('-');
    let class = parts.next()?;
    let class = DurabilityClass::ALL.into_iter().find(|c| c.name() == class)?;
    Some((class, parts.next()?.parse().ok()?))
}

fn name(class: DurabilityClass, shard: u16, slot: u64) -> String {
    format!("{}-{shard}-{slot}.journal", class.name())
}

/// What a new file is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFile {
    pub(crate) class: DurabilityClass,
    pub(crate) shard: u16,
    pub(crate) slot: u64,
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
}

/// Makes a file: its blocks are written and synced, its header too. After an
/// error nothing of it is left.
pub(crate) async fn make<E: Env>(
    env: &E,
    dir: &Path,
    pool: &Pool,
    new: NewFile,
) -> Result<JournalFile<<E::Fs as crate::io::FileSystem>::File>> {
    let path = dir.join(name(new.class, new.shard, new.slot));
    let made = make_at(env, dir, &path, pool, new).await;
    if made.is_err() {
        // On a full disk it may have got a part of its blocks. When it cannot
        // be removed, the next start does.
        let _ = env.fs().remove_file(&path).await;
    }
    made
}

async fn make_at<E: Env>(
    env: &E,
    dir: &Path,
    path: &Path,
    pool: &Pool,
    new: NewFile,
) -> Result<JournalFile<<E::Fs as crate::io::FileSystem>::File>> {
    let failed = |e: std::io::Error| Error::write(FatalReason::JournalWrite, path, e);
    let fs = env.fs();
    let header = FileHeader {
        class: new.class,
        shard: new.shard,
        identity: FileIdentity { sequence: new.sequence, salt: env.random() },
        capacity: new.bytes,
    };
    let file = if new.class == DurabilityClass::Disk {
        let file = fs.open(path, OpenMode::DIRECT).await.map_err(failed)?;
        file.allocate(0..new.bytes).await.map_err(failed)?;
        prewrite(env, &file, pool, new.bytes).await.map_err(|e| match e {
            PrewriteError::NoMemory => Error::NoMemory(pool.name()),
            PrewriteError::Io(e) => failed(e),
        })?;
        let synced = file.sync_data().await;
        synced.map_err(|e| Error::write(FatalReason::Sync, path, e))?;
        drop(file);
        let mode = if armed(Bug::NoJournalSync) { OpenMode::DIRECT } else { OpenMode::DIRECT_SYNC };
        fs.open(path, mode).await.map_err(failed)?
    } else {
        let file = fs.open(path, OpenMode::BUFFERED).await.map_err(failed)?;
        file.allocate(0..new.bytes).await.map_err(failed)?;
        file
    };
    write_header(&file, path, pool, &header).await?;
    fs.sync_dir(dir).await.map_err(|e| match is_no_descriptor(&e) {
        true => Error::io(dir, e),
        false => Error::fatal(FatalReason::Sync, dir, &e),
    })?;
    let path = path.to_owned();
    Ok(JournalFile { file, path, header, pos: BLOCK, first_number: None, logs: AHashMap::new() })
}

enum PrewriteError {
    NoMemory,
    Io(std::io::Error),
}

async fn prewrite<E: Env>(
    env: &E,
    file: &<E::Fs as crate::io::FileSystem>::File,
    pool: &Pool,
    bytes: u64,
) -> std::result::Result<(), PrewriteError> {
    let mut zeros = pool
        .take(PREWRITE_BYTES)
        .or_else(|| pool.take(BLOCK as usize))
        .ok_or(PrewriteError::NoMemory)?;
    zeros.space_mut().fill(0);
    zeros.set_len(zeros.capacity());
    let zeros: ChunkSlice = zeros.freeze();
    let mut pos = 0;
    while pos < bytes {
        let len = (bytes - pos).min(zeros.len() as u64);
        file.write_at(zeros.slice(0..len as usize), pos).await.map_err(PrewriteError::Io)?;
        pos += len;
        if env.slice_over() {
            env.pause().await;
        }
    }
    Ok(())
}

/// Gives a file whose content is no longer needed a new life.
pub(crate) async fn recycle<E: Env>(
    env: &E,
    file: &mut JournalFile<<E::Fs as crate::io::FileSystem>::File>,
    pool: &Pool,
    sequence: u64,
) -> Result<()> {
    file.header.identity = FileIdentity { sequence, salt: env.random() };
    write_header(&file.file, &file.path, pool, &file.header).await?;
    file.pos = BLOCK;
    file.first_number = None;
    file.logs.clear();
    Ok(())
}

async fn write_header<F: crate::io::File>(
    file: &F,
    path: &Path,
    pool: &Pool,
    header: &FileHeader,
) -> Result<()> {
    let failed = |e: std::io::Error| Error::fatal(FatalReason::JournalWrite, path, &e);
    let mut block = pool.take(BLOCK as usize).ok_or(Error::NoMemory(pool.name()))?;
    block.space_mut().fill(0);
    block.extend(&header.encode());
    block.set_len(BLOCK as usize);
    match header.class {
        DurabilityClass::Disk => file.write_at(block.freeze(), 0).await.map_err(failed),
        DurabilityClass::Os => file.write_now(&block, 0).map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trip_and_damage() {
        let header = FileHeader {
            class: DurabilityClass::Os,
            shard: 3,
            identity: FileIdentity { sequence: 17, salt: 0x1234_5678_9abc_def0 },
            capacity: 8 << 20,
        };
        let bytes = header.encode();
        assert_eq!(FileHeader::decode(&bytes), Some(header));
        for at in 0..40 {
            let mut bad = bytes;
            bad[at] ^= 1;
            assert_eq!(FileHeader::decode(&bad), None, "byte {at}");
        }
        assert_eq!(FileHeader::decode(&[]), None);
    }
}
