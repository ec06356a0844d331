//! The ring's public face, over the state that its connections, listeners and
//! file operations share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::rc::Rc;
use std::task::Poll;

use slab::Slab;

use super::bell::Bell;
use super::buffers::{Buffers, GROUP, LARGE_GROUP};
use super::conn::Conn;
use super::driver::{Descriptor, Driver, Work, new_eventfd};
use super::event::{ConnId, Event, ListenerId, ReceiveMode, RingConfig, RingCounters, queue_bytes};
use super::files::FileSlot;
use super::listener::Listener;
use super::send::SendPiece;
use super::turns::Turns;
use crate::io::chunk::PAGE;
use crate::io::{ChunkMut, Pool};

/// Whose an operation is.
#[derive(Clone)]
pub(super) enum Owner {
    /// One of the accepts of a listener, by its place.
    Accept(ListenerId, u8),
    Receive(ConnId),
    Send(ConnId),
    File(Rc<FileSlot>),
}

pub(super) struct State {
    pub(super) driver: Driver<Owner>,
    pub(super) buffers: Rc<Buffers>,
    pub(super) large: Option<Rc<Buffers>>,
    pub(super) conns: Slab<Conn>,
    pub(super) listeners: Slab<Listener>,
    /// What `reap` will report next.
    pub(super) events: VecDeque<Event>,
    /// Connections whose receive is over and that may want another.
    pub(super) rearm: Vec<ConnId>,
    /// Connections that found no buffer, oldest first.
    pub(super) starved: VecDeque<ConnId>,
    pub(super) scratch: Vec<ConnId>,
    pub(super) generation: u32,
    pub(super) held_max: u16,
    pub(super) send_bytes_max: usize,
    pub(super) receive: ReceiveMode,
    pub(super) no_buffers: u64,
    pub(super) held_stops: u64,
}

impl State {
    /// Whether buffers came back that somebody waits for; settles who waits.
    fn wants_returned(&self) -> bool {
        self.buffers.awaited.get() && self.has_returned()
    }

    fn has_returned(&self) -> bool {
        self.groups().any(|group| group.has_returned())
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = &Rc<Buffers>> {
        std::iter::once(&self.buffers).chain(&self.large)
    }

    fn has_work(&mut self) -> bool {
        !self.events.is_empty()
            || self.driver.has_completions()
            || self.driver.kernel_has_more()
            || !self.driver.is_submitted()
            || !self.rearm.is_empty()
            || self.wants_returned()
    }

    /// Takes one completion to its owner; false when there is none.
    fn dispatch_one(&mut self) -> bool {
        let Some(done) = self.driver.next() else { return false };
        match done.owner.clone() {
            Owner::Accept(id, place) => self.accepted(id, place.into(), done),
            Owner::Receive(id) => self.received(id, done),
            Owner::Send(id) => self.sent(id, done),
            Owner::File(slot) => slot.complete(done),
        }
        true
    }
}

struct Shared {
    state: RefCell<State>,
    bell: Bell,
    turns: Turns,
    eventfd: OwnedFd,
}

/// The shard's ring. Cloning shares it; the last drop cancels what is under
/// way and waits until the kernel has let go of the memory.
#[derive(Clone)]
pub struct Ring(Rc<Shared>);

impl Ring {
    /// Makes a ring on the calling thread, which alone may use it; its receive
    /// buffers are taken from `pool`. Fails when the kernel lacks a feature
    /// (see `io::preflight`) or the pool is too small.
    pub fn new(config: &RingConfig, pool: &Pool) -> io::Result<Self> {
        let bell = Bell::default();
        let take = |bytes: usize| {
            let full = || io::Error::other(format!("{bytes} bytes do not fit into {pool:?}"));
            pool.take(bytes).ok_or_else(full)
        };
        let awaited = Rc::new(Cell::new(false));
        let group = |group: u16, (count, bytes): (u16, usize)| {
            assert!(bytes.is_multiple_of(PAGE), "receive buffers of whole pages");
            let entries = take(queue_bytes(count))?;
            let data = take(usize::from(count) * bytes)?;
            let waiting = (awaited.clone(), bell.clone());
            io::Result::Ok(Buffers::new(group, entries, data, bytes, count, waiting))
        };
        let [ordinary, large] = config.groups();
        let buffers = group(GROUP, ordinary)?;
        let large = (large.0 > 0).then(|| group(LARGE_GROUP, large)).transpose()?;
        if config.receive == ReceiveMode::Multishot {
            // One of these can take as many as there are.
            buffers.want(config.buffers.into());
        }
        let eventfd = new_eventfd()?;
        let groups = std::iter::once(&buffers).chain(&large).cloned().collect();
        let driver = Driver::new(config, groups, eventfd.as_raw_fd())?;
        let state = State {
            driver,
            buffers,
            large,
            conns: Slab::new(),
            listeners: Slab::new(),
            events: VecDeque::new(),
            rearm: Vec::new(),
            starved: VecDeque::new(),
            scratch: Vec::new(),
            generation: 0,
            held_max: config.held_max.max(1),
            send_bytes_max: config.send_bytes_max.max(1),
            receive: config.receive,
            no_buffers: 0,
            held_stops: 0,
        };
        let turns = Turns::default();
        Ok(Self(Rc::new(Shared { state: RefCell::new(state), bell, turns, eventfd })))
    }

