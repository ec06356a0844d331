//! Listening sockets of a ring.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::conn::Conn;
use super::driver::{Descriptor, Done, Driver, OpId, Work};
use super::event::{ConnId, Event, ListenerId};
use super::state::{Owner, State};

/// A listener. It is removed when it is closing and its accept has ended.
pub(super) struct Listener {
    socket: Rc<OwnedFd>,
    armed: Option<OpId>,
    closing: bool,
}

impl State {
    pub(super) fn listen(&mut self, listener: TcpListener) -> ListenerId {
        let socket = Rc::new(OwnedFd::from(listener));
        let slot = self.listeners.insert(Listener { socket, armed: None, closing: false });
        let id = ListenerId(u32::try_from(slot).expect("few listeners"));
        self.rearm(id);
        id
    }

    pub(super) fn rearm(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(id.0 as usize) else { return };
        if listener.armed.is_none() && !listener.closing {
            let socket = Descriptor::Socket(listener.socket.clone());
            listener.armed = Some(self.driver.queue(socket, Work::Accept, Owner::Accept(id)));
        }
    }

    pub(super) fn unlisten(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.get_mut(id.0 as usize) else { return };
        if listener.closing {
            return;
        }
        listener.closing = true;
        match listener.armed {
            Some(op) => self.driver.cancel(op),
            None => self.unlistened(id),
        }
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

    /// An accept completed: with a connection, or for the last time.
    pub(super) fn accepted(&mut self, id: ListenerId, done: Done<Owner>) {
        let listener =
            self.listeners.get_mut(id.0 as usize).expect("stays until its last completion");
        if done.finished.is_some() {
            listener.armed = None;
        }
        let (closing, ended) = (listener.closing, listener.armed.is_none());
        let failed = match done.result {
            Ok(socket) => {
                // While closing too: the client believes that it is connected.
                let stream = TcpStream::from(Driver::<Owner>::accepted(socket));
                let peer = stream.peer_addr().ok();
                let conn = self.adopt(stream);
                self.events.push_back(Event::Accepted { listener: id, conn, peer });
                None
            }
            Err(error) => Some(error),
        };
        match failed {
            _ if !ended => {}
            _ if closing => self.unlistened(id),
            Some(error) if lasts(&error) => {
                self.events.push_back(Event::AcceptFailed { listener: id, error });
            }
            // The connection was gone already, or the kernel ended the
            // multishot on its own account.
            _ => self.rearm(id),
        }
    }
}

/// Whether trying again at once would fail again.
fn lasts(error: &std::io::Error) -> bool {
    !matches!(
        error.raw_os_error(),
        Some(libc::ECONNABORTED | libc::EINTR | libc::EAGAIN | libc::EPROTO)
    )
}
