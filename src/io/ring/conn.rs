//! One connection of a ring: what is armed, what was asked for, and the rules
//! that lead from one to the other. All of it under the ring's `RefCell`.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use socket2::SockRef;

use super::buffers::ReceivedBuf;
use super::driver::{Descriptor, Done, OpId, Work};
use super::event::{ConnId, EndCause, Event, ReceiveMode};
use super::send::{Gather, SendPiece};
use super::state::{Owner, State};
use crate::io::{ChunkMut, syscall};

/// A large frame that waits for the receive before it to end.
struct Fill {
    chunk: ChunkMut,
    want: usize,
}

/// The receive in the kernel.
struct Armed {
    op: OpId,
    cancelled: bool,
    many: bool,
}

/// A connection. It is removed when it is closing and nothing is in the kernel.
pub(super) struct Conn {
    socket: Rc<OwnedFd>,
    pub(super) generation: u32,
    armed: Option<Armed>,
    /// Set while a large frame is asked for and not yet in the kernel.
    fill: Option<Fill>,
    /// Whether the kernel works on a large frame.
    filling: bool,
    sending: bool,
    paused: bool,
    /// Waits in the ring's queue for a provided buffer.
    starved: bool,
    /// Whether the stop at `held_max` was counted.
    stopped: bool,
    ended: bool,
    closing: bool,
    held: u16,
    /// Its last receive would have filled an ordinary buffer.
    flows: bool,
    spare: Option<Box<Gather>>,
}

impl Conn {
    pub(super) fn new(socket: OwnedFd, generation: u32) -> Self {
        Self {
            socket: Rc::new(socket),
            generation,
            armed: None,
            fill: None,
            filling: false,
            sending: false,
            paused: false,
            starved: false,
            stopped: false,
            ended: false,
            closing: false,
            held: 0,
            flows: false,
            spare: None,
        }
    }

    fn descriptor(&self) -> Descriptor {
        Descriptor::Socket(self.socket.clone())
    }
}

impl State {
    pub(super) fn conn(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.conns.get_mut(id.index()).filter(|conn| conn.generation == id.generation)
    }

    pub(super) fn is_sending(&mut self, id: ConnId) -> bool {
        self.conn(id).is_some_and(|conn| conn.sending)
    }

    /// Buffers that a connection may hold and still receive.
    fn held_max(&self) -> u16 {
        if self.buffers.is_short() { 1 } else { self.held_max }
    }

    /// Bytes that the peer and we have taken from each other so far.
    pub(super) fn transferred(&mut self, id: ConnId) -> Option<u64> {
        syscall::tcp_transferred(self.conn(id)?.socket.as_fd()).ok()
    }

    /// Arms the receive that the connection's state asks for, if any.
    pub(super) fn arm(&mut self, id: ConnId) {
        let held_max = self.held_max();
        let many = self.receive == ReceiveMode::Multishot;
        let Some(conn) = self.conns.get_mut(id.index()) else { return };
        if conn.generation != id.generation || conn.closing || conn.ended || conn.armed.is_some() {
            return;
        }
        let (work, many) = if let Some(Fill { chunk, want }) = conn.fill.take() {
            (conn.filling, conn.starved) = (true, false);
            (Work::ReceiveInto { chunk, want }, false)
        } else if conn.paused || conn.starved {
            return;
        } else if conn.held >= held_max {
            if !conn.stopped {
                conn.stopped = true;
                self.held_stops += 1;
            }
            self.buffers.awaited.set(true);
            return;
        } else if many {
            (Work::ReceiveMany, true)
        } else {
            let large = self.large.as_ref().filter(|large| conn.flows && large.has_for_another());
            large.unwrap_or(&self.buffers).want(1);
            (Work::Receive { large: large.is_some() }, false)
        };
        conn.stopped = false;
        let op = self.driver.queue(conn.descriptor(), work, Owner::Receive(id));
        conn.armed = Some(Armed { op, cancelled: false, many });
    }

    /// Arms the receives of the connections that received since the last time.
    pub(super) fn arm_again(&mut self) {
        let mut again = std::mem::take(&mut self.rearm);
        again.drain(..).for_each(|id| self.arm(id));
        self.rearm = again;
    }

