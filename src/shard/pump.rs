//! The pump: the one loop of a shard that reaps its ring, serves connections
//! in turn, ends rounds (which writes the journals) and parks.
//!
//! A round: submit what is queued, reap completions into the connections, give
//! every ready connection one turn of at most 16 requests, end the round,
//! deliver what became known, hand encoded answers to the ring. When the
//! shard's slice is over the pump pauses for the reactor; when nothing is left
//! it looks again for a while, then parks. It never awaits I/O.

mod accept;
mod relief;
mod sweep;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use crate::io::env::Env;
use crate::io::glommio::GlommioTask;
use crate::io::ring::{ConnId, EndCause, Event, ListenerId, Ring, SendPiece};
use crate::io::{ChunkMut, Pool};

use super::connection::{Connection, TurnEnd};
use super::fatal::Fatal;
use super::handler::{ConnectionHandler, Mailbox, PendingEvent, Place};
use super::hungry::Hungry;
use super::input::FrameMemory;
use super::limits::{Limits, PumpCounters};
use super::peers::Peers;
use super::runtime::{Runtime, yield_in_place};
use super::stop::StopSignal;

/// What a shard does when every ready connection has had its turn.
pub trait RoundEnd: 'static {
    /// Writes the journals and posts what became known to the mailbox.
    fn end_round(&self);
    /// Why the shard must end, when it must.
    fn fatal(&self) -> Option<Fatal>;
    /// Whether appends or reads lacked memory since the last call.
    fn lacked_memory(&self) -> bool;
}

/// The loop of one shard.
pub struct Pump<H: ConnectionHandler, R: RoundEnd> {
    runtime: Runtime,
    ring: Ring,
    handler: Rc<H>,
    round_end: Rc<R>,
    mailbox: Mailbox,
    limits: Limits,
    frame_memory: FrameMemory,
    send_pool: Pool,
    stop: StopSignal,
    connections: Vec<Option<Connection<H>>>,
    open: usize,
    ready: VecDeque<ConnId>,
    hungry: Hungry<ConnId>,
    /// Connections that hold receive buffers which they cannot use now.
    pinned: VecDeque<ConnId>,
    peers: Peers,
    /// Connections that the ring has, refused ones included.
    accepted: usize,
    listener: Option<ListenerId>,
    /// Monotonic time of the last warning about connections.
    warned_at: Option<Duration>,
    /// One of them for want of memory for its frame.
    frames_short: bool,
    /// Connections that events of this round were delivered to.
    told: Vec<ConnId>,
    events: Vec<Event>,
    delivered: Vec<(Place, PendingEvent)>,
    /// The task that rings the bell at the next deadline.
    alarm: Option<(Duration, GlommioTask)>,
    now: Duration,
    swept_at: Duration,
    accepting: bool,
    /// The ring still has the listener.
    listening: bool,
    /// How long the last waits for work were: decides whether to look again.
    wait_average: Duration,
    counters: PumpCounters,
}

/// What a pump is made of.
pub struct PumpParts<H, R> {
    /// The shard's runtime.
    pub runtime: Runtime,
    /// Who understands requests.
    pub handler: Rc<H>,
    /// What ends a round.
    pub round_end: Rc<R>,
    /// Where events for requests in flight are left.
    pub mailbox: Mailbox,
    /// Limits of connections.
    pub limits: Limits,
    /// Memory of frames under way.
    pub frame_memory: FrameMemory,
    /// Memory of encoded answers.
    pub send_pool: Pool,
    /// Who says when to stop.
    pub stop: StopSignal,
}

impl<H: ConnectionHandler, R: RoundEnd> Pump<H, R> {
    /// A pump that has not run.
    #[must_use]
    pub fn new(parts: PumpParts<H, R>) -> Self {
        let ring = parts.runtime.ring().clone();
        let now = parts.runtime.env().monotonic();
        let peers = Peers::new(parts.limits.peers.clone());
        Self {
            runtime: parts.runtime,
            ring,
            handler: parts.handler,
            round_end: parts.round_end,
            mailbox: parts.mailbox,
            limits: parts.limits,
            frame_memory: parts.frame_memory,
            send_pool: parts.send_pool,
            stop: parts.stop,
            connections: Vec::new(),
            open: 0,
            ready: VecDeque::new(),
            hungry: Hungry::new(),
            pinned: VecDeque::new(),
            peers,
            accepted: 0,
            listener: None,
            warned_at: None,
            frames_short: false,
            told: Vec::new(),
            events: Vec::new(),
            delivered: Vec::new(),
            alarm: None,
            now,
            swept_at: now,
            accepting: true,
            listening: true,
            wait_average: Duration::ZERO,
            counters: PumpCounters::default(),
        }
    }

