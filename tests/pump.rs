//! The pump and the connections' mechanics, with a handler that only echoes:
//! order, fairness by counts, limits, idleness, stop.
#![allow(clippy::disallowed_methods, missing_docs, clippy::print_stdout)]

#[path = "pump/connections.rs"]
mod connections;
#[path = "pump/scripted.rs"]
mod scripted;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millstream::shard::Limits;
use scripted::{Shard, frame, read_frame};

fn connect(shard: &Shard) -> TcpStream {
    let stream = TcpStream::connect(shard.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn c4_answers_keep_the_order_of_requests_however_they_are_decided() {
    let shard = Shard::start(Limits::default());
    let mut stream = connect(&shard);
    let mut sent = Vec::new();
    for i in 0..2000u32 {
        // `l` is answered by a task later, `h` waits until it is alone.
        let kind = [b'e', b'l', b'e', b'h'][i as usize % 4];
        sent.extend(frame(&[&[kind][..], &i.to_be_bytes()].concat()));
    }
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
    for i in 0..2000u32 {
        assert_eq!(read_frame(&mut stream)[1..], i.to_be_bytes(), "answer {i}");
    }
    writing.join().unwrap();
    shard.stop();
}

#[test]
fn c4_a_request_that_is_shown_again_holds_up_its_own_connection_only() {
    let shard = Shard::start(Limits::default());
    let (mut stream, mut other) = (connect(&shard), connect(&shard));
    for size in [0, 100_000] {
        let partly = [&[b'q', 200][..], &vec![7; size]].concat();
        let sent = [&b"e1"[..], b"l2", &partly, b"e4", b"h5", &partly];
        let frames: Vec<u8> = sent.iter().flat_map(|body| frame(body)).collect();
        stream.write_all(&frames).unwrap();
        other.write_all(&frame(b"eother")).unwrap();
        assert_eq!(read_frame(&mut other), b"eother");
        for body in sent {
            assert!(read_frame(&mut stream) == body, "in order");
        }
    }
    assert_eq!(shard.pools.receive.used(), shard.receive_idle, "frames give their memory back");
    shard.stop();
}

#[test]
fn c3_answers_to_what_came_before_leave_before_a_connection_ends() {
    let shard = Shard::start(Limits::default());
    // A frame nobody understands, one that cannot be, one that fails later on.
    for broken in [frame(b"?"), vec![0xff; 4], frame(&[b'q', 51])] {
        let mut stream = connect(&shard);
        let before: [&[u8]; 5] = [b"l1", b"e2", b"l3", b"l4", b"e5"];
        let before: Vec<u8> = before.iter().flat_map(|body| frame(body)).collect();
        let after = frame(b"e6").repeat(1000);
        stream.write_all(&[before, broken, after].concat()).unwrap();
        for number in b"12345" {
            assert_eq!(read_frame(&mut stream)[1], *number);
        }
        // A reset is an end too: what came after was never read.
        let end = stream.read(&mut [0; 1]);
        assert!(!matches!(end, Ok(1..)), "{end:?}");
    }
    shard.stop();
}

#[test]
fn c9_frames_split_anywhere_and_large_ones_arrive_whole() {
    let shard = Shard::start(Limits::default());
    let mut stream = connect(&shard);
    for size in [0usize, 1, 3, 4095, 65_536, 70_000, 300_000, 3_000_000] {
        let mut body = vec![b'e'];
        body.extend((0..size).map(|i| (i * 7) as u8));
        let bytes = frame(&body);
        let at = bytes.len() / 3;
        stream.write_all(&bytes[..at]).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        stream.write_all(&bytes[at..]).unwrap();
        assert!(read_frame(&mut stream) == body, "a frame of {size} bytes came back changed");
    }
    for byte in frame(b"ebytewise") {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_frame(&mut stream), b"ebytewise");
    assert_eq!(shard.pools.receive.used(), shard.receive_idle, "frames give their memory back");
    shard.stop();
}

#[test]
fn c1_a_frame_over_the_limit_ends_its_connection_alone() {
    let shard = Shard::start(Limits { frame_max_bytes: 1000, ..Limits::default() });
    let mut good = connect(&shard);
    let mut bad = connect(&shard);
    let before = shard.pools.receive.high_water();
    bad.write_all(&0x7fff_ffffu32.to_be_bytes()).unwrap();
    assert_eq!(bad.read(&mut [0; 10]).unwrap(), 0, "closed without an answer");
    let mut negative = connect(&shard);
    negative.write_all(&[0xff; 4]).unwrap();
    assert_eq!(negative.read(&mut [0; 10]).unwrap(), 0);
    good.write_all(&frame(b"estill here")).unwrap();
    assert_eq!(read_frame(&mut good), b"estill here");
    assert_eq!(shard.pools.receive.high_water(), before, "nothing was allocated for it");
    shard.stop();
}

#[test]
fn frames_that_do_not_arrive_give_way_to_those_that_do() {
    let limits = Limits {
        frame_stall_max: Duration::from_millis(200),
        idle_max: Duration::from_secs(3600),
        ..Limits::default()
    };
    let shard = Shard::start_with(limits, 1 << 20, 256 << 10);
    let whole = frame(&[&b"e"[..], &[7; 250 << 10]].concat());
    let mut stalled: Vec<_> = (0..12).map(|_| connect(&shard)).collect();
    for stream in &mut stalled {
        stream.write_all(&whole[..240 << 10]).unwrap();
    }
    // Nothing is left for these until the others are given up.
    let mut whole_ones: Vec<_> = (0..3).map(|_| connect(&shard)).collect();
    for stream in &mut whole_ones {
        stream.write_all(&whole).unwrap();
    }
    for stream in &mut whole_ones {
        assert!(read_frame(stream) == whole[4..]);
    }
    drop(stalled);
    shard.stop();
}

#[test]
fn c11_idle_connections_are_closed_and_busy_ones_stay() {
    let idle_max = Duration::from_millis(400);
    let shard = Shard::start(Limits { idle_max, ..Limits::default() });
    let mut idle = connect(&shard);
    let mut busy = connect(&shard);
    for _ in 0..20 {
        busy.write_all(&frame(b"e")).unwrap();
        read_frame(&mut busy);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0, "closed for idleness");
    shard.stop();
}

#[test]
fn c9_a_peer_that_only_reads_any_more_gets_what_comes_behind_a_parked_answer() {
    let shard = Shard::start(Limits::default());
    for behind in [&b"e"[..], b"l"] {
        let mut stream = connect(&shard);
        stream.write_all(&[frame(b"p"), frame(b"p"), frame(behind)].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        for body in [b"p", b"p", behind] {
            assert_eq!(read_frame(&mut stream), body, "before the end");
        }
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
    let mut stream = connect(&shard);
    stream.write_all(&frame(b"p").repeat(2)).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "nothing else is waited for");
    shard.stop();
}

#[test]
fn c11_a_limit_without_end_closes_nothing() {
    let shard = Shard::start(Limits { idle_max: Duration::MAX, ..Limits::default() });
    let mut idle = connect(&shard);
    std::thread::sleep(Duration::from_millis(2200));
    idle.write_all(&frame(b"estill here")).unwrap();
    assert_eq!(read_frame(&mut idle), b"estill here");
    shard.stop();
}

/// While another connection has a whole request waiting, a flooder gets at
/// most 32 requests.
#[test]
fn a_flooder_gets_two_turns_at_most_while_another_waits() {
    let shard = Shard::start(Limits::default());
    let flooder = connect(&shard);
    let mut flood_writer = flooder.try_clone().unwrap();
    let flood = std::thread::spawn(move || {
        let many = frame(b"F").repeat(4096);
        while flood_writer.write_all(&many).is_ok() {}
    });
    let mut flood_reader = flooder.try_clone().unwrap();
    let drain = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while flood_reader.read(&mut buffer).is_ok_and(|n| n > 0) {}
    });
    let mut others: Vec<_> = (0..20).map(|_| connect(&shard)).collect();
    let served = shard.log.flooded.clone();
    while served.load(Ordering::SeqCst) < 10_000 {
        std::thread::yield_now();
    }
    let mut worst = 0;
    for round in 0..50 {
        let mut seen = Vec::new();
        for (i, other) in others.iter_mut().enumerate() {
            other.write_all(&frame(format!("o{i} {round}").as_bytes())).unwrap();
            // The request waits from here on at the latest.
            seen.push(served.load(Ordering::SeqCst));
        }
        for (i, other) in others.iter_mut().enumerate() {
            read_frame(other);
            let at = shard.log.take(&format!("o{i} {round}"));
            worst = worst.max(at.saturating_sub(seen[i]));
        }
    }
    println!("the flooder got at most {worst} requests while another waited");
    assert!(worst <= 32, "the flooder got {worst} requests while another waited");
    drop(others);
    let _ = flooder.shutdown(std::net::Shutdown::Both);
    flood.join().unwrap();
    drain.join().unwrap();
    shard.stop();
}

#[test]
fn a_client_that_reads_nothing_is_not_served_without_end() {
    let limits = Limits { output_max_bytes: 64 << 10, ..Limits::default() };
    let shard = Shard::start(limits);
    let stuck = connect(&shard);
    stuck.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let body = [vec![b'F'], vec![7; 1000]].concat();
    let many = frame(&body).repeat(64);
    let mut written = 0usize;
    while let Ok(n) = (&stuck).write(&many) {
        written += n;
        assert!(written < 256 << 20, "the broker took {written} bytes of a client that reads none");
    }
    let served = shard.log.flooded.load(Ordering::SeqCst);
    let mut other = connect(&shard);
    other.write_all(&frame(b"ehello")).unwrap();
    assert_eq!(read_frame(&mut other), b"ehello", "others are served");
    assert!(shard.pools.send.high_water() <= shard.pools.send.limit());
    assert!(served < 256 << 10);
    shard.stop();
}

#[test]
fn a_stop_lets_decided_answers_leave_and_closes_everything() {
    let shard = Shard::start(Limits::default());
    let mut streams: Vec<_> = (0..50).map(|_| connect(&shard)).collect();
    for stream in &mut streams {
        stream.write_all(&frame(b"e1")).unwrap();
        read_frame(stream);
    }
    let took = shard.stop();
    for stream in &mut streams {
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "closed by the broker");
    }
    println!("stopping 50 connections took {took:?}");
}

