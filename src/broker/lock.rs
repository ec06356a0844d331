//! One broker per data directory: an exclusive lock, taken before anything
//! else in the directory is opened and held until the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::StartError;

/// Name of the lock file in the data directory.
const LOCK_FILE: &str = ".lock";

/// The held lock. Dropping it frees the directory.
#[derive(Debug)]
pub(super) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Creates the directory when absent and locks it. The error of a
    /// directory in use names the process that holds it.
    pub(super) fn take(data_dir: &Path) -> Result<Self, StartError> {
        let fault = |what: &str, path: PathBuf, error: std::io::Error| {
            StartError::Environment(format!("cannot {what} {}: {error}", path.display()))
        };
        if data_dir.symlink_metadata().is_ok() && !data_dir.is_dir() {
            return Err(StartError::Usage(format!(
                "--data-dir {}: not a directory, and no link to one; choose another",
                data_dir.display()
            )));
        }
        std::fs::create_dir_all(data_dir)
            .map_err(|e| fault("create the data directory", data_dir.into(), e))?;
        let path = data_dir.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| fault("open the lock file", path.clone(), e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(StartError::InUse(format!(
                    "the data directory {} is in use by the broker with process id {}; stop it, \
                     or choose another --data-dir",
                    data_dir.display(),
                    holder.trim()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(fault("lock", path, error)),
        }
        match write_holder(&mut file) {
            Ok(()) => {}
            // The lock holds all the same.
            Err(e) if is_full(&e) => tracing::warn!("{} lacks the process id: {e}", path.display()),
            Err(e) => return Err(fault("write the lock file", path, e)),
        }
        Ok(Self { _file: file })
    }
}

/// Puts our process id over the one before: on a full disk the file keeps the
/// block that it has.
fn write_holder(file: &mut File) -> std::io::Result<()> {
    let text = format!("{}\n", std::process::id());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::take(dir.path()).unwrap();
        let error = DirLock::take(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        drop(first);
        DirLock::take(dir.path()).unwrap();
    }
}
