//! `millstream serve`: flags into settings, settings into a running broker.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::broker::{self, Settings};
use crate::model::DurabilityClass;
use crate::telemetry;

/// Flags of `millstream serve`.
#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// Directory of all data; created when absent, used by one broker at a time.
    #[arg(long, value_name = "DIR", default_value = "./data")]
    pub(super) data_dir: PathBuf,
    /// Address to serve the Kafka protocol on.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    listen: SocketAddr,
    /// Address that clients are told to use; needed when --listen is a wildcard.
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Address for metrics and health (not there yet: refused).
    #[arg(long, value_name = "HOST:PORT")]
    admin_listen: Option<SocketAddr>,
    /// Number of shards, one thread each (this version runs one).
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: u16,
    /// Cores to pin shards to, such as `0` or `2,3` or `0-3`.
    #[arg(long, value_name = "LIST")]
    cores: Option<String>,
    /// What acknowledged data survives unless its topic says otherwise:
    /// `disk` (default) the loss of power, `os` the death of the process.
    #[arg(long, value_name = "CLASS", value_parser = durability)]
    durability: Option<DurabilityClass>,
    /// Memory for buffers per shard, such as 512MiB.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = bytes)]
    memory: usize,
    /// Longest time a shard looks again before it sleeps, in microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50)]
    spin: u32,
    /// Configuration file: TOML, keys as `millstream configs` prints them.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One configuration key, over the file's; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

fn durability(text: &str) -> Result<DurabilityClass, String> {
    DurabilityClass::from_name(text).ok_or_else(|| format!("`{text}` is neither `disk` nor `os`"))
}

/// Bytes with an optional unit: KiB, MiB, GiB (or K, M, G).
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        unit => return Err(format!("unknown unit `{unit}`; use KiB, MiB or GiB")),
    };
    let count: usize = digits.parse().map_err(|_| format!("`{text}` is not a number of bytes"))?;
    count.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is more than memory can be"))
}

/// Core numbers from a list of numbers and ranges.
fn cores(text: &str) -> Result<Vec<usize>, String> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |s: &str| {
            s.trim().parse::<usize>().map_err(|_| format!("`{part}` in --cores is not a core"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last - first > 4096 {
            return Err(format!("`{part}` in --cores is not a range of cores"));
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

impl ServeArgs {
    fn settings(self) -> Result<Settings, String> {
        Ok(Settings {
            data_dir: self.data_dir,
            listen: self.listen,
            advertise: self.advertise,
            admin_listen: self.admin_listen,
            shards: self.shards,
            cores: self.cores.as_deref().map(cores).transpose()?,
            durability: self.durability,
            memory_bytes: self.memory,
            spin_us: self.spin,
            config_file: self.config,
            overrides: self.set,
        })
    }
}

/// Runs the broker until it is told to stop; the process's exit code.
pub(super) fn run(args: ServeArgs) -> u8 {
    telemetry::start_logging();
    let outcome = args.settings().map_err(broker::StartError::Usage).and_then(broker::run);
    let code = match outcome {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("{error}");
            error.exit_code()
        }
    };
    telemetry::flush();
    code
}

/// Prints the reference of configuration keys.
#[allow(clippy::print_stdout, reason = "the command's purpose")]
pub(super) fn print_configs() {
    print!("{}", crate::model::config::reference());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_and_core_lists() {
        assert_eq!(bytes("512MiB"), Ok(512 << 20));
        assert_eq!(bytes("4096"), Ok(4096));
        assert!(bytes("12 parsecs").is_err());
        assert!(bytes("99999999999GiB").is_err());
        assert_eq!(cores("0,2-4"), Ok(vec![0, 2, 3, 4]));
        assert!(cores("3-1").is_err());
        assert!(cores("a").is_err());
    }
}
