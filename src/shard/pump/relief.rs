//! Receive buffers that connections hold and cannot use now.
//!
//! The ring's buffers are few, and a connection whose turn ended before its
//! input did holds some until it goes on: a parked fetch, a client that reads no
//! answers, a full journal. When the ring runs short of buffers, such a
//! connection gives them back and keeps the bytes in other memory, receives no
//! more until it goes on, and so one that could go on finds a buffer.

use super::{Pump, RoundEnd};
use crate::io::ring::ConnId;
use crate::shard::handler::{ConnectionHandler, PendingEvent};

/// Most connections that are tried in one round.
const TRIES_MAX: usize = 64;

impl<H: ConnectionHandler, R: RoundEnd> Pump<H, R> {
    /// Remembers a connection whose turn ended before its input did.
    pub(super) fn pin(&mut self, id: ConnId) {
        if self.pinned.len() > 2 * self.open + TRIES_MAX {
            // Most of these have closed meanwhile.
            let connections = &self.connections;
            let open = |id: &ConnId| {
                let slot = connections.get(id.index()).and_then(Option::as_ref);
                slot.is_some_and(|connection| connection.id == *id)
            };
            self.pinned.retain(open);
        }
        if let Some(connection) = self.connection(id)
            && !connection.pinned
            && connection.input.holds_buffers()
        {
            connection.pinned = true;
            self.pinned.push_back(id);
        }
    }

    /// Takes buffers back while the ring is short of them.
    pub(super) fn relieve(&mut self) {
        for _ in 0..self.pinned.len().min(TRIES_MAX) {
            if !self.ring.buffers_short() {
                return;
            }
            let Some(id) = self.pinned.pop_front() else { return };
            let Some(slot) = self.connections.get_mut(id.index()) else { continue };
            let Some(connection) = slot.as_mut().filter(|c| c.id == id && !c.closing) else {
                continue;
            };
            connection.pinned = false;
            if !connection.input.holds_buffers() {
                continue;
            }
            // Else what it gives back fills with its own bytes again.
            connection.paused = true;
            self.ring.pause_receive(id);
            if connection.input.give_back(&self.frame_memory) {
                self.counters.buffers_relieved += 1;
                continue;
            }
            // No memory either: a parked fetch is answered with what there is.
            let hurried = connection.hurry(&self.handler);
            connection.pinned = true;
            self.pinned.push_back(id);
            if let Some(place) = hurried {
                self.mailbox.post(place, PendingEvent::Deadline);
            }
        }
    }

    /// A connection has used up its input: it receives again.
    pub(super) fn resume(&mut self, id: ConnId) {
        if let Some(connection) = self.connection(id)
            && std::mem::take(&mut connection.paused)
        {
            self.ring.resume_receive(id);
        }
    }
}
