//! The echo server of `tests/runtime/echo.rs` over glommio's own sockets: what
//! the ring replaced (ADR 0007). A task per connection reads, takes whole
//! frames out, writes them back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _};
use glommio::net::{TcpListener, TcpStream};
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement};

use super::echo::EchoConn;

/// As large as the ring's receive buffers.
const READ_BYTES: usize = 64 << 10;

/// A running echo server on core 0.
pub(crate) struct GlommioEcho {
    pub(crate) addr: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: ExecutorJoinHandle<()>,
}

impl GlommioEcho {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (tell, told) = mpsc::channel();
        let thread = LocalExecutorBuilder::new(Placement::Fixed(0))
            .name("shard-0")
            .preempt_timer(Duration::from_secs(3600))
            .spawn(move || async move {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let acceptor = glommio::spawn_local(async move {
                    loop {
                        let stream = listener.accept().await.unwrap();
                        glommio::spawn_local(serve(stream)).detach();
                    }
                });
                while !stopped.load(Ordering::Relaxed) {
                    glommio::timer::sleep(Duration::from_millis(20)).await;
                }
                acceptor.cancel().await;
            })
            .unwrap();
        Self { addr: told.recv().unwrap(), stop, thread }
    }

    /// Stops it and waits.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

async fn serve(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut conn = EchoConn::default();
    let mut buffer = vec![0; READ_BYTES];
    // It ends when the client hangs up, with or without an error.
    while let Ok(len @ 1..) = stream.read(&mut buffer).await {
        conn.take(&buffer[..len]);
        // Not used again, as what the ring sends is not.
        let outbox = std::mem::take(&mut conn.outbox);
        if stream.write_all(&outbox).await.is_err() {
            return;
        }
    }
}
