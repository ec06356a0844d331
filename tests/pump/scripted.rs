//! A shard whose handler echoes frames by their first byte: `e` at once, `l`
//! later by a task, `h` only when nothing precedes it, `F` at once and
//! counted, `o` at once and logged with the count of `F` at that time, `p` when
//! it is told not to wait any longer, as by `r`, which is answered at once, `q`
//! when its frame was shown as often as its second byte says.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use millstream::io::ring::{ConnId, RingConfig};
use millstream::io::{Env, Pool, Task};
use millstream::shard::runtime::{RuntimeConfig, ShardThread, launch};
use millstream::shard::{
    ConnectionHandler, Fatal, FrameMemory, Limits, Mailbox, Output, Pause, PendingEvent, Place,
    Pump, PumpParts, Resumed, RoundEnd, Stopper, Verdict, stop_pair,
};

#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) flooded: Arc<AtomicU64>,
    /// Connections opened, and `p` that came.
    pub(crate) opened: Arc<AtomicU64>,
    pub(crate) parked: Arc<AtomicU64>,
    at: Arc<Mutex<HashMap<String, u64>>>,
}

impl Log {
    pub(crate) fn take(&self, request: &str) -> u64 {
        self.at.lock().unwrap().remove(request).expect("it was served")
    }
}

struct Echo<E> {
    log: Log,
    mailbox: Mailbox,
    env: E,
    parked: RefCell<Vec<Place>>,
}

enum Pending {
    Ready(Vec<u8>),
    Task,
    Parked(Vec<u8>),
    /// Its frame is to be shown so often.
    Partly(u8),
}

impl<E: Env> ConnectionHandler for Echo<E> {
    type State = ();
    type Pending = Pending;

    fn open(&self, _conn: ConnId, _peer: Option<SocketAddr>) {
        self.log.opened.fetch_add(1, Ordering::SeqCst);
    }

    fn frame(&self, place: Place, (): &mut (), bytes: &[u8], alone: bool) -> Verdict<Pending> {
        let ready = || Verdict::Overlap(Pending::Ready(frame(bytes)));
        match bytes.first() {
            Some(b'h') if !alone => Verdict::Hold,
            Some(b'e' | b'h') => ready(),
            Some(b'F') => {
                self.log.flooded.fetch_add(1, Ordering::SeqCst);
                ready()
            }
            Some(b'o') => {
                let request = String::from_utf8_lossy(bytes).into_owned();
                let now = self.log.flooded.load(Ordering::SeqCst);
                self.log.at.lock().unwrap().insert(request, now);
                ready()
            }
            Some(b'p') => {
                self.log.parked.fetch_add(1, Ordering::SeqCst);
                self.parked.borrow_mut().push(place);
                Verdict::Overlap(Pending::Parked(frame(bytes)))
            }
            Some(b'r') => {
                for place in self.parked.take() {
                    self.mailbox.post(place, PendingEvent::Deadline);
                }
                ready()
            }
            Some(b'l') => {
                let (answer, mailbox) = (frame(bytes), self.mailbox.clone());
                let pause = self.env.pause();
                let task = self.env.spawn(async move {
                    pause.await;
                    mailbox.post(place, PendingEvent::Answer(answer));
                });
                task.detach();
                Verdict::Overlap(Pending::Task)
            }
            Some(b'q') => Verdict::Partly(Pending::Partly(bytes[1]), Pause::NoMemory),
            _ => Verdict::Close("unknown script".into()),
        }
    }

    fn resume(&self, _place: Place, (): &mut (), pending: &mut Pending, bytes: &[u8]) -> Resumed {
        match pending {
            Pending::Partly(0) => *pending = Pending::Ready(frame(bytes)),
            Pending::Partly(left) if bytes[1] % 2 == 1 && *left == 1 => {
                return Resumed::Close("an odd number".into());
            }
            Pending::Partly(left) => {
                *left -= 1;
                return Resumed::Again(if *left % 2 == 0 { Pause::Slice } else { Pause::NoMemory });
            }
            Pending::Ready(_) | Pending::Parked(_) | Pending::Task => {
                unreachable!("it is done with its frame")
            }
        }
        Resumed::Done
    }