    /// Serves `listener` until the stop flag is set, then lets answers leave,
    /// closes every connection and returns. `Err` when the shard had to end.
    pub async fn run(mut self, listener: std::net::TcpListener) -> Result<PumpCounters, Fatal> {
        let listener = self.ring.listen(listener, self.limits.connections_max);
        self.listener = Some(listener);
        while !self.stop.is_set() {
            self.round()?;
            self.give_way().await;
        }
        self.accepting = false;
        self.ring.unlisten(listener);
        self.drain().await?;
        Ok(self.counters)
    }

    /// One round. Returns without waiting for anything.
    fn round(&mut self) -> Result<(), Fatal> {
        self.counters.rounds += 1;
        self.now = self.runtime.env().monotonic();
        self.ring.submit();
        // Before newcomers, who would take what came free.
        self.hungry.feed(self.now, &mut self.ready);
        let mut events = std::mem::take(&mut self.events);
        self.ring.reap(|event| events.push(event));
        for event in events.drain(..) {
            self.on_event(event);
        }
        self.events = events;
        self.mailbox.begin_round(self.now);
        self.serve_ready();
        self.round_end.end_round();
        self.deliver();
        self.relieve();
        self.sweep();
        self.ring.submit();
        self.ring.set_more_work(!self.ready.is_empty() || !self.mailbox.is_empty());
        self.runtime.pulse().round(self.ring.in_flight());
        self.round_end.fatal().map_or(Ok(()), Err)
    }

