//! A file that forgets: one disk image served through FUSE, whose power can be cut.
//!
//! What is written stays in volatile memory, as in the write cache of a drive, until an fsync moves it to the backing
//! file. The command `cut` on standard input takes the power away, if it can while something is unsynced: every block that was not synced is, as the seed
//! decides, lost, kept, set back to an earlier unsynced write, or torn at its 512-byte sectors; from then on all
//! requests fail with EIO. A loop device passes its flushes down as fsync, so a file system on a loop device over this
//! file sees a drive with a volatile cache.
//!
//! Usage: `cutfs BACKING MOUNTPOINT MEBIBYTES SEED`. It prints `mounted` once it serves `MOUNTPOINT/disk`; `quit` or
//! the end of standard input syncs (unless the power is off) and unmounts. It refuses to know what is stored in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
/// Unsynced versions kept per block; older ones can no longer reappear after a cut.
const VERSIONS_MAX: usize = 8;
/// A cut waits for up to so many unsynced blocks, a number chosen by seed, since a
/// broker that syncs each write has none at most moments.
const UNSYNCED_AT_CUT_MAX: usize = 48;
/// How long it waits for them.
const CUT_PATIENCE_MS: u32 = 200;
const DISK: INodeNo = INodeNo(2);
const FOREVER: Duration = Duration::from_secs(3600);

type Block = Box<[u8; BLOCK]>;

/// The drive: a backing file that survives, and the writes since the last flush, which may not.
struct Drive {
    backing: File,
    size: u64,
    unsynced: BTreeMap<u64, Vec<Block>>,
    powered: bool,
    /// How many unsynced blocks the next write must leave for the power to go.
    cut_at: Option<usize>,
    damage: Option<Damage>,
    writes: u64,
    flushes: u64,
    dice: Dice,
}

/// What a cut did to the unsynced blocks.
#[derive(Default)]
struct Damage {
    lost: u64,
    kept: u64,
    stale: u64,
    torn: u64,
}

/// SplitMix64: a seed gives the same cut again, as far as the load gives the same writes.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

impl Drive {
    fn synced(&self, index: u64) -> io::Result<Block> {
        let mut block = Box::new([0; BLOCK]);
        self.backing.read_exact_at(&mut block[..], index * BLOCK as u64)?;
        Ok(block)
    }

    fn current(&self, index: u64) -> io::Result<Block> {
        match self.unsynced.get(&index).and_then(|versions| versions.last()) {
            Some(block) => Ok(block.clone()),
            None => self.synced(index),
        }
    }

    fn require_power(&self) -> io::Result<()> {
        if self.powered { Ok(()) } else { Err(io::Error::other("the power is off")) }
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.require_power()?;
        let end = self.size.min(offset + length as u64);
        let mut bytes = Vec::with_capacity(length);
        let mut at = offset;
        while at < end {
            let start = (at % BLOCK as u64) as usize;
            let take = (BLOCK - start).min((end - at) as usize);
            bytes.extend_from_slice(&self.current(at / BLOCK as u64)?[start..start + take]);
            at += take as u64;
        }
        Ok(bytes)
    }

    fn write(&mut self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        self.require_power()?;
        self.writes += 1;
        let mut at = offset;
        while !data.is_empty() {
            let (index, start) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let take = (BLOCK - start).min(data.len());
            let mut block = self.current(index)?;
            block[start..start + take].copy_from_slice(&data[..take]);
            let versions = self.unsynced.entry(index).or_default();
            if versions.len() == VERSIONS_MAX {
                versions.remove(0);
            }
            versions.push(block);
            data = &data[take..];
            at += take as u64;
        }
        if self.cut_at.is_some_and(|blocks| self.unsynced.len() >= blocks) {
            self.cut()?;
            return self.require_power();
        }
        Ok(())
    }

