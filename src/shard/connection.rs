//! One connection's mechanics: input, requests in flight, output. What a
//! request means is the handler's.

use std::net::IpAddr;
use std::time::Duration;

use crate::io::Pool;
use crate::io::ring::{ConnId, ReceivedBuf};

use super::handler::{ConnectionHandler, Place, Verdict};
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
    /// The handler wants the frame again in a later round.
    Later,
    /// Something of this connection must leave first: `settle` goes on.
    Blocked,
    /// The connection must end, for this reason.
    Close(String),
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
        !self.alone
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
            if !self.may_start(limits) {
                return TurnEnd::Blocked;
            }
            match self.input.advance(memory) {
                Ok(Progress::Frame) => {}
                Ok(Progress::Starving) => return TurnEnd::Starving,
                Ok(Progress::NoMemory) => return TurnEnd::NoMemory,
                Err(error) => return TurnEnd::Close(error.to_string()),
            }
            let place = Place { conn: self.id, seq: self.replies.next_seq() };
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
                Verdict::Later => return TurnEnd::Later,
                Verdict::Hold => {
                    assert!(!alone, "a frame that nothing precedes cannot wait for others");
                    return TurnEnd::Blocked;
                }
                Verdict::Close(reason) => return TurnEnd::Close(reason),
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

    /// Encodes the answers that are known, in order. Says whether any left;
    /// `Err` is why the connection must end.
    pub(super) fn settle(&mut self, handler: &H, limits: &Limits) -> Result<bool, String> {
        let mut moved = false;
        while !self.output_short
            && self.output.bytes() < limits.output_max_bytes
            && self.replies.front().is_some_and(|pending| handler.is_ready(pending))
        {
            let pending = self.replies.pop().expect("the front was there");
            self.output_short = !handler.encode(&mut self.state, pending, &mut self.output)?;
            moved = true;
        }
        if self.replies.is_empty() {
            self.alone = false;
        }
        Ok(moved)
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
