//! System calls that neither the standard library nor socket2 wraps. The only
//! `unsafe` of this directory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// Writes back the whole file system that holds `file`, and waits.
#[allow(unsafe_code)]
pub(super) fn syncfs(file: &File) -> io::Result<()> {
    // SAFETY: takes no memory, and the descriptor is open while `file` lives.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
