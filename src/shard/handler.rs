//! What the pump asks of whoever understands requests, and what comes back to
//! a request that could not be answered at once.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::base::{DeadlineKey, Deadlines};
use crate::io::ring::{Bell, ConnId};
use crate::log::Slices;
use crate::model::ErrorCode;
use crate::partition::AppendOutcome;

use super::output::Output;
use super::replies::ReplySeq;

/// Names one request in flight: where its answer belongs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The connection.
    pub conn: ConnId,
    /// The request among the connection's requests.
    pub seq: ReplySeq,
}

/// What reaches a request in flight.
#[derive(Debug)]
pub enum PendingEvent {
    /// An append of it has been decided.
    Appended {
        /// Which of its partitions, as the handler numbered them.
        index: u32,
        /// The decision.
        outcome: AppendOutcome,
    },
    /// Something that it waits for has moved: partitions have `bytes` more to
    /// read, or must be looked at for another reason when it is 0.
    Wake {
        /// Bytes that became readable.
        bytes: u64,
    },
    /// Its deadline has passed.
    Deadline,
    /// A task has its whole answer, encoded without the length prefix.
    Answer(Vec<u8>),
    /// A task has read from a cold log for it.
    Read {
        /// Which of its partitions, as the handler numbered them.
        index: u32,
        /// Whole batches, or why there are none.
        batches: Result<Slices, ErrorCode>,
    },
    /// It must be closed without an answer.
    Abandon(String),
}

/// What became of a frame.
#[derive(Debug)]
pub enum Verdict<P> {
    /// It takes the next place; later frames may overlap with it.
    Overlap(P),
    /// It takes the next place; no later frame starts before it has left.
    Alone(P),
    /// It has no answer (acks=0).
    Silent,
    /// There is no memory for it now: show it again in a later round.
    Later,
    /// It must wait until all earlier ones have left: show it again then.
    Hold,
    /// The connection ends, for this reason.
    Close(String),
}

/// Understands requests. One per shard; implemented by `server`.
pub trait ConnectionHandler: 'static {
    /// What it remembers of a connection.
    type State;
    /// A request in flight, answered or not.
    type Pending;

    /// A connection was accepted.
    fn open(&self, conn: ConnId, peer: Option<SocketAddr>) -> Self::State;

    /// Handles one frame, without its length prefix. `alone` says that no
    /// earlier request of the connection is in flight; `place` is what the
    /// request gets when it takes one.
    fn frame(
        &self,
        place: Place,
        state: &mut Self::State,
        frame: &[u8],
        alone: bool,
    ) -> Verdict<Self::Pending>;

    /// Tells a request in flight what it waited for. `Err` closes the
    /// connection.
    fn event(
        &self,
        place: Place,
        state: &mut Self::State,
        pending: &mut Self::Pending,
        event: PendingEvent,
    ) -> Result<(), String>;

    /// Whether the answer is known.
    fn is_ready(&self, pending: &Self::Pending) -> bool;

    /// Whether an answer is wanted by now although it is not known; looked at
    /// about once a second.
    fn is_overdue(&self, pending: &Self::Pending, now: Duration) -> bool;

    /// Whether a stop of the broker should wait for this answer: appends yes,
    /// parked fetches no.
    fn decides_soon(&self, pending: &Self::Pending) -> bool;

    /// Encodes a known answer with its length prefix. `false` when the send
    /// pool is used up (nothing is lost, see [`Output::write`]); `Err` closes
    /// the connection.
    fn encode(
        &self,
        state: &mut Self::State,
        pending: Self::Pending,
        out: &mut Output,
    ) -> Result<bool, String>;

    /// A request in flight is given up, since its connection ends.
    fn forget(&self, place: Place, pending: Self::Pending);
}

struct Inner {
    events: RefCell<Vec<(Place, PendingEvent)>>,
    deadlines: RefCell<Deadlines<Place>>,
    bell: Bell,
    posted: Cell<u64>,
}

/// Where events for requests in flight are left for the pump. Cloning shares it.
#[derive(Clone)]
pub struct Mailbox(Rc<Inner>);

impl Mailbox {
    /// An empty mailbox that rings `bell`.
    #[must_use]
    pub fn new(bell: Bell) -> Self {
        Self(Rc::new(Inner {
            events: RefCell::default(),
            deadlines: RefCell::default(),
            bell,
            posted: Cell::new(0),
        }))
    }

    /// Leaves an event; the pump delivers it in its next round.
    pub fn post(&self, place: Place, event: PendingEvent) {
        self.0.events.borrow_mut().push((place, event));
        self.0.posted.set(self.0.posted.get() + 1);
        self.0.bell.ring();
    }

    /// Makes the pump run a round: something was appended by a task.
    pub fn ring(&self) {
        self.0.bell.ring();
    }

    /// Asks for `PendingEvent::Deadline` at monotonic time `at`.
    pub fn deadline(&self, at: Duration, place: Place) -> DeadlineKey {
        self.0.deadlines.borrow_mut().insert(at, place)
    }

    /// Takes a deadline back.
    pub fn cancel(&self, key: DeadlineKey) {
        let _ = self.0.deadlines.borrow_mut().cancel(key);
    }

    /// The earliest deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.0.deadlines.borrow().next()
    }

    /// Moves deadlines that have passed into the events.
    pub fn expire(&self, now: Duration) {
        let mut deadlines = self.0.deadlines.borrow_mut();
        while let Some(place) = deadlines.pop_due(now) {
            self.0.events.borrow_mut().push((place, PendingEvent::Deadline));
        }
    }

    /// Exchanges the events for an empty list.
    pub fn swap(&self, into: &mut Vec<(Place, PendingEvent)>) {
        std::mem::swap(&mut *self.0.events.borrow_mut(), into);
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.events.borrow().is_empty()
    }

    /// Events posted since the start.
    #[must_use]
    pub fn posted(&self) -> u64 {
        self.0.posted.get()
    }
}
