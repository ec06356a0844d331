//! What the system and the broker's log say about a broker.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static ALONE: Mutex<()> = Mutex::new(());

/// Lets the tests of this binary run one after the other: each fills the
/// machine, and prints figures.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resident memory of a process in bytes.
pub(super) fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
    kib * 1024
}

/// CPU time of a process, in ticks of 10 ms.
pub(super) fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = |at| fields.split_whitespace().nth(at).unwrap().parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// A memory pool as the broker's log tells of it at its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PoolUse {
    pub(super) name: String,
    pub(super) used: u64,
    pub(super) limit: u64,
    pub(super) high_water: u64,
}

/// The pools in a log of one run, one line each such as
/// `memory in bytes pool="send" used=0 limit=4194304 high_water=8192`.
pub(super) fn pools(log: &str) -> Vec<PoolUse> {
    let line = |line: &str| -> Option<PoolUse> {
        let (_, fields) = line.split_once("memory in bytes ")?;
        let field = |name: &str| {
            let mut all = fields.split_whitespace().filter_map(|field| field.split_once('='));
            all.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
        };
        let number = |name| field(name)?.parse().ok();
        Some(PoolUse {
            name: field("pool")?.into(),
            used: number("used")?,
            limit: number("limit")?,
            high_water: number("high_water")?,
        })
    };
    log.lines().filter_map(line).collect()
}

/// The latency that `percent` of all do not exceed.
pub(super) fn percentile(latencies: &mut [Duration], percent: usize) -> Duration {
    latencies.sort_unstable();
    latencies[(latencies.len() * percent / 100).min(latencies.len() - 1)]
}

#[test]
fn the_pools_are_found_in_a_log() {
    let log = "x INFO m: memory in bytes pool=\"send\" used=4096 limit=8192 high_water=9\nother\n";
    let want = PoolUse { name: "send".into(), used: 4096, limit: 8192, high_water: 9 };
    assert_eq!(pools(log), [want]);
    let mut latencies: Vec<_> = (1..=200).rev().map(Duration::from_micros).collect();
    assert_eq!(percentile(&mut latencies, 50), Duration::from_micros(101));
    assert_eq!(percentile(&mut latencies, 99), Duration::from_micros(199));
}
