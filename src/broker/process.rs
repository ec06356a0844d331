//! The process: checks, lock, listener, shard, signals, and the one line on
//! standard output that says that it is ready.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::io::preflight;
use crate::io::ring::RingConfig;
use crate::shard::runtime::{RuntimeConfig, launch};
use crate::shard::watchdog::Watchdog;
use crate::shard::{Fatal, FatalReason, Stopper};
use crate::telemetry;

use super::connections::{DESCRIPTORS_MIN, Descriptors};
use super::lock::DirLock;
use super::memory::Pools;
use super::shard_main::{self, Part};
use super::{Advertised, Settings, StartError, configuration, connections, listeners};

/// What happens to the process.
enum Event {
    /// The shard serves; here is how to stop it.
    Ready(Stopper),
    /// It was told to stop.
    Signal(i32),
    /// The shard has ended.
    Ended(Result<(), StartError>),
}

/// Runs the broker until a signal or a fatal reason ends it.
///
/// # Errors
/// Why it did not start or had to end, with the remedy.
pub fn run(settings: Settings) -> Result<(), StartError> {
    let advertised = settings.check()?;
    let mut config = configuration::load(&settings)?;
    let unfit = |e: preflight::Unfit| StartError::Environment(e.to_string());
    preflight::io_uring().map_err(unfit)?;
    preflight::locked_memory(usize::from(settings.shards)).map_err(unfit)?;
    let open_files = preflight::open_files(DESCRIPTORS_MIN).map_err(unfit)?;
    let descriptors = Descriptors::share(open_files);
    let peers = connections::per_ip(&config)?;
    let connections_max = connections::most(&config, descriptors.connections);
    let lock = DirLock::take(&settings.data_dir)?;
    preflight::direct_io(&settings.data_dir).map_err(unfit)?;
    let cores = settings.cores.as_ref().map(tracing::field::debug);
    let file = settings.config_file.as_ref().map(|file| tracing::field::display(file.display()));
    tracing::info!(
        data = %settings.data_dir.display(), shards = settings.shards, cores,
        memory = settings.memory_bytes, config = file,
        "millstream {} starts", env!("CARGO_PKG_VERSION"),
    );
    let ring = RingConfig::default();
    let pools = Pools::reserve(settings.memory_bytes, &ring)?;
    let listener = listeners::open(settings.listen)?;
    let bound = listener.local_addr().map_err(|e| StartError::Environment(e.to_string()))?;
    warn_exposed(bound);
    let advertised = Advertised {
        port: if settings.advertise.is_some() { advertised.port } else { bound.port() },
        ..advertised
    };
    configuration::note_addresses(&mut config, bound, &advertised)?;

    let (events, happened) = mpsc::channel();
    watch_signals(events.clone())?;
    let ready = events.clone();
    let part = Part {
        data_dir: std::path::absolute(&settings.data_dir)
            .map_err(|e| StartError::Environment(format!("--data-dir: {e}")))?,
        config,
        pools: pools.clone(),
        log_files: descriptors.files,
        connections_max,
        peers,
        listener,
        advertised,
        spin_max: Duration::from_micros(settings.spin_us.into()),
        on_ready: Box::new(move |stopper| drop(ready.send(Event::Ready(stopper)))),
    };
    let runtime = RuntimeConfig {
        shard: 0,
        core: settings.cores.as_ref().map(|cores| cores[0]),
        ring,
        receive_pool: pools.receive.clone(),
    };
    let thread = launch(runtime, move |runtime| shard_main::run(runtime, part))
        .map_err(|e| StartError::Environment(format!("cannot start a shard: {e}")))?;
    let watchdog = Watchdog::start(vec![thread.pulse()], |stuck| {
        let fatal = Fatal::new(
            FatalReason::ShardStuck,
            format!("shard {} has not answered for {:?}", stuck.shard, stuck.silent),
        );
        end_process(&fatal);
    })
    .map_err(|e| StartError::Environment(format!("cannot start the watchdog: {e}")))?;
    spawn("join", move || {
        let ended = match thread.join() {
            Ok(outcome) => outcome,
            Err(died) => {
                Err(StartError::Fatal(Fatal::new(FatalReason::ShardPanic, died.to_string())))
            }
        };
        let _ = events.send(Event::Ended(ended));
    })?;
    let outcome = wait(&happened, bound);
    report(&pools, watchdog.rescues());
    if outcome.is_ok() {
        tracing::info!("stopped");
    }
    drop(lock);
    outcome
}

/// Waits for the end; says when the broker is ready, passes the stop on.
fn wait(happened: &mpsc::Receiver<Event>, bound: SocketAddr) -> Result<(), StartError> {
    let mut stopper: Option<Stopper> = None;
    loop {
        match happened.recv().expect("the joining thread sends before it ends") {
            Event::Ready(ready) => {
                say_ready(bound);
                stopper = Some(ready);
            }
            Event::Signal(signal) => {
                tracing::info!("signal {signal}: stopping");
                match &stopper {
                    Some(stopper) => stopper.stop(),
                    // Still recovering: a start may end at any point, as by
                    // the loss of power.
                    None => return Ok(()),
                }
            }
            Event::Ended(outcome) => return outcome,
        }
    }
}

fn say_ready(bound: SocketAddr) {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "millstream ready: kafka {bound}").and_then(|()| out.flush());
    if let Err(error) = said {
        tracing::warn!("the ready line cannot be written to standard output: {error}");
    }
}

fn warn_exposed(bound: SocketAddr) {
    if !bound.ip().is_loopback() {
        tracing::warn!(
            "{bound} can be reached from other machines, and this version has no authentication: \
             whoever connects may read and write everything"
        );
    }
}

fn report(pools: &Pools, rescues: u64) {
    for pool in pools.all() {
        let (used, limit, high_water) = (pool.used(), pool.limit(), pool.high_water());
        tracing::info!(pool = pool.name(), used, limit, high_water, "memory in bytes");
    }
    if rescues > 0 {
        tracing::warn!("the watchdog rescued a sleeping shard {rescues} times");
    }
}

/// Ends the process at once, from any thread.
fn end_process(fatal: &Fatal) -> ! {
    tracing::error!("fatal: {fatal}");
    telemetry::flush();
    std::process::exit(fatal.reason.number().into())
}

#[allow(clippy::disallowed_methods, reason = "helpers of the process, not of a shard")]
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .map(drop)
        .map_err(|e| StartError::Environment(format!("cannot start thread {name}: {e}")))
}

fn watch_signals(events: mpsc::Sender<Event>) -> Result<(), StartError> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|e| StartError::Environment(format!("cannot handle signals: {e}")))?;
    spawn("signals", move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })
}
