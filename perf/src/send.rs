//! A bare send loop: one blocking thread per connection answers each frame
//! with record bytes from memory, in sends of the size that the broker uses.
//! What it costs is what handing those bytes to sockets costs. And the load
//! that reads from it, because it knows no topics.

use std::io::{ErrorKind, IoSlice, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::echo::BUFFER_BYTES;
use crate::options::{Fetch, Send};
use crate::plain::{ANSWER_MAX, connect};
use crate::report::{Cpu, Latencies, Report};
use crate::stream::{Frames, Got};
use crate::{Result, process};

/// What the line on standard output starts with.
const READY: &str = "millstream-perf send: ";

/// Bytes of an answer before its records: length and correlation id.
const HEAD_BYTES: usize = 8;

/// Bytes of a request: length, and what it shares with every Kafka request up
/// to the correlation id.
const REQUEST_BYTES: usize = 12;

/// Serves until it is killed.
///
/// # Errors
/// When it cannot listen, or the sizes do not fit each other.
pub(crate) fn run(options: &Send) -> Result<()> {
    process::pin(options.pin)?;
    let listener = TcpListener::bind(options.listen)?;
    let memory = Arc::new(Memory::new(options)?);
    println!("{READY}{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept()?;
        let memory = Arc::clone(&memory);
        std::thread::spawn(move || {
            if let Err(error) = serve(stream, &memory) {
                eprintln!("send: {error}");
            }
        });
    }
}

/// What all connections send from, in turn, so that the processor's caches
/// help no more than they help a broker with as many records.
struct Memory {
    data: Vec<u8>,
    next: AtomicUsize,
    answer_bytes: usize,
    send_bytes: usize,
}

impl Memory {
    fn new(options: &Send) -> Result<Self> {
        let (data, answer) = (options.data_bytes, options.answer_bytes);
        if answer == 0 || answer > data || options.send_bytes == 0 {
            return Err("--answer-bytes must be from 1 to --data-bytes, --send-bytes from 1".into());
        }
        Ok(Self {
            // Not zeros: those could all be one page.
            data: vec![b'a'; data],
            next: AtomicUsize::new(0),
            answer_bytes: answer,
            send_bytes: options.send_bytes,
        })
    }

    /// The records of the next answer.
    fn records(&self) -> &[u8] {
        let answers = self.data.len() / self.answer_bytes;
        let start = self.next.fetch_add(1, Ordering::Relaxed) % answers * self.answer_bytes;
        &self.data[start..start + self.answer_bytes]
    }
}

fn serve(mut stream: TcpStream, memory: &Memory) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut frames = Frames::new(BUFFER_BYTES);
    while frames.fill(&stream)? != Got::End {
        while let Some(frame) = frames.next()? {
            let id = frame.get(4..8).ok_or("a frame without a header")?;
            let records = memory.records();
            let mut head = [0; HEAD_BYTES];
            head[..4].copy_from_slice(&u32::try_from(4 + records.len())?.to_be_bytes());
            head[4..].copy_from_slice(id);
            send(&mut stream, &head, records, memory.send_bytes)?;
        }
    }
    Ok(())
}

