//! One connection's mechanics: input, requests in flight, output. What a
//! request means is the handler's.

use std::net::IpAddr;
use std::time::Duration;

use crate::io::Pool;
use crate::io::ring::{ConnId, ReceivedBuf};

use super::handler::{ConnectionHandler, Pause, Place, Resumed, Verdict};
use super::input::{FrameMemory, Input, Progress};
use super::limits::Limits;
use super::output::Output;
use super::replies::{ReplyQueue, ReplySeq};

/// After a frame of this size a turn asks whether the slice is over, in bytes.
const LONG_FRAME: usize = 4 << 10;

/// Why a turn ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// The share of requests was used up; more may be waiting.
    Share,
    /// No whole frame is there.
    Starving,
    /// There is no memory for the frame under way for now.
    NoMemory,
    /// There is no memory for what the request under way wants.
    Later,
    /// Something of this connection must leave first: `settle` goes on.
    Blocked,
}

impl From<Pause> for TurnEnd {
    fn from(pause: Pause) -> Self {
        match pause {
            Pause::NoMemory => Self::Later,
            Pause::Slice => Self::Share,
        }
    }
}

/// A connection of this shard.
pub(super) struct Connection<H: ConnectionHandler> {
    pub(super) id: ConnId,
    pub(super) state: H::State,
    pub(super) input: Input<ReceivedBuf>,
    pub(super) replies: ReplyQueue<H::Pending>,
    pub(super) output: Output,
    /// The request in flight that lets no other start.
    alone: bool,
    /// The request, the last one, that is not done with its frame.
    partly: Option<ReplySeq>,
    /// Why it ends when everything in flight has left; no frame starts then.
    pub(super) ending: Option<String>,
    /// The send pool was used up; wait for the end of a send.
    output_short: bool,
    /// In the pump's ready queue.
    pub(super) queued: bool,
    /// A turn ended as blocked; look again when something has left.
    pub(super) blocked: bool,
    /// In the pump's list of those that hold receive buffers and wait.
    pub(super) pinned: bool,
    /// Its receive is stopped until its input is used up.
    pub(super) paused: bool,
    /// Events were delivered to it in this round.
    pub(super) told: bool,
    /// A large frame is being received into its own memory.
    pub(super) filling: Option<usize>,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// The answer that was last asked to come without further waiting.
    pub(super) hurried: Option<ReplySeq>,
    /// `shutdown` was asked of the ring.
    pub(super) closing: bool,
    /// Monotonic time of the last bytes in either direction.
    pub(super) active_at: Duration,
    /// Bytes that the kernel had carried when it was last asked.
    pub(super) transferred: u64,
    /// Where it comes from.
    pub(super) peer: Option<IpAddr>,
}

impl<H: ConnectionHandler> Connection<H> {
    pub(super) fn new(
        id: ConnId,
        state: H::State,
        limits: &Limits,
        send_pool: Pool,
        now: Duration,
    ) -> Self {
        Self {
            id,
            state,
            input: Input::new(limits.frame_max_bytes),
            replies: ReplyQueue::default(),
            output: Output::new(send_pool),
            alone: false,
            partly: None,
            ending: None,
            output_short: false,
            queued: false,
            blocked: false,
            pinned: false,
            paused: false,
            told: false,
            filling: None,
            ended: false,
            hurried: None,
            closing: false,
            active_at: now,
            transferred: 0,
            peer: None,
        }
    }

    /// Whether the next frame may start now.
    fn may_start(&self, limits: &Limits) -> bool {
        self.ending.is_none()
            && !self.alone
            && !self.output_short
            && self.replies.len() < limits.in_flight_max
            && self.output.bytes() < limits.output_max_bytes
    }

    /// Serves up to the share of requests; adds the number served to `served`.
    pub(super) fn turn(
        &mut self,
        handler: &H,
        limits: &Limits,
        memory: &FrameMemory,
        served: &mut u64,
        slice_over: impl Fn() -> bool,
    ) -> TurnEnd {
        for _ in 0..limits.turn_requests_max {
            let stepped = match self.partly {
                Some(seq) => self.go_on(handler, seq),
                None => self.start(handler, limits, memory),
            };
            if let Err(end) = stepped {
                return end;
            }
            let long = self.input.frame().len() >= LONG_FRAME;
            self.input.consume();
            *served += 1;
            if long && slice_over() {
                return TurnEnd::Share;
            }
        }
        TurnEnd::Share
    }

