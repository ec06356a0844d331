//! What neither the standard library nor glommio offers as safe code. The only
//! `unsafe` of this directory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};

use glommio::io::BufferedFile;

/// Writes back the whole file system that holds `file`, and waits.
pub(super) fn syncfs(file: &File) -> io::Result<()> {
    // SAFETY: takes no memory, and the descriptor is open while `file` lives.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor that glommio's reactor reads.
pub(super) fn buffered_file(descriptor: OwnedFd) -> BufferedFile {
    // SAFETY: the descriptor is open, and its ownership passes on.
    unsafe { BufferedFile::from_raw_fd(descriptor.into_raw_fd()) }
}
