//! One async function per API that is neither Produce nor Fetch:
//! `async fn(&Request<E>, XRequest) -> XResponse`. One file a family.

pub(super) mod api_versions;
pub(super) mod cluster;
pub(super) mod configs;
pub(super) mod coordinator;
pub(super) mod metadata;
pub(super) mod offsets;
pub(super) mod producer;
pub(super) mod topics;
