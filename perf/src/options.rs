//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Load for a Kafka broker, and what it costs.
///
/// Closed loops of pre-encoded requests over plain TCP. Give --broker-pid to
/// see the broker's CPU per request, and --pin to keep the load off its core;
/// figures of a load and a broker on one core say little.
#[derive(Parser, Debug)]
#[command(name = "millstream-perf", version, max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Produce as fast as the window allows, for some seconds.
    ///
    /// Checks that every answer belongs to the oldest request, that base offsets of a
    /// partition ascend on each connection, and that at the end the partitions hold exactly the
    /// records that were sent.
    Produce(Produce),
    /// Read partitions from offset 0 to the end that they have at the start.
    ///
    /// Checks that offsets follow each other without a gap, from 0 to that end.
    Fetch(Fetch),
    /// Serve `produce --echo`: read frames, store nothing, answer.
    ///
    /// One blocking thread per connection: the price of the sockets alone, to compare with.
    Echo(Echo),
    /// Serve `fetch --bare`: read frames, answer each with record bytes from memory.
    ///
    /// One blocking thread per connection: the price of the sends alone, to compare with.
    Send(Send),
    /// Open idle connections and say what they cost the broker.
    Idle(Idle),
    /// Delete the topic.
    Delete(Target),
    /// Run the standard set that docs/performance.md quotes.
    ///
    /// Starts the broker itself, pinned to --broker-core, and the load on --load-core; every
    /// produce is run against `echo` as well.
    Measure(Measure),
}

/// Where the broker is.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// The broker.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    pub(crate) broker: SocketAddr,
    /// The topic; created when absent, with as many partitions as the load uses.
    #[arg(long, default_value = "perf")]
    pub(crate) topic: String,
    /// Process id of the broker: its CPU time is then reported.
    #[arg(long, value_name = "PID")]
    pub(crate) broker_pid: Option<u32>,
    /// Core to pin the load to.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Produce {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Connections, all served by one thread of the load.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Requests of one connection on their way at once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) in_flight: u32,
    /// Partitions; each connection goes round all of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) partitions: i32,
    /// A config of the topic, should it be created; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) topic_config: Vec<(String, String)>,
    /// Records of one request.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) records_per_batch: u32,
    /// Bytes of each record's value.
    #[arg(long, default_value_t = 100)]
    pub(crate) record_bytes: usize,
    /// 0, 1 or -1 (all). With 0 there are no answers, and latencies are of the socket.
    #[arg(long, default_value_t = -1, allow_hyphen_values = true,
          value_parser = clap::value_parser!(i16).range(-1..=1))]
    pub(crate) acks: i16,
    /// Seconds that count.
    #[arg(long, default_value_t = 5.0)]
    pub(crate) seconds: f64,
    /// Seconds of load before.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) warmup: f64,
    /// Stop after so many requests, within the measured seconds or before.
    #[arg(long, value_name = "COUNT")]
    pub(crate) requests: Option<u64>,
    /// The target is `millstream-perf echo`: no topic, no offsets.
    #[arg(long)]
    pub(crate) echo: bool,
    /// Print one line of JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Splits at the first `=`.
fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it has no `=`")?;
    Ok((key.into(), value.into()))
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Fetch {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Connections; partitions are dealt to them in turn.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Partitions, from 0.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) partitions: i32,
    /// Bytes asked for per partition.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) partition_bytes: i32,
    /// Bytes asked for per answer.
    #[arg(long, default_value_t = 8 << 20, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) max_bytes: i32,
    /// Read everything again until so many seconds have passed; 0 reads it once.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) seconds: f64,
    /// Verify the checksum of every batch as well.
    #[arg(long)]
    pub(crate) verify: bool,
    /// The server is `send`, which knows no topics: its answers are counted, not read.
    #[arg(long, conflicts_with = "verify")]
    pub(crate) bare: bool,
    /// Print one line of JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Echo {
    /// Address to serve; port 0 asks the kernel for one, which is printed.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9095")]
    pub(crate) listen: SocketAddr,
    /// Core to pin the server to.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Send {
    /// Address to serve; port 0 asks the kernel for one, which is printed.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9095")]
    pub(crate) listen: SocketAddr,
    /// Core to pin the server to.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
    /// Record bytes of each answer.
    #[arg(long, default_value_t = 1 << 20)]
    pub(crate) answer_bytes: usize,
    /// Most bytes of one send.
    #[arg(long, default_value_t = 1 << 20)]
    pub(crate) send_bytes: usize,
    /// Bytes of memory that the answers go round: as many as the broker would read.
    #[arg(long, default_value_t = 115_000_000)]
    pub(crate) data_bytes: usize,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Idle {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Connections; each has asked for ApiVersions once.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Seconds to stay, over which the broker's CPU is taken.
    #[arg(long, default_value_t = 5.0)]
    pub(crate) seconds: f64,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Measure {
    /// The broker's binary; by default `millstream` beside this one.
    #[arg(long, value_name = "FILE")]
    pub(crate) broker_bin: Option<PathBuf>,
    /// Directory for the broker's data; emptied after each case.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address for the broker and for `echo`, one after the other; port 0 asks the kernel.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// The broker's --memory.
    #[arg(long, default_value = "512MiB")]
    pub(crate) memory: String,
    /// Core of the broker and of `echo`.
    #[arg(long, default_value_t = 0)]
    pub(crate) broker_core: usize,
    /// Core of the load.
    #[arg(long, default_value_t = 1)]
    pub(crate) load_core: usize,
    /// Seconds of each run.
    #[arg(long, default_value_t = 5.0)]
    pub(crate) seconds: f64,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        let options = Options::try_parse_from(["perf", "produce", "--acks", "-1"]).unwrap();
        assert!(matches!(options.command, Command::Produce(Produce { acks: -1, .. })));
        assert!(Options::try_parse_from(["perf", "produce", "--acks", "2"]).is_err());
        assert!(Options::try_parse_from(["perf", "produce", "--connections", "0"]).is_err());
        let given = ["perf", "produce", "--topic-config", "a=b=c", "--topic-config", "d="];
        let Command::Produce(produce) = Options::try_parse_from(given).unwrap().command else {
            panic!("it is a produce")
        };
        let want = [("a".to_string(), "b=c".to_string()), ("d".to_string(), String::new())];
        assert_eq!(produce.topic_config, want);
        assert!(Options::try_parse_from(["perf", "produce", "--topic-config", "a"]).is_err());
    }
}
