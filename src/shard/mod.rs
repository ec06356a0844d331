//! One core's share of the broker: executor, ring and pump, the mechanics of
//! its connections, the owner table of its partitions, and the thread that
//! guards it.

mod asleep;
pub mod connection;
pub mod fatal;
pub mod handler;
mod hungry;
pub mod input;
pub mod limits;
pub mod metadata;
pub mod output;
pub mod owner;
mod peers;
pub mod pump;
pub mod replies;
mod retention;
pub mod runtime;
mod stop;
mod torn;
pub mod watchdog;

pub use fatal::{Fatal, FatalReason};
pub use handler::{ConnectionHandler, Mailbox, Pause, PendingEvent, Place, Resumed, Verdict};
pub use input::FrameMemory;
pub use limits::Limits;
pub use metadata::Metadata;
pub use output::Output;
pub use owner::{AckWait, Appending, Bounds, OwnedPartition, OwnedTopic, Owner, Reading, Waiter};
pub use peers::PeerLimits;
pub use pump::{Pump, PumpParts, RoundEnd};
pub use replies::ReplySeq;
pub use stop::{StopSignal, Stopper, stop_pair};
