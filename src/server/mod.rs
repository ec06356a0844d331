//! Requests: from a frame to a call into the shard and back to a reply.
//!
//! `dispatch` implements the pump's handler; Produce and Fetch have state
//! machines of their own, every other API is one async function in `handlers`,
//! one file a family. Refuses to know sockets, files and placement.

mod cold;
pub mod context;
mod counters;
pub mod dispatch;
mod fetch;
mod handlers;
mod pending;
mod produce;
mod reply;
mod sessions;
#[cfg(test)]
mod testing;

pub use context::{Context, ContextParts, Request};
pub use dispatch::Dispatcher;
