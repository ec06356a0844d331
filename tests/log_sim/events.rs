//! What the histories met: a simulation that never tears a group proves
//! nothing about torn groups.

use millstream::io::sim::{CrashReport, Fate};

use crate::files::Files;

/// Counts over one or many histories.
#[derive(Clone, Default, Debug)]
pub(crate) struct Events {
    pub(crate) appends: u64,
    pub(crate) crashes: u64,
    pub(crate) power_cuts: u64,
    pub(crate) hot_reads: u64,
    pub(crate) cold_reads: u64,
    pub(crate) rolls: u64,
    pub(crate) faults: u64,
    pub(crate) clean_stops: u64,
    pub(crate) truncations: u64,
    pub(crate) torn_group: u64,
    pub(crate) stale_frame_after_recycle: u64,
    pub(crate) bypass_in_flight_at_crash: u64,
    pub(crate) tail_at_crash: u64,
    pub(crate) reset_replayed: u64,
    pub(crate) checkpoint_torn: u64,
    pub(crate) delete_and_recreate: u64,
    pub(crate) segments_dropped: u64,
}

const DATA: u8 = 1;
const EXTENT: u8 = 2;
const RESET: u8 = 3;
const TAIL: u8 = 4;

impl Events {
    fn table(&self) -> [(&'static str, u64, bool); 17] {
        [
            ("appends", self.appends, true),
            ("crashes", self.crashes, true),
            ("power cuts", self.power_cuts, true),
            ("hot reads", self.hot_reads, true),
            ("cold reads", self.cold_reads, true),
            ("segment files beyond the first", self.rolls, true),
            ("injected faults", self.faults, true),
            ("clean stops", self.clean_stops, true),
            ("truncations", self.truncations, true),
            ("torn group", self.torn_group, true),
            ("stale frame after recycle", self.stale_frame_after_recycle, true),
            ("bypass in flight at crash", self.bypass_in_flight_at_crash, true),
            ("TAIL at crash", self.tail_at_crash, true),
            ("RESET replayed", self.reset_replayed, true),
            ("checkpoint torn", self.checkpoint_torn, true),
            ("delete and recreate", self.delete_and_recreate, true),
            ("segments dropped", self.segments_dropped, true),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.appends += other.appends;
        self.crashes += other.crashes;
        self.power_cuts += other.power_cuts;
        self.hot_reads += other.hot_reads;
        self.cold_reads += other.cold_reads;
        self.rolls += other.rolls;
        self.faults += other.faults;
        self.clean_stops += other.clean_stops;
        self.truncations += other.truncations;
        self.torn_group += other.torn_group;
        self.stale_frame_after_recycle += other.stale_frame_after_recycle;
        self.bypass_in_flight_at_crash += other.bypass_in_flight_at_crash;
        self.tail_at_crash += other.tail_at_crash;
        self.reset_replayed += other.reset_replayed;
        self.checkpoint_torn += other.checkpoint_torn;
        self.delete_and_recreate += other.delete_and_recreate;
        self.segments_dropped += other.segments_dropped;
    }

    /// Fails when a named event was too rare: 100 in 20,000 histories.
    pub(crate) fn demand(&self, histories: u64) {
        let least = histories * 100 / 20_000;
        let mut rare = Vec::new();
        for (name, count, named) in self.table() {
            eprintln!("{count:>10}  {name}");
            if named && count < least {
                rare.push(name);
            }
        }
        assert!(rare.is_empty(), "fewer than {least} in {histories} histories: {rare:?}");
    }

    /// What a crash met in flight, by looking at the bytes.
    pub(crate) fn see_crash(&mut self, report: &CrashReport) {
        let mut bypass = false;
        let mut extent = false;
        for write in &report.writes {
            let path = write.path.to_string_lossy();
            let torn = write.fate == Fate::Torn;
            if path.ends_with(".journal") {
                let kinds = frame_kinds(&write.data);
                self.torn_group += u64::from(torn && !kinds.is_empty());
                self.tail_at_crash += u64::from(kinds.contains(&TAIL));
                extent |= kinds.contains(&EXTENT);
            } else if path.contains("/checkpoint-") {
                self.checkpoint_torn += u64::from(write.fate != Fate::Kept);
            } else if path.ends_with(".log") {
                bypass |= write.in_flight;
            }
        }
        self.bypass_in_flight_at_crash += u64::from(bypass && extent);
    }

    /// What lies in the journals that the next start will read.
    pub(crate) fn see_journals(&mut self, files: &Files) {
        for (path, bytes) in files {
            if path.extension().is_none_or(|e| e != "journal") {
                continue;
            }
            let Some(own) = bytes.get(16..24) else { continue };
            let (mut live, mut stale) = (false, false);
            for block in bytes.chunks(4096).skip(1).filter(|b| b.starts_with(b"MSG1")) {
                if block.get(16..24) == Some(own) {
                    live = true;
                    stale = false;
                } else {
                    stale |= live;
                }
            }
            self.stale_frame_after_recycle += u64::from(live && stale);
        }
    }
}

/// The kinds of the frames of a group, as far as its bytes are there.
fn frame_kinds(group: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    if !group.starts_with(b"MSG1") || group.len() < 64 {
        return kinds;
    }
    let len = u32::from_le_bytes(group[32..36].try_into().expect("four bytes")) as usize;
    let mut at = 64;
    while at + 80 <= len.min(group.len()) {
        let payload = u32::from_le_bytes(group[at + 4..at + 8].try_into().expect("four bytes"));
        kinds.push(group[at]);
        at += (80 + payload as usize).next_multiple_of(8);
    }
    debug_assert!(kinds.iter().all(|k| (DATA..=8).contains(k)), "{kinds:?}, not up to {RESET}");
    kinds
}
