//! The standard set of docs/performance.md: the broker on one core, the load
//! on another, each produce against `echo` as well.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::options::{Fetch, Measure, Produce, Target};
use crate::report::Report;
use crate::{Result, echo, fetch, produce};

/// What the broker's ready line starts with.
const READY: &str = "millstream ready: kafka ";

/// One line of the table.
struct Case {
    name: &'static str,
    durability: &'static str,
    connections: u32,
    in_flight: u32,
    partitions: i32,
    records: u32,
    record_bytes: usize,
}

const CASES: &[Case] = &[
    Case {
        name: "56 KB batches of 100 B, 1 partition, 1 x 5",
        durability: "os",
        connections: 1,
        in_flight: 5,
        partitions: 1,
        records: 512,
        record_bytes: 100,
    },
    Case {
        name: "56 KB batches of 100 B, 16 partitions, 4 x 5",
        durability: "os",
        connections: 4,
        in_flight: 5,
        partitions: 16,
        records: 512,
        record_bytes: 100,
    },
    Case {
        name: "one 100 B record, 64 x 1",
        durability: "os",
        connections: 64,
        in_flight: 1,
        partitions: 1,
        records: 1,
        record_bytes: 100,
    },
    Case {
        name: "one 100 B record, 100 partitions, 8 x 32",
        durability: "os",
        connections: 8,
        in_flight: 32,
        partitions: 100,
        records: 1,
        record_bytes: 100,
    },
    Case {
        name: "one 1 KiB record, disk, 100 partitions, 64 x 1",
        durability: "disk",
        connections: 64,
        in_flight: 1,
        partitions: 100,
        records: 1,
        record_bytes: 1024,
    },
];

/// Requests that the read case is filled with: about 115 MB, within the tail.
const READ_FILL: u64 = 2_000;
const READ_PARTITIONS: i32 = 4;

/// A child process that is told to end, or killed, when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts `command` and waits for its line with the address.
    fn start(command: &mut Command, ready: &str) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("standard output is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(address) = line.trim_end().strip_prefix(ready) else {
            let _ = child.kill();
            let status = child.wait()?;
            return Err(format!("{command:?} is not ready ({status}): {line:?}").into());
        };
        Ok(Self { address: address.parse()?, child })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits.
    fn stop(&mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or("process ids are positive")?, Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the set and prints the table.
///
/// # Errors
/// When something does not start, or a load finds a wrong answer.
pub(crate) fn run(options: &Measure) -> Result<()> {
    let here = std::env::current_exe()?;
    let broker_bin =
        options.broker_bin.clone().unwrap_or_else(|| here.with_file_name("millstream"));
    let data_dir = options
        .data_dir
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("perf-{}", std::process::id())));
    let bench = Bench { options, broker_bin, data_dir, here };
    let wanted = |name: &str| options.only.as_ref().is_none_or(|part| name.contains(part.as_str()));
    print_surroundings();
    println!(
        "| Case | req/s | records/s | MB/s | p50 us | p99 us | broker us/request | echo \
         us/request | broker CPU s/GB | broker, load busy |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        let echo = bench.echo(case)?;
        println!("{}", row(case.name, &bench.broker(case)?, Some(&echo)));
    }
    let name = "hot read, 4 partitions, 4 connections";
    if wanted(name) {
        println!("{}", row(name, &bench.hot_read()?, None));
    }
    Ok(())
}

struct Bench<'a> {
    options: &'a Measure,
    broker_bin: PathBuf,
    data_dir: PathBuf,
    here: PathBuf,
}

impl Bench<'_> {
    fn start_broker(&self, durability: &str) -> Result<Server> {
        let core = self.options.broker_core.to_string();
        let mut command = Command::new(&self.broker_bin);
        command.args(["serve", "--durability", durability, "--cores", &core]);
        command.args(["--memory", &self.options.memory]);
        command.arg("--listen").arg(self.options.listen.to_string());
        command.arg("--data-dir").arg(&self.data_dir);
        command.env("MILLSTREAM_LOG", "warn");
        Server::start(&mut command, READY)
    }

    fn target(&self, server: &Server) -> Target {
        Target {
            broker: server.address,
            topic: "perf".into(),
            broker_pid: Some(server.pid()),
            pin: Some(self.options.load_core),
        }
    }

    fn produce(&self, case: &Case, server: &Server, echo: bool) -> Produce {
        Produce {
            target: self.target(server),
            connections: case.connections,
            in_flight: case.in_flight,
            partitions: case.partitions,
            topic_config: Vec::new(),
            records_per_batch: case.records,
            record_bytes: case.record_bytes,
            acks: -1,
            seconds: self.options.seconds,
            warmup: 1.0,
            requests: None,
            echo,
            json: false,
        }
    }

    fn echo(&self, case: &Case) -> Result<Report> {
        let mut command = Command::new(&self.here);
        command.arg("echo").arg("--listen").arg(self.options.listen.to_string());
        command.args(["--pin", &self.options.broker_core.to_string()]);
        let server = Server::start(&mut command, echo::READY)?;
        produce::run(&self.produce(case, &server, true))
    }

    fn broker(&self, case: &Case) -> Result<Report> {
        let mut server = self.start_broker(case.durability)?;
        let report = produce::run(&self.produce(case, &server, false))?;
        server.stop()?;
        remove(&self.data_dir)?;
        Ok(report)
    }

    fn hot_read(&self) -> Result<Report> {
        let mut server = self.start_broker("os")?;
        let mut fill = self.produce(&CASES[0], &server, false);
        (fill.partitions, fill.requests) = (READ_PARTITIONS, Some(READ_FILL));
        produce::run(&fill)?;
        let report = fetch::run(&Fetch {
            target: self.target(&server),
            connections: 4,
            partitions: READ_PARTITIONS,
            partition_bytes: 1 << 20,
            max_bytes: 8 << 20,
            seconds: self.options.seconds,
            verify: false,
            bare: false,
            json: false,
        })?;
        server.stop()?;
        remove(&self.data_dir)?;
        Ok(report)
    }
}

fn remove(dir: &Path) -> Result<()> {
    std::fs::remove_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()).into())
}

fn row(name: &str, report: &Report, echo: Option<&Report>) -> String {
    let figure = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    let busy = report.cpu.server.map_or(0.0, |cpu| report.cores(cpu) * 100.0);
    format!(
        "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {} | {} | {busy:.0} %, {:.0} % |",
        report.per_second(report.requests),
        report.per_second(report.records),
        report.per_second(report.bytes) / 1e6,
        report.latencies.us(50.0),
        report.latencies.us(99.0),
        figure(report.server_us_per_request()),
        figure(echo.and_then(Report::server_us_per_request)),
        figure(report.server_s_per_gb()),
        report.cores(report.cpu.load) * 100.0,
    )
}

/// Machine, kernel and commit: no figure without them.
fn print_surroundings() {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let system = rustix::system::uname();
    let commit = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit = commit.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    println!(
        "{model}, {cores} cores; {} {}; commit {}\n",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        commit.as_deref().unwrap_or("unknown")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_says_something_else_is_refused() {
        let error = Server::start(Command::new("echo").arg("hello"), READY).err().unwrap();
        assert!(error.to_string().contains("hello"), "{error}");
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'millstream ready: kafka 127.0.0.1:7'; exec sleep 60"]);
        let mut server = Server::start(&mut command, READY).unwrap();
        assert_eq!(server.address, SocketAddr::from(([127, 0, 0, 1], 7)));
        server.stop().unwrap();
    }

    #[test]
    fn cases_differ_in_name() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