    /// Changes the state for somebody who may not be the pump: a parked pump
    /// wakes and submits what was queued.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.0.state.borrow_mut());
        self.0.bell.wake_parked();
        result
    }

    /// Accepts up to `room` connections of `listener` until `unlisten`; more
    /// wait in the kernel's queue.
    pub fn listen(&self, listener: TcpListener, room: usize) -> ListenerId {
        self.change(|state| state.listen(listener, room))
    }

    /// Accepts so many connections more.
    pub fn add_room(&self, listener: ListenerId, room: usize) {
        self.change(|state| state.add_room(listener, room));
    }

    /// Goes on accepting after [`Event::AcceptFailed`].
    pub fn rearm(&self, listener: ListenerId) {
        self.change(|state| state.rearm(listener));
    }

    /// Stops accepting and closes the listener; ends with [`Event::Unlistened`].
    pub fn unlisten(&self, listener: ListenerId) {
        self.change(|state| state.unlisten(listener));
    }

    /// Takes over a connected socket; its receive is armed.
    pub fn adopt(&self, stream: TcpStream) -> ConnId {
        self.change(|state| state.adopt(stream))
    }

    /// Sends all of `pieces` in order; [`Event::Sent`] tells the end. Panics
    /// when a send is in flight; dropped without an event when the connection
    /// is shut down or gone.
    pub fn send(&self, conn: ConnId, pieces: Vec<SendPiece>) {
        self.change(|state| state.send(conn, pieces));
    }

    /// Whether a send of this connection is in flight.
    #[must_use]
    pub fn is_sending(&self, conn: ConnId) -> bool {
        self.0.state.borrow_mut().is_sending(conn)
    }

    /// Bytes that this connection and its peer have taken from each other so far,
    /// also those of operations that have not completed; one system call. `None`
    /// when the connection is gone.
    #[must_use]
    pub fn transferred(&self, conn: ConnId) -> Option<u64> {
        self.0.state.borrow_mut().transferred(conn)
    }

    /// Whether three of four receive buffers are with connections. The others are
    /// then for connections that hold none, and whoever holds some without using
    /// them should give them back.
    #[must_use]
    pub fn buffers_short(&self) -> bool {
        self.0.state.borrow().buffers.is_short()
    }

    /// Connections that found no receive buffer and wait for one.
    #[must_use]
    pub fn starved(&self) -> usize {
        self.0.state.borrow().starved.len()
    }

    /// Stops receiving. What is already under way may still arrive: with
    /// one-shot receives one buffer at most.
    pub fn pause_receive(&self, conn: ConnId) {
        self.change(|state| state.pause(conn));
    }

    /// Goes on receiving.
    pub fn resume_receive(&self, conn: ConnId) {
        self.change(|state| state.resume(conn));
    }

    /// Appends the next bytes of the stream to `chunk` until it holds `want`
    /// bytes in all, then reports [`Event::Filled`]; large frames come without
    /// a copy. Bytes that were reported as received before are the caller's to
    /// copy first. Works while paused as well. Panics when one is under way, or
    /// when `want` is not beyond the chunk's length and within its capacity.
    pub fn receive_into(&self, conn: ConnId, chunk: ChunkMut, want: usize) {
        self.change(|state| state.receive_into(conn, chunk, want));
    }

    /// Shuts the connection down both ways; [`Event::Closed`] follows when the
    /// kernel has let go of everything, after [`Event::Sent`] for a send in
    /// flight; nothing else is reported any more. Asking again does nothing.
    pub fn shutdown(&self, conn: ConnId) {
        self.change(|state| state.shutdown(conn));
    }

