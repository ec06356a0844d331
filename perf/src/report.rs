//! What a load found, as text for people and as the cells of a table.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::{Result, process};

/// Highest latency that is told apart, in nanoseconds.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// Latencies in nanoseconds, to three digits.
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are in order"))
    }

    /// Adds one.
    pub(crate) fn add(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_MAX_NS));
    }

    /// Adds all of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The latency that `percent` of all do not exceed, in microseconds.
    pub(crate) fn us(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1e3
    }

    fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }
}

/// CPU time of the server and of the load itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    pub(crate) server: Option<Duration>,
    pub(crate) load: Duration,
}

impl Cpu {
    /// What both have used so far.
    pub(crate) fn now(server: Option<u32>) -> Result<Self> {
        Ok(Self {
            server: server.map(process::cpu_time).transpose()?,
            load: process::cpu_time(std::process::id())?,
        })
    }

    /// What both have used since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let server = self.server.zip(earlier.server).map(|(now, then)| now.saturating_sub(then));
        Self { server, load: self.load.saturating_sub(earlier.load) }
    }
}

/// What a load found.
pub(crate) struct Report {
    /// Answered requests.
    pub(crate) requests: u64,
    /// Records in them.
    pub(crate) records: u64,
    /// Bytes of their batches.
    pub(crate) bytes: u64,
    /// Over which time.
    pub(crate) elapsed: Duration,
    /// From the moment that the window had room until the answer.
    pub(crate) latencies: Latencies,
    /// CPU time over the same time.
    pub(crate) cpu: Cpu,
    /// What was checked, for people.
    pub(crate) checked: String,
}

impl Report {
    /// Prints it, as text or as one line of JSON.
    pub(crate) fn print(&self, json: bool) {
        if json { println!("{}", self.json()) } else { println!("{self}") }
    }

    /// One line with what the text says, in base units, for scripts. Without
    /// a server's process id, `server_cpu_s` is null.
    fn json(&self) -> String {
        let server = self.cpu.server.map_or("null".into(), |cpu| cpu.as_secs_f64().to_string());
        let us = |percent| self.latencies.us(percent);
        format!(
            "{{\"requests\":{},\"records\":{},\"bytes\":{},\"seconds\":{},\"server_cpu_s\":{server},\
             \"load_cpu_s\":{},\"p50_us\":{},\"p99_us\":{},\"p999_us\":{},\"checked\":{:?}}}",
            self.requests,
            self.records,
            self.bytes,
            self.elapsed.as_secs_f64(),
            self.cpu.load.as_secs_f64(),
            us(50.0),
            us(99.0),
            us(99.9),
            self.checked,
        )
    }

    /// A count per second.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64()
    }

    /// Microseconds of the server's CPU for one request.
    pub(crate) fn server_us_per_request(&self) -> Option<f64> {
        self.cpu.server.map(|cpu| cpu.as_secs_f64() * 1e6 / self.requests.max(1) as f64)
    }

    /// Seconds of the server's CPU for a GB (10^9 bytes).
    pub(crate) fn server_s_per_gb(&self) -> Option<f64> {
        self.cpu.server.map(|cpu| cpu.as_secs_f64() * 1e9 / self.bytes.max(1) as f64)
    }

    /// Share of a core that some CPU time is.
    pub(crate) fn cores(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.0} requests/s, {:.0} records/s, {:.1} MB/s over {:.2} s",
            self.per_second(self.requests),
            self.per_second(self.records),
            self.per_second(self.bytes) / 1e6,
            self.elapsed.as_secs_f64()
        )?;
        let l = &self.latencies;
        writeln!(
            f,
            "latency us: p50 {:.0}, p90 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0}",
            l.us(50.0),
            l.us(90.0),
            l.us(99.0),
            l.us(99.9),
            l.max_us()
        )?;
        if let (Some(cpu), Some(us), Some(per_gb)) =
            (self.cpu.server, self.server_us_per_request(), self.server_s_per_gb())
        {
            writeln!(
                f,
                "broker: {:.0} % of a core, {us:.2} us of CPU per request, {:.0} records per CPU \
                 second, {per_gb:.2} CPU s/GB",
                self.cores(cpu) * 100.0,
                self.records as f64 / cpu.as_secs_f64().max(1e-9),
            )?;
        }
        writeln!(f, "load: {:.0} % of a core", self.cores(self.cpu.load) * 100.0)?;
        write!(f, "checked: {}", self.checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_the_counts() {
        let mut latencies = Latencies::new();
        for us in 1..=1000 {
            latencies.add(Duration::from_micros(us));
        }
        let mut more = Latencies::new();
        more.add(Duration::from_secs(1));
        latencies.merge(&more);
        let cpu = Cpu { server: Some(Duration::from_secs(1)), load: Duration::from_millis(500) };
        let report = Report {
            requests: 1000,
            records: 5000,
            bytes: 2_000_000,
            elapsed: Duration::from_secs(2),
            latencies,
            cpu,
            checked: "nothing".into(),
        };
        assert!((report.latencies.us(50.0) - 500.0).abs() < 2.0);
        assert_eq!(report.per_second(report.records), 2500.0);
        assert_eq!(report.server_us_per_request(), Some(1000.0));
        let text = report.to_string();
        for part in ["500 requests/s", "50 % of a core", "5000 records per CPU", "load: 25 %"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(
            report.json(),
            "{\"requests\":1000,\"records\":5000,\"bytes\":2000000,\"seconds\":2,\
             \"server_cpu_s\":1,\"load_cpu_s\":0.5,\"p50_us\":501.247,\"p99_us\":991.231,\
             \"p999_us\":1000.447,\"checked\":\"nothing\"}"
        );
        let earlier = Cpu { server: Some(Duration::from_millis(400)), load: Duration::ZERO };
        assert_eq!(cpu.since(earlier).server, Some(Duration::from_millis(600)));
    }
}
