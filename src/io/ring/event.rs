//! What goes into a ring (its configuration) and what comes out of it (events).

use std::io;
use std::net::SocketAddr;

use super::buffers::ReceivedBuf;
use super::send::SendPiece;
use crate::io::ChunkMut;
use crate::io::chunk::PAGE;

/// Bytes of an entry of the queue that offers buffers to the kernel.
const QUEUE_ENTRY_BYTES: usize = 16;

/// How the kernel hands over completions that it prepared in the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskRun {
    /// At the next kernel entry of the thread, whichever that is.
    Coop,
    /// Only when the thread enters this ring for events.
    Defer,
}

/// How connections receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveMode {
    /// One receive stays armed and fills one buffer after the other.
    Multishot,
    /// Each receive is an entry of its own and takes one buffer.
    OneShot,
}

/// Sizes of a ring.
#[derive(Clone, Debug)]
pub struct RingConfig {
    /// Entries of the submission queue, a power of two; more are submitted in
    /// several system calls.
    pub entries: u32,
    /// Entries of the completion queue, a power of two.
    pub completions: u32,
    /// Provided receive buffers, up to 32,768.
    pub buffers: u16,
    /// Bytes of each provided buffer, a multiple of 4096.
    pub buffer_bytes: usize,
    /// Large buffers, for connections whose last one-shot receive brought as
    /// much as an ordinary buffer holds: more in a round costs less. 0 for none.
    pub large_buffers: u16,
    /// Bytes of each large buffer, a multiple of 4096.
    pub large_buffer_bytes: usize,
    /// Provided buffers that one connection may hold (in [`ReceivedBuf`]s)
    /// before its receive stops until it gave some back.
    pub held_max: u16,
    /// Most bytes of one send entry; a longer list goes out in parts.
    pub send_bytes_max: usize,
    /// No difference beyond the noise (`benches/io_ring.rs`); deferred work
    /// runs when the pump asks for it, and interrupts no other system call.
    pub task_run: TaskRun,
    /// No difference beyond the noise either; one-shot receives bound exactly
    /// what a connection holds and need no cancelling, while one run of a
    /// multishot can take every buffer of the ring (64 of 64 in a test).
    pub receive: ReceiveMode,
}

impl RingConfig {
    /// Provided buffers of the default.
    pub const DEFAULT_BUFFERS: u16 = 192;

    /// Bytes that a ring takes from its receive pool for as long as it lives:
    /// the provided buffers and the queues that offer them.
    #[must_use]
    pub fn pool_bytes(&self) -> usize {
        let group = |(count, bytes): (u16, usize)| {
            let queue = if count == 0 { 0 } else { queue_bytes(count).next_multiple_of(PAGE) };
            queue + usize::from(count) * bytes
        };
        self.groups().into_iter().map(group).sum()
    }

    /// Number and size of the ordinary and of the large buffers.
    pub(super) fn groups(&self) -> [(u16, usize); 2] {
        [(self.buffers, self.buffer_bytes), (self.large_buffers, self.large_buffer_bytes)]
    }
}

/// Bytes of the queue that offers so many buffers.
pub(super) fn queue_bytes(buffers: u16) -> usize {
    usize::from(buffers.next_power_of_two()) * QUEUE_ENTRY_BYTES
}

impl Default for RingConfig {
    fn default() -> Self {
        Self {
            entries: 512,
            completions: 8192,
            buffers: Self::DEFAULT_BUFFERS,
            buffer_bytes: 64 << 10,
            large_buffers: 16,
            large_buffer_bytes: 256 << 10,
            held_max: 4,
            send_bytes_max: 1 << 20,
            task_run: TaskRun::Defer,
            receive: ReceiveMode::OneShot,
        }
    }
}

/// A connection of a ring. The slot is small and dense, so that it can index a
/// table; the generation tells its successive users apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl ConnId {
    /// The first connection of a slot, for tests without a ring.
    #[cfg(test)]
    pub(crate) const fn numbered(slot: u32) -> Self {
        Self { slot, generation: 0 }
    }

    /// Index for a table of connections.
    #[must_use]
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// A listening socket of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListenerId(pub(super) u32);

/// Why no more bytes will come from a connection.
#[derive(Debug)]
pub enum EndCause {
    /// The peer closed its sending side.
    Eof,
    /// The socket failed, for example ECONNRESET.
    Error(io::Error),
}

/// What [`super::Ring::reap`] reports. Events of one connection come in order.
#[derive(Debug)]
pub enum Event {
    /// A connection was accepted; its receive is armed. Refuse it by
    /// `shutdown`.
    Accepted {
        /// Where it came from.
        listener: ListenerId,
        /// The new connection.
        conn: ConnId,
        /// The peer's address, when the system could still say it.
        peer: Option<SocketAddr>,
    },
    /// Accepting failed and is stopped (EMFILE, ENFILE, ENOMEM): call `rearm`
    /// after a while.
    AcceptFailed {
        /// The listener that stopped.
        listener: ListenerId,
        /// What accept(2) answered.
        error: io::Error,
    },
    /// The listener is closed, as asked.
    Unlistened {
        /// The listener, whose id is void now.
        listener: ListenerId,
    },
    /// Bytes of the stream, in order. Keep the guard while the bytes are
    /// needed: it counts against the connection's `held_max`.
    Received {
        /// The connection.
        conn: ConnId,
        /// The bytes, never empty.
        data: ReceivedBuf,
    },
    /// A receive found no provided buffer; it is made again when one comes back.
    /// A `receive_into` needs none.
    NoBuffer {
        /// The connection.
        conn: ConnId,
    },
    /// A `receive_into` is over. What comes in `Received` afterwards lies
    /// behind these bytes.
    Filled {
        /// The connection.
        conn: ConnId,
        /// The chunk as given, with the bytes that came appended.
        chunk: ChunkMut,
        /// Whether all came that was asked for; if not, `ReceiveEnded` follows.
        complete: bool,
    },
    /// No more bytes will come. Sends still work after `Eof`.
    ReceiveEnded {
        /// The connection.
        conn: ConnId,
        /// Why.
        cause: EndCause,
    },
    /// The send in flight is over; the next may be queued.
    Sent {
        /// The connection.
        conn: ConnId,
        /// Whether all bytes went into the socket's buffer.
        result: io::Result<()>,
        /// The list of the send, emptied, to be used again.
        pieces: Vec<SendPiece>,
    },
    /// The connection is closed after `shutdown`; its id is void now. Always
    /// the last event of a connection.
    Closed {
        /// The connection.
        conn: ConnId,
    },
}

/// Counts since the ring was made, and two levels.
#[derive(Clone, Copy, Default, Debug)]
pub struct RingCounters {
    /// Kernel entries.
    pub enters: u64,
    /// Entries queued.
    pub submitted: u64,
    /// Completions reaped.
    pub completed: u64,
    /// Receives that found no provided buffer.
    pub no_buffers: u64,
    /// Times a receive was stopped because its connection held `held_max`.
    pub held_stops: u64,
    /// Level: provided buffers that connections hold now.
    pub buffers_held: u64,
    /// Level: open connections.
    pub connections: u64,
}
