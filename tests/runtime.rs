//! The facts of glommio and io_uring that the broker relies on.
#![allow(clippy::disallowed_methods, missing_docs, clippy::print_stdout)]

#[path = "runtime/echo.rs"]
mod echo;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use echo::{EchoConfig, EchoShard};

#[test]
fn an_echo_shard_runs_and_stops() {
    let shard = EchoShard::start(EchoConfig::default(), |_, _| ());
    let mut stream = TcpStream::connect(shard.addr).unwrap();
    for _ in 0..1000 {
        stream.write_all(&[0, 0, 0, 1, 9]).unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
    }
    shard.stop();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}