    /// Ends a multishot receive; a one-shot takes one buffer at most anyhow.
    fn disarm(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id.index()) else { return };
        if let Some(armed) = conn.armed.as_mut().filter(|armed| armed.many && !armed.cancelled) {
            armed.cancelled = true;
            self.driver.cancel(armed.op);
        }
    }

    pub(super) fn pause(&mut self, id: ConnId) {
        let Some(conn) = self.conn(id) else { return };
        conn.paused = true;
        self.disarm(id);
    }

    pub(super) fn resume(&mut self, id: ConnId) {
        let Some(conn) = self.conn(id) else { return };
        conn.paused = false;
        self.arm(id);
    }

    pub(super) fn receive_into(&mut self, id: ConnId, chunk: ChunkMut, want: usize) {
        assert!(chunk.len() < want && want <= chunk.capacity(), "{chunk:?} to hold {want}");
        let Some(conn) = self.conn(id) else { return };
        if conn.closing {
            return;
        }
        assert!(conn.fill.is_none() && !conn.filling, "one large frame at a time");
        conn.fill = Some(Fill { chunk, want });
        self.redeliver(id);
        let Some(conn) = self.conn(id) else { return };
        if conn.ended {
            if let Some(Fill { chunk, .. }) = conn.fill.take() {
                self.events.push_back(Event::Filled { conn: id, chunk, complete: false });
            }
        } else if conn.fill.is_some() {
            self.disarm(id);
            self.arm(id);
        }
    }

    /// What came in before the large frame was asked for, and was not reported
    /// yet, belongs to the frame.
    fn redeliver(&mut self, id: ConnId) {
        let is_mine = |event: &Event| match event {
            Event::Received { conn, .. } | Event::ReceiveEnded { conn, .. } => *conn == id,
            _ => false,
        };
        if !self.events.iter().any(is_mine) {
            return;
        }
        let (mine, others): (VecDeque<_>, _) =
            std::mem::take(&mut self.events).into_iter().partition(is_mine);
        self.events = others;
        for event in mine {
            match event {
                Event::Received { data, .. } => self.deliver(id, data),
                Event::ReceiveEnded { cause, .. } => self.end(id, cause),
                _ => unreachable!("only these two were taken"),
            }
        }
    }

    /// A receive completed, perhaps not for the last time.
    pub(super) fn received(&mut self, id: ConnId, done: Done<Owner>) {
        let buffers = match (&done.finished, &self.large) {
            (Some(Work::Receive { large: true }), Some(large)) => large.clone(),
            _ => self.buffers.clone(),
        };
        let much = self.buffers.buffer_bytes();
        let Some(conn) = self.conn(id) else {
            unreachable!("a connection stays until its last completion")
        };
        let cancelled = conn.armed.as_ref().is_some_and(|armed| armed.cancelled);
        if done.finished.is_some() {
            conn.armed = None;
        }
        if matches!(done.finished, Some(Work::Receive { .. })) {
            buffers.want_less();
        }
        let data = done.buffer.map(|buffer| {
            let len = done.result.as_ref().map_or(0, |count| *count as usize);
            conn.held += 1;
            conn.flows = len >= much;
            buffers.received(buffer, len, id)
        });
        if conn.closing {
            drop(data);
            return self.close_if_idle(id);
        }
        if let Some(Work::ReceiveInto { chunk, want }) = done.finished {
            return self.filled(id, chunk, want, done.result);
        }
        match done.result {
            Ok(0) => self.end(id, EndCause::Eof),
            Ok(_) => {
                self.deliver(id, data.expect("a receive with bytes names its buffer"));
                self.bound(id);
                // Not now: the owner may want the rest of a large frame.
                self.rearm.push(id);
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOBUFS) => self.starve(id),
                Some(libc::ECANCELED) if cancelled => self.arm(id),
                Some(libc::EINTR | libc::EAGAIN) => self.arm(id),
                _ => self.end(id, EndCause::Error(error)),
            },
        }
    }

    /// Stops a multishot receive whose connection holds as much as it may.
    fn bound(&mut self, id: ConnId) {
        let held_max = self.held_max();
        let Some(conn) = self.conn(id) else { return };
        if conn.held >= held_max && conn.armed.is_some() {
            self.disarm(id);
        }
    }

    /// Hands received bytes to the large frame that waits for them, then to the
    /// owner.
    fn deliver(&mut self, id: ConnId, mut data: ReceivedBuf) {
        let Some(conn) = self.conn(id) else { return };
        if let Some(fill) = conn.fill.as_mut() {
            let part = data.len().min(fill.want - fill.chunk.len());
            fill.chunk.extend(&data[..part]);
            data.advance(part);
            if fill.chunk.len() == fill.want {
                let Fill { chunk, .. } = conn.fill.take().expect("it was just there");
                self.events.push_back(Event::Filled { conn: id, chunk, complete: true });
            }
        }
        if !data.is_empty() {
            self.events.push_back(Event::Received { conn: id, data });
        }
    }

    fn filled(&mut self, id: ConnId, mut chunk: ChunkMut, want: usize, result: io::Result<u32>) {
        let count = result.as_ref().map_or(0, |count| *count as usize);
        chunk.set_len(chunk.len() + count);
        let retry = match &result {
            Ok(0) => false,
            Ok(_) => chunk.len() < want,
            Err(error) => matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)),
        };
        let Some(conn) = self.conn(id) else { return };
        conn.filling = false;
        if retry {
            // Interrupted half-way, or the stream's end comes with the next.
            conn.fill = Some(Fill { chunk, want });
            return self.arm(id);
        }
        let complete = chunk.len() == want;
        self.events.push_back(Event::Filled { conn: id, chunk, complete });
        match result {
            _ if complete => self.arm(id),
            Ok(_) => self.end(id, EndCause::Eof),
            Err(error) => self.end(id, EndCause::Error(error)),
        }
    }

    fn end(&mut self, id: ConnId, cause: EndCause) {
        let Some(conn) = self.conn(id) else { return };
        conn.ended = true;
        if let Some(Fill { chunk, .. }) = conn.fill.take() {
            self.events.push_back(Event::Filled { conn: id, chunk, complete: false });
        }
        self.events.push_back(Event::ReceiveEnded { conn: id, cause });
    }

    /// No buffer was left: waits in line until some come back.
    fn starve(&mut self, id: ConnId) {
        self.no_buffers += 1;
        let Some(conn) = self.conn(id) else { return };
        if conn.armed.is_some() || conn.starved {
            return;
        }
        if conn.fill.is_some() {
            // Has memory of its own.
            return self.arm(id);
        }
        conn.starved = true;
        self.starved.push_back(id);
        self.buffers.awaited.set(true);
        self.events.push_back(Event::NoBuffer { conn: id });
    }

    /// Books the buffers that came back, and arms who waited for them: first
    /// those that held too many, then the starved, oldest first.
    pub(super) fn take_returned(&mut self) {
        let mut returned = std::mem::take(&mut self.scratch);
        self.groups().for_each(|group| group.take_returned(&mut returned));
        for id in returned.drain(..) {
            if let Some(conn) = self.conn(id) {
                conn.held -= 1;
                self.arm(id);
            }
        }
        self.scratch = returned;
        let mut free = usize::from(self.buffers.count()) - self.buffers.held() as usize;
        while free > 0
            && let Some(id) = self.starved.pop_front()
        {
            if let Some(conn) = self.conn(id).filter(|conn| conn.starved) {
                conn.starved = false;
                free -= 1;
                self.arm(id);
            }
        }
    }

    pub(super) fn send(&mut self, id: ConnId, pieces: Vec<SendPiece>) {
        let Some(conn) = self.conn(id).filter(|conn| !conn.closing) else { return };
        assert!(!conn.sending, "one send at a time");
        conn.sending = true;
        let mut gather = conn.spare.take().unwrap_or_else(Gather::new);
        gather.start(pieces);
        self.send_next(id, gather);
    }

    fn send_next(&mut self, id: ConnId, mut gather: Box<Gather>) {
        if gather.next_part(self.send_bytes_max) {
            let Some(conn) = self.conn(id) else { return };
            let descriptor = conn.descriptor();
            self.driver.queue(descriptor, Work::Send(gather), Owner::Send(id));
        } else {
            self.send_over(id, gather, Ok(()));
        }
    }

    /// The kernel is done with a part of a send.
    pub(super) fn sent(&mut self, id: ConnId, done: Done<Owner>) {
        let Some(Work::Send(mut gather)) = done.finished else {
            unreachable!("a send completes once")
        };
        match done.result.and_then(|count| gather.advance(count as usize)) {
            Ok(()) => self.send_next(id, gather),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                self.send_next(id, gather);
            }
            Err(error) => self.send_over(id, gather, Err(error)),
        }
    }

    fn send_over(&mut self, id: ConnId, mut gather: Box<Gather>, result: io::Result<()>) {
        let pieces = gather.finish();
        let Some(conn) = self.conn(id) else { return };
        conn.sending = false;
        conn.spare = Some(gather);
        self.events.push_back(Event::Sent { conn: id, result, pieces });
        self.close_if_idle(id);
    }

    pub(super) fn shutdown(&mut self, id: ConnId) {
        let Some(conn) = self.conn(id).filter(|conn| !conn.closing) else { return };
        conn.closing = true;
        conn.fill = None;
        // Ends the receive and the send in the kernel. It fails when the peer
        // has reset the connection; then they have ended.
        let _ = SockRef::from(&*conn.socket).shutdown(Shutdown::Both);
        self.close_if_idle(id);
    }

    fn close_if_idle(&mut self, id: ConnId) {
        let Some(conn) = self.conn(id) else { return };
        if conn.closing && conn.armed.is_none() && !conn.sending {
            self.conns.remove(id.index());
            self.events.push_back(Event::Closed { conn: id });
        }
    }
}
