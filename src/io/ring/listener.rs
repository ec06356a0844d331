//! Listening sockets of a ring.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::conn::Conn;
use super::driver::{Descriptor, Done, Driver, OpId, Work};
use super::event::{ConnId, Event, ListenerId};
use super::state::{Owner, State};

/// Accepts of a listener that are in the kernel at a time: one accepts one
/// connection, so that no more come than there is room for.
const ACCEPTS: usize = 16;

/// A listener. It is removed when it is closing and its accepts have ended.
pub(super) struct Listener {
    socket: Rc<OwnedFd>,
    armed: [Option<OpId>; ACCEPTS],
    /// Connections that it may accept beyond those that are armed for.
    room: usize,
    /// An accept failed in a way that lasts: nothing is armed until `rearm`.
    failed: bool,
    closing: bool,
}

impl State {
    pub(super) fn listen(&mut self, listener: TcpListener, room: usize) -> ListenerId {
        let socket = Rc::new(OwnedFd::from(listener));
        let armed = [None; ACCEPTS];
        let listener = Listener { socket, armed, room, failed: false, closing: false };
        let id = ListenerId(u32::try_from(self.listeners.insert(listener)).expect("few listeners"));
        self.arm_accepts(id);
        id
    }

    pub(super) fn add_room(&mut self, id: ListenerId, room: usize) {
        let Some(listener) = self.listeners.get_mut(id.0 as usize) else { return };
        listener.room = listener.room.saturating_add(room);
        self.arm_accepts(id);
    }

    pub(super) fn rearm(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(id.0 as usize) else { return };
        listener.failed = false;
        self.arm_accepts(id);
    }

    fn arm_accepts(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(id.0 as usize) else { return };
        if listener.closing || listener.failed {
            return;
        }
        let free = listener.armed.iter_mut().enumerate().filter(|(_, armed)| armed.is_none());
        for (place, armed) in free.take(listener.room) {
            listener.room -= 1;
            let socket = Descriptor::Socket(listener.socket.clone());
            let owner = Owner::Accept(id, u8::try_from(place).expect("few places"));
            *armed = Some(self.driver.queue(socket, Work::Accept, owner));
        }
    }

    pub(super) fn unlisten(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(id.0 as usize) else { return };
        if listener.closing {
            return;
        }
        listener.closing = true;
        let armed: Vec<_> = listener.armed.iter().flatten().copied().collect();
        if armed.is_empty() {
            return self.unlistened(id);
        }
        armed.into_iter().for_each(|op| self.driver.cancel(op));
    }

    fn unlistened(&mut self, id: ListenerId) {
        self.listeners.remove(id.0 as usize);
        self.events.push_back(Event::Unlistened { listener: id });
    }

    /// Takes over a connected socket.
    pub(super) fn adopt(&mut self, stream: TcpStream) -> ConnId {
        // Replies are written whole; waiting for more would only delay them.
        let _ = stream.set_nodelay(true);
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let slot = self.conns.insert(Conn::new(stream.into(), generation));
        let id = ConnId { slot: u32::try_from(slot).expect("few connections"), generation };
        self.arm(id);
        id
    }

    /// An accept completed.
    pub(super) fn accepted(&mut self, id: ListenerId, place: usize, done: Done<Owner>) {
        let listener =
            self.listeners.get_mut(id.0 as usize).expect("stays until its last completion");
        listener.armed[place] = None;
        match done.result {
            Ok(socket) => {
                // While closing too: the client believes that it is connected.
                let stream = TcpStream::from(Driver::<Owner>::accepted(socket));
                let peer = stream.peer_addr().ok();
                let conn = self.adopt(stream);
                self.events.push_back(Event::Accepted { listener: id, conn, peer });
            }
            Err(error) => {
                listener.room = listener.room.saturating_add(1);
                // Otherwise the connection was gone already.
                if lasts(&error)
                    && !listener.closing
                    && !std::mem::replace(&mut listener.failed, true)
                {
                    self.events.push_back(Event::AcceptFailed { listener: id, error });
                }
            }
        }
        let listener = &self.listeners[id.0 as usize];
        if listener.closing && listener.armed.iter().all(Option::is_none) {
            return self.unlistened(id);
        }
        self.arm_accepts(id);
    }
}

/// Whether trying again at once would fail again.
fn lasts(error: &std::io::Error) -> bool {
    !matches!(
        error.raw_os_error(),
        Some(libc::ECONNABORTED | libc::EINTR | libc::EAGAIN | libc::EPROTO)
    )
}
