//! The ring under an echo server of length-prefixed frames, driven by a plain
//! loop without an executor. Every test runs with each way to receive and each
//! way to run task work.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clients are threads, with real deadlines"
)]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::io::{ChunkMut, Pool};

/// Frames from this length on are received into a chunk of their own.
const LARGE: usize = 64 << 10;
const DEADLINE: Duration = Duration::from_secs(20);

/// Runs `test`, the body of the test of this name, in a process of its own: it
/// counts or limits the descriptors of the process.
fn alone(name: &str, test: fn()) {
    const MARK: &str = "MILLSTREAM_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return test();
    }
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

fn modes() -> impl Iterator<Item = RingConfig> {
    let all = [
        (TaskRun::Coop, ReceiveMode::OneShot),
        (TaskRun::Defer, ReceiveMode::OneShot),
        (TaskRun::Coop, ReceiveMode::Multishot),
        (TaskRun::Defer, ReceiveMode::Multishot),
    ];
    all.into_iter().map(|(task_run, receive)| RingConfig {
        buffers: 16,
        buffer_bytes: 16 << 10,
        large_buffers: 3,
        large_buffer_bytes: 64 << 10,
        task_run,
        receive,
        ..RingConfig::default()
    })
}

#[derive(Default)]
struct Echo {
    inbox: Vec<u8>,
    outbox: Vec<SendPiece>,
    filling: bool,
    ended: bool,
}

struct Server {
    ring: Ring,
    pool: Pool,
    addr: SocketAddr,
    listener: ListenerId,
    conns: HashMap<ConnId, Echo>,
    accepted: usize,
    closed: usize,
    frames: usize,
    large: usize,
    failed: Vec<i32>,
    buffers_held_max: u64,
}

impl Server {
    fn new(config: &RingConfig) -> Self {
        let pool = Pool::new("test", 64 << 20).unwrap();
        let ring = Ring::new(config, &pool).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let listener = ring.listen(listener, usize::MAX);
        Self {
            ring,
            pool,
            addr,
            listener,
            conns: HashMap::new(),
            accepted: 0,
            closed: 0,
            frames: 0,
            large: 0,
            failed: Vec::new(),
            buffers_held_max: 0,
        }
    }

