//! The file system: data operations on the ring, everything that touches a
//! directory on the blocking pool.

use std::fs;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::blocking::blocking;
use super::file::GlommioFile;
use crate::io::env::{DirEntry, FileSystem, OpenMode, Space};
use crate::io::ring::Ring;

/// Files and directories of the machine, for one shard.
#[derive(Clone)]
pub struct GlommioFs {
    ring: Ring,
}

impl GlommioFs {
    /// Files whose data goes through `ring`.
    #[must_use]
    pub fn new(ring: &Ring) -> Self {
        Self { ring: ring.clone() }
    }
}

fn open(path: &Path, mode: OpenMode) -> io::Result<fs::File> {
    let mut flags = libc::O_CLOEXEC;
    if mode.direct {
        flags |= libc::O_DIRECT;
    }
    if mode.sync {
        flags |= libc::O_DSYNC;
    }
    fs::OpenOptions::new()
        .read(true)
        .write(mode.write)
        .create(mode.create && !mode.exclusive)
        .create_new(mode.create && mode.exclusive)
        .custom_flags(flags)
        .open(path)
}

fn list(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let about = match entry.metadata() {
            Ok(about) => about,
            // It went while the directory was read: then it is not in it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        let name = entry.file_name().into_string().map_err(|name| {
            let text = format!("{}: the name {name:?} is not UTF-8", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        entries.push(DirEntry { name, is_dir: about.is_dir(), len: about.len() });
    }
    Ok(entries)
}

impl FileSystem for GlommioFs {
    type File = GlommioFile;

    async fn open(&self, path: &Path, mode: OpenMode) -> io::Result<GlommioFile> {
        let owned = path.to_owned();
        let file = blocking(move || open(&owned, mode)).await?;
        Ok(GlommioFile::new(&self.ring, file, mode.direct, path))
    }

    async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        blocking(move || fs::create_dir_all(path)).await
    }

    async fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let path = path.to_owned();
        blocking(move || list(&path)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        blocking(move || fs::rename(from, to)).await
    }

    async fn remove_file(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        blocking(move || fs::remove_file(path)).await
    }

    async fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        blocking(move || fs::remove_dir(path)).await
    }

    async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        blocking(move || fs::File::open(path)?.sync_all()).await
    }

    async fn sync_fs(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        blocking(move || crate::io::syscall::syncfs(&fs::File::open(path)?)).await
    }

    async fn space(&self, path: &Path) -> io::Result<Space> {
        let path = path.to_owned();
        blocking(move || {
            let (total, usable) = crate::io::syscall::space(&fs::File::open(path)?)?;
            Ok(Space { total, usable })
        })
        .await
    }

    async fn len(&self, path: &Path) -> io::Result<u64> {
        let path = path.to_owned();
        blocking(move || Ok(fs::metadata(path)?.len())).await
    }

    async fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = path.to_owned();
        blocking(move || fs::read(path)).await
    }

    async fn write(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let path = path.to_owned();
        blocking(move || {
            let mut file = fs::File::create(path)?;
            file.write_all(&bytes)?;
            file.sync_all()
        })
        .await
    }
}
