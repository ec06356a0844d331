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
        let listener = ring.listen(listener);
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

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_thousand_connections_leak_nothing() {
    alone("a_thousand_connections_leak_nothing", thousand_connections);
}

fn thousand_connections() {
    for config in modes() {
        let mut server = Server::new(&config);
        let used = server.pool.used();
        let mut at_start = None;
        for batch in 0..10 {
            with_client(&mut server, |addr| {
                for n in 0..100 {
                    let mut stream = connect(addr);
                    if n % 3 != 0 {
                        let frame = frame(n * 10, n);
                        stream.write_all(&frame).unwrap();
                        if n % 3 == 1 {
                            expect_frame(&mut stream, &frame);
                        }
                    }
                }
            });
            server.run(|server| server.closed == 100 * (batch + 1));
            at_start.get_or_insert_with(descriptors);
        }
        let counters = server.ring.counters();
        assert_eq!((counters.connections, counters.buffers_held), (0, 0));
        assert_eq!(server.pool.used(), used);
        assert_eq!(descriptors(), at_start.unwrap());
        drop(server);
    }
}

/// A server that keeps what it receives, and one client that floods it.
struct Hoard {
    server: Server,
    kept: HashMap<ConnId, Vec<ReceivedBuf>>,
    stop: Arc<AtomicBool>,
    flooder: thread::JoinHandle<()>,
}

impl Hoard {
    fn new(config: &RingConfig) -> Self {
        let server = Server::new(config);
        let (addr, stop) = (server.addr, Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let flooder = thread::spawn(move || {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let _ = stream.write(&[7; 64 << 10]);
            }
        });
        Self { server, kept: HashMap::new(), stop, flooder }
    }

    fn round(&mut self) {
        let ring = self.server.ring.clone();
        ring.submit();
        if !ring.look() {
            thread::sleep(Duration::from_micros(50));
        }
        ring.reap(|event| match event {
            Event::Received { conn, data } => self.kept.entry(conn).or_default().push(data),
            other => self.server.on(other),
        });
    }

    fn held(&self) -> usize {
        self.kept.values().map(Vec::len).sum()
    }
}

#[test]
fn a_flooder_holds_no_more_buffers_than_it_may() {
    for config in modes() {
        let config = RingConfig { held_max: 3, buffers: 64, ..config };
        let mut hoard = Hoard::new(&config);
        let start = Instant::now();
        let mut most = 0;
        while start.elapsed() < Duration::from_millis(200) {
            hoard.round();
            most = most.max(hoard.held());
        }
        let over = most.saturating_sub(3);
        println!("{:?} {:?}: held {most} of 3", config.task_run, config.receive);
        assert!(most >= 3);
        // One run of a multishot receive can take every buffer before its
        // cancellation: the reason why one-shot is the default.
        if config.receive == ReceiveMode::OneShot {
            assert_eq!(over, 0, "a one-shot receive takes one buffer at a time");
        }
        // It goes on when they come back.
        for _ in 0..20 {
            hoard.kept.clear();
            let start = Instant::now();
            while hoard.held() == 0 {
                assert!(start.elapsed() < DEADLINE);
                hoard.round();
            }
        }
        assert!(hoard.server.ring.counters().held_stops > 0 || over > 0);
        hoard.stop.store(true, Ordering::Relaxed);
        hoard.flooder.join().unwrap();
    }
}

#[test]
fn connections_without_a_buffer_go_on_oldest_first() {
    for config in modes() {
        let config = RingConfig { held_max: 100, buffers: 4, ..config };
        let mut hoard = Hoard::new(&config);
        let start = Instant::now();
        while hoard.server.ring.counters().no_buffers == 0 {
            assert!(start.elapsed() < DEADLINE);
            hoard.round();
        }
        hoard.stop.store(true, Ordering::Relaxed);
        assert_eq!(hoard.held(), 4);
        // A large frame needs no buffer of the ring; others wait in line.
        let mut clients: Vec<_> = (0..8).map(|_| connect(hoard.server.addr)).collect();
        for client in &mut clients {
            client.write_all(&[1; 100]).unwrap();
        }
        for _ in 0..200 {
            hoard.round();
        }
        assert_eq!(hoard.held(), 4);
        let before = hoard.server.ring.counters().no_buffers;
        for _ in 0..200 {
            hoard.round();
        }
        assert_eq!(hoard.server.ring.counters().no_buffers, before, "nobody tries in vain");
        let start = Instant::now();
        let mut seen = std::collections::HashSet::new();
        while seen.len() < 9 {
            assert!(start.elapsed() < DEADLINE, "{} of 9 connections got their turn", seen.len());
            hoard.round();
            seen.extend(hoard.kept.keys().copied());
            hoard.kept.clear();
        }
        hoard.flooder.join().unwrap();
    }
}

