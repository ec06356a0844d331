//! Journal files that are gone, or whose header is: a start refuses what no
//! crash leaves, and takes what one does.

use super::*;
use crate::io::{Env as _, FileSystem as _, OpenMode};

const NODE: NodeIndex = NodeIndex(0);

/// What is done to a journal file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Zeroed,
    Garbage,
    FirstBytes,
    Emptied,
    Removed,
}

const HARMS: [Harm; 5] =
    [Harm::Zeroed, Harm::Garbage, Harm::FirstBytes, Harm::Emptied, Harm::Removed];

impl Harm {
    async fn inflict(self, env: &SimEnv, path: &Path) {
        let fs = env.fs();
        let mut bytes = fs.read(path).await.unwrap();
        match self {
            Self::Zeroed => bytes[..4096].fill(0),
            Self::Garbage => bytes[..4096].fill(0xff),
            Self::FirstBytes => bytes[..64].fill(0xff),
            Self::Emptied => {
                let file = fs.open(path, OpenMode::BUFFERED).await.unwrap();
                return crate::io::File::set_len(&file, 0).await.unwrap();
            }
            Self::Removed => return fs.remove_file(path).await.unwrap(),
        }
        fs.write(path, bytes).await.unwrap();
    }
}

/// Journal files of a class that hold groups, in the order of these.
fn journals(sim: &Sim, class: DurabilityClass) -> Vec<std::path::PathBuf> {
    let first_number = |bytes: &[u8]| {
        let (header, group) = (bytes.get(..4096)?, bytes.get(4096..4160)?);
        let lives = group[..4] == *b"MSG1" && group[16..24] == header[16..24];
        lives.then(|| u64::from_le_bytes(group[24..32].try_into().unwrap()))
    };
    let prefix = format!("/data/journal/{}-0-", class.name());
    let files = sim.files(NODE).into_iter();
    let files = files.filter(|(path, _)| path.to_str().unwrap().starts_with(&prefix));
    let mut used: Vec<_> = files.filter_map(|(p, b)| Some((first_number(&b)?, p))).collect();
    used.sort_unstable();
    used.into_iter().map(|(_, path)| path).collect()
}

/// Some batches, and then a stop or a kill.
fn written(seed: u64, class: DurabilityClass, batches: i64, clean: bool) -> Sim {
    let sim = Sim::new(seed);
    let env = sim.env();
    sim.run_until(async {
        let (set, found) = start(&env, class).await;
        for i in 0..batches {
            append(&env, &set, found.handle, &batch(&[(i, 900)], Compression::None)).await;
        }
        until_durable(&env, &set, found.handle).await;
        if clean {
            set.close().await.unwrap();
        }
    });
    drop(env);
    sim.crash(Crash::Process).0
}

/// What the next start says.
fn restarted(sim: &Sim, class: DurabilityClass) -> Result<Offset> {
    let env = sim.env();
    sim.run_until(async {
        let recovered = LogSet::recover(env.clone(), config(), &[known(class)]).await;
        recovered.map(|(_, found)| found[0].log_end)
    })
}

fn assert_refused(sim: &Sim, class: DurabilityClass, path: &Path, harm: Harm) {
    let error = restarted(sim, class).expect_err("records would be lost");
    assert_eq!(error.fatal_reason(), Some(FatalReason::JournalDamaged), "{harm:?}: {error}");
    let text = error.to_string();
    let (named, dir) = (path.to_str().unwrap(), "/data/journal/");
    let named = if matches!(harm, Harm::Removed) { dir } else { named };
    assert!(text.contains(named) && text.contains("restore the directory"), "{harm:?}: {text}");
}

#[test]
fn a_journal_that_is_gone_ends_the_start() {
    for class in DurabilityClass::ALL {
        for clean in [true, false] {
            for (seed, harm) in (0..).zip(HARMS) {
                let sim = written(seed, class, 20, clean);
                let [path] = &journals(&sim, class)[..] else { panic!("one file holds all") };
                let env = sim.env();
                sim.run_until(harm.inflict(&env, path));
                assert_refused(&sim, class, path, harm);
                // Nothing was deleted, and nothing overwritten.
                assert_refused(&sim, class, path, harm);
            }
        }
    }
}

