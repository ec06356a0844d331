//! The ring's public face.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use super::*;
use crate::io::{ChunkMut, Pool};

/// The shard's ring. Cloning shares it.
#[derive(Clone)]
pub struct Ring(Rc<()>);

impl Ring {
    /// Makes a ring on the calling thread, which alone may use it; its receive
    /// buffers are taken from `pool`. Fails when the kernel lacks a feature
    /// (see `io::preflight`) or the pool is too small.
    pub fn new(config: &RingConfig, pool: &Pool) -> io::Result<Self> {
        let _ = (config, pool);
        todo!()
    }

    /// Accepts connections of `listener` until `unlisten`.
    pub fn listen(&self, listener: TcpListener) -> ListenerId {
        let _ = listener;
        todo!()
    }

    /// Goes on accepting after [`Event::AcceptFailed`].
    pub fn rearm(&self, listener: ListenerId) {
        let _ = listener;
        todo!()
    }

    /// Stops accepting and closes the listener; ends with [`Event::Unlistened`].
    pub fn unlisten(&self, listener: ListenerId) {
        let _ = listener;
        todo!()
    }

    /// Takes over a connected socket; its receive is armed.
    pub fn adopt(&self, stream: TcpStream) -> ConnId {
        let _ = stream;
        todo!()
    }

    /// Sends all of `pieces` in order; [`Event::Sent`] tells the end. Panics
    /// when a send is in flight; dropped without an event when the connection
    /// is shut down or gone.
    pub fn send(&self, conn: ConnId, pieces: Vec<SendPiece>) {
        let _ = (conn, pieces);
        todo!()
    }

    /// Whether a send of this connection is in flight.
    #[must_use]
    pub fn is_sending(&self, conn: ConnId) -> bool {
        let _ = conn;
        todo!()
    }

    /// Stops receiving. What is already under way may still arrive: with
    /// one-shot receives one buffer at most.
    pub fn pause_receive(&self, conn: ConnId) {
        let _ = conn;
        todo!()
    }

    /// Goes on receiving.
    pub fn resume_receive(&self, conn: ConnId) {
        let _ = conn;
        todo!()
    }

    /// Appends the next bytes of the stream to `chunk` until it holds `want`
    /// bytes in all, then reports [`Event::Filled`]; large frames come without
    /// a copy. Bytes that were reported as received before are the caller's to
    /// copy first. Works while paused as well. Panics when one is under way.
    pub fn receive_into(&self, conn: ConnId, chunk: ChunkMut, want: usize) {
        let _ = (conn, chunk, want);
        todo!()
    }

    /// Shuts the connection down both ways; [`Event::Closed`] follows when the
    /// kernel has let go of everything. Asking again does nothing.
    pub fn shutdown(&self, conn: ConnId) {
        let _ = conn;
        todo!()
    }

    /// Hands the queued entries to the kernel; no system call when there is
    /// nothing to hand over and nothing to fetch. Call it once a round.
    pub fn submit(&self) {
        todo!()
    }

    /// Reports what has completed, at most `completions` of the queue a call,
    /// and wakes the futures of finished file operations. The handler may call
    /// every method of the ring but this one. Returns the number of completions.
    pub fn reap(&self, on_event: impl FnMut(Event)) -> usize {
        let _ = on_event;
        todo!()
    }

    /// Whether `reap` has something to do, without a system call unless the
    /// kernel's flag says that one brings completions.
    #[must_use]
    pub fn look(&self) -> bool {
        todo!()
    }

    /// Whether `reap` or `submit` has something to do, never a system call: what
    /// the pump asks before it parks.
    #[must_use]
    pub fn has_work(&self) -> bool {
        todo!()
    }

    /// Operations that end by themselves: file operations, sends, and what is
    /// queued but not submitted. Armed receives and accepts are not counted.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        todo!()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> RingCounters {
        todo!()
    }

    /// The bell that ends the pump's park. Whoever queues something for the
    /// pump outside the ring rings it; the ring rings it for what is queued here.
    #[must_use]
    pub fn bell(&self) -> Bell {
        todo!()
    }

    /// Waits until `has_work`, or the bell is rung. Only the pump parks. Safe to
    /// drop. Needs `io::glommio::Doorbell`, which runs as a task beside it.
    pub async fn park(&self) {
        todo!()
    }
}