#[test]
fn a_stop_answers_what_is_known_behind_what_waits() {
    let shard = Shard::start(Limits::default());
    let mut behind = connect(&shard);
    behind.write_all(&[frame(b"p1"), frame(b"e2"), frame(b"p3")].concat()).unwrap();
    let mut waiting = connect(&shard);
    waiting.write_all(&frame(b"p4")).unwrap();
    while shard.log.parked.load(Ordering::SeqCst) < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    shard.stop();
    assert_eq!(read_frame(&mut behind), b"p1");
    assert_eq!(read_frame(&mut behind), b"e2");
    assert_eq!(behind.read(&mut [0; 1]).unwrap(), 0, "nothing waits for the last");
    assert_eq!(waiting.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_peer_that_goes_in_the_middle_of_a_frame_is_forgotten() {
    let shard = Shard::start(Limits::default());
    for _ in 0..200 {
        let mut stream = connect(&shard);
        stream.write_all(&frame(&[b'e'; 5000])[..3000]).unwrap();
    }
    let mut probe = connect(&shard);
    for _ in 0..50 {
        probe.write_all(&frame(b"e")).unwrap();
        read_frame(&mut probe);
        if shard.pools.receive.used() == shard.receive_idle {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(shard.pools.receive.used(), shard.receive_idle, "partial frames are given back");
    shard.stop();
}