/// Later files go on where the first one ended, and the last one may hold
/// nothing that the checkpoint knows of.
#[test]
fn each_file_of_a_journal_is_missed() {
    const BATCHES: i64 = 2600;
    for (seed, harm) in (0..).zip(HARMS) {
        let probe = written(seed, DurabilityClass::Disk, BATCHES, false);
        let files = journals(&probe, DurabilityClass::Disk);
        assert!(files.len() > 1, "{files:?}");
        for path in &files {
            let sim = written(seed, DurabilityClass::Disk, BATCHES, false);
            let env = sim.env();
            sim.run_until(harm.inflict(&env, path));
            let last = Some(path) == files.last();
            if last && matches!(harm, Harm::Emptied | Harm::Removed) {
                // Nobody knows that it held anything, unless a checkpoint says so.
                match restarted(&sim, DurabilityClass::Disk) {
                    Ok(end) => assert!(end < Offset(BATCHES)),
                    Err(_) => assert_refused(&sim, DurabilityClass::Disk, path, harm),
                }
            } else {
                assert_refused(&sim, DurabilityClass::Disk, path, harm);
            }
        }
    }
}

/// What is not needed may be gone: files ready for use, of either class.
#[test]
fn files_without_groups_are_not_missed() {
    for harm in [Harm::Zeroed, Harm::Garbage, Harm::Emptied, Harm::Removed] {
        let sim = written(3, DurabilityClass::Disk, 20, false);
        let used: Vec<_> = DurabilityClass::ALL.map(|c| journals(&sim, c)).concat();
        let files: Vec<_> = sim.files(NODE).into_iter().map(|(path, _)| path).collect();
        let journal = |p: &&std::path::PathBuf| p.extension().is_some_and(|e| e == "journal");
        let unused: Vec<_> = files.iter().filter(journal).filter(|p| !used.contains(p)).collect();
        assert!(unused.len() > 1, "{files:?}");
        let env = sim.env();
        for path in unused {
            sim.run_until(harm.inflict(&env, path));
        }
        assert_eq!(restarted(&sim, DurabilityClass::Disk).unwrap(), Offset(20), "{harm:?}");
    }
}

/// Class `os` may lose its journal with the power, but for what was synced.
#[test]
fn a_power_cut_of_class_os_is_no_damage() {
    let mut lost = 0;
    for seed in 0..30 {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let (set, found) = start(&env, DurabilityClass::Os).await;
            for i in 0..20 {
                append(&env, &set, found.handle, &batch(&[(i, 900)], Compression::None)).await;
            }
            until_durable(&env, &set, found.handle).await;
            // It knows of groups that were not synced.
            set.advance_log_starts(&[(found.handle, Offset(1))]).await.unwrap();
        });
        drop(env);
        let (sim, _) = sim.crash(Crash::Power);
        let end = restarted(&sim, DurabilityClass::Os).unwrap();
        lost += usize::from(end < Offset(20));
    }
    assert!(lost > 0, "no cut lost anything");
}

/// A segment that ends below its floor, or is gone, has lost what no journal
/// has, wherever the walk over its batches begins.
#[test]
fn a_segment_that_ends_below_its_floor_ends_the_start() {
    const SEGMENT: &str = "/data/events-3/00000000000000000000.log";
    for class in DurabilityClass::ALL {
        for left in [None, Some(0), Some(4096), Some(20_479), Some(20_480)] {
            let sim = written(5, class, 22, true);
            let env = sim.env();
            sim.run_until(async {
                let path = Path::new(SEGMENT);
                let len = env.fs().len(path).await.unwrap();
                assert!((20_481..24_576).contains(&len), "{len}");
                match left {
                    None => env.fs().remove_file(path).await.unwrap(),
                    Some(left) => {
                        let file = env.fs().open(path, OpenMode::BUFFERED).await.unwrap();
                        crate::io::File::set_len(&file, left).await.unwrap();
                    }
                }
            });
            if left == Some(20_480) {
                // The last block is in the journal.
                assert_eq!(restarted(&sim, class).unwrap(), Offset(22));
                continue;
            }
            let error = restarted(&sim, class).expect_err("bytes are gone");
            assert_eq!(error.fatal_reason(), Some(FatalReason::LostBelowFloor), "{error}");
            let text = error.to_string();
            let lengths = format!("{} bytes", left.unwrap_or(0));
            assert!(text.contains(SEGMENT) && text.contains("20480"), "{text}");
            assert!(text.contains(&lengths), "{text}");
        }
    }
}
