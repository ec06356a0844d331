//! Whether a thread of this process sleeps, as the kernel says: what tells a
//! shard that parked beside work from one that only runs slowly, or waits for a
//! core that others use.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes of `/proc/…/stat` up to the state: a number, a name of at most 15
/// bytes in brackets, one letter.
const STAT_BYTES: usize = 64;

/// What the kernel says of one thread.
#[derive(Debug)]
pub(super) struct ThreadState(File);

impl ThreadState {
    /// Of the calling thread; any thread may then ask.
    pub(super) fn of_this_thread() -> io::Result<Self> {
        File::open("/proc/thread-self/stat").map(Self)
    }

    /// Whether it sleeps, neither running nor waiting for a core or a disk.
    pub(super) fn sleeps(&self) -> bool {
        let mut text = [0; STAT_BYTES];
        self.0.read_at(&mut text, 0).is_ok_and(|len| state_in(&text[..len]) == Some(b'S'))
    }
}

/// The letter of the state. The name may hold brackets and blanks.
fn state_in(stat: &[u8]) -> Option<u8> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_the_name() {
        assert_eq!(state_in(b"12 (shard-0) S 1 12"), Some(b'S'));
        assert_eq!(state_in(b"12 (a) S (b) R 1 12"), Some(b'R'));
        assert_eq!(state_in(b"12 (shard"), None);
        assert!(!ThreadState::of_this_thread().unwrap().sleeps(), "it is running this");
    }
}
