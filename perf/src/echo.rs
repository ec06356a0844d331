//! A server that stores nothing: one blocking thread per connection reads
//! frames and answers each with its correlation id, in an answer as long as a
//! produce's. What it costs is what sockets cost.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};

use crate::options::Echo;
use crate::stream::{Frames, Got};
use crate::{Result, process};

/// Bytes of an answer to a produce of one partition, its length included.
const ANSWER_BYTES: usize = 66;

/// Bytes of a connection's receive buffer.
pub(crate) const BUFFER_BYTES: usize = 128 << 10;

/// What the line on standard output starts with.
pub(crate) const READY: &str = "millstream-perf echo: ";

/// Serves until it is killed.
///
/// # Errors
/// When it cannot listen.
pub(crate) fn run(options: &Echo) -> Result<()> {
    process::pin(options.pin)?;
    let listener = TcpListener::bind(options.listen)?;
    println!("{READY}{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept()?;
        std::thread::spawn(move || {
            if let Err(error) = serve(stream) {
                eprintln!("echo: {error}");
            }
        });
    }
}

fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut frames = Frames::new(BUFFER_BYTES);
    let mut out = Vec::new();
    while frames.fill(&stream)? != Got::End {
        out.clear();
        while let Some(frame) = frames.next()? {
            answer(frame, &mut out)?;
        }
        stream.write_all(&out)?;
    }
    Ok(())
}

fn answer(request: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let id = request.get(4..8).ok_or("a frame without a header")?;
    let start = out.len();
    out.extend_from_slice(&(ANSWER_BYTES as u32 - 4).to_be_bytes());
    out.extend_from_slice(id);
    out.resize(start + ANSWER_BYTES, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Command, Options};
    use crate::produce;
    use clap::Parser as _;

    #[test]
    fn the_load_runs_against_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(move || serve(stream.unwrap()));
            }
        });
        let line = "perf produce --echo --connections 3 --in-flight 7 --partitions 5 \
                    --records-per-batch 2 --warmup 0 --seconds 60 --requests 1000 --broker";
        let words = line.split_whitespace().chain([address.as_str()]);
        let Command::Produce(options) = Options::try_parse_from(words).unwrap().command else {
            panic!("it is a produce")
        };
        let report = produce::run(&options).unwrap();
        assert_eq!((report.requests, report.records), (1000, 2000));
        let mut out = Vec::new();
        assert!(answer(&[0; 7], &mut out).is_err());
    }
}
