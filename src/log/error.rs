//! Errors of the log layer: what went wrong, in which file, at which position
//! and offset. Fatal ones carry the number with which the process ends; this
//! layer never ends it.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::Offset;

/// Why the process must end: the disk lied, or may have. After one of these
/// nothing is retried, because a second fsync can answer well about data that
/// the first one lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum FatalReason {
    /// A write to a journal failed.
    JournalWrite = 101,
    /// A segment, index or directory could not be synced.
    Sync = 102,
    /// A write to a segment failed for another reason than space.
    SegmentWrite = 103,
    /// The checkpoint could not be written.
    Checkpoint = 104,
    /// The file system became read-only.
    ReadOnly = 105,
    /// A journal has a hole that no crash leaves.
    JournalDamaged = 106,
    /// Bytes that were durable at the last checkpoint are gone or changed.
    LostBelowFloor = 107,
    /// The checkpoint is unreadable.
    CheckpointDamaged = 108,
    /// Reading a journal failed.
    JournalRead = 109,
}

impl FatalReason {
    /// The number in logs, documentation and the exit message.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }
}

/// What cold operations of this layer answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process has to end.
    #[error("storage failure {}: {reason:?}: {detail}", reason.number())]
    Fatal {
        /// Its number.
        reason: FatalReason,
        /// File, position and cause.
        detail: String,
    },
    /// The disk or a quota is full, or descriptors ran out: passes by itself.
    #[error("no space or no descriptors: {path}: {source}")]
    NoSpace {
        /// The file that did not grow.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A batch of a closed segment is not what was written.
    #[error("corrupt batch in {path} at position {position}, offset {offset}: {what}")]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// Byte position of the batch.
        position: u64,
        /// Its base offset as far as known.
        offset: Offset,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A batch cannot be read; only its readers suffer.
    #[error("{path} cannot be read at position {position}, offset {offset}: {source}")]
    Unreadable {
        /// The segment.
        path: PathBuf,
        /// Byte position of the batch, as far as it was found.
        position: u64,
        /// The offset asked for.
        offset: Offset,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be read or changed; only the request suffers.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A pool had no memory for this; try again later.
    #[error("pool {0} is exhausted")]
    NoMemory(&'static str),
    /// The log was deleted meanwhile.
    #[error("the log is gone")]
    Gone,
    /// The offset is outside the log.
    #[error("offset {0} is outside the log")]
    OutOfRange(Offset),
    /// Truncation below the high watermark would drop committed records.
    #[error("truncation to {to} below the high watermark {high_watermark}")]
    BelowHighWatermark {
        /// Where to.
        to: Offset,
        /// The bound.
        high_watermark: Offset,
    },
}

/// Result of cold operations.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn fatal(reason: FatalReason, path: &Path, source: &io::Error) -> Self {
        let reason =
            if source.raw_os_error() == Some(libc::EROFS) { FatalReason::ReadOnly } else { reason };
        Self::Fatal { reason, detail: format!("{}: {source}", path.display()) }
    }

    /// An error of an operation whose failure harms only its request.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        if is_no_space(&source) {
            Self::NoSpace { path: path.to_path_buf(), source }
        } else {
            Self::Io { path: path.to_path_buf(), source }
        }
    }

    /// There is no space, known without trying.
    pub(crate) fn no_space(path: PathBuf) -> Self {
        Self::NoSpace { path, source: io::Error::from_raw_os_error(libc::ENOSPC) }
    }

    /// An error of a write: passes when space returns, else ends the process.
    pub(crate) fn write(reason: FatalReason, path: &Path, source: io::Error) -> Self {
        if is_no_space(&source) {
            Self::NoSpace { path: path.to_path_buf(), source }
        } else {
            Self::fatal(reason, path, &source)
        }
    }

    /// An error of work in the background, which nobody can be told of: what
    /// does not pass by itself ends the process.
    pub(crate) fn or_fatal(self, reason: FatalReason) -> Self {
        match self {
            Self::Io { path, source } => Self::fatal(reason, &path, &source),
            Self::Unreadable { .. } | Self::Corrupt { .. } => {
                Self::Fatal { reason, detail: self.to_string() }
            }
            other => other,
        }
    }

    /// Says where in a log's file a read failed.
    pub(crate) fn at(self, position: u64, offset: Offset) -> Self {
        match self {
            Self::Io { path, source } => Self::Unreadable { path, position, offset, source },
            other => other,
        }
    }

    /// Whether the same operation may succeed later.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::NoMemory(_))
    }

    /// The reason, when the process has to end.
    #[must_use]
    pub fn fatal_reason(&self) -> Option<FatalReason> {
        match self {
            Self::Fatal { reason, .. } => Some(*reason),
            _ => None,
        }
    }
}

/// Whether the error passes by itself: disk or quota full, descriptors short.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EMFILE | libc::ENFILE))
        || error.kind() == io::ErrorKind::StorageFull
}

/// Whether there was no descriptor for the operation, which did not begin.
pub(crate) fn is_no_descriptor(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// What `append` answers when it takes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppendError {
    /// Memory or journal are full for the moment: backpressure.
    #[error("the log has no room for the moment")]
    Full,
    /// The disk is full: a retriable error to the producer.
    #[error("no space on the device")]
    NoSpace,
    /// The process is about to end.
    #[error("the log is poisoned: {0:?}")]
    Poisoned(FatalReason),
    /// The log was deleted.
    #[error("the log is gone")]
    Gone,
}
