//! Fetch: reads what is there at once, waits when it is too little, answers
//! with slices of the log.
//!
//! A waiting fetch has one deadline and a running total of what its partitions
//! report; it looks at them again once, when the total is enough. A request of
//! many partitions goes on in slices, round by round. Cold reads are done by
//! one task per request.

mod admission;
mod part;
mod pending;
mod reply;
#[cfg(test)]
mod tests;

pub(super) use admission::Admission;
pub(super) use pending::PendingFetch;
pub(super) use pending::{resume, start};
