//! Executors that park beside runnable tasks, and the watchdog that wakes them.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::zip;
use glommio::channels::shared_channel::{SharedReceiver, SharedSender, new_bounded};
use glommio::{LocalExecutorBuilder, Placement};
use millstream::shard::watchdog::{Pulse, Watchdog};

use super::echo::{EchoConfig, EchoShard};
use super::{round_trips, shard};

const LONG: &str = "MILLSTREAM_LONG";
/// Tells a child process to run unguarded until it stands still.
const UNGUARDED: &str = "MILLSTREAM_UNGUARDED";
const STANDS_STILL: Duration = Duration::from_secs(2);

/// Two processes that spin.
struct Spinners([Child; 2]);

impl Spinners {
    fn start() -> Self {
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self([spin(), spin()])
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

type Ends = (SharedSender<u64>, SharedReceiver<u64>);

/// Passes one message to and fro; each hop is a task of its own, as a
/// connection and an owner would be.
async fn exchange(
    (sender, receiver): Ends,
    first: bool,
    hops: Arc<AtomicU64>,
    pulse: Option<Arc<Pulse>>,
    stop: Arc<AtomicBool>,
) {
    // Each end waits for the other, so both at once.
    let (sender, receiver) = zip(sender.connect(), receiver.connect()).await;
    let sender = std::rc::Rc::new(sender);
    if first {
        sender.send(0).await.unwrap();
    }
    while let Some(message) = receiver.recv().await {
        hops.fetch_add(1, Ordering::Relaxed);
        if let Some(pulse) = &pulse {
            pulse.round(1);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let sender = sender.clone();
        glommio::spawn_local(async move {
            futures_lite::future::yield_now().await;
            // The other side may have stopped.
            let _ = sender.send(message + 1).await;
        })
        .detach();
    }
}

fn both_ends() -> (Ends, Ends) {
    let (to_second, from_first) = new_bounded(1024);
    let (to_first, from_second) = new_bounded(1024);
    ((to_second, from_second), (to_first, from_first))
}

/// The longest time that a counter stood still, until `until`.
struct Stillness {
    count: u64,
    since: Instant,
    worst: Duration,
}

impl Stillness {
    fn new() -> Self {
        Self { count: 0, since: Instant::now(), worst: Duration::ZERO }
    }

    fn look(&mut self, count: u64) {
        self.worst = self.worst.max(self.since.elapsed());
        if count != self.count {
            (self.count, self.since) = (count, Instant::now());
        }
    }
}

#[test]
fn nothing_stands_still_beside_spinning_processes() {
    if std::env::var_os(UNGUARDED).is_some() {
        return unguarded();
    }
    let long = std::env::var_os(LONG).is_some();
    let time = Duration::from_secs(if long { 300 } else { 10 });
    let _spinners = Spinners::start();
    let (hops, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (first, second) = both_ends();
    let start = |ends: Ends, is_first: bool| {
        let (hops, stop) = (hops.clone(), stop.clone());
        shard(move |runtime| async move {
            exchange(ends, is_first, hops, Some(runtime.pulse().clone()), stop).await;
        })
    };
    let shards = [start(first, true), start(second, false)];
    let echo = EchoShard::start(EchoConfig::default(), |_, _| ());
    let pulses = vec![shards[0].pulse(), shards[1].pulse(), echo.thread.pulse()];
    let watchdog = Watchdog::start(pulses.clone(), |stuck| panic!("{stuck:?}")).unwrap();
    let addr = echo.addr;
    let client = thread::spawn(move || round_trips(addr, time).len());
    let (mut messages, mut sockets) = (Stillness::new(), Stillness::new());
    let begin = Instant::now();
    while begin.elapsed() < time {
        thread::sleep(Duration::from_millis(5));
        messages.look(hops.load(Ordering::Relaxed));
        sockets.look(echo.turns.load(Ordering::Relaxed));
    }
    let round_trips = client.join().unwrap();
    let sent: u64 = pulses.iter().map(|pulse| pulse.pulses()).sum();
    println!(
        "{} hops (stood still for {:?} at most), {round_trips} socket round trips ({:?}); \
         {sent} pulses, {} rescues",
        messages.count,
        messages.worst,
        sockets.worst,
        watchdog.rescues()
    );
    stop.store(true, Ordering::Relaxed);
    shards.into_iter().for_each(|shard| shard.join().unwrap());
    echo.stop();
    drop(watchdog);
    assert!(messages.worst < STANDS_STILL && sockets.worst < STANDS_STILL);
    assert!(messages.count > 1000 && round_trips > 1000);
    if long {
        show_unguarded();
    }
}

/// Runs the exchange in processes of their own, which cannot end when they hang.
fn show_unguarded() {
    for attempt in 1..=3 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "parks::nothing_stands_still_beside_spinning_processes",
                "--nocapture",
            ])
            .env(UNGUARDED, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.contains("unguarded")).unwrap_or_default();
        println!("attempt {attempt}: {line}");
        if line.contains("stood still") {
            return;
        }
    }
    println!("THE FACT HAS CHANGED: with a 1 ms preempt timer and no watchdog nothing stood still");
}

/// A 1 ms preempt timer and no watchdog, until it stands still or 5 minutes.
fn unguarded() {
    let (hops, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (first, second) = both_ends();
    for (ends, is_first) in [(first, true), (second, false)] {
        let (hops, stop) = (hops.clone(), stop.clone());
        let builder = LocalExecutorBuilder::new(Placement::Unbound)
            .preempt_timer(Duration::from_millis(1))
            .io_memory(64 << 10);
        // Never joined: a hung executor does not end.
        let _ = builder.spawn(move || exchange(ends, is_first, hops, None, stop)).unwrap();
    }
    let begin = Instant::now();
    let mut messages = Stillness::new();
    while begin.elapsed() < Duration::from_secs(300) {
        thread::sleep(Duration::from_millis(5));
        messages.look(hops.load(Ordering::Relaxed));
        // Before the first hop a loaded machine may only be slow to start.
        if messages.count > 0 && messages.since.elapsed() > STANDS_STILL {
            let after = begin.elapsed();
            println!("unguarded: stood still after {after:?} and {} hops", messages.count);
            std::process::exit(0);
        }
    }
    println!("unguarded: {} hops in 5 minutes without a stop", messages.count);
    std::process::exit(0);
}