#[test]
fn paused_connections_stay_silent_and_fill_all_the_same() {
    for config in modes() {
        let mut server = Server::new(&config);
        let mut stream = connect(server.addr);
        server.run(|server| server.accepted == 1);
        let conn = *server.conns.keys().next().unwrap();
        server.ring.pause_receive(conn);
        for _ in 0..20 {
            server.round();
        }
        stream.write_all(&frame(100, 1)).unwrap();
        for _ in 0..100 {
            server.round();
        }
        // The one-shot that was armed already may take one buffer.
        let taken = server.frames;
        stream.write_all(&frame(100, 2)).unwrap();
        for _ in 0..100 {
            server.round();
        }
        assert_eq!(server.frames, taken);
        let want = if taken == 0 { 208 } else { 104 };
        let chunk = server.pool.take(want).unwrap();
        server.ring.receive_into(conn, chunk, want);
        server.run(|server| server.large == 1);
        stream.write_all(&frame(100, 3)).unwrap();
        for _ in 0..100 {
            server.round();
        }
        assert_eq!(server.frames, taken + 1);
        server.ring.resume_receive(conn);
        server.run(|server| server.frames == taken + 2);
        server.round();
        (1..=3).for_each(|seed| expect_frame(&mut stream, &frame(100, seed)));
    }
}

#[test]
fn an_accept_without_descriptors_is_reported_and_goes_on() {
    alone("an_accept_without_descriptors_is_reported_and_goes_on", no_descriptors);
}

fn no_descriptors() {
    for config in modes() {
        let mut server = Server::new(&config);
        let clients: Vec<_> = (0..4).map(|_| connect(server.addr)).collect();
        // The limit counts numbers, not descriptors in use: below the highest
        // free one, nothing can be opened.
        let limit = crate::io::syscall::limit(crate::io::syscall::Resource::OpenFiles).unwrap();
        let none = crate::io::syscall::Limit { soft: 3, ..limit };
        crate::io::syscall::set_limit(crate::io::syscall::Resource::OpenFiles, none).unwrap();
        let start = Instant::now();
        while server.failed.is_empty() && start.elapsed() < DEADLINE {
            server.round();
        }
        crate::io::syscall::set_limit(crate::io::syscall::Resource::OpenFiles, limit).unwrap();
        assert_eq!(server.failed, [libc::EMFILE]);
        server.ring.rearm(server.listener);
        server.run(|server| server.accepted == 4);
        drop(clients);
    }
}

#[test]
fn unlisten_closes_the_port() {
    for config in modes() {
        let mut server = Server::new(&config);
        for _ in 0..5 {
            server.round();
        }
        server.ring.unlisten(server.listener);
        let ring = server.ring.clone();
        let mut closed = false;
        let start = Instant::now();
        while !closed {
            assert!(start.elapsed() < DEADLINE);
            ring.submit();
            let _ = ring.look();
            ring.reap(|event| closed |= matches!(event, Event::Unlistened { .. }));
        }
        assert!(TcpStream::connect(server.addr).is_err());
    }
}

#[test]
fn a_dropped_ring_lets_go_of_everything() {
    for config in modes() {
        let pool;
        {
            let mut server = Server::new(&config);
            pool = server.pool.clone();
            let _clients: Vec<_> = (0..10).map(|_| connect(server.addr)).collect();
            server.run(|server| server.accepted == 10);
            let conn = *server.conns.keys().next().unwrap();
            let chunk: ChunkMut = pool.take(1 << 20).unwrap();
            server.ring.receive_into(conn, chunk, 1 << 20);
            server.round();
        }
        assert_eq!(pool.used(), 0);
    }
}
