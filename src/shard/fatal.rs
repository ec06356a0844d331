//! Numbered reasons for which the process ends itself. The number is the exit
//! code, so that a supervisor's log says which it was (docs/operations.md).

use std::fmt;

/// Why a shard, and with it the process, had to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FatalReason {
    /// A journal write or sync failed: what is on disk is no longer known.
    JournalWrite = 70,
    /// A segment write or sync failed.
    SegmentWrite = 71,
    /// A checkpoint could not be made durable.
    Checkpoint = 72,
    /// A task of a shard panicked outside a connection.
    ShardPanic = 73,
    /// A shard did not answer its watchdog.
    ShardStuck = 74,
    /// The metadata log holds what this version cannot apply.
    Metadata = 75,
    /// The ring of a shard failed.
    Ring = 76,
}

impl FatalReason {
    /// The exit code of the process.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// A fatal reason with what happened, where.
#[derive(Clone, Debug)]
pub struct Fatal {
    /// The numbered reason.
    pub reason: FatalReason,
    /// What happened, with file and position where there are any.
    pub detail: String,
}

impl Fatal {
    /// A reason with its detail.
    pub fn new(reason: FatalReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reason {} ({:?}): {}", self.reason.number(), self.reason, self.detail)
    }
}