    /// Runs until `done`, or fails at the deadline.
    fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < DEADLINE, "stuck: {:?}", self.ring.counters());
            self.round();
        }
    }

    fn round(&mut self) {
        self.ring.submit();
        if !self.ring.look() {
            thread::sleep(Duration::from_micros(50));
        }
        let ring = self.ring.clone();
        ring.reap(|event| self.on(event));
        self.buffers_held_max = self.buffers_held_max.max(ring.counters().buffers_held);
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, listener, peer } => {
                assert_eq!(listener, self.listener);
                assert!(peer.is_none_or(|peer| peer.ip().is_loopback()));
                self.accepted += 1;
                assert!(self.conns.insert(conn, Echo::default()).is_none());
            }
            Event::AcceptFailed { error, .. } => self.failed.push(error.raw_os_error().unwrap()),
            Event::Unlistened { .. } => {}
            Event::NoBuffer { conn } => assert!(self.conns.contains_key(&conn)),
            Event::Received { conn, data } => {
                let echo = self.conns.get_mut(&conn).unwrap();
                assert!(!data.is_empty() && !echo.ended && !echo.filling);
                echo.inbox.extend_from_slice(&data);
                drop(data);
                self.frames_of(conn);
            }
            Event::Filled { conn, chunk, complete } => {
                self.conns.get_mut(&conn).unwrap().filling = false;
                if complete {
                    self.large += 1;
                    self.reply(conn, SendPiece::Chunk(chunk.freeze()));
                }
            }
            Event::ReceiveEnded { conn, .. } => {
                let echo = self.conns.get_mut(&conn).unwrap();
                echo.ended = true;
                if echo.outbox.is_empty() && !self.ring.is_sending(conn) {
                    self.ring.shutdown(conn);
                }
            }
            Event::Sent { conn, result, pieces } => {
                assert!(pieces.is_empty());
                if result.is_err() {
                    self.ring.shutdown(conn);
                }
                self.flush(conn);
            }
            Event::Closed { conn } => {
                self.closed += 1;
                self.conns.remove(&conn).unwrap();
            }
        }
    }

    fn frames_of(&mut self, conn: ConnId) {
        loop {
            let echo = self.conns.get_mut(&conn).unwrap();
            if echo.inbox.len() < 4 {
                return;
            }
            let body = u32::from_be_bytes(echo.inbox[..4].try_into().unwrap()) as usize;
            let whole = 4 + body;
            if echo.inbox.len() < whole {
                if whole >= LARGE {
                    let mut chunk = self.pool.take(whole).unwrap();
                    chunk.extend(&echo.inbox);
                    echo.inbox.clear();
                    echo.filling = true;
                    self.ring.receive_into(conn, chunk, whole);
                }
                return;
            }
            let rest = echo.inbox.split_off(whole);
            let frame = std::mem::replace(&mut echo.inbox, rest);
            self.reply(conn, SendPiece::Vec(frame));
        }
    }

    fn reply(&mut self, conn: ConnId, frame: SendPiece) {
        self.frames += 1;
        self.conns.get_mut(&conn).unwrap().outbox.push(frame);
        self.flush(conn);
    }

    fn flush(&mut self, conn: ConnId) {
        let echo = self.conns.get_mut(&conn).unwrap();
        if self.ring.is_sending(conn) {
            return;
        }
        if !echo.outbox.is_empty() {
            self.ring.send(conn, std::mem::take(&mut echo.outbox));
        } else if echo.ended {
            self.ring.shutdown(conn);
        }
    }
}

fn frame(len: usize, seed: usize) -> Vec<u8> {
    let mut frame = u32::try_from(len).unwrap().to_be_bytes().to_vec();
    frame.extend((0..len).map(|at| (at * 31 + seed) as u8));
    frame
}

