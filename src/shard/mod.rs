//! One core's share of the broker: its pump over the ring, its connections'
//! mechanics, the owner table of its partitions.

pub mod input;
pub mod replies;
