//! Numbered reasons for which the process ends itself. The number is the exit
//! code, so that a supervisor's log says which it was (docs/operations.md).

use std::fmt;

/// Why a shard, and with it the process, had to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FatalReason {
    /// The log's reason, with its own number (101 to 119).
    Log(crate::log::FatalReason),
    /// A task of a shard panicked outside a connection (120).
    ShardPanic,
    /// A shard did not answer its watchdog (121).
    ShardStuck,
    /// The metadata log holds what this version cannot apply (122).
    Metadata,
    /// A panic left a partition between its log and its machine (123).
    TornPartition,
}

impl FatalReason {
    /// The exit code of the process.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Log(reason) => u8::try_from(reason.number()).unwrap_or(u8::MAX),
            Self::ShardPanic => 120,
            Self::ShardStuck => 121,
            Self::Metadata => 122,
            Self::TornPartition => 123,
        }
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