    /// The drive's flush. The backing file itself needs no fsync: this machine stays up.
    fn flush(&mut self) -> io::Result<()> {
        self.require_power()?;
        self.flushes += 1;
        for (index, versions) in std::mem::take(&mut self.unsynced) {
            if let Some(block) = versions.last() {
                self.backing.write_all_at(&block[..], index * BLOCK as u64)?;
            }
        }
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        self.require_power()?;
        self.powered = false;
        let mut damage = Damage::default();
        for (index, versions) in std::mem::take(&mut self.unsynced) {
            let mut block = self.synced(index)?;
            let newest = versions.len() - 1;
            match self.dice.below(10) {
                0..=3 => damage.lost += 1,
                4..=6 => {
                    block = versions[newest].clone();
                    damage.kept += 1;
                }
                7 => {
                    block = versions[self.dice.below(versions.len())].clone();
                    damage.stale += 1;
                }
                _ => {
                    for sector in (0..BLOCK).step_by(SECTOR) {
                        let choice = self.dice.below(versions.len() + 1);
                        if let Some(version) = versions.get(choice) {
                            let range = sector..sector + SECTOR;
                            block[range.clone()].copy_from_slice(&version[range]);
                        }
                    }
                    damage.torn += 1;
                }
            }
            self.backing.write_all_at(&block[..], index * BLOCK as u64)?;
        }
        self.damage = Some(damage);
        Ok(())
    }
}

/// The file system: a root directory with the one file `disk`.
struct CutFs(Arc<Mutex<Drive>>);

impl CutFs {
    fn drive(&self) -> MutexGuard<'_, Drive> {
        self.0.lock().expect("no holder of this lock panics without ending the rig")
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o755, 0),
            DISK => (FileType::RegularFile, 0o600, self.drive().size),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / SECTOR as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK as u32,
            flags: 0,
        })
    }
}

impl Filesystem for CutFs {
    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK) {
            Some(attr) if parent == INodeNo::ROOT && name == "disk" => {
                reply.entry(&FOREVER, &attr, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attr) => reply.attr(&FOREVER, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    // The loop driver sets times; the size never changes.
    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(ino) {
            Some(attr) if size.is_none_or(|size| size == attr.size) => reply.attr(&FOREVER, &attr),
            Some(_) => reply.error(Errno::EPERM),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.drive().read(offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.drive().write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match self.drive().flush() {
            Ok(()) => reply.ok(),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries =
            [(INodeNo::ROOT, FileType::Directory, "."), (DISK, FileType::RegularFile, "disk")];
        for (index, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(inode, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// Takes the power in the middle of unsynced writes, or at the deadline if there are none.
fn cut(drive: &Mutex<Drive>) -> io::Result<String> {
    let lock = || drive.lock().map_err(|_| io::Error::other("a request panicked"));
    {
        let mut drive = lock()?;
        drive.cut_at = Some(1 + drive.dice.below(UNSYNCED_AT_CUT_MAX));
    }
    for _ in 0..CUT_PATIENCE_MS {
        if lock()?.damage.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut drive = lock()?;
    if drive.damage.is_none() {
        drive.cut()?;
    }
    let Damage { lost, kept, stale, torn } = drive.damage.take().unwrap_or_default();
    let (writes, flushes) = (drive.writes, drive.flushes);
    Ok(format!(
        "cut: lost {lost} kept {kept} stale {stale} torn {torn} writes {writes} flushes {flushes}"
    ))
}

fn serve(backing: &str, mountpoint: &str, mebibytes: u64, seed: u64) -> io::Result<()> {
    let size = mebibytes << 20;
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(backing)?;
    file.set_len(size)?;
    let drive = Arc::new(Mutex::new(Drive {
        backing: file,
        size,
        unsynced: BTreeMap::new(),
        powered: true,
        cut_at: None,
        damage: None,
        writes: 0,
        flushes: 0,
        dice: Dice(seed),
    }));
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("cutfs".into()), MountOption::NoAtime];
    let session = fuser::spawn_mount(CutFs(drive.clone()), PathBuf::from(mountpoint), &config)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "mounted")?;
    stdout.flush()?;
    for line in io::stdin().lock().lines() {
        match line?.as_str() {
            "cut" => {
                writeln!(stdout, "{}", cut(&drive)?)?;
                stdout.flush()?;
            }
            "quit" => break,
            other => return Err(io::Error::other(format!("unknown command: {other}"))),
        }
    }
    let synced = match drive.lock() {
        Ok(mut drive) if drive.powered => drive.flush(),
        _ => Ok(()),
    };
    // Whoever mounted a device on the file may have unmounted this too, so a refusal is no fault.
    let _ = session.umount_and_join();
    synced
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [backing, mountpoint, mebibytes, seed] = arguments.as_slice() else {
        return Err(io::Error::other("usage: cutfs BACKING MOUNTPOINT MEBIBYTES SEED"));
    };
    let number = |text: &String| text.parse::<u64>().map_err(io::Error::other);
    serve(backing, mountpoint, number(mebibytes)?, number(seed)?)
}
