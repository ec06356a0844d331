//! What the system knows of a process: CPU time and resident memory; and where
//! the load itself runs.

use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Result;

/// CPU time that a process has used so far, dead threads included, to 10 ms.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    parse_cpu_time(&text).ok_or_else(|| format!("{path} reads {text:?}").into())
}

fn parse_cpu_time(stat: &str) -> Option<Duration> {
    // The name, in parentheses, may hold anything; user and system time are
    // fields 14 and 15, in ticks of 10 ms on every Linux.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    parse_resident(&text).ok_or_else(|| format!("{path} has no VmRSS").into())
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Pins the calling thread, and the threads it starts, to one core.
pub(crate) fn pin(core: Option<usize>) -> Result<()> {
    let Some(core) = core else { return Ok(()) };
    if core >= CpuSet::MAX_CPU {
        return Err(format!("there is no core {core}").into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|e| format!("cannot pin to core {core}: {e}").into())
}

/// Raises the limit of open files to what is allowed, and checks it.
pub(crate) fn need_files(count: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    match getrlimit(Resource::Nofile).current {
        Some(current) if current < count => {
            Err(format!("{count} open files are needed, {current} allowed (ulimit -n)").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let stat = "7 (a ) name) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 5 6 20 0 4 0 9 1 2 3";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_cpu_time("7 (x) S 1"), None);
        assert_eq!(parse_resident("VmPeak:  9 kB\nVmRSS:\t  12 kB\n"), Some(12 * 1024));
        let me = std::process::id();
        assert!(resident_bytes(me).unwrap() > 100_000);
        cpu_time(me).unwrap();
    }
}
