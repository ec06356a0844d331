//! Mechanism without Kafka: things any server could use. No I/O, no clock.

pub mod deadlines;

pub use deadlines::{DeadlineKey, Deadlines};
