//! Limits that connections share: receive buffers, their number, idle time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream::io::ring::RingConfig;
use millstream::shard::{Limits, PeerLimits};

use super::connect;
use super::scripted::{Shard, frame, read_frame};

/// More than the ring has receive buffers.
const BLOCKED: usize = RingConfig::DEFAULT_BUFFERS as usize + 50;

fn until(count: &AtomicU64, want: u64) {
    let start = Instant::now();
    while count.load(Ordering::SeqCst) < want {
        let now = count.load(Ordering::SeqCst);
        assert!(start.elapsed() < Duration::from_secs(30), "{now} of {want}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connections with one request in flight and `bytes` more behind it. Each is
/// served, and so is one that comes later.
fn blocked_behind(bytes: usize, frames: usize, reserve: usize) {
    let limits = Limits { in_flight_max: 1, ..Limits::default() };
    let shard = Shard::start_with(limits, frames, reserve);
    let body = |number: usize| {
        let mut body = vec![b'e'];
        body.extend((0..bytes).map(|at| (at * 3 + number) as u8));
        body
    };
    let mut blocked: Vec<_> = (0..BLOCKED).map(|_| connect(&shard)).collect();
    for (number, stream) in blocked.iter_mut().enumerate() {
        stream.write_all(&[frame(b"p"), frame(&body(number))].concat()).unwrap();
    }
    until(&shard.log.parked, BLOCKED as u64);
    let mut later = connect(&shard);
    later.write_all(&frame(b"ehello")).unwrap();
    assert_eq!(read_frame(&mut later), b"ehello", "one that can go on finds a buffer");
    later.write_all(&frame(b"r")).unwrap();
    assert_eq!(read_frame(&mut later), b"r");
    for (number, stream) in blocked.iter_mut().enumerate() {
        assert_eq!(read_frame(stream), b"p");
        assert!(read_frame(stream) == body(number), "what waited came back changed");
        stream.write_all(&frame(b"eagain")).unwrap();
        assert_eq!(read_frame(stream), b"eagain", "it receives again");
    }
    assert_eq!(shard.pools.receive.used(), shard.receive_idle, "nothing is kept");
    shard.stop();
}

#[test]
fn more_blocked_connections_than_buffers_leave_some_to_others() {
    blocked_behind(300, 48 << 20, 64 << 20);
    blocked_behind(50_000, 48 << 20, 64 << 20);
}

#[test]
fn blocked_connections_go_on_when_there_is_no_memory_either() {
    // The bytes of a few fit; the requests before the others end early instead.
    blocked_behind(50_000, 1 << 20, 256 << 10);
}

/// Those whose frames hold all memory need no buffer to go on, even while those
/// who wait for that memory hold all buffers.
#[test]
fn frames_that_hold_the_memory_end_while_others_hold_the_buffers() {
    // Eight large frames begin with 128 KiB each, which is the pool. A ninth lies
    // in the reserve and lacks too little to be received into it before buffers
    // are short; what is left of the reserve is not enough for a large one.
    let shard = Shard::start_with(Limits::default(), 1 << 20, 340 << 10);
    let large = [&b"e"[..], &vec![5; 300_000]].concat();
    let ninth = [&b"e"[..], &vec![6; 70_000]].concat();
    let begin = |body: &Vec<u8>, len: usize| {
        let (mut stream, whole) = (connect(&shard), frame(body));
        stream.write_all(&whole[..len]).unwrap();
        (stream, whole[len..].to_vec(), body.clone())
    };
    let mut all: Vec<_> = (0..8).map(|_| begin(&large, 80_000)).collect();
    while shard.pools.receive.used() < shard.receive_idle + (1 << 20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    all.push(begin(&ninth, 68_000));
    while shard.pools.frames.used() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // What the ring does cannot be seen from outside.
    std::thread::sleep(Duration::from_millis(100));
    all.extend((0..250).map(|_| begin(&large, 100_000)));
    std::thread::sleep(Duration::from_millis(300));
    std::thread::scope(|scope| {
        for (mut stream, rest, body) in all {
            scope.spawn(move || {
                stream.write_all(&rest).unwrap();
                assert!(read_frame(&mut stream) == body);
            });
        }
    });
    assert_eq!(shard.pools.receive.used(), shard.receive_idle);
    shard.stop();
}

#[test]
fn no_more_connections_than_allowed_are_accepted_and_others_wait() {
    let shard = Shard::start(Limits { connections_max: 10, ..Limits::default() });
    let echo = |stream: &mut TcpStream| {
        stream.write_all(&frame(b"e")).unwrap();
        assert_eq!(read_frame(stream), b"e");
    };
    let mut open: Vec<_> = (0..10).map(|_| connect(&shard)).collect();
    open.iter_mut().for_each(echo);
    let mut waiting: Vec<_> = (0..5).map(|_| connect(&shard)).collect();
    waiting.iter_mut().for_each(|stream| stream.write_all(&frame(b"e")).unwrap());
    for round in 0..5u64 {
        for _ in 0..20 {
            open.iter_mut().for_each(echo);
        }
        assert_eq!(shard.log.opened.load(Ordering::SeqCst), 10 + round);
        drop(open.pop());
        let mut next = waiting.remove(0);
        assert_eq!(read_frame(&mut next), b"e", "it was served when one had closed");
        open.push(next);
    }
    shard.stop();
}

#[test]
fn an_address_with_too_many_connections_is_refused_the_next() {
    let peers = PeerLimits { each: 3, ..PeerLimits::default() };
    let shard = Shard::start(Limits { peers, connections_max: 4, ..Limits::default() });
    let echo = |stream: &mut TcpStream| {
        stream.write_all(&frame(b"e")).unwrap();
        assert_eq!(read_frame(stream), b"e");
    };
    let mut open: Vec<_> = (0..3).map(|_| connect(&shard)).collect();
    open.iter_mut().for_each(echo);
    for _ in 0..20 {
        // Refused ones count no longer, in all and of the address.
        let refused = connect(&shard).read(&mut [0; 1]);
        assert!(matches!(refused, Ok(0) | Err(_)), "{refused:?}");
    }
    assert_eq!(shard.log.opened.load(Ordering::SeqCst), 3, "they never reached the handler");
    open.iter_mut().for_each(echo);
    // Its closing has been seen when a new one is let in.
    drop(open.pop());
    let start = Instant::now();
    loop {
        let mut next = connect(&shard);
        let served =
            next.write_all(&frame(b"e")).is_ok() && next.read(&mut [0; 1]).is_ok_and(|n| n == 1);
        if served {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "its place was not given back");
    }
    shard.stop();
}

#[test]
fn c11_slow_transfers_in_either_direction_are_not_idle() {
    let idle_max = Duration::from_millis(800);
    let shard = Shard::start(Limits { idle_max, ..Limits::default() });
    // The last half of the frame arrives in one receive, over more than a second.
    let mut slow = connect(&shard);
    let body = [vec![b'e'], vec![5; 1_300_000]].concat();
    let start = Instant::now();
    for part in frame(&body).chunks(16 << 10) {
        slow.write_all(part).expect("the broker takes it");
        std::thread::sleep(Duration::from_millis(40));
    }
    assert!(start.elapsed() > 2 * idle_max);
    assert!(read_frame(&mut slow) == body);

    // One send, read slowly: longer than the socket's buffers.
    let body = [vec![b'e'], vec![6; 24 << 20]].concat();
    slow.write_all(&frame(&body)).unwrap();
    let mut answer = Vec::new();
    let mut part = vec![0; 256 << 10];
    let start = Instant::now();
    while answer.len() < body.len() + 4 {
        let len = slow.read(&mut part).unwrap();
        assert!(len > 0, "closed after {} bytes", answer.len());
        answer.extend_from_slice(&part[..len]);
        std::thread::sleep(Duration::from_millis(25));
    }
    assert!(start.elapsed() > 2 * idle_max);
    assert!(answer[4..] == body);
    // Without a transfer it is idle.
    assert_eq!(slow.read(&mut part).unwrap(), 0, "closed for idleness");
    shard.stop();
}
