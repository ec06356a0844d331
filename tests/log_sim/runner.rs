//! Runs many seeds on all cores, one seed alone, or a planted bug until it is
//! found.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use millstream::model::planted::{self, Bug};

use crate::events::Events;
use crate::history;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A history that broke a promise.
struct Failure {
    seed: u64,
    message: String,
    story: Vec<String>,
}

impl Failure {
    fn print(&self, bug: Option<Bug>, lines: usize) {
        eprintln!("seed {}: {}", self.seed, self.message);
        let from = self.story.len().saturating_sub(lines);
        for line in &self.story[from..] {
            let cut: String = line.chars().take(600).collect();
            eprintln!("    {cut}");
        }
        let planted = bug.map_or(String::new(), |bug| format!("MILLSTREAM_SIM_BUG={} ", name(bug)));
        eprintln!(
            "replay: {planted}MILLSTREAM_SIM_SEED={} cargo test --test log_sim replay -- --nocapture",
            self.seed
        );
    }
}

fn name(bug: Bug) -> &'static str {
    planted::ALL.iter().find(|(b, _)| *b == bug).map_or("", |(_, name)| name)
}

/// Panics of histories are results here, not noise.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
}

fn run_one(seed: u64, bug: Option<Bug>, quiet: bool) -> Result<(Events, u64), Failure> {
    silence();
    QUIET.set(quiet);
    planted::arm(bug);
    let story = Rc::new(RefCell::new(Vec::new()));
    let told = story.clone();
    let outcome = catch_unwind(AssertUnwindSafe(move || history::run(seed, told)));
    planted::arm(None);
    QUIET.set(false);
    outcome.map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned());
        let story = story.try_borrow().map(|s| s.clone()).unwrap_or_default();
        Failure { seed, message, story }
    })
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

/// Seeds 0 to `count`; prints the first failures and panics when there are any.
pub(crate) fn run_all(count: u64) -> Events {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Events::default());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while failures.lock().expect("no panic inside").len() < 5 {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    match run_one(seed, None, true) {
                        Ok((events, _)) => total.lock().expect("no panic inside").add(&events),
                        Err(failure) => failures.lock().expect("no panic inside").push(failure),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic inside");
    for failure in &failures {
        failure.print(None, 25);
    }
    assert!(failures.is_empty(), "{} histories broke a promise", failures.len());
    total.into_inner().expect("no panic inside")
}

/// Tries seeds with `bug` planted until one fails; panics when none of
/// `seeds` does.
pub(crate) fn must_find(bug: Bug, seeds: u64) {
    let next = AtomicU64::new(0);
    let found = AtomicBool::new(false);
    let first: Mutex<Option<Failure>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while !found.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    if let Err(failure) = run_one(seed, Some(bug), true) {
                        found.store(true, Ordering::Relaxed);
                        let mut first = first.lock().expect("no panic inside");
                        if first.as_ref().is_none_or(|f| f.seed > failure.seed) {
                            *first = Some(failure);
                        }
                    }
                }
            });
        }
    });
    match first.into_inner().expect("no panic inside") {
        Some(failure) => failure.print(Some(bug), 0),
        None => panic!("{} was not found in {seeds} histories", name(bug)),
    }
}

/// The seed of the environment, or some, twice: found to be the same run.
pub(crate) fn replay() {
    let wanted = std::env::var("MILLSTREAM_SIM_SEED").ok();
    let bug = std::env::var("MILLSTREAM_SIM_BUG").ok().map(|wanted| {
        let known = planted::ALL.iter().find(|(_, name)| *name == wanted);
        known.unwrap_or_else(|| panic!("no bug is named {wanted}")).0
    });
    let seeds: Vec<u64> = match &wanted {
        Some(seed) => vec![seed.parse().expect("a seed is a number")],
        None => (0..20).collect(),
    };
    for seed in seeds {
        let first = run_one(seed, bug, wanted.is_none());
        if let Err(failure) = &first {
            failure.print(bug, if wanted.is_some() { usize::MAX } else { 25 });
            panic!("seed {seed} fails");
        }
        let again = run_one(seed, bug, true);
        let hash = |r: &Result<(Events, u64), Failure>| r.as_ref().map(|(_, hash)| *hash).ok();
        assert_eq!(hash(&first), hash(&again), "seed {seed} ran in two ways");
    }
}
