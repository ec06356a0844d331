//! What handlers work with: the shard's owner table, its metadata, and the
//! request's circumstances.

use std::cell::RefCell;
use std::rc::Rc;

use crate::io::Env;
use crate::model::NodeId;
use crate::shard::{Metadata, Owner};

use super::sessions::FetchSessions;

/// A shard's side of request handling. One per shard and listener.
pub struct Context<E: Env> {
    /// The partitions.
    pub owner: Rc<Owner<E>>,
    /// The metadata.
    pub metadata: Rc<Metadata<E>>,
    /// Name of the listener that its connections came in by.
    pub listener: String,
    /// Most record bytes of one fetch reply; bounds what one slow consumer pins.
    pub fetch_bytes_max: usize,
    /// Incremental fetch sessions (KIP-227).
    pub(super) sessions: RefCell<FetchSessions>,
}

impl<E: Env> Context<E> {
    /// A context without sessions.
    #[must_use]
    pub fn new(
        owner: Rc<Owner<E>>,
        metadata: Rc<Metadata<E>>,
        listener: String,
        fetch_bytes_max: usize,
        fetch_sessions_max: usize,
    ) -> Rc<Self> {
        let sessions = RefCell::new(FetchSessions::new(fetch_sessions_max));
        Rc::new(Self { owner, metadata, listener, fetch_bytes_max, sessions })
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.metadata.node()
    }
}

/// One request's circumstances, for the async handlers.
pub struct Request<E: Env> {
    /// The shard's side.
    pub context: Rc<Context<E>>,
    /// Version of the body.
    pub version: i16,
    /// What the client calls itself; empty when it does not.
    pub client_id: String,
}
