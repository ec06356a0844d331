//! The shard's own `io_uring`, for sockets and files. Passive: it has no task;
//! the shard's pump submits, reaps and parks, and every other module of the
//! shard queues operations through a clone of [`Ring`].
//!
//! Owner: one shard; nothing here is `Send`. Invariants:
//! - the kernel's memory lives until its operation's own completion, whoever
//!   was dropped meanwhile (`driver` owns the operations, all else is safe);
//! - a connection has one send and one receive in flight at most;
//! - a descriptor is closed after the last completion of its operations.
//!
//! It knows nothing of frames, of partitions and of the executor; the half that
//! parks on glommio is `io::glommio::bell`.

mod bell;
mod buffers;
mod conn;
mod driver;
mod event;
mod files;
mod listener;
mod send;
mod state;
#[cfg(test)]
mod tests;
mod turns;

pub use bell::Bell;
pub use buffers::ReceivedBuf;
pub use event::{
    ConnId, EndCause, Event, ListenerId, ReceiveMode, RingConfig, RingCounters, TaskRun,
};
pub use files::RingFile;
pub use send::SendPiece;
pub use state::Ring;