    /// Hands the queued entries to the kernel; no system call when there is
    /// nothing to hand over and nothing to fetch. Call it once a round.
    pub fn submit(&self) {
        let mut state = self.0.state.borrow_mut();
        if state.has_returned() {
            state.take_returned();
        }
        state.arm_again();
        state.driver.submit();
    }

    /// Reports what has completed, and wakes the futures of finished file
    /// operations: the pump's round begins with it, as `pass_turn` counts them.
    /// The handler may call every method of the ring but this one.
    /// What completes meanwhile is left to the next call. Returns the number of
    /// events.
    pub fn reap(&self, mut on_event: impl FnMut(Event)) -> usize {
        self.0.turns.round();
        {
            let mut state = self.0.state.borrow_mut();
            while state.dispatch_one() {}
        }
        let mut reported = 0;
        let due = self.0.state.borrow().events.len();
        while reported < due {
            let Some(event) = self.0.state.borrow_mut().events.pop_front() else { break };
            reported += 1;
            on_event(event);
        }
        reported
    }

    /// Whether `reap` has something to do, without a system call unless the
    /// kernel's flag says that one brings completions.
    #[must_use]
    pub fn look(&self) -> bool {
        let mut state = self.0.state.borrow_mut();
        if state.driver.kernel_has_more() {
            state.driver.submit();
        }
        !state.events.is_empty() || state.driver.has_completions()
    }

    /// Whether `reap` or `submit` has something to do, never a system call: what
    /// the pump asks before it parks.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.0.state.borrow_mut().has_work()
    }

    /// Operations that end by themselves: file operations and sends, submitted
    /// or not. Armed receives and accepts are not counted.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.state.borrow().driver.finite()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> RingCounters {
        let state = self.0.state.borrow();
        RingCounters {
            enters: state.driver.enters,
            submitted: state.driver.submitted,
            completed: state.driver.completed,
            no_buffers: state.no_buffers,
            held_stops: state.held_stops,
            buffers_held: state.groups().map(|group| u64::from(group.held())).sum(),
            connections: state.conns.len() as u64,
        }
    }

    /// The bell that ends the pump's park. Whoever queues something for the
    /// pump outside the ring rings it.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.0.bell.clone()
    }

    /// Said by the pump at the end of a round: whether it has more to do that
    /// the ring does not know of, such as connections that wait for their turn.
    pub fn set_more_work(&self, more: bool) {
        self.0.turns.set_more(more);
    }

    /// Gives way to the pump, and to every other task, for a task that has
    /// worked for a slice. `pass` lets the reactor run once. While the pump has
    /// something to do, all tasks together get one slice between two of its
    /// rounds, oldest first.
    pub async fn pass_turn<F: Future<Output = ()>>(&self, pass: impl Fn() -> F) {
        let mut place = self.0.turns.join();
        loop {
            // A parked pump wakes without the way through the eventfd.
            if self.has_work() {
                self.0.bell.wake_parked();
            }
            pass().await;
            let wanted = self.0.turns.more() || self.0.bell.is_rung() || self.has_work();
            if place.may_go(wanted) {
                return;
            }
        }
    }

    /// Waits until `has_work`, or the bell is rung. Only the pump parks, and it
    /// submits before. Safe to drop. Needs `io::glommio::Doorbell` beside it,
    /// which turns the ring's eventfd into rings of the bell.
    pub async fn park(&self) {
        let parked = Parked(self);
        poll_fn(|context| {
            if self.0.bell.answer() {
                return Poll::Ready(());
            }
            self.0.bell.set_parked(Some(context.waker()));
            let mut state = self.0.state.borrow_mut();
            state.driver.signal(true);
            if state.has_work() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(parked);
    }

    /// Another descriptor of the eventfd that the ring signals while parked.
    pub fn eventfd(&self) -> io::Result<OwnedFd> {
        self.0.eventfd.try_clone()
    }

    pub(super) fn queue(&self, descriptor: Descriptor, work: Work, owner: Owner) {
        self.change(|state| state.driver.queue(descriptor, work, owner));
    }
}

/// Undoes what a park set up, however it ends.
struct Parked<'a>(&'a Ring);

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.0.bell.set_parked(None);
        self.0.0.state.borrow_mut().driver.signal(false);
    }
}
