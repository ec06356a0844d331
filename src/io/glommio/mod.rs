//! The environment on a real machine: glommio's executor for tasks, timers and
//! blocking calls, the shard's own ring for sockets and files.
//!
//! Owner: one shard. Everything of glommio that the project uses goes through
//! here and `shard::runtime`, with the workarounds for its traps.

mod blocking;
mod doorbell;
mod env;
mod file;
mod fs;
mod slice;

pub use blocking::{blocking, panic_text};
pub use doorbell::Doorbell;
pub use env::{GlommioEnv, GlommioTask};
pub use file::GlommioFile;
pub use fs::GlommioFs;
pub use slice::{PAUSE, SLICE, Slice};