    /// Starts the next request; `Ok` when it is done with its frame.
    fn start(&mut self, handler: &H, limits: &Limits, memory: &FrameMemory) -> Result<(), TurnEnd> {
        if !self.may_start(limits) {
            return Err(TurnEnd::Blocked);
        }
        let seq = self.replies.next_seq();
        match self.input.advance(memory) {
            Ok(Progress::Frame) => {}
            Ok(Progress::Starving) => return Err(TurnEnd::Starving),
            Ok(Progress::NoMemory) => return Err(TurnEnd::NoMemory),
            Err(error) => return Err(self.end(handler, seq, error.to_string())),
        }
        let place = Place { conn: self.id, seq };
        let alone = self.replies.is_empty();
        match handler.frame(place, &mut self.state, self.input.frame(), alone) {
            Verdict::Overlap(pending) => {
                self.replies.push(pending);
            }
            Verdict::Alone(pending) => {
                self.replies.push(pending);
                self.alone = true;
            }
            Verdict::Silent => {}
            Verdict::Partly(pending, pause) => {
                self.partly = Some(self.replies.push(pending));
                return Err(pause.into());
            }
            Verdict::Hold => {
                assert!(!alone, "a frame that nothing precedes cannot wait for others");
                return Err(TurnEnd::Blocked);
            }
            Verdict::Close(reason) => return Err(self.end(handler, seq, reason)),
        }
        Ok(())
    }

    /// Goes on with the request that was not done with its frame.
    fn go_on(&mut self, handler: &H, seq: ReplySeq) -> Result<(), TurnEnd> {
        let place = Place { conn: self.id, seq };
        let pending = self.replies.get_mut(seq).expect("what is under way is not answered");
        match handler.resume(place, &mut self.state, pending, self.input.frame()) {
            Resumed::Done => self.partly = None,
            Resumed::Again(pause) => return Err(pause.into()),
            Resumed::Close(reason) => return Err(self.end(handler, seq, reason)),
        }
        Ok(())
    }

    /// Lets the connection end once the answers to all requests before `from`
    /// have left: later ones are given up, and no further frame starts.
    pub(super) fn end(&mut self, handler: &H, from: ReplySeq, reason: String) -> TurnEnd {
        while self.replies.next_seq() > from {
            let (seq, pending) = self.replies.pop_last().expect("it is in flight");
            handler.forget(Place { conn: self.id, seq }, pending);
        }
        // Only the last request can be under way, and it is no earlier one.
        self.partly = None;
        self.input.clear();
        self.ending.get_or_insert(reason);
        self.blocked = true;
        TurnEnd::Blocked
    }

    /// Why the connection is to be closed now: it ends, and all has left.
    pub(super) fn ended_because(&self) -> Option<String> {
        self.ending.clone().filter(|_| self.is_quiet())
    }

    /// Encodes the answers that are known, in order. Says whether any left.
    pub(super) fn settle(&mut self, handler: &H, limits: &Limits) -> bool {
        let mut moved = false;
        while !self.output_short
            && self.output.bytes() < limits.output_max_bytes
            && self.replies.front().is_some_and(|pending| handler.is_ready(pending))
        {
            let pending = self.replies.pop().expect("the front was there");
            match handler.encode(&mut self.state, pending, &mut self.output) {
                Ok(room) => self.output_short = !room,
                Err(reason) => {
                    self.end(handler, self.replies.first_seq(), reason);
                }
            }
            moved = true;
        }
        if self.replies.is_empty() {
            self.alone = false;
        }
        moved
    }

    /// A send has ended: memory of the send pool may be there again.
    pub(super) fn sent(&mut self) {
        self.output_short = false;
    }

    /// The place of the front answer when it may be far away (a parked fetch);
    /// once per answer.
    pub(super) fn hurry(&mut self, handler: &H) -> Option<Place> {
        let seq = self.replies.first_seq();
        let parked = self.replies.front().is_some_and(|pending| !handler.decides_soon(pending));
        if !parked || self.hurried == Some(seq) {
            return None;
        }
        self.hurried = Some(seq);
        Some(Place { conn: self.id, seq })
    }

    /// Whether an answer is known or decided soon, be it behind a parked fetch.
    pub(super) fn is_awaited(&self, handler: &H) -> bool {
        self.replies
            .iter()
            .any(|pending| handler.is_ready(pending) || handler.decides_soon(pending))
    }

    /// Whether a frame that does not arrive holds memory since before `since`.
    pub(super) fn stalls(&self, since: Duration) -> bool {
        let holds = self.input.holds_memory() || self.filling.is_some();
        holds && !self.queued && !self.blocked && !self.closing && self.active_at < since
    }

    /// Whether nothing of this connection can go on by itself.
    pub(super) fn is_quiet(&self) -> bool {
        self.replies.is_empty() && self.output.is_empty()
    }
}
