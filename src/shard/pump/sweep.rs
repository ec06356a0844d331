//! What the pump looks for about once a second, among all connections: idle
//! ones, overdue requests, and those whose frames or answers hold memory that
//! others lack.

use std::time::Duration;

use super::Pump;
use crate::shard::handler::{ConnectionHandler, PendingEvent, Place};
use crate::shard::pump::RoundEnd;

impl<H: ConnectionHandler, R: RoundEnd> Pump<H, R> {
    /// How often `sweep` looks at all connections.
    pub(super) fn sweep_every(&self) -> Duration {
        (self.limits.idle_max / 8).clamp(Duration::from_millis(50), Duration::from_secs(1))
    }

    /// Closes connections without traffic, tells overdue requests.
    pub(super) fn sweep(&mut self) {
        if self.now.saturating_sub(self.swept_at) < self.sweep_every() {
            return;
        }
        self.swept_at = self.now;
        self.note_transfers();
        let (now, idle_max) = (self.now, self.limits.idle_max);
        let mut idle = Vec::new();
        for connection in self.connections.iter().flatten() {
            match connection.replies.front() {
                None if now.saturating_sub(connection.active_at) > idle_max => {
                    idle.push(connection.id);
                }
                Some(pending) if self.handler.is_overdue(pending, now) => {
                    let place = Place { conn: connection.id, seq: connection.replies.first_seq() };
                    self.mailbox.post(place, PendingEvent::Deadline);
                }
                _ => {}
            }
        }
        for id in idle {
            self.counters.idle_closed += 1;
            self.close(id, "no traffic for connections.max.idle.ms");
        }
        if self.frames_short {
            self.end_stalled();
        }
        // Whoever lacks a receive buffer waits for memory as well, see `relieve`.
        if self.round_end.lacked_memory() || self.ring.starved() > 0 {
            self.end_slowest_reader();
        }
    }

    /// An operation on a large frame or answer completes with its last byte: what
    /// has moved meanwhile, the kernel says.
    fn note_transfers(&mut self) {
        let since = self.now.saturating_sub(self.sweep_every());
        for connection in self.connections.iter_mut().flatten() {
            let id = connection.id;
            let under_way = connection.filling.is_some() || self.ring.is_sending(id);
            if !under_way || connection.closing || connection.active_at > since {
                continue;
            }
            if let Some(transferred) = self.ring.transferred(id)
                && std::mem::replace(&mut connection.transferred, transferred) != transferred
            {
                connection.active_at = self.now;
            }
        }
    }

    /// Others wait for memory: frames that do not arrive give theirs back.
    fn end_stalled(&mut self) {
        let since = self.now.saturating_sub(self.limits.frame_stall_max);
        let all = self.connections.iter().flatten();
        let stalled: Vec<_> = all.filter(|c| c.stalls(since)).map(|c| c.id).collect();
        for id in stalled {
            self.counters.stalled_closed += 1;
            self.close(id, "its unfinished frame held memory that others waited for");
        }
    }

    /// Answers that a client does not read hold memory that others lack: the
    /// one whose send has stood still longest is closed.
    fn end_slowest_reader(&mut self) {
        let since = self.now.saturating_sub(self.limits.send_stall_max);
        let slowest = self
            .connections
            .iter()
            .flatten()
            .filter(|c| !c.closing && c.active_at < since && self.ring.is_sending(c.id))
            .min_by_key(|c| c.active_at);
        if let Some(id) = slowest.map(|c| c.id) {
            self.counters.stalled_closed += 1;
            tracing::warn!(
                "a client that reads too slowly was closed: its answers held memory that others \
                 lacked (raise --memory, or lower fetch.max.bytes)"
            );
            self.close(id, "its answers held memory that others lacked");
        }
    }
}
