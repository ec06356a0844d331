//! One async function per API that is neither Produce nor Fetch:
//! `async fn(&Request<E>, XRequest) -> XResponse`. One file a family.
//!
//! Each takes whatever the codec can decode, answers as the version wants it
//! (the dispatcher chose the version, the encoder refuses fields that it has
//! not), and bounds what one request can make it hold.

pub(super) mod alter_configs;
pub(super) mod api_versions;
pub(super) mod cluster;
pub(super) mod configs;
pub(super) mod coordinator;
pub(super) mod delete_records;
pub(super) mod log_dirs;
pub(super) mod metadata;
pub(super) mod offsets;
pub(super) mod producer;
mod support;
pub(super) mod topics;

#[cfg(test)]
pub(super) mod testing;
