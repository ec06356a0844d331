//! The simulated disk of one node: inodes, directories, and what a crash
//! leaves of them. Pure data; time, tasks and errors belong to `world`.
//!
//! Rules (stricter than any one real file system, allowed by POSIX):
//! - a sector is 512 bytes, written whole or not at all;
//! - nothing is durable but by O_DSYNC (its own bytes), fsync (that file),
//!   fsync of a directory (its entries) or syncfs;
//! - entries of one directory survive as a prefix of its changes, different
//!   directories independently; fsync of a file does not save its entry;
//! - the death of the process loses nothing that a call had taken.

mod file;
mod image;
mod tree;

use std::io;
use std::path::{Path, PathBuf};

pub(super) use self::tree::Ino;
use super::Rng;
use file::FileNode;
use tree::Tree;

pub(super) const SECTOR: usize = 512;

/// How an incarnation ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// `kill -9`: the page cache survives.
    Process,
    /// The power goes: unsynced sectors, lengths and entries may be lost.
    Power,
}

/// What became of one write that was not durable when the power went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// All of it is on the disk.
    Kept,
    /// Nothing of it is.
    Dropped,
    /// Some of its sectors are.
    Torn,
}

impl Fate {
    pub(super) fn choose(rng: &mut Rng) -> Self {
        match rng.below(3) {
            0 => Self::Kept,
            1 => Self::Dropped,
            _ => Self::Torn,
        }
    }

    fn keeps_sector(self, rng: &mut Rng) -> bool {
        match self {
            Self::Kept => true,
            Self::Dropped => false,
            Self::Torn => rng.chance(500),
        }
    }
}

/// A write that a crash met before it was durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostWrite {
    /// The file, by the name it had.
    pub path: PathBuf,
    /// First byte.
    pub pos: u64,
    /// Length in bytes.
    pub len: usize,
    /// What became of it.
    pub fate: Fate,
    /// Whether it had not yet completed.
    pub in_flight: bool,
    /// What it wrote, when it was in flight (else empty).
    pub data: Vec<u8>,
}

/// What a crash did, for counters and messages.
#[derive(Clone, Default, Debug)]
pub struct CrashReport {
    /// Writes that were not durable.
    pub writes: Vec<LostWrite>,
    /// Changes of directories that were lost.
    pub entries_lost: usize,
    /// Other operations in flight, by name.
    pub in_flight: Vec<&'static str>,
}

/// Everything on one node's disk.
#[derive(Default)]
pub(super) struct Disk {
    tree: Tree,
    seq: u64,
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

impl Disk {
    /// The number of the last change: a later sync covers up to here.
    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn file(&self, ino: Ino) -> &FileNode {
        self.tree.file(ino)
    }

    fn file_mut(&mut self, ino: Ino) -> &mut FileNode {
        self.tree.file_mut(ino)
    }

    pub(super) fn lookup_file(&self, path: &Path) -> io::Result<Ino> {
        let ino = self.tree.lookup(path).ok_or_else(|| not_found(path))?;
        if self.tree.is_dir(ino) {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        Ok(ino)
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<Ino> {
        let seq = self.next();
        self.tree.create_file(seq, path)
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let seq = self.next();
        self.tree.create_dir_all(seq, path)
    }

    pub(super) fn read_dir(&self, path: &Path) -> io::Result<Vec<(String, bool, u64)>> {
        self.tree.read_dir(path)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let seq = self.next();
        self.tree.rename(seq, from, to)
    }

    pub(super) fn remove(&mut self, path: &Path, dir: bool) -> io::Result<()> {
        let seq = self.next();
        self.tree.remove(seq, path, dir)
    }

    pub(super) fn opened(&mut self, ino: Ino, by: isize) {
        self.tree.opened(ino, by);
    }

    /// Bytes of all files that have a name or a descriptor.
    pub(super) fn used(&self) -> u64 {
        self.tree.used()
    }

    pub(super) fn len(&self, ino: Ino) -> u64 {
        self.file(ino).current.len
    }

    pub(super) fn read(&self, ino: Ino, pos: u64, out: &mut [u8]) -> usize {
        let image = &self.file(ino).current;
        let n = out.len().min(image.len.saturating_sub(pos) as usize);
        image.read(pos, &mut out[..n]);
        n
    }

    pub(super) fn write(&mut self, ino: Ino, pos: u64, data: &[u8], durable: bool) {
        let seq = self.next();
        self.file_mut(ino).write(seq, pos, data, durable);
    }

    /// A write that stopped half-way: a subset of its sectors, nothing durable.
    pub(super) fn write_part(
        &mut self,
        ino: Ino,
        pos: u64,
        data: &[u8],
        fate: Fate,
        rng: &mut Rng,
    ) {
        for (i, part) in data.chunks(SECTOR).enumerate() {
            if fate.keeps_sector(rng) {
                self.write(ino, pos + (i * SECTOR) as u64, part, false);
            }
        }
    }

    pub(super) fn set_len(&mut self, ino: Ino, len: u64) {
        let seq = self.next();
        self.file_mut(ino).set_len(seq, len);
    }

    pub(super) fn sync(&mut self, ino: Ino, upto: u64) {
        self.file_mut(ino).sync(upto);
    }

    pub(super) fn sync_failed(&mut self, ino: Ino, upto: u64, rng: &mut Rng) {
        self.file_mut(ino).sync_failed(upto, rng);
    }

    pub(super) fn sync_dir(&mut self, path: &Path, upto: u64) -> io::Result<()> {
        self.tree.sync_dir(path, upto)
    }

    pub(super) fn sync_all(&mut self, upto: u64) {
        self.tree.sync_all(upto);
    }

    /// Ends the incarnation; what was in flight has been dealt with before.
    pub(super) fn crash(&mut self, kind: Crash, rng: &mut Rng, report: &mut CrashReport) {
        self.tree.close_all();
        if kind == Crash::Power {
            self.tree.power_cut(rng, report);
        }
    }

    pub(super) fn flip_bit(&mut self, path: &Path, pos: u64, bit: u8) -> io::Result<()> {
        let ino = self.lookup_file(path)?;
        if pos >= self.len(ino) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        self.file_mut(ino).flip(pos, bit);
        Ok(())
    }

    pub(super) fn spoil(&mut self, path: &Path, range: std::ops::Range<u64>) -> io::Result<()> {
        let ino = self.lookup_file(path)?;
        self.file_mut(ino).spoil(range);
        Ok(())
    }

    pub(super) fn is_bad(&self, ino: Ino, range: &std::ops::Range<u64>) -> bool {
        self.file(ino).is_bad(range)
    }

    /// Every file by name with its bytes as a reader sees them.
    pub(super) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.tree
            .files()
            .into_iter()
            .map(|(path, ino)| {
                let mut bytes = vec![0; self.len(ino) as usize];
                self.read(ino, 0, &mut bytes);
                (path, bytes)
            })
            .collect()
    }
}
