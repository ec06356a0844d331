//! Tests of the ring under shortage and at its end: buffers, descriptors,
//! pauses, closings.

use super::*;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_thousand_connections_leak_nothing() {
    alone("limits::a_thousand_connections_leak_nothing", thousand_connections);
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
fn the_same_few_buffers_are_used_again() {
    let config =
        RingConfig { buffers: 64, buffer_bytes: 4096, large_buffers: 0, ..RingConfig::default() };
    let mut server = Server::new(&config);
    let mut seen = std::collections::HashSet::new();
    let mut stream = TcpStream::connect(server.addr).unwrap();
    server.run(|server| server.accepted == 1);
    for n in 0..100u8 {
        stream.write_all(&[n; 100]).unwrap();
        let mut came = 0;
        let start = Instant::now();
        while came < 100 {
            assert!(start.elapsed() < DEADLINE);
            let ring = server.ring.clone();
            ring.submit();
            let _ = ring.look();
            ring.reap(|event| {
                let Event::Received { data, .. } = event else { panic!("{event:?}") };
                assert!(data.iter().all(|byte| *byte == n));
                came += data.len();
                seen.insert(data.as_ptr() as usize);
            });
        }
    }
    assert!(seen.len() <= 2, "{} of 64 buffers", seen.len());
}

#[test]
fn connections_without_a_buffer_go_on_oldest_first() {
    for config in modes() {
        let config = RingConfig { held_max: 100, buffers: 4, large_buffers: 0, ..config };
        let mut hoard = Hoard::new(&config);
        let start = Instant::now();
        while hoard.held() < 3 {
            assert!(start.elapsed() < DEADLINE);
            hoard.round();
        }
        for _ in 0..200 {
            hoard.round();
        }
        if config.receive == ReceiveMode::OneShot {
            assert_eq!(hoard.held(), 3, "the last quarter is for those that hold none");
        }
        let mut clients: Vec<_> = (0..8).map(|_| connect(hoard.server.addr)).collect();
        for client in &mut clients {
            client.write_all(&[1; 100]).unwrap();
        }
        let start = Instant::now();
        while hoard.server.ring.starved() < 7 {
            assert!(start.elapsed() < DEADLINE);
            hoard.round();
        }
        hoard.stop.store(true, Ordering::Relaxed);
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
    alone("limits::an_accept_without_descriptors_is_reported_and_goes_on", no_descriptors);
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
