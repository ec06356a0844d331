//! How many connections each address has, and how many it may have.

use std::net::IpAddr;

use ahash::AHashMap;

/// Most connections from one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerLimits {
    /// Of each address (`max.connections.per.ip`).
    pub each: usize,
    /// Of single addresses instead (`max.connections.per.ip.overrides`).
    pub overrides: AHashMap<IpAddr, usize>,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self { each: usize::MAX, overrides: AHashMap::new() }
    }
}

/// The open connections by address. Owned by the pump.
#[derive(Debug)]
pub(super) struct Peers {
    limits: PeerLimits,
    open: AHashMap<IpAddr, usize>,
}

impl Peers {
    pub(super) fn new(limits: PeerLimits) -> Self {
        Self { limits, open: AHashMap::new() }
    }

    /// Counts a connection, unless the address has as many as it may.
    pub(super) fn enter(&mut self, peer: IpAddr) -> bool {
        // ::ffff:a.b.c.d is the address a.b.c.d.
        let peer = peer.to_canonical();
        let most = self.limits.overrides.get(&peer).copied().unwrap_or(self.limits.each);
        let open = self.open.get(&peer).copied().unwrap_or(0);
        if open < most {
            self.open.insert(peer, open + 1);
        }
        open < most
    }

    /// A connection that was counted has closed.
    pub(super) fn leave(&mut self, peer: IpAddr) {
        let peer = peer.to_canonical();
        match self.open.get_mut(&peer) {
            Some(open) if *open > 1 => *open -= 1,
            _ => drop(self.open.remove(&peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_limit() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let overrides = [(ip("10.0.0.2"), 3), (ip("10.0.0.3"), 0)].into_iter().collect();
        let mut peers = Peers::new(PeerLimits { each: 1, overrides });
        assert!(peers.enter(ip("10.0.0.1")) && !peers.enter(ip("10.0.0.1")));
        assert!(!peers.enter(ip("::ffff:10.0.0.1")), "the same address");
        assert!((0..3).all(|_| peers.enter(ip("10.0.0.2"))) && !peers.enter(ip("10.0.0.2")));
        assert!(!peers.enter(ip("10.0.0.3")));
        assert!(peers.enter(ip("fe80::1")));
        peers.leave(ip("10.0.0.1"));
        assert!(peers.enter(ip("10.0.0.1")));
        for address in ["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2", "fe80::1"] {
            peers.leave(ip(address));
        }
        assert!(peers.open.is_empty(), "nothing is kept of who is gone");
    }
}