    fn event(
        &self,
        _place: Place,
        (): &mut (),
        pending: &mut Pending,
        event: PendingEvent,
    ) -> Result<(), String> {
        match event {
            PendingEvent::Answer(bytes) => *pending = Pending::Ready(bytes),
            PendingEvent::Deadline => {
                if let Pending::Parked(bytes) = pending {
                    *pending = Pending::Ready(std::mem::take(bytes));
                }
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn is_ready(&self, pending: &Pending) -> bool {
        matches!(pending, Pending::Ready(_))
    }

    fn is_overdue(&self, _pending: &Pending, _now: Duration) -> bool {
        false
    }

    fn decides_soon(&self, pending: &Pending) -> bool {
        !matches!(pending, Pending::Parked(_))
    }

    fn encode(&self, (): &mut (), pending: Pending, out: &mut Output) -> Result<bool, String> {
        match pending {
            Pending::Ready(bytes) => Ok(out.write(&bytes)),
            Pending::Task | Pending::Parked(_) | Pending::Partly(_) => unreachable!("not ready"),
        }
    }

    fn forget(&self, _place: Place, _pending: Pending) {}
}

struct NoLogs;

impl RoundEnd for NoLogs {
    fn end_round(&self) {}

    fn fatal(&self) -> Option<Fatal> {
        None
    }

    fn lacked_memory(&self) -> bool {
        false
    }
}

pub(crate) struct Pools {
    pub(crate) receive: Pool,
    /// The reserve of frames.
    pub(crate) frames: Pool,
    pub(crate) send: Pool,
}

pub(crate) struct Shard {
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    pub(crate) pools: Pools,
    /// Bytes of the receive pool that the ring itself holds.
    pub(crate) receive_idle: usize,
    stopper: Stopper,
    thread: ShardThread<()>,
}

impl Shard {
    pub(crate) fn start(limits: Limits) -> Self {
        Self::start_with(limits, 48 << 20, 64 << 20)
    }

    /// With this memory for frames beside the ring's, and this reserve.
    pub(crate) fn start_with(limits: Limits, frames: usize, reserve: usize) -> Self {
        let receive = Pool::new("receive", RingConfig::default().pool_bytes() + frames).unwrap();
        let frames = Pool::new("frames", reserve).unwrap();
        let send = Pool::new("send", 4 << 20).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Log::default();
        let (ready, started) = mpsc::channel();
        let config = RuntimeConfig {
            shard: 0,
            core: None,
            ring: RingConfig::default(),
            receive_pool: receive.clone(),
        };
        let (on_shard, send_pool) = (log.clone(), send.clone());
        let (receive_pool, reserve) = (receive.clone(), frames.clone());
        let thread = launch(config, move |runtime| async move {
            let (stop, stopper) = stop_pair(runtime.ring()).unwrap();
            let mailbox = Mailbox::new(runtime.ring().bell());
            let env = runtime.env().clone();
            let handler = Rc::new(Echo {
                log: on_shard,
                mailbox: mailbox.clone(),
                env,
                parked: RefCell::default(),
            });
            ready.send((stopper, receive_pool.used())).unwrap();
            let round_end = Rc::new(NoLogs);
            let pump = Pump::new(PumpParts {
                runtime,
                handler,
                round_end,
                mailbox,
                limits,
                frame_memory: FrameMemory { pool: receive_pool, reserve },
                send_pool,
                stop,
            });
            pump.run(listener).await.unwrap();
        })
        .unwrap();
        let (stopper, receive_idle) = started.recv().unwrap();
        Self { address, log, pools: Pools { receive, frames, send }, receive_idle, stopper, thread }
    }

    /// Stops the shard; how long that took.
    pub(crate) fn stop(self) -> Duration {
        let start = Instant::now();
        self.stopper.stop();
        self.thread.join().unwrap();
        start.elapsed()
    }
}

pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
}

pub(crate) fn read_frame(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).unwrap();
    body
}
