//! One core's share of the broker: executor, ring and pump, the mechanics of
//! its connections, the owner table of its partitions, and the thread that
//! guards it.

pub mod connection;
pub mod fatal;
pub mod handler;
mod hungry;
pub mod input;
pub mod limits;
pub mod metadata;
pub mod output;
pub mod owner;
pub mod pump;
pub mod replies;
mod retention;
pub mod runtime;
mod stop;
pub mod watchdog;

pub use fatal::{Fatal, FatalReason};
pub use handler::{ConnectionHandler, Mailbox, PendingEvent, Place, Verdict};
pub use input::FrameMemory;
pub use limits::Limits;
pub use metadata::Metadata;
pub use output::Output;
pub use owner::{Appending, Bounds, OwnedPartition, OwnedTopic, Owner, Reading, Waiter};
pub use pump::{Pump, PumpParts, RoundEnd};
pub use replies::ReplySeq;
pub use stop::{StopSignal, Stopper, stop_pair};
