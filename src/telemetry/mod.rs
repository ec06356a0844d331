//! What the broker says about itself: logging set-up. Counters live with the
//! layers that count and are read from there.

use std::io::IsTerminal;
use std::sync::Mutex;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

/// Environment variable with the log filter, in `tracing`'s syntax.
pub const LOG_ENV: &str = "MILLSTREAM_LOG";

/// While it is there, lines go to the thread that writes them.
static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Starts logging to standard error; `MILLSTREAM_LOG` sets the filter
/// (default `info`). Standard output carries the ready line alone.
///
/// A thread of its own writes the lines, so that no shard waits for whoever
/// reads them: what does not fit its queue, or cannot be written, is lost.
pub fn start_logging() {
    let filter = EnvFilter::try_from_env(LOG_ENV).unwrap_or_else(|_| EnvFilter::new("info"));
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal())
        .log_internal_errors(false)
        .try_init();
    match started {
        Ok(()) => *lock() = Some(guard),
        // A second start in one process (tests) keeps the first.
        Err(error) => tracing::debug!("logging is set up already: {error}"),
    }
}

/// Has what was logged written, for a second at most; the last words of a process.
pub fn flush() {
    drop(lock().take());
}

fn lock() -> std::sync::MutexGuard<'static, Option<WorkerGuard>> {
    WRITER.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
