//! Millstream: a message broker for Linux that speaks the Kafka protocol.
//!
//! Layers, lowest first; imports go down, values come back (checked by
//! `tests/tidy.rs`, explained in `docs/architecture.md`):
//!
//! `base < model < {record, wire, telemetry, io} < log < partition < cluster
//! < shard < server < broker < cli`

#![warn(unreachable_pub)]

pub mod base;
pub mod broker;
pub mod cli;
pub mod cluster;
pub mod io;
pub mod log;
pub mod model;
pub mod partition;
pub mod record;
pub mod server;
pub mod shard;
pub mod telemetry;
pub mod wire;
