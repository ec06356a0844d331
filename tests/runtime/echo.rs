//! A shard that echoes length-prefixed frames: the least pump over the ring,
//! for the tests and the bench of the runtime.
#![allow(dead_code, reason = "the bench and the tests use different parts")]

use std::cell::Cell;
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream::io::ring::{ConnId, Event, ReceiveMode, Ring, RingConfig, SendPiece, TaskRun};
use millstream::io::{Env as _, Pool};
use millstream::shard::runtime::{Runtime, RuntimeConfig, ShardThread, launch, yield_in_place};

/// How the echo shard runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoConfig {
    pub(crate) core: Option<usize>,
    pub(crate) task_run: TaskRun,
    pub(crate) receive: ReceiveMode,
    /// How long the pump looks again before it parks.
    pub(crate) spin: Duration,
}

impl Default for EchoConfig {
    fn default() -> Self {
        let ring = RingConfig::default();
        Self {
            core: None,
            task_run: ring.task_run,
            receive: ring.receive,
            spin: Duration::from_micros(5),
        }
    }
}

/// A running echo shard.
pub(crate) struct EchoShard {
    pub(crate) addr: SocketAddr,
    pub(crate) thread: ShardThread<()>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Frames echoed.
    pub(crate) turns: Arc<AtomicU64>,
}

impl EchoShard {
    /// Starts it; `beside` runs as a task of the shard, and is told the turns
    /// that connections have had.
    pub(crate) fn start(
        config: EchoConfig,
        beside: impl FnOnce(Runtime, Arc<AtomicU64>) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicU64::new(0));
        let ring = RingConfig {
            task_run: config.task_run,
            receive: config.receive,
            ..RingConfig::default()
        };
        let runtime = RuntimeConfig {
            shard: 0,
            core: config.core,
            ring,
            receive_pool: Pool::new("receive", 64 << 20).unwrap(),
        };
        let (stopped, counted) = (stop.clone(), turns.clone());
        let thread = launch(runtime, move |runtime| async move {
            beside(runtime.clone(), counted.clone());
            let listener = runtime.ring().listen(listener);
            let mut echo =
                Echo { ring: runtime.ring().clone(), conns: HashMap::new(), turns: counted };
            // The stop flag comes from a foreign thread, so look now and then.
            let env = runtime.env().clone();
            let waker = runtime.ring().bell();
            let over = Rc::new(Cell::new(false));
            let seen = over.clone();
            let ticker = runtime.env().spawn({
                let env = env.clone();
                async move {
                    while !stopped.load(Ordering::Relaxed) {
                        env.sleep(Duration::from_millis(20)).await;
                    }
                    seen.set(true);
                    waker.ring();
                }
            });
            pump(&runtime, &mut echo, config.spin, |_| over.get()).await;
            runtime.ring().unlisten(listener);
            echo.conns.keys().for_each(|conn| runtime.ring().shutdown(*conn));
            pump(&runtime, &mut echo, config.spin, |echo| echo.conns.is_empty()).await;
            drop(ticker);
        })
        .unwrap();
        Self { addr, thread, stop, turns }
    }

    /// Stops it and waits.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// What of a connection's bytes is to be echoed.
#[derive(Default)]
pub(crate) struct EchoConn {
    inbox: Vec<u8>,
    pub(crate) outbox: Vec<u8>,
    spare: Vec<SendPiece>,
}

struct Echo {
    ring: Ring,
    conns: HashMap<ConnId, EchoConn>,
    turns: Arc<AtomicU64>,
}

impl Echo {
    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => {
                self.conns.insert(conn, EchoConn::default());
            }
            Event::Received { conn, data } => {
                let frames = self.conns.get_mut(&conn).unwrap().take(&data);
                self.turns.fetch_add(frames, Ordering::Relaxed);
                self.flush(conn);
            }
            Event::Sent { conn, pieces, .. } => {
                self.conns.get_mut(&conn).unwrap().spare = pieces;
                self.flush(conn);
            }
            Event::ReceiveEnded { conn, .. } => self.ring.shutdown(conn),
            Event::Closed { conn } => {
                self.conns.remove(&conn);
            }
            Event::Unlistened { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn flush(&mut self, conn: ConnId) {
        let echo = self.conns.get_mut(&conn).unwrap();
        if !echo.outbox.is_empty() && !self.ring.is_sending(conn) {
            let mut pieces = std::mem::take(&mut echo.spare);
            pieces.push(SendPiece::Vec(std::mem::take(&mut echo.outbox)));
            self.ring.send(conn, pieces);
        }
    }
}

impl EchoConn {
    /// Moves whole frames to the outbox; how many they were.
    pub(crate) fn take(&mut self, data: &[u8]) -> u64 {
        self.inbox.extend_from_slice(data);
        let (mut at, mut frames) = (0, 0);
        while self.inbox.len() - at >= 4 {
            let body = u32::from_be_bytes(self.inbox[at..at + 4].try_into().unwrap()) as usize;
            if self.inbox.len() - at < 4 + body {
                break;
            }
            (at, frames) = (at + 4 + body, frames + 1);
        }
        self.outbox.extend_from_slice(&self.inbox[..at]);
        self.inbox.drain(..at);
        frames
    }
}

/// Runs rounds until `done`.
async fn pump(runtime: &Runtime, echo: &mut Echo, spin: Duration, done: impl Fn(&Echo) -> bool) {
    let (ring, env) = (runtime.ring().clone(), runtime.env().clone());
    let bell = ring.bell();
    while !done(echo) {
        ring.submit();
        ring.reap(|event| echo.on(event));
        bell.answer();
        if done(echo) {
            break;
        }
        runtime.pulse().round(ring.in_flight());
        if env.slice_over() {
            env.pause().await;
            continue;
        }
        if ring.has_work() {
            continue;
        }
        let start = Instant::now();
        let mut found = false;
        while !found && start.elapsed() < spin {
            yield_in_place().await;
            found = ring.look() || bell.is_rung();
        }
        if !found {
            runtime.park().await;
        }
    }
}
