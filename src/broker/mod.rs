//! Composition: settings into shards, listeners and a process that can be
//! told to stop.

mod configuration;
mod connections;
mod error;
mod listeners;
mod lock;
mod memory;
mod process;
mod recover;
mod settings;
mod shard_main;

pub use error::StartError;
pub use process::run;
pub use settings::{Advertised, Settings};