/// Hands over `head` and `records` in gathered sends of at most `most` bytes.
fn send(to: &mut impl Write, head: &[u8], records: &[u8], most: usize) -> Result<()> {
    let total = head.len() + records.len();
    let mut sent = 0;
    while sent < total {
        let end = total.min(sent + most);
        let part = |bytes: &'_ [u8], first: usize| {
            let clip = |at: usize| at.saturating_sub(first).min(bytes.len());
            clip(sent)..clip(end)
        };
        let slices =
            [IoSlice::new(&head[part(head, 0)]), IoSlice::new(&records[part(records, head.len())])];
        match to.write_vectored(&slices) {
            Ok(0) => return Err("the peer takes no more".into()),
            Ok(count) => sent += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Runs the load: as many readers as connections, each with one request on
/// its way.
///
/// # Errors
/// Wrong answers, and failures of the system.
pub(crate) fn read(options: &Fetch) -> Result<Report> {
    process::pin(options.target.pin)?;
    let cpu_before = Cpu::now(options.target.broker_pid)?;
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(options.seconds);
    let readers: Vec<_> = (0..options.connections)
        .map(|_| {
            let stream = connect(options.target.broker)?;
            Ok(std::thread::spawn(move || read_until(stream, until)))
        })
        .collect::<Result<_>>()?;
    let (mut requests, mut bytes, mut latencies) = (0, 0, Latencies::new());
    for reader in readers {
        let (more_requests, more_bytes, more) =
            reader.join().map_err(|_| "a reader panicked")??;
        requests += more_requests;
        bytes += more_bytes;
        latencies.merge(&more);
    }
    Ok(Report {
        requests,
        records: 0,
        bytes,
        elapsed: start.elapsed(),
        latencies,
        cpu: Cpu::now(options.target.broker_pid)?.since(cpu_before),
        checked: "order of answers".into(),
    })
}

fn read_until(mut stream: TcpStream, until: Instant) -> Result<(u64, u64, Latencies)> {
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut frames = Frames::new(1 << 20);
    let (mut requests, mut bytes, mut latencies) = (0_u64, 0, Latencies::new());
    loop {
        let id = u32::try_from(requests % 0x7fff_ffff)?.to_be_bytes();
        let mut request = [0; REQUEST_BYTES];
        request[..4].copy_from_slice(&(REQUEST_BYTES as u32 - 4).to_be_bytes());
        request[8..].copy_from_slice(&id);
        let sent = Instant::now();
        stream.write_all(&request)?;
        loop {
            if let Some(frame) = frames.next()? {
                if frame.get(..4) != Some(&id) {
                    return Err(format!("not the answer to request {requests}").into());
                }
                bytes += frame.len() as u64 - 4;
                break;
            }
            if frames.fill(&stream)? == Got::End {
                return Err("the server closed a connection".into());
            }
        }
        latencies.add(sent.elapsed());
        requests += 1;
        if Instant::now() >= until {
            return Ok((requests, bytes, latencies));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Command, Options};
    use clap::Parser as _;

    /// Takes at most some bytes of a write, and remembers their sizes.
    struct Slow(Vec<u8>, Vec<usize>, usize);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> std::io::Result<usize> {
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let taken = all.len().min(self.2);
            self.0.extend_from_slice(&all[..taken]);
            self.1.push(all.len());
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn sends_are_of_the_given_size_and_lose_nothing() {
        let whole = b"headrecords";
        for (most, taken, offered) in [
            (100, 100, vec![11]),
            (5, 100, vec![5, 5, 1]),
            (3, 100, vec![3, 3, 3, 2]),
            (8, 5, vec![8, 6, 1]),
        ] {
            let mut to = Slow(Vec::new(), Vec::new(), taken);
            send(&mut to, &whole[..4], &whole[4..], most).unwrap();
            assert_eq!((&to.0[..], to.1), (&whole[..], offered), "at most {most}");
        }
    }

    #[test]
    fn the_load_reads_from_it() {
        let options = |words: &str| Options::try_parse_from(words.split(' ')).unwrap().command;
        let Command::Send(sizes) =
            options("perf send --answer-bytes 3000 --send-bytes 1000 --data-bytes 10000")
        else {
            panic!("it is a send")
        };
        let memory = Arc::new(Memory::new(&sizes).unwrap());
        assert!(Memory::new(&Send { data_bytes: 2999, ..sizes }).is_err());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let memory = Arc::clone(&memory);
                std::thread::spawn(move || serve(stream.unwrap(), &memory));
            }
        });
        let Command::Fetch(fetch) =
            options(&format!("perf fetch --bare --connections 3 --broker {address}"))
        else {
            panic!("it is a fetch")
        };
        let report = read(&fetch).unwrap();
        assert_eq!((report.requests, report.bytes), (3, 9000), "one each in no time");
    }
}
