//! What the broker says about itself: logging set-up. Counters live with the
//! layers that count and are read from there.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Environment variable with the log filter, in `tracing`'s syntax.
pub const LOG_ENV: &str = "MILLSTREAM_LOG";

/// Starts logging to standard error; `MILLSTREAM_LOG` sets the filter
/// (default `info`). Standard output carries the ready line alone.
pub fn start_logging() {
    let filter = EnvFilter::try_from_env(LOG_ENV).unwrap_or_else(|_| EnvFilter::new("info"));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
    if let Err(error) = started {
        // A second start in one process (tests) keeps the first.
        tracing::debug!("logging is set up already: {error}");
    }
}
