//! What a pump allows its connections, and what it counts of them.

use std::time::Duration;

use super::peers::PeerLimits;

/// Limits of connections, each a flag or a configuration key.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest frame in bytes (`socket.request.max.bytes`).
    pub frame_max_bytes: usize,
    /// Requests of one connection in flight.
    pub in_flight_max: usize,
    /// Encoded bytes of one connection that wait for its socket.
    pub output_max_bytes: usize,
    /// Requests of one connection before the next has its turn.
    pub turn_requests_max: usize,
    /// Connections at a time; others wait to be accepted (`max.connections`, at
    /// most what the open-files limit leaves).
    pub connections_max: usize,
    /// Connections from one address at a time.
    pub peers: PeerLimits,
    /// A connection without traffic for so long is closed
    /// (`connections.max.idle.ms`); `Duration::MAX` is never.
    pub idle_max: Duration,
    /// A frame of which nothing came for so long is given up when others wait
    /// for memory.
    pub frame_stall_max: Duration,
    /// A client whose send has stood still for so long may be closed when
    /// memory is short.
    pub send_stall_max: Duration,
    /// Missing bytes of a frame from which they are received into its memory.
    pub direct_receive_min_bytes: usize,
    /// Longest look-again before a park (`--spin`).
    pub spin_max: Duration,
    /// How long answers may take to leave when the broker stops.
    pub stop_send_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_max_bytes: 100 << 20,
            in_flight_max: 128,
            output_max_bytes: 1 << 20,
            turn_requests_max: 16,
            connections_max: usize::MAX,
            peers: PeerLimits::default(),
            idle_max: Duration::from_secs(600),
            frame_stall_max: Duration::from_secs(30),
            send_stall_max: Duration::from_secs(5),
            direct_receive_min_bytes: 16 << 10,
            spin_max: Duration::from_micros(50),
            stop_send_max: Duration::from_secs(2),
        }
    }
}

/// Counts since the start, for metrics.
#[derive(Clone, Copy, Default, Debug)]
pub struct PumpCounters {
    /// Rounds.
    pub rounds: u64,
    /// Requests served.
    pub requests: u64,
    /// Parks.
    pub parks: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once, since their address has too many.
    pub refused_per_ip: u64,
    /// Times a connection gave its receive buffers back, since others lacked them.
    pub buffers_relieved: u64,
    /// Connections closed for idleness.
    pub idle_closed: u64,
    /// Connections closed because their frame did not arrive while others
    /// waited for memory.
    pub stalled_closed: u64,
    /// Turns that found the receive pool used up.
    pub receive_memory_short: u64,
}
