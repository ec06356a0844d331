//! What handlers work with: the shard's owner table, its metadata, and the
//! request's circumstances.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::io::{Env, Pool};
use crate::model::NodeId;
use crate::shard::{Metadata, Owner};

use super::counters::Counters;
use super::fetch::Admission;
use super::sessions::{FetchSessions, SessionLimits};

/// What a context is made of.
pub struct ContextParts<E: Env> {
    /// The partitions.
    pub owner: Rc<Owner<E>>,
    /// The metadata.
    pub metadata: Rc<Metadata<E>>,
    /// Name of the listener that its connections came in by.
    pub listener: String,
    /// Most record bytes of one fetch reply; bounds what one slow consumer pins.
    pub fetch_bytes_max: usize,
    /// Incremental fetch sessions (`max.incremental.fetch.session.cache.slots`).
    pub fetch_sessions_max: usize,
    /// Partitions that fetch sessions hold together, and fetches in flight
    /// (`millstream.fetch.partitions.max`).
    pub fetch_partitions_max: usize,
    /// Changes of metadata and log starts in progress
    /// (`millstream.metadata.changes.max`).
    pub commands_max: usize,
    /// Memory of batches that were made anew and wait for room.
    pub kept_pool: Pool,
}

/// A shard's side of request handling. One per shard and listener.
pub struct Context<E: Env> {
    /// The partitions.
    pub owner: Rc<Owner<E>>,
    /// The metadata.
    pub metadata: Rc<Metadata<E>>,
    /// Name of the listener that its connections came in by.
    pub listener: String,
    /// Most record bytes of one fetch reply.
    pub fetch_bytes_max: usize,
    /// Counts since the start.
    pub counters: Counters,
    /// Incremental fetch sessions (KIP-227).
    pub(super) sessions: RefCell<FetchSessions>,
    pub(super) fetches: Admission,
    pub(super) commands: Commands,
    pub(super) kept_pool: Pool,
}

/// Changes of metadata in progress. They go on when their clients stop waiting,
/// so that only a count of their own bounds them.
pub(super) struct Commands {
    now: Rc<Cell<usize>>,
    max: usize,
}

impl Commands {
    /// Counts one more until the answer is dropped; `None` when there are too
    /// many.
    pub(super) fn enter(&self) -> Option<InProgress> {
        if self.now.get() >= self.max {
            return None;
        }
        self.now.set(self.now.get() + 1);
        Some(InProgress(self.now.clone()))
    }

    /// How many there may be.
    pub(super) fn max(&self) -> usize {
        self.max
    }
}

/// One of [`Commands`].
pub(super) struct InProgress(Rc<Cell<usize>>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<E: Env> Context<E> {
    /// A context without sessions.
    #[must_use]
    pub fn new(parts: ContextParts<E>) -> Rc<Self> {
        Rc::new(Self {
            owner: parts.owner,
            metadata: parts.metadata,
            listener: parts.listener,
            fetch_bytes_max: parts.fetch_bytes_max,
            counters: Counters::default(),
            sessions: RefCell::new(FetchSessions::new(SessionLimits {
                sessions: parts.fetch_sessions_max,
                partitions: parts.fetch_partitions_max,
            })),
            fetches: Admission::new(parts.fetch_partitions_max),
            commands: Commands { now: Rc::default(), max: parts.commands_max },
            kept_pool: parts.kept_pool,
        })
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
