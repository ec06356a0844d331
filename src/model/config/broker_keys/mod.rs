//! Keys of a broker: those of Kafka 4.4 that clients and tools look at, and
//! ours. Left out are the keys of what this broker has not got at all: TLS,
//! SASL, tokens, tiered storage, Java metrics.

mod cluster;
mod coordinator;
mod log;
mod network;
mod ours;
mod share;

use super::key::Key;

/// All rows, in groups.
pub(super) const GROUPS: [&[Key]; 6] =
    [ours::KEYS, network::KEYS, log::KEYS, coordinator::KEYS, share::KEYS, cluster::KEYS];
