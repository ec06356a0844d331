//! What the histories met: a simulation that never tears a group proves
//! nothing about torn groups.

use millstream::io::sim::{CrashReport, Fate};

use crate::files::Files;

macro_rules! events {
    ($($field:ident: $name:literal,)*) => {
        /// Counts over one or many histories.
        #[derive(Clone, Default, Debug)]
        pub(crate) struct Events {
            $(pub(crate) $field: u64,)*
        }

        impl Events {
            fn table(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field),)*]
            }

            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

events! {
    appends: "appends",
    crashes: "crashes",
    power_cuts: "power cuts",
    hot_reads: "hot reads",
    cold_reads: "cold reads",
    rolls: "segment files beyond the first",
    faults: "injected faults",
    allocations_refused: "allocations refused in spite of room",
    clean_stops: "clean stops",
    truncations: "truncations",
    torn_group: "torn group",
    stale_frame_after_recycle: "stale frame after recycle",
    bypass_in_flight_at_crash: "bypass in flight at crash",
    tail_at_crash: "TAIL at crash",
    reset_replayed: "RESET replayed",
    checkpoint_torn: "checkpoint torn",
    delete_and_recreate: "delete and recreate",
    journal_writes_failed: "ended by a journal write (101)",
    syncs_failed: "ended by a sync (102)",
    segment_writes_failed: "ended by a segment write (103)",
    checkpoints_failed: "ended by a checkpoint (104)",
    starts_failed: "starts that an error ended",
    resumed: "resumed after a full disk",
    corrupt_batches_told: "corrupt batch told to its reader",
    unreadable_batches_told: "unreadable batch told to its reader",
    rotten_indexes: "rotten indexes",
    starts_with_rot: "starts with a rotten segment",
    segments_dropped: "segments dropped",
}

const DATA: u8 = 1;
const EXTENT: u8 = 2;
const RESET: u8 = 3;
const TAIL: u8 = 4;

impl Events {
    /// Fails when a named event was too rare: 100 in 20,000 histories.
    pub(crate) fn demand(&self, histories: u64) {
        let least = histories * 100 / 20_000;
        let mut rare = Vec::new();
        for (name, count) in self.table() {
            eprintln!("{count:>10}  {name}");
            if count < least {
                rare.push(name);
            }
        }
        assert!(rare.is_empty(), "fewer than {least} in {histories} histories: {rare:?}");
    }

    /// Whether what is written to a journal copies the tail of a log.
    pub(crate) fn is_copy(group: &[u8]) -> bool {
        frame_kinds(group).contains(&TAIL)
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
