//! What neither the standard library nor glommio offers as safe code. With the
//! two files of the ring and `chunk` all the `unsafe` of `io`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd};

use glommio::io::BufferedFile;

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes back the whole file system that holds `file`, and waits.
pub(in crate::io) fn syncfs(file: &File) -> io::Result<()> {
    // SAFETY: takes no memory, and the descriptor is open while `file` lives.
    check(unsafe { libc::syncfs(file.as_raw_fd()) })
}

/// Most parts of one pwritev(2): the kernel's `UIO_MAXIOV`.
const PARTS_MAX: usize = 1024;

/// pwritev(2) of the first parts; the bytes written, perhaps not all.
pub(in crate::io) fn pwritev(file: &File, parts: &[IoSlice<'_>], pos: u64) -> io::Result<usize> {
    let count = parts.len().min(PARTS_MAX) as libc::c_int;
    let pos =
        libc::off_t::try_from(pos).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: an `IoSlice` is an `iovec` of memory that is readable while it
    // lives (its documentation promises the layout), and there are `count`.
    let written = unsafe { libc::pwritev(file.as_raw_fd(), parts.as_ptr().cast(), count, pos) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Bytes of the file system that holds `file`: all, and those that an ordinary
/// process may still take.
pub(in crate::io) fn space(file: &File) -> io::Result<(u64, u64)> {
    // SAFETY: all-zero bytes are a valid structure of numbers.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: writes the structure that it is given; the descriptor is open.
    check(unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut about) })?;
    Ok((about.f_blocks * about.f_frsize, about.f_bavail * about.f_frsize))
}

/// A descriptor that glommio's reactor reads.
pub(in crate::io) fn buffered_file(descriptor: OwnedFd) -> BufferedFile {
    // SAFETY: the descriptor is open, and its ownership passes on.
    unsafe { BufferedFile::from_raw_fd(descriptor.into_raw_fd()) }
}

/// Where the kernel's `struct tcp_info` has the bytes that the peer acknowledged
/// and those that were received in order, as 64 bits each.
const TCP_BYTES_ACKED: usize = 120;
const TCP_BYTES_RECEIVED: usize = 128;

/// Bytes that a TCP connection has carried so far, both ways: what moved although
/// no operation has completed.
pub(in crate::io) fn tcp_transferred(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = [0u8; 256];
    let mut len = libc::socklen_t::try_from(info.len()).expect("a small array");
    // SAFETY: writes at most `len` bytes into `info`, and the bytes written to `len`.
    check(unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let into = info.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), level, name, into, &raw mut len)
    })?;
    let counter = |at: usize| info[at..at + 8].first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
    Ok(counter(TCP_BYTES_ACKED).wrapping_add(counter(TCP_BYTES_RECEIVED)))
}

/// A limit of the process: soft, hard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limit {
    pub(super) soft: u64,
    pub(super) hard: u64,
}

/// Limits that the preflight asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resource {
    LockedMemory,
    OpenFiles,
}

impl Resource {
    fn code(self) -> libc::__rlimit_resource_t {
        match self {
            Self::LockedMemory => libc::RLIMIT_MEMLOCK,
            Self::OpenFiles => libc::RLIMIT_NOFILE,
        }
    }
}

/// getrlimit(2).
pub(in crate::io) fn limit(resource: Resource) -> io::Result<Limit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the structure that it is given.
    check(unsafe { libc::getrlimit(resource.code(), &raw mut limit) })?;
    Ok(Limit { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// setrlimit(2).
pub(in crate::io) fn set_limit(resource: Resource, limit: Limit) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: limit.soft, rlim_max: limit.hard };
    // SAFETY: reads the structure that it is given.
    check(unsafe { libc::setrlimit(resource.code(), &raw const limit) })
}

/// Lets the calling thread run on every core that the process's first thread
/// may use: a thread started from a shard inherits the shard's single core.
pub(crate) fn unpin_thread() -> io::Result<()> {
    // SAFETY: an all-zero set is a valid (empty) one.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let process = std::process::id().cast_signed();
    // SAFETY: both calls are given one set and its size.
    unsafe {
        check(libc::sched_getaffinity(process, size_of_val(&cores), &raw mut cores))?;
        check(libc::sched_setaffinity(0, size_of_val(&cores), &raw const cores))
    }
}
