//! Mechanism without Kafka: things any server could use. No I/O, no clock.

pub mod deadlines;
pub mod once;

pub use deadlines::{DeadlineKey, Deadlines};
pub use once::{Giver, Receiver, once};
