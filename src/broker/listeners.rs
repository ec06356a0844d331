//! Listening sockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::StartError;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

fn socket(address: SocketAddr, share: bool) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Lets a restart bind while old connections linger; a live listener still
    // refuses it.
    socket.set_reuse_address(true)?;
    if share {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// How long the listener of a killed broker may linger: the kernel tears its
/// ring, which holds the socket, down in the background.
const LINGER_MAX: Duration = Duration::from_secs(2);

/// Between two tries meanwhile.
const LINGER_RETRY: Duration = Duration::from_millis(10);

/// As `socket`, but waits for a listener that is on its way out.
fn plain_socket(address: SocketAddr) -> std::io::Result<TcpListener> {
    let mut waited = Duration::ZERO;
    loop {
        match socket(address, false) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && waited < LINGER_MAX => {
                std::thread::sleep(LINGER_RETRY);
                waited += LINGER_RETRY;
            }
            outcome => return outcome,
        }
    }
}

/// Opens the listener of a shard on `address`. A plain bind comes first: with
/// SO_REUSEPORT alone a second broker would share the port in silence.
pub(super) fn open(address: SocketAddr) -> Result<TcpListener, StartError> {
    let fault = |error: std::io::Error| {
        if error.kind() == ErrorKind::AddrInUse {
            StartError::InUse(format!(
                "{address} is in use by another process; stop it, or choose another --listen"
            ))
        } else {
            StartError::Environment(format!("cannot listen on {address}: {error}"))
        }
    };
    let plain = plain_socket(address).map_err(fault)?;
    // Port 0 asks the kernel for one; the shared socket needs the one it gave.
    let bound = plain.local_addr().map_err(fault)?;
    drop(plain);
    socket(bound, true).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_broker_on_the_port_is_refused() {
        let first = open("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = first.local_addr().unwrap();
        let error = open(address).unwrap_err();
        assert!(matches!(error, StartError::InUse(_)), "{error}");
        assert!(error.to_string().contains("--listen"));
        drop(first);
        open(address).unwrap();
    }
}
