//! Why the broker did not start or had to stop.

use thiserror::Error;

/// Why the broker did not start or had to stop; the text names the remedy.
#[derive(Debug, Error)]
pub enum StartError {
    /// The command line or configuration asks for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// Another process has the directory or the port.
    #[error("{0}")]
    InUse(String),
    /// The machine lacks something.
    #[error("{0}")]
    Environment(String),
    /// What is on disk cannot be used.
    #[error("{0}")]
    Data(String),
    /// A numbered reason, while starting or while running.
    #[error("fatal: {0}")]
    Fatal(crate::shard::Fatal),
}

impl StartError {
    /// Exit code of the process: 2 usage, 3 in use, 4 environment, 5 data,
    /// and for a fatal reason its own number (docs/operations.md).
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::InUse(_) => 3,
            Self::Environment(_) => 4,
            Self::Data(_) => 5,
            Self::Fatal(fatal) => fatal.reason.number(),
        }
    }
}
