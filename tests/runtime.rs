//! The facts of glommio and io_uring that the broker relies on, so that a newer
//! version of either can be judged in a minute. `MILLSTREAM_LONG=1` runs the
//! lost parks for five minutes and shows that they are still lost unguarded.
#![allow(clippy::disallowed_methods, missing_docs, clippy::print_stdout)]

#[path = "runtime/echo.rs"]
mod echo;
#[path = "runtime/files.rs"]
mod files;
#[path = "runtime/parks.rs"]
mod parks;

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use echo::{EchoConfig, EchoShard};
use millstream::io::ring::RingConfig;
use millstream::io::{Env as _, Pool};
use millstream::shard::runtime::{Runtime, RuntimeConfig, ShardThread, launch, yield_in_place};

/// Starts a shard without listeners.
fn shard<T, F, Fut>(main: F) -> ShardThread<T>
where
    T: Send + 'static,
    F: FnOnce(Runtime) -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
{
    let receive_pool = Pool::new("receive", 2 << 20).unwrap();
    let ring = RingConfig { buffers: 16, large_buffers: 0, ..RingConfig::default() };
    launch(RuntimeConfig { shard: 0, core: None, ring, receive_pool }, main).unwrap()
}

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

#[test]
fn a_spawned_task_runs_inside_the_call() {
    let ran = shard(|runtime| async move {
        let ran = Rc::new(Cell::new(false));
        let seen = ran.clone();
        let task = runtime.env().spawn(async move { seen.set(true) });
        let at_once = ran.get();
        drop(task);
        at_once
    });
    assert!(ran.join().unwrap());
}

#[test]
fn a_pause_lets_timers_completions_and_foreign_wakes_through() {
    let rounds = shard(|runtime| async move {
        let env = runtime.env().clone();
        let seen: Rc<[Cell<bool>; 3]> = Rc::default();
        let timer = env.spawn({
            let (env, seen) = (env.clone(), seen.clone());
            async move {
                env.sleep(Duration::from_millis(2)).await;
                seen[0].set(true);
            }
        });
        // A blocking call ends by a wake from another thread.
        let foreign = env.spawn({
            let seen = seen.clone();
            async move {
                let call = || {
                    thread::sleep(Duration::from_millis(2));
                    Ok(())
                };
                millstream::io::glommio::blocking(call).await.unwrap();
                seen[1].set(true);
            }
        });
        // The eventfd, which only a park asks for.
        let bell = env.spawn({
            let (runtime, seen) = (runtime.clone(), seen.clone());
            async move {
                let signal = runtime.ring().eventfd().unwrap();
                std::fs::File::from(signal).write_all(&1u64.to_ne_bytes()).unwrap();
                runtime.park().await;
                seen[2].set(true);
            }
        });
        let start = Instant::now();
        let mut slices = 0;
        while !seen.iter().all(Cell::get) {
            let missing: Vec<_> = seen.iter().map(Cell::get).collect();
            assert!(start.elapsed() < Duration::from_secs(10), "{missing:?}");
            while !env.slice_over() {
                std::hint::spin_loop();
            }
            env.pause().await;
            slices += 1;
        }
        drop((timer, foreign, bell));
        slices
    });
    println!("all three came through within {} slices", rounds.join().unwrap());
}

#[test]
fn a_panic_ends_the_shard_with_its_text() {
    let died = shard(|_| async move { panic!("main {}", 1) }).join();
    let died: Result<(), _> = died;
    assert_eq!(died.unwrap_err().to_string(), "shard 0 died: main 1");
    let died = shard(|runtime| async move {
        let env = runtime.env().clone();
        let _task = env.spawn(async {
            glommio::timer::sleep(Duration::from_millis(1)).await;
            panic!("a task");
        });
        env.sleep(Duration::from_secs(3600)).await;
    });
    assert_eq!(died.join().unwrap_err().panic, "a task");
}

#[test]
fn a_panic_in_a_blocking_call_comes_back() {
    let text = shard(|_| async move {
        let call = || -> std::io::Result<()> { panic!("in the pool") };
        millstream::io::glommio::blocking(call).await.unwrap_err().to_string()
    });
    assert_eq!(text.join().unwrap(), "a blocking call panicked: in the pool");
}