/// Runs `client` on a thread while the server runs; returns what it returned.
fn with_client<T: Send + 'static>(
    server: &mut Server,
    client: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> T {
    let addr = server.addr;
    let client = thread::spawn(move || client(addr));
    server.run(|_| client.is_finished());
    client.join().unwrap()
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

fn expect_frame(stream: &mut TcpStream, frame: &[u8]) {
    let mut got = vec![0; frame.len()];
    stream.read_exact(&mut got).unwrap();
    assert!(got == frame, "another frame came back");
}

mod limits;

#[test]
fn a_frame_split_at_any_byte_comes_back_whole() {
    for config in modes() {
        let mut server = Server::new(&config);
        with_client(&mut server, |addr| {
            let mut stream = connect(addr);
            let two = [frame(40, 1), frame(25, 2)].concat();
            for split in 1..two.len() {
                stream.write_all(&two[..split]).unwrap();
                thread::sleep(Duration::from_micros(200));
                stream.write_all(&two[split..]).unwrap();
                expect_frame(&mut stream, &two);
            }
        });
        server.run(|server| server.closed == 1);
        assert_eq!(server.ring.counters().buffers_held, 0);
        assert_eq!(server.ring.counters().connections, 0);
    }
}

#[test]
fn large_frames_come_between_small_ones() {
    for config in modes() {
        let mut server = Server::new(&config);
        with_client(&mut server, |addr| {
            let mut stream = connect(addr);
            let frames: Vec<_> = [10, 3 << 20, 20, 70 << 10, LARGE - 4, LARGE - 5, 30, 1 << 20, 40]
                .into_iter()
                .enumerate()
                .map(|(seed, len)| frame(len, seed))
                .collect();
            let mut writer = stream.try_clone().unwrap();
            let all = frames.concat();
            let writer = thread::spawn(move || writer.write_all(&all).unwrap());
            for frame in &frames {
                expect_frame(&mut stream, frame);
            }
            writer.join().unwrap();
            // Cut off in the middle of a large one.
            stream.write_all(&frame(1 << 20, 5)[..LARGE + 100]).unwrap();
        });
        server.run(|server| server.closed == 1);
        assert_eq!(server.frames, 9);
        assert!(server.large >= 3, "{} of 4 or 5 came into their own chunk", server.large);
        let left = server.pool.used();
        drop(server);
        assert!(left < 1 << 20, "only the ring's own buffers are taken: {left}");
    }
}

#[test]
fn many_connections_with_many_frames_each() {
    for config in modes() {
        let mut server = Server::new(&config);
        let clients: Vec<_> = (0..100)
            .map(|n| {
                let addr = server.addr;
                thread::spawn(move || {
                    let mut stream = connect(addr);
                    for round in 0..20 {
                        let burst: Vec<_> =
                            (0..5).map(|k| frame(n * 7 + k * 300, round + k)).collect();
                        stream.write_all(&burst.concat()).unwrap();
                        burst.iter().for_each(|frame| expect_frame(&mut stream, frame));
                    }
                })
            })
            .collect();
        server.run(|server| server.closed == 100);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!((server.accepted, server.frames), (100, 10_000));
        assert_eq!(server.ring.counters().buffers_held, 0);
    }
}

#[test]
fn a_slow_reader_gets_everything_in_order() {
    for config in modes() {
        let config = RingConfig { send_bytes_max: 256 << 10, ..config };
        let mut server = Server::new(&config);
        with_client(&mut server, |addr| {
            let mut stream = connect(addr);
            let frames: Vec<_> = (0..3000).map(|n| frame(4000 + n, n)).collect();
            let all = frames.concat();
            let mut writer = stream.try_clone().unwrap();
            let writer = thread::spawn(move || {
                writer.write_all(&all).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            thread::sleep(Duration::from_millis(50));
            for (n, frame) in frames.iter().enumerate() {
                if n % 300 == 0 {
                    thread::sleep(Duration::from_millis(5));
                }
                expect_frame(&mut stream, frame);
            }
            writer.join().unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the end follows the last frame");
        });
        server.run(|server| server.closed == 1);
    }
}

#[test]
fn closing_with_an_armed_receive_sends_a_fin() {
    for config in modes() {
        let mut server = Server::new(&config);
        let addr = server.addr;
        let mut stream = connect(addr);
        server.run(|server| server.accepted == 1);
        for _ in 0..10 {
            server.round();
        }
        let conn = *server.conns.keys().next().unwrap();
        server.ring.shutdown(conn);
        server.ring.shutdown(conn);
        server.run(|server| server.closed == 1);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        // The id is void now, and harmless.
        server.ring.send(conn, vec![SendPiece::Vec(vec![1])]);
        server.ring.resume_receive(conn);
        server.ring.shutdown(conn);
        assert!(!server.ring.is_sending(conn));
    }
}

#[test]
fn closing_under_a_blocked_send_frees_its_memory() {
    for config in modes() {
        let mut server = Server::new(&config);
        let before = server.pool.used();
        let stream = connect(server.addr);
        server.run(|server| server.accepted == 1);
        let conn = *server.conns.keys().next().unwrap();
        let chunks = (0..24).map(|_| {
            let mut chunk = server.pool.take(1 << 20).unwrap();
            chunk.set_len(1 << 20);
            SendPiece::Chunk(chunk.freeze())
        });
        server.ring.send(conn, chunks.collect());
        for _ in 0..200 {
            server.round();
        }
        assert!(server.ring.is_sending(conn), "nobody reads 24 MiB");
        server.ring.shutdown(conn);
        server.run(|server| server.closed == 1);
        assert_eq!(server.pool.used(), before);
        assert_eq!(server.ring.in_flight(), 0);
        drop(stream);
    }
}
