//! What the pump asks of whoever understands requests, and what comes back to
//! a request that could not be answered at once.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::base::{DeadlineKey, Deadlines};
use crate::io::ring::{Bell, ConnId};
use crate::log::Slices;
use crate::model::ErrorCode;
use crate::partition::{AppendOutcome, Wake};

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
    /// A partition that it waits for has more to read.
    Wake {
        /// Which of its partitions, as the handler numbered them.
        index: u32,
        /// What the partition says.
        wake: Wake,
    },
    /// A new round has begun: its next share of the shard's time.
    Round,
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
    /// It takes the next place, but is not done with its frame: `resume` gets
    /// the same frame in a later round. No later frame starts before that.
    Partly(P, Pause),
    /// It must wait until all earlier ones have left: show it again then.
    Hold,
    /// The connection ends, for this reason, once the answers to all earlier
    /// requests have left.
    Close(String),
}

/// Why a request is not done with its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// There is no memory for what it wants now.
    NoMemory,
    /// It has had its share of the shard's time.
    Slice,
}

/// What became of a frame that was shown again.
#[derive(Debug)]
pub enum Resumed {
    /// The request is done with it.
    Done,
    /// Show it once more in a later round.
    Again(Pause),
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

    /// Goes on with a request that was done with a part of its frame
    /// ([`Verdict::Partly`]).
    fn resume(
        &self,
        place: Place,
        state: &mut Self::State,
        pending: &mut Self::Pending,
        frame: &[u8],
    ) -> Resumed;

    /// Tells a request in flight what it waited for. `Err` closes the
    /// connection after the answers to earlier requests.
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
    /// the connection after the answers to earlier requests.
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
    /// Who goes on in the next round.
    next: RefCell<Vec<Place>>,
    deadlines: RefCell<Deadlines<Place>>,
    bell: Bell,
}

/// Where events for requests in flight are left for the pump. Cloning shares it.
#[derive(Clone)]
pub struct Mailbox(Rc<Inner>);

impl Mailbox {
    /// An empty mailbox that rings `bell`.
    #[must_use]
    pub fn new(bell: Bell) -> Self {
        let (events, next) = (RefCell::default(), RefCell::default());
        Self(Rc::new(Inner { events, next, deadlines: RefCell::default(), bell }))
    }

    /// Leaves an event; the pump delivers it in its next round.
    pub fn post(&self, place: Place, event: PendingEvent) {
        self.0.events.borrow_mut().push((place, event));
        self.0.bell.ring();
    }

    /// Makes the pump run a round: something was appended by a task.
    pub fn ring(&self) {
        self.0.bell.ring();
    }

    /// Asks for `PendingEvent::Round` in the next round, in which others have
    /// their turn first.
    pub fn next_round(&self, place: Place) {
        self.0.next.borrow_mut().push(place);
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

    /// A round begins: what was asked for it, and deadlines that have passed,
    /// become events.
    pub fn begin_round(&self, now: Duration) {
        let mut events = self.0.events.borrow_mut();
        let mut next = self.0.next.borrow_mut();
        events.extend(next.drain(..).map(|place| (place, PendingEvent::Round)));
        let mut deadlines = self.0.deadlines.borrow_mut();
        while let Some(place) = deadlines.pop_due(now) {
            events.push((place, PendingEvent::Deadline));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_the_next_round_comes_in_it() {
        let mailbox = Mailbox::new(Bell::default());
        let place = |seq| Place { conn: ConnId::numbered(1), seq: ReplySeq(seq) };
        let mut events = Vec::new();
        mailbox.next_round(place(1));
        assert!(mailbox.is_empty(), "not in this one");
        let _ = mailbox.deadline(Duration::from_secs(1), place(2));
        mailbox.begin_round(Duration::from_secs(1));
        mailbox.swap(&mut events);
        let told: Vec<_> = events.drain(..).map(|(place, event)| (place.seq.0, event)).collect();
        assert!(matches!(told[..], [(1, PendingEvent::Round), (2, PendingEvent::Deadline)]));
        mailbox.begin_round(Duration::from_secs(2));
        assert!(mailbox.is_empty(), "once");
    }
}