    /// One turn for each connection that is ready now, until the slice is over.
    fn serve_ready(&mut self) {
        self.frames_short = false;
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { return };
            self.turn(id);
            if self.runtime.env().slice_over() {
                return;
            }
        }
    }

    fn connection(&mut self, id: ConnId) -> Option<&mut Connection<H>> {
        self.connections.get_mut(id.index())?.as_mut().filter(|c| c.id == id)
    }

    fn turn(&mut self, id: ConnId) {
        let Some(slot) = self.connections.get_mut(id.index()) else { return };
        let Some(connection) = slot.as_mut().filter(|c| c.id == id) else { return };
        connection.queued = false;
        if connection.closing {
            return;
        }
        let mut served = 0;
        let env = self.runtime.env();
        let slice_over = || env.slice_over();
        let memory = &self.frame_memory;
        let end = connection.turn(&self.handler, &self.limits, memory, &mut served, slice_over);
        self.counters.requests += served;
        let used_up = matches!(end, TurnEnd::Share | TurnEnd::Starving);
        match end {
            TurnEnd::Share => self.make_ready(id),
            TurnEnd::Starving => self.want_more(id),
            TurnEnd::NoMemory => {
                self.counters.receive_memory_short += 1;
                self.frames_short = true;
                connection.queued = true;
                self.hungry.push(id);
            }
            TurnEnd::Later => {
                connection.queued = true;
                self.hungry.push(id);
            }
            TurnEnd::Blocked => connection.blocked = true,
        }
        if !used_up {
            self.pin(id);
        }
        self.hungry.turn_ended(id);
        self.settle(id);
    }

    /// No whole frame is buffered: a large one is received into its own memory,
    /// and any that has memory when buffers are short.
    fn want_more(&mut self, id: ConnId) {
        self.resume(id);
        let short = self.ring.buffers_short();
        self.receive_gathered(id, if short { 1 } else { self.limits.direct_receive_min_bytes });
    }

    /// Has the frame under way received into its own memory, when at least
    /// `worth` bytes can be.
    fn receive_gathered(&mut self, id: ConnId, worth: usize) {
        let Some(connection) = self.connection(id) else { return };
        if connection.ended || connection.filling.is_some() {
            return;
        }
        if let Some((chunk, want)) = connection.input.take_gather(worth) {
            connection.filling = Some(want);
            let target = want.min(chunk.capacity());
            self.ring.receive_into(id, chunk, target);
        }
    }

    fn make_ready(&mut self, id: ConnId) {
        if let Some(connection) = self.connection(id)
            && !connection.queued
        {
            connection.queued = true;
            self.ready.push_back(id);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, peer, .. } => self.on_accepted(conn, peer),
            Event::AcceptFailed { listener, error } => self.on_accept_failed(listener, &error),
            Event::Unlistened { .. } => self.listening = false,
            Event::Received { conn, data } => {
                let now = self.now;
                if let Some(connection) = self.connection(conn) {
                    connection.input.push(data);
                    connection.active_at = now;
                    if connection.filling.is_none() {
                        self.make_ready(conn);
                    }
                }
            }
            // It may hold the memory that those wait for who hold the buffers.
            Event::NoBuffer { conn } => self.receive_gathered(conn, 1),
            Event::Filled { conn, chunk, .. } => self.on_filled(conn, chunk),
            Event::ReceiveEnded { conn, cause } => {
                if let EndCause::Error(error) = cause {
                    tracing::debug!("receive failed: {error}");
                }
                if let Some(connection) = self.connection(conn) {
                    connection.ended = true;
                    self.make_ready(conn);
                }
            }
            Event::Sent { conn, result, pieces } => self.on_sent(conn, result, pieces),
            Event::Closed { conn } => self.on_closed(conn),
        }
    }

    fn on_filled(&mut self, id: ConnId, chunk: ChunkMut) {
        let now = self.now;
        if let Some(connection) = self.connection(id) {
            let want = connection.filling.take().expect("a fill was asked for");
            if connection.ending.is_none() {
                connection.input.resume_gather(chunk, want);
            }
            connection.active_at = now;
            self.make_ready(id);
        }
    }

    fn on_sent(&mut self, id: ConnId, result: std::io::Result<()>, pieces: Vec<SendPiece>) {
        let now = self.now;
        let Some(connection) = self.connection(id) else { return };
        connection.active_at = now;
        connection.sent();
        match result {
            Ok(()) => {
                // What waited for room in the output or for the send pool.
                if std::mem::take(&mut connection.blocked) {
                    self.make_ready(id);
                }
                self.settle_with(id, pieces);
            }
            Err(error) => self.close(id, &format!("send failed: {error}")),
        }
    }

    /// Delivers all events; then all answers of a connection leave in one send.
    fn deliver(&mut self) {
        while !self.mailbox.is_empty() {
            let mut events = std::mem::take(&mut self.delivered);
            self.mailbox.swap(&mut events);
            for (place, event) in events.drain(..) {
                self.deliver_one(place, event);
            }
            self.delivered = events;
        }
        let mut told = std::mem::take(&mut self.told);
        told.drain(..).for_each(|id| self.settle(id));
        self.told = told;
    }

    fn deliver_one(&mut self, place: Place, event: PendingEvent) {
        let Some(slot) = self.connections.get_mut(place.conn.index()) else { return };
        let Some(connection) = slot.as_mut().filter(|c| c.id == place.conn) else { return };
        if connection.closing {
            return;
        }
        let Some(pending) = connection.replies.get_mut(place.seq) else { return };
        let told = self.handler.event(place, &mut connection.state, pending, event);
        if let Err(reason) = told {
            connection.end(&self.handler, place.seq, reason);
        }
        if !std::mem::replace(&mut connection.told, true) {
            self.told.push(place.conn);
        }
    }

    /// Encodes what is known, sends it, and looks whether the input can go on.
    fn settle(&mut self, id: ConnId) {
        self.settle_with(id, Vec::new());
    }

    fn settle_with(&mut self, id: ConnId, spare: Vec<SendPiece>) {
        let Some(slot) = self.connections.get_mut(id.index()) else { return };
        let Some(connection) = slot.as_mut().filter(|c| c.id == id && !c.closing) else { return };
        connection.told = false;
        let moved = connection.settle(&self.handler, &self.limits);
        if moved && std::mem::take(&mut connection.blocked) {
            self.make_ready(id);
        }
        self.flush(id, spare);
    }

    /// Hands output to the ring when no send is under way; ends a connection
    /// whose peer sends no more and for which nothing is left to do.
    fn flush(&mut self, id: ConnId, spare: Vec<SendPiece>) {
        let sending = self.ring.is_sending(id);
        let Some(connection) = self.connection(id) else { return };
        if connection.closing || sending {
            return;
        }
        if !connection.output.is_empty() {
            let pieces = connection.output.take(spare);
            self.ring.send(id, pieces);
            // Room in the output may let a blocked request or answer go on.
            if let Some(connection) = self.connection(id)
                && connection.blocked
            {
                connection.blocked = false;
                self.make_ready(id);
            }
            return;
        }
        if let Some(reason) = connection.ended_because() {
            return self.close(id, &reason);
        }
        if !connection.ended {
            return;
        }
        // Frames that came before the end are still served (acks=0 producers
        // send and close), and so are answers that are decided soon: a peer
        // may have closed its sending side only.
        let goes_on = connection.queued || (connection.blocked && !connection.is_quiet());
        let handler = self.handler.clone();
        let Some(connection) = self.connection(id) else { return };
        let awaited = connection.is_awaited(&handler);
        if !goes_on && !awaited {
            return self.close(id, "the peer closed");
        }
        // A parked fetch must not hold them up, now that nobody waits for it.
        if !connection.blocked && !awaited {
            return;
        }
        if let Some(place) = connection.hurry(&handler) {
            self.mailbox.post(place, PendingEvent::Deadline);
        }
    }

    fn close(&mut self, id: ConnId, reason: &str) {
        let Some(connection) = self.connection(id) else { return };
        if !connection.closing {
            connection.closing = true;
            tracing::debug!("connection {}: {reason}", id.index());
            self.ring.shutdown(id);
        }
    }

    fn has_work(&self) -> bool {
        !self.ready.is_empty()
            || !self.mailbox.is_empty()
            || self.ring.has_work()
            || self.mailbox.next_deadline().is_some_and(|at| at <= self.runtime.env().monotonic())
    }

    /// Between rounds: the shard's other tasks, then the reactor when the slice
    /// is over, then a look-again and a park when nothing is left.
    async fn give_way(&mut self) {
        let env = self.runtime.env().clone();
        if env.slice_over() {
            self.runtime.pause().await;
        } else {
            yield_in_place().await;
        }
        if self.ring.bell().answer() || self.has_work() || self.stop.is_set() {
            return;
        }
        let idle_since = env.monotonic();
        // Looking again pays only where work has lately come sooner than a park costs.
        if self.wait_average <= self.limits.spin_max {
            while env.monotonic().saturating_sub(idle_since) < self.limits.spin_max {
                if self.ring.look() || self.ring.bell().answer() || self.has_work() {
                    return self.waited(env.monotonic().saturating_sub(idle_since));
                }
                yield_in_place().await;
                if env.slice_over() {
                    self.runtime.pause().await;
                }
            }
        }
        if self.hungry.is_empty() {
            self.set_alarm();
        } else {
            // Memory comes back without ringing anything: look again soon.
            self.alarm_at(self.now + Duration::from_millis(1));
        }
        self.counters.parks += 1;
        self.runtime.park().await;
        self.ring.bell().answer();
        self.waited(env.monotonic().saturating_sub(idle_since));
    }

    fn waited(&mut self, wait: Duration) {
        // One long wait stops the looking, a few short ones start it again.
        let wait = wait.min(self.limits.spin_max * 8);
        self.wait_average = (self.wait_average * 3 + wait) / 4;
    }

    /// Makes the bell ring at the next deadline, and for the idle sweep.
    fn set_alarm(&mut self) {
        let mut at = self.mailbox.next_deadline();
        if self.open > 0 {
            let sweep = self.swept_at + self.sweep_every();
            at = Some(at.map_or(sweep, |at| at.min(sweep)));
        }
        if let Some(at) = at {
            self.alarm_at(at);
        }
    }

    fn alarm_at(&mut self, at: Duration) {
        let env = self.runtime.env();
        let now = env.monotonic();
        if self.alarm.as_ref().is_some_and(|(set, _)| *set <= at && *set > now) {
            return;
        }
        let bell = self.ring.bell();
        let sleep = env.sleep(at.saturating_sub(now));
        let task = env.spawn(async move {
            sleep.await;
            bell.ring();
        });
        self.alarm = Some((at, task));
    }

    /// After the stop: no new request starts, answers that are decided within
    /// the limit leave, then everything is closed.
    async fn drain(&mut self) -> Result<(), Fatal> {
        let ids = |pump: &Self| -> Vec<ConnId> {
            pump.connections.iter().flatten().map(|c| c.id).collect()
        };
        for id in ids(self) {
            self.ring.pause_receive(id);
        }
        self.limits.in_flight_max = 0;
        let env = self.runtime.env().clone();
        let until = env.monotonic() + self.limits.stop_send_max;
        loop {
            self.hurry_all();
            self.round()?;
            let waiting = self.connections.iter().flatten().any(|c| {
                let sends = !c.output.is_empty() || self.ring.is_sending(c.id);
                !c.closing && (sends || c.is_awaited(&self.handler))
            });
            if !waiting || env.monotonic() >= until {
                break;
            }
            self.runtime.pause().await;
        }
        for id in ids(self) {
            self.close(id, "the broker is stopping");
        }
        let until = env.monotonic() + Duration::from_secs(1);
        while (self.open > 0 || self.listening) && env.monotonic() < until {
            self.round()?;
            self.runtime.pause().await;
        }
        self.alarm = None;
        Ok(())
    }

    /// Answers parked fetches before which others would have to wait.
    fn hurry_all(&mut self) {
        for connection in self.connections.iter_mut().flatten().filter(|c| !c.closing) {
            if connection.is_awaited(&self.handler)
                && let Some(place) = connection.hurry(&self.handler)
            {
                self.mailbox.post(place, PendingEvent::Deadline);
            }
        }
    }
}