/// What tasks that work in slices saw of the connections beside them.
#[derive(Default)]
struct Seen {
    slices: AtomicU64,
    /// Slices in a row with a completion waiting and no turn taken.
    starved: AtomicU64,
    starved_max: AtomicU64,
    /// What the ring had counted after the slice before.
    counted: AtomicU64,
    /// Whether something waited then.
    waiting: AtomicBool,
    stop: AtomicBool,
}

/// Works in slices of 100 us; gives way by a pause, or by a yield.
async fn work_in_slices(runtime: Runtime, seen: Arc<Seen>, pause: bool) {
    let env = runtime.env().clone();
    while !seen.stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(100) {
            std::hint::spin_loop();
        }
        seen.slices.fetch_add(1, Ordering::Relaxed);
        // A turn is a round of the pump that entered the ring or took something
        // from it: accepts and closings count as well as echoed frames.
        let counters = runtime.ring().counters();
        let now = counters.completed + counters.enters;
        let turn = seen.counted.swap(now, Ordering::Relaxed) != now;
        let waited = seen.waiting.swap(runtime.ring().has_work(), Ordering::Relaxed);
        let starved = seen.starved.load(Ordering::Relaxed) + 1;
        let starved = if waited && !turn { starved } else { 0 };
        seen.starved.store(starved, Ordering::Relaxed);
        seen.starved_max.fetch_max(starved, Ordering::Relaxed);
        if pause { env.pause().await } else { yield_in_place().await }
    }
}

/// Round trips of one byte for `time`; all latencies.
fn round_trips(addr: SocketAddr, time: Duration) -> Vec<Duration> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    let start = Instant::now();
    let mut latencies = Vec::new();
    while start.elapsed() < time {
        let sent = Instant::now();
        stream.write_all(&[0, 0, 0, 1, 9]).unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        latencies.push(sent.elapsed());
    }
    latencies
}

/// Four connections beside working tasks: their slices, the most that a waiting
/// connection was passed over, the latencies in order.
fn beside_work(tasks: usize, pause: bool, time: Duration) -> (Arc<Seen>, Vec<Duration>) {
    let seen = Arc::new(Seen::default());
    let of_task = seen.clone();
    let shard = EchoShard::start(EchoConfig::default(), move |runtime, _| {
        for _ in 0..tasks {
            let (runtime, of_task) = (runtime.clone(), of_task.clone());
            let env = runtime.env().clone();
            let work = async move {
                // After the listener is there: a task runs inside the spawn.
                runtime.env().sleep(Duration::from_millis(20)).await;
                // All wake at once; from here on they take turns.
                runtime.env().pause().await;
                work_in_slices(runtime, of_task, pause).await;
            };
            millstream::io::Task::detach(env.spawn(work));
        }
    });
    let clients: Vec<_> = (0..4)
        .map(|_| (shard.addr, time))
        .map(|(a, t)| thread::spawn(move || round_trips(a, t)))
        .collect();
    thread::sleep(time);
    seen.stop.store(true, Ordering::Relaxed);
    let mut latencies: Vec<_> =
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    latencies.sort_unstable();
    shard.stop();
    (seen, latencies)
}

/// Prints what was seen; the most slices in a row that passed over who waited.
fn show(name: &str, (seen, latencies): &(Arc<Seen>, Vec<Duration>)) -> u64 {
    let at = |part: usize| latencies[(latencies.len() - 1) * part / 1000];
    let starved = seen.starved_max.load(Ordering::Relaxed);
    println!(
        "beside 100 us slices of {name}: {} round trips, {} slices, p50 {:?}, p99 {:?}, max {:?}, \
         passed over {starved} times in a row at most",
        latencies.len(),
        seen.slices.load(Ordering::Relaxed),
        at(500),
        at(990),
        at(1000),
    );
    starved
}

#[test]
fn working_tasks_take_at_most_four_slices_between_the_turns_of_others() {
    let time = Duration::from_millis(500);
    let pausing = [1, 8].map(|tasks| {
        let alone = show(&format!("{tasks} that pause"), &beside_work(tasks, true, time));
        let _spinners = parks::Spinners::start();
        let name = format!("{tasks} that pause, on a loaded machine");
        alone.max(show(&name, &beside_work(tasks, true, time)))
    });
    assert!(pausing.iter().all(|most| *most <= 4), "{pausing:?} slices of 1 and of 8 tasks");
    let yielding = show("1 that yields", &beside_work(1, false, Duration::from_millis(300)));
    assert!(yielding > 100, "a yield no longer starves the reactor: the fact has changed");
}
