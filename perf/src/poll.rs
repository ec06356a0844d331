//! Readiness of many sockets for one thread: level-triggered epoll.

use std::net::TcpStream;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::Result;

/// Most events of one wait.
const EVENTS_MAX: usize = 1024;

/// One socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The number that it was added with.
    pub(crate) number: usize,
    /// There are bytes to read, or the peer is gone.
    pub(crate) readable: bool,
    /// There is room to write.
    pub(crate) writable: bool,
}

/// A set of sockets.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poll {
    /// An empty set.
    pub(crate) fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Adds a socket: reading is always of interest.
    pub(crate) fn add(&self, number: usize, stream: &TcpStream) -> Result<()> {
        let data = EventData::new_u64(number as u64);
        Ok(epoll::add(&self.epoll, stream, data, EventFlags::IN)?)
    }

    /// Says whether room to write is of interest too.
    pub(crate) fn set_writing(&self, number: usize, stream: &TcpStream, on: bool) -> Result<()> {
        let data = EventData::new_u64(number as u64);
        let flags = if on { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.epoll, stream, data, flags)?)
    }

    /// Waits for readiness, not longer than `wait`, and hands it out.
    pub(crate) fn wait(&mut self, wait: Duration, into: &mut Vec<Ready>) -> Result<()> {
        let timeout = rustix::event::Timespec {
            tv_sec: i64::try_from(wait.as_secs())?,
            tv_nsec: wait.subsec_nanos().into(),
        };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        into.extend(self.events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                number: usize::try_from(data.u64()).unwrap_or(usize::MAX),
                readable: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                writable: flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}
