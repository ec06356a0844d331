//! Requests in flight, answered or not.

use super::fetch::PendingFetch;
use super::produce::PendingProduce;

/// A request in flight.
pub enum Pending {
    /// Its whole reply.
    Ready(Vec<u8>),
    /// A task will answer it.
    Task,
    /// A produce whose appends are not all decided, or that is not encoded yet.
    Produce(PendingProduce),
    /// A fetch that waits, reads, or is not encoded yet.
    Fetch(Box<PendingFetch>),
}
