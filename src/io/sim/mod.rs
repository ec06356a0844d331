//! A simulated machine: executor, clocks and disk in one thread, driven by one
//! seed. The same seed gives the same run, byte for byte (`Sim::trace_hash`).
//!
//! A [`Sim`] is a world: virtual time, one scheduler and any number of nodes.
//! A node has a disk and an incarnation; any number of [`SimEnv`] handles
//! (shards) may share it. `crash` ends an incarnation: its tasks and its
//! in-flight operations go, its disk keeps what a real one would have kept.
//!
//! Nobody owns this outside of tests; it is in the library, because every
//! layer's tests use it. It knows nothing of what the files mean.

mod disk;
mod exec;
mod faults;
mod fs;
mod rng;
#[cfg(test)]
mod tests;
mod world;

pub use disk::{Crash, CrashReport, Fate, LostWrite};
pub use exec::{SimEnv, SimTask};
pub use faults::{FaultOp, Faults, Hit};
pub use fs::{SimFile, SimFs};
pub use rng::Rng;
pub use world::{Knobs, NodeIndex, Sim, Stop};
