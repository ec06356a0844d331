//! Produce: every partition's batch is validated where the request came in and
//! handed to its owner; the reply waits for the appends that were taken.
//!
//! A request that finds no room keeps its place among the connection's
//! requests, and the batch that did not fit, already validated; it goes on from
//! there when its frame is shown again. Without allocation for the common
//! request of one partition. Refuses to know how an append becomes durable.

mod pending;
mod rules;
mod taking;
#[cfg(test)]
mod tests;

pub(super) use pending::PendingProduce;
pub(super) use taking::{Producing, resume, start};
