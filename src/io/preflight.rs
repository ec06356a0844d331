//! What the machine must offer, asked before anything is opened. Each answer is
//! a typed error whose message has the remedy.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

use super::Pool;
use super::chunk::PAGE;
use super::syscall::{self, Limit, Resource};

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

/// Locked memory of one executor: three rings of glommio register it each. We
/// read no file through them, so it is the least that glommio takes.
pub const EXECUTOR_MEMORY: usize = 64 << 10;

/// glommio refuses to start below this limit, in bytes.
const LOCKED_MIN: u64 = 512 << 10;

/// What the ring asks of the kernel, newest last.
const OPERATIONS: [(u8, &str); 9] = [
    (opcode::Accept::CODE, "IORING_OP_ACCEPT"),
    (opcode::Recv::CODE, "IORING_OP_RECV"),
    (opcode::Send::CODE, "IORING_OP_SEND"),
    (opcode::SendMsg::CODE, "IORING_OP_SENDMSG"),
    (opcode::AsyncCancel::CODE, "IORING_OP_ASYNC_CANCEL"),
    (opcode::Read::CODE, "IORING_OP_READ"),
    (opcode::Write::CODE, "IORING_OP_WRITE"),
    (opcode::Fsync::CODE, "IORING_OP_FSYNC"),
    (opcode::Fallocate::CODE, "IORING_OP_FALLOCATE"),
];

/// Checks that io_uring is there with what the ring uses.
pub fn io_uring() -> Result<(), Unfit> {
    let build = || {
        IoUring::<squeue::Entry, cqueue::Entry>::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(8)
    };
    let ring = match build() {
        Ok(ring) => ring,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return Err(Unfit::OldKernel { feature: "IORING_SETUP_DEFER_TASKRUN" });
        }
        Err(error) => return Err(Unfit::NoRing { error }),
    };
    let mut probe = Probe::new();
    if ring.submitter().register_probe(&mut probe).is_err() {
        return Err(Unfit::OldKernel { feature: "IORING_REGISTER_PROBE" });
    }
    match OPERATIONS.iter().find(|(code, _)| !probe.is_supported(*code)) {
        Some((_, feature)) => Err(Unfit::OldKernel { feature }),
        None => Ok(()),
    }
}

/// Checks that `shards` executors may lock [`EXECUTOR_MEMORY`] each.
pub fn locked_memory(shards: usize) -> Result<(), Unfit> {
    let limit = syscall::limit(Resource::LockedMemory).map_or(u64::MAX, |limit| limit.soft);
    locked_memory_within(limit, shards)
}

fn locked_memory_within(limit: u64, shards: usize) -> Result<(), Unfit> {
    let need = LOCKED_MIN.max((3 * EXECUTOR_MEMORY * shards) as u64);
    if limit < need { Err(Unfit::LockedMemory { limit, need, shards }) } else { Ok(()) }
}

/// Raises the soft limit of open files to the hard one and checks that it allows
/// `need`; returns the limit.
pub fn open_files(need: u64) -> Result<u64, Unfit> {
    let Ok(now) = syscall::limit(Resource::OpenFiles) else { return Ok(u64::MAX) };
    // Refused in some sandboxes; then the soft limit stays what counts.
    let raised = Limit { soft: now.hard, hard: now.hard };
    let limit = match syscall::set_limit(Resource::OpenFiles, raised) {
        Ok(()) => now.hard,
        Err(_) => now.soft,
    };
    if limit < need { Err(Unfit::OpenFiles { limit, need }) } else { Ok(limit) }
}

/// Writes and reads a block of a scratch file in `directory` with O_DIRECT.
/// Blocks; to be called before the shards start.
pub fn direct_io(directory: &Path) -> Result<(), Unfit> {
    let scratch = directory.join(format!(".direct-io-{}", std::process::id()));
    let result = try_direct_io(&scratch);
    // It is there unless the first step failed.
    let _ = std::fs::remove_file(&scratch);
    let result = match result {
        // A full disk says nothing about direct I/O, and what is on it can be read.
        Err(e) if matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(()),
        result => result,
    };
    result.map_err(|error| Unfit::NoDirectIo { path: directory.to_owned(), error })
}

fn try_direct_io(scratch: &Path) -> io::Result<()> {
    let pool = Pool::new("preflight", 2 * PAGE)?;
    let take = || pool.take(PAGE).expect("the pool has two pages");
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT | libc::O_CLOEXEC)
        .open(scratch)?;
    let (mut written, mut read) = (take(), take());
    written.space_mut().fill(0xa5);
    file.write_all_at(written.space_mut(), 0)?;
    file.read_exact_at(read.space_mut(), 0)?;
    if written.space_mut() != read.space_mut() {
        return Err(io::Error::other("what was read is not what was written"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_fit() {
        io_uring().unwrap();
        locked_memory(1).unwrap();
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        direct_io(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn each_refusal_names_its_remedy() {
        let text = locked_memory_within(256 << 10, 1).unwrap_err().to_string();
        assert!(text.contains("ulimit -l 512"), "{text}");
        let text = locked_memory_within(512 << 10, 4).unwrap_err().to_string();
        assert!(text.contains("ulimit -l 768"), "{text}");
        let text = open_files(u64::MAX).unwrap_err().to_string();
        assert!(text.contains("LimitNOFILE"), "{text}");
        // No O_DIRECT there.
        let text = direct_io(Path::new("/proc")).unwrap_err().to_string();
        assert!(text.contains("ext4 or XFS"), "{text}");
    }
}
