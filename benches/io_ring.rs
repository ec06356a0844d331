//! The ring under an echo server on one core, with blocking clients on another:
//! which way to run task work and to receive is cheaper, and what the ring
//! saves against glommio's own sockets. The variants run in the order A B C D
//! D C B A, the two kinds of sockets in the order A B B A, so that a drift of
//! the machine falls on all.
//!
//! Not a criterion bench: what counts is the server's CPU time, not the
//! clients' clock alone.
#![allow(clippy::disallowed_methods, missing_docs, clippy::print_stdout)]

#[path = "../tests/runtime/echo.rs"]
mod echo;
#[path = "io_ring/glommio_tcp.rs"]
mod glommio_tcp;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use echo::{EchoConfig, EchoShard};
use glommio_tcp::GlommioEcho;
use millstream::io::ring::{ReceiveMode, TaskRun};

struct Workload {
    name: &'static str,
    connections: usize,
    in_flight: usize,
    bytes: usize,
}

const WORKLOADS: [Workload; 4] = [
    Workload { name: "1 x 1, 100 B", connections: 1, in_flight: 1, bytes: 100 },
    Workload { name: "64 x 1, 100 B", connections: 64, in_flight: 1, bytes: 100 },
    Workload { name: "8 x 32, 100 B", connections: 8, in_flight: 32, bytes: 100 },
    Workload { name: "4 x 4, 56 KiB", connections: 4, in_flight: 4, bytes: 56 << 10 },
];

const VARIANTS: [(TaskRun, ReceiveMode); 4] = [
    (TaskRun::Coop, ReceiveMode::OneShot),
    (TaskRun::Defer, ReceiveMode::OneShot),
    (TaskRun::Coop, ReceiveMode::Multishot),
    (TaskRun::Defer, ReceiveMode::Multishot),
];

/// CPU time of the thread named `shard-...`, in nanoseconds.
fn shard_cpu() -> u64 {
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        if name.starts_with("shard-") {
            let stat = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            return stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        }
    }
    0
}

/// Frames echoed, and the shard's CPU time in nanoseconds.
type Work = (u64, u64);

/// What the server echoes in `time`.
fn run(addr: SocketAddr, load: &Workload, time: Duration) -> Work {
    let mut frame = u32::try_from(load.bytes).unwrap().to_be_bytes().to_vec();
    frame.resize(4 + load.bytes, 7);
    let burst = frame.repeat(load.in_flight);
    let mut answer = vec![0; burst.len()];
    let mut streams: Vec<_> =
        (0..load.connections).map(|_| TcpStream::connect(addr).unwrap()).collect();
    streams.iter().for_each(|stream| stream.set_nodelay(true).unwrap());
    let mut round = || {
        streams.iter_mut().for_each(|stream| stream.write_all(&burst).unwrap());
        streams.iter_mut().for_each(|stream| stream.read_exact(&mut answer).unwrap());
        (load.connections * load.in_flight) as u64
    };
    (0..20).for_each(|_| {
        round();
    });
    let (start, cpu) = (Instant::now(), shard_cpu());
    let mut frames = 0;
    while start.elapsed() < time {
        frames += round();
    }
    (frames, shard_cpu() - cpu)
}

fn print_line(load: &Workload, server: &str, (frames, cpu): Work, time: Duration) {
    println!(
        "{:14} {server}: {:.0} frames/s, {:.2} us CPU a frame",
        load.name,
        frames as f64 / (2.0 * time.as_secs_f64()),
        cpu as f64 / 1000.0 / frames as f64
    );
}

fn on_ring(load: &Workload, config: EchoConfig, time: Duration) -> Work {
    let shard = EchoShard::start(EchoConfig { core: Some(0), ..config }, |_, _| ());
    let work = run(shard.addr, load, time);
    shard.stop();
    work
}

fn on_glommio(load: &Workload, time: Duration) -> Work {
    let server = GlommioEcho::start();
    let work = run(server.addr, load, time);
    server.stop();
    work
}

fn variants(load: &Workload, time: Duration) {
    let order = (0..VARIANTS.len()).chain((0..VARIANTS.len()).rev());
    let mut sums = [(0, 0); VARIANTS.len()];
    for variant in order {
        let (task_run, receive) = VARIANTS[variant];
        let (frames, cpu) =
            on_ring(load, EchoConfig { task_run, receive, ..EchoConfig::default() }, time);
        sums[variant] = (sums[variant].0 + frames, sums[variant].1 + cpu);
    }
    for ((task_run, receive), sum) in VARIANTS.iter().zip(sums) {
        print_line(load, &format!("{task_run:?} {receive:?}"), sum, time);
    }
}

fn ring_against_glommio(load: &Workload, time: Duration) {
    let ring = || on_ring(load, EchoConfig::default(), time);
    let glommio = || on_glommio(load, time);
    let (a, b) = (ring(), glommio());
    let (b2, a2) = (glommio(), ring());
    let sum = |one: Work, two: Work| (one.0 + two.0, one.1 + two.1);
    let (a, b) = (sum(a, a2), sum(b, b2));
    print_line(load, "ring", a, time);
    print_line(load, "glommio's TCP", b, time);
    println!(
        "{:14} ring to glommio's TCP: {:.2} times the frames, {:.2} times the CPU a frame",
        load.name,
        a.0 as f64 / b.0 as f64,
        (a.1 as f64 / a.0 as f64) / (b.1 as f64 / b.0 as f64)
    );
}

fn main() {
    let millis = std::env::var("MILLSTREAM_BENCH_MS").ok().and_then(|ms| ms.parse().ok());
    let time = Duration::from_millis(millis.unwrap_or(500));
    for load in &WORKLOADS {
        variants(load, time);
        ring_against_glommio(load, time);
    }
}
