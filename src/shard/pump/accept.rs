//! Connections that come and go: limits of their number, in all and per address.
//!
//! In all: no more are accepted, and new ones wait in the kernel's queue until
//! one closes. Per address: the connection is closed at once. Both as Kafka does.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Pump, RoundEnd};
use crate::io::env::{Env, Task};
use crate::io::ring::{ConnId, ListenerId};
use crate::shard::connection::Connection;
use crate::shard::handler::{ConnectionHandler, Place};

/// Least time between two warnings about connections.
const WARN_EVERY: Duration = Duration::from_secs(60);

impl<H: ConnectionHandler, R: RoundEnd> Pump<H, R> {
    pub(super) fn on_accepted(&mut self, id: ConnId, peer: Option<SocketAddr>) {
        self.counters.accepted += 1;
        self.accepted += 1;
        if self.accepted == self.limits.connections_max && self.may_warn() {
            tracing::warn!(
                "{} connections are open, as many as allowed: others wait until one closes (raise \
                 max.connections, and the open-files limit: ulimit -n, or LimitNOFILE in a unit)",
                self.accepted
            );
        }
        let address = peer.map(|peer| peer.ip());
        if let Some(address) = address
            && !self.peers.enter(address)
        {
            self.counters.refused_per_ip += 1;
            if self.may_warn() {
                tracing::warn!(
                    "a connection from {address} was closed: it has as many as one address may \
                     (raise max.connections.per.ip or max.connections.per.ip.overrides)"
                );
            }
            // Without a slot in the table nothing of it is served.
            return self.ring.shutdown(id);
        }
        let state = self.handler.open(id, peer);
        let mut connection =
            Connection::new(id, state, &self.limits, self.send_pool.clone(), self.now);
        connection.peer = address;
        if self.connections.len() <= id.index() {
            self.connections.resize_with(id.index() + 1, || None);
        }
        let before = self.connections[id.index()].replace(connection);
        assert!(before.is_none(), "the ring gave out slot {} twice", id.index());
        self.open += 1;
        if !self.accepting {
            self.close(id, "the broker is stopping");
        }
    }

    pub(super) fn on_closed(&mut self, id: ConnId) {
        self.accepted -= 1;
        if let Some(listener) = self.listener {
            self.ring.add_room(listener, 1);
        }
        let Some(slot) = self.connections.get_mut(id.index()) else { return };
        if let Some(mut connection) = slot.take_if(|c| c.id == id) {
            self.open -= 1;
            if let Some(peer) = connection.peer {
                self.peers.leave(peer);
            }
            loop {
                let place = Place { conn: id, seq: connection.replies.first_seq() };
                let Some(pending) = connection.replies.pop() else { break };
                self.handler.forget(place, pending);
            }
        }
    }

    pub(super) fn on_accept_failed(&mut self, listener: ListenerId, error: &std::io::Error) {
        if self.may_warn() {
            tracing::warn!(
                "accepting failed: {error}; trying again each second (raise the open-files limit: \
                 ulimit -n, or LimitNOFILE in a unit)"
            );
        }
        let ring = self.ring.clone();
        let later = self.runtime.env().sleep(Duration::from_secs(1));
        let again = async move {
            later.await;
            ring.rearm(listener);
        };
        Task::detach(self.runtime.env().spawn(again));
    }

    /// One warning a minute says it; a flood of connections is no flood of lines.
    fn may_warn(&mut self) -> bool {
        let may = self.warned_at.is_none_or(|at| self.now.saturating_sub(at) >= WARN_EVERY);
        if may {
            self.warned_at = Some(self.now);
        }
        may
    }
}
