//! One history: incarnations of a shard on one disk, each ended by a crash or
//! a clean stop, each start judged.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use millstream::io::sim::{Crash, FaultOp, NodeIndex, Rng, Sim, SimEnv};
use millstream::io::{Env as _, FileSystem as _, Task as _};
use millstream::log::{Error, KnownLog, LogSet, Recovered};
use millstream::model::Offset;
use millstream::partition::PartitionInit;

use crate::driver::{Shard, Shared};
use crate::endings::{self, check_files, close};
use crate::events::Events;
use crate::model::Model;
use crate::plan::{self, Plan, Trouble};
use crate::retention;
use crate::verify::producers_of;
use crate::{damage, errors};

/// Steps after which an incarnation that should end by itself is stuck.
const STEPS_MAX: u64 = 2_000_000;

pub(crate) const NODE: NodeIndex = NodeIndex(0);

/// How an incarnation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Its ops are done; it is still running.
    Running,
    /// It stopped cleanly.
    Closed,
    /// The log said that the process must end.
    Fatal,
}

/// Runs the history of a seed. The story is told as it goes, for whoever looks
/// after a panic.
pub(crate) fn run(seed: u64, story: Rc<RefCell<Vec<String>>>) -> (Events, u64) {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    let shared = Shared {
        model: Rc::new(RefCell::new(Model::default())),
        events: Rc::new(RefCell::new(Events::default())),
        plan: Rc::new(plan),
        rng: Rc::new(RefCell::new(rng.fork())),
        story,
    };
    shared.tell(|| format!("{:?}", shared.plan));
    let mut sim = Sim::new(rng.next_u64());
    let incarnations = shared.plan.incarnations;
    let started = RefCell::default();
    for round in 0..=incarnations {
        let last = round == incarnations;
        let lifetime = if last { None } else { plan::lifetime(&mut rng) };
        let trouble = if last { Trouble::None } else { shared.plan.trouble };
        shared.tell(|| format!("-- start {round}, lives {lifetime:?} steps, trouble {trouble:?}"));
        make_trouble(&sim, trouble, &mut rng);
        sim.crash_after(Some(lifetime.unwrap_or(STEPS_MAX)));
        if lifetime.is_some() && rng.below(8) == 0 {
            // Copies are rare: some crashes aim at them.
            sim.crash_on_write(Events::is_copy, rng.below(20));
        }
        let outcome = sim.run(incarnation(sim.env(), &shared, &sim, &started, last));
        sim.crash_after(None);
        shared.tell(|| format!("-- ended: {outcome:?}"));
        if let Err(stop) = outcome {
            assert!(lifetime.is_some(), "it does not come to rest: {stop:?}");
            assert_eq!(stop, millstream::io::sim::Stop::CrashPoint, "nothing moves any more");
        }
        let kind = plan::crash_kind(&mut rng);
        let recycled = !page_cache_journals(&sim).is_superset(&started.borrow());
        started.borrow_mut().clear();
        if recycled {
            shared.model.borrow_mut().logs.values_mut().for_each(|log| log.recycled());
        }
        let (injected, refused) = sim.faults(NODE, |f| {
            f.clear();
            (f.injected(), f.injected_in(FaultOp::Allocate))
        });
        let (next, report) = sim.crash(kind);
        sim = next;
        shared.model.borrow_mut().crashed(kind);
        shared.tell(|| format!("-- crash {kind:?}: {report:?}"));
        let files = sim.files(NODE).into_iter().collect();
        let mut events = shared.events.borrow_mut();
        events.crashes += 1;
        events.power_cuts += u64::from(kind == Crash::Power);
        events.see_crash(&report);
        events.see_journals(&files);
        if last {
            events.faults = injected;
            events.allocations_refused = refused;
        }
    }
    let events = shared.events.borrow().clone();
    (events, sim.trace_hash())
}

/// The lives of journal files of class `os`: path and sequence.
type Journals = BTreeSet<(PathBuf, Vec<u8>)>;

fn page_cache_journals(sim: &Sim) -> Journals {
    let files = sim.files(NODE).into_iter();
    files
        .filter(|(path, _)| path.to_string_lossy().contains("/os-"))
        .map(|(path, bytes)| (path, bytes.get(16..24).unwrap_or_default().to_vec()))
        .collect()
}

fn make_trouble(sim: &Sim, trouble: Trouble, rng: &mut Rng) {
    match trouble {
        // Descriptors run out, and segments rot, after the start only.
        Trouble::None | Trouble::NoDescriptors | Trouble::Rot => {}
        Trouble::NoAllocations => {
            let path = [".log", "reserve", ".journal", ""][rng.index(4)];
            let rate = rng.within(50..=700) as u32;
            sim.faults(NODE, |f| f.rate(FaultOp::Allocate, path, rate, libc::ENOSPC));
        }
        Trouble::Full => {
            // What is there stays writable; little else fits for a while.
            let used: u64 = sim.files(NODE).iter().map(|(_, bytes)| bytes.len() as u64).sum();
            let room = rng.within(0..=2 << 20);
            sim.faults(NODE, |f| f.set_capacity(Some(used + room)));
        }
        Trouble::IoError => {
            let op = [FaultOp::Write, FaultOp::Sync, FaultOp::Read][rng.index(3)];
            let path = [".journal", ".log", "/checkpoint-", ""][rng.index(4)];
            // Some of these operations are rare, some are not.
            let within = [4, 60][rng.index(2)];
            let skip = rng.below(within);
            sim.faults(NODE, |f| f.plan(op, path, skip, libc::EIO));
        }
    }
}

/// One life: recover, judge, work, maybe stop cleanly.
async fn incarnation(
    env: SimEnv,
    shared: &Shared,
    sim: &Sim,
    started: &RefCell<Journals>,
    last: bool,
) -> End {
    let dir = plan::data_dir();
    env.fs().create_dir_all(&dir).await.expect("an empty disk takes a directory");
    if env.fs().sync_dir(Path::new("/")).await.is_err() {
        return End::Fatal;
    }
    let known = start_epochs(shared);
    let settings = shared.plan.settings();
    // On a full disk the start waits, for whoever makes room.
    let recovering = LogSet::recover(env.clone(), settings, &known);
    let room = async {
        env.sleep(Duration::from_millis(200)).await;
        if shared.plan.trouble.passes() {
            sim.faults(NODE, |f| f.clear());
        }
        std::future::pending().await
    };
    let (set, recovered) = match futures_lite::future::or(recovering, room).await {
        Ok(found) => found,
        Err(error) => {
            assert!(!last && excuses_start(&env, shared, &error), "recovery failed: {error}");
            shared.tell(|| format!("recovery failed: {error}"));
            shared.events.borrow_mut().starts_failed += 1;
            return End::Fatal;
        }
    };
    *started.borrow_mut() = page_cache_journals(sim);
    let shard = Shard::new(env.clone(), set, shared.clone());
    take_over(&shard, &known, &recovered);
    env.spawn(shard.clone().pump()).detach();
    judge(&shard, &recovered, sim).await;
    if shared.model.borrow().logs.is_empty() {
        for i in 0..shared.plan.logs {
            let known = shard.new_known(["alpha", "beta"][i % 2], i as i32 / 2);
            shard.create(known).await;
        }
    }
    if last {
        return close(&shard, sim).await;
    }
    if shared.plan.trouble == Trouble::Rot {
        // Before anything rolls: what is closed now is below every floor.
        damage::inflict(&shard, sim).await;
    }
    let left = Rc::new(Cell::new(0));
    for _ in 0..1 + shared.index(3) {
        left.set(left.get() + 1);
        let (shard, left) = (shard.clone(), left.clone());
        env.spawn(async move {
            for _ in 0..shard.shared.plan.ops {
                if shard.dead.get() {
                    break;
                }
                act(&shard).await;
            }
            left.set(left.get() - 1);
        })
        .detach();
    }
    let rate = 1 + shared.below(300) as u32;
    match shared.plan.trouble {
        Trouble::NoDescriptors => {
            sim.faults(NODE, |f| f.rate(FaultOp::Open, "", rate, libc::EMFILE));
        }
        // A quota does not spare what has its blocks already.
        Trouble::Full if shared.chance(400) => {
            let path = [".log", "index"][shared.index(2)];
            sim.faults(NODE, |f| f.rate(FaultOp::Write, path, 2 * rate, libc::EDQUOT));
        }
        _ => {}
    }
    let passes = env.monotonic() + Duration::from_millis(200);
    while left.get() > 0 {
        env.sleep(Duration::from_millis(1)).await;
        if env.monotonic() > passes && shared.plan.trouble.passes() {
            sim.faults(NODE, |f| f.clear());
        }
    }
    endings::fatal_is_told(&shard).await;
    if shard.dead.get() {
        endings::count_fatal(&shard);
        return End::Fatal;
    }
    if shared.plan.trouble.passes() {
        sim.faults(NODE, |f| f.clear());
        endings::resumes(&shard).await;
    }
    if !shared.chance(400) {
        return End::Running;
    }
    if shared.chance(300) {
        // A round of retention that the stop overtakes.
        let (shard, wait) = (shard.clone(), Duration::from_micros(shared.below(200)));
        env.spawn(async move { retention::enforce(&shard).await }).detach();
        env.sleep(wait).await;
    }
    close(&shard, sim).await
}

/// Whether a start may end with `error`: it will be tried again.
fn excuses_start(env: &SimEnv, shared: &Shared, error: &Error) -> bool {
    match shared.plan.trouble {
        Trouble::IoError => errors::called_for(&env.fault_hits(), error),
        Trouble::Full | Trouble::NoAllocations => matches!(error, Error::NoSpace { .. }),
        _ => false,
    }
}

fn start_epochs(shared: &Shared) -> Vec<KnownLog> {
    let mut model = shared.model.borrow_mut();
    let epoch = model.new_epoch();
    model
        .logs
        .values_mut()
        .map(|log| {
            log.known.epoch_to_start = Some(epoch);
            log.known.clone()
        })
        .collect()
}

/// What recovery says becomes what was promised; no step lies between.
fn take_over(shard: &Shard, known: &[KnownLog], recovered: &[Recovered]) {
    assert_eq!(recovered.len(), known.len(), "recovery forgot a log");
    for found in recovered {
        let mut model = shard.shared.model.borrow_mut();
        let log = model.log(found.log_id);
        shard.shared.tell(|| {
            format!(
                "recovered {}: {}..{}, promised {}, had {}",
                log.name(),
                found.log_start,
                found.log_end,
                log.must,
                log.end()
            )
        });
        assert_eq!(Some(found.epoch), log.known.epoch_to_start, "{}: its epoch", log.name());
        let truncated = log.truncations > 0;
        let read_from = found.snapshot.as_ref().map_or(found.log_start.0, |(at, _)| at.0);
        let rot = !log.damages.is_empty();
        log.producers_unknown |=
            log.damages.iter().any(|d| d.lies_within(read_from, found.log_end.0));
        log.restarted(found.log_start.0, found.log_end.0);
        let first_list = log.others.is_empty();
        shard.shared.events.borrow_mut().reset_replayed += u64::from(truncated && first_list);
        shard.shared.events.borrow_mut().starts_with_rot += u64::from(rot);
        drop(model);
        let init = PartitionInit {
            epoch: found.epoch,
            log_start: found.log_start,
            high_watermark: found.log_end,
            log_end: found.log_end,
            producers: producers_of(found),
        };
        shard.serve(found.log_id, found.handle, init);
        shard.set.set_high_watermark(found.handle, found.log_end);
    }
}

/// Content, producers, epochs, timestamps and files after a start.
async fn judge(shard: &Rc<Shard>, recovered: &[Recovered], sim: &Sim) {
    for found in recovered {
        let id = found.log_id;
        let (start, end) = (found.log_start.0, found.log_end.0);
        let Some(bytes) = shard.read_all(id, start, end).await else { return };
        {
            let mut model = shard.shared.model.borrow_mut();
            let log = model.log(id);
            log.content_is(start, &bytes);
            log.producers_are(&producers_of(found));
        }
        shard.check_lookups(id, 3).await;
    }
    check_files(shard, sim, false);
}

/// One thing that a client or the broker does.
async fn act(shard: &Rc<Shard>) {
    let shared = &shard.shared;
    let Some((id, handle)) = shard.any_log() else {
        shard.env.sleep(Duration::from_micros(50)).await;
        return;
    };
    match shared.below(100) {
        0..56 => {
            for _ in 0..1 + shared.below(4) {
                if !shard.produce(id) {
                    shard.signal.raise();
                    shard.env.sleep(Duration::from_millis(1)).await;
                    break;
                }
            }
            // Sometimes before the round in which it would be flushed.
            if shared.chance(100) {
                truncate(shard, id).await;
            }
        }
        56..63 => shard.read_somewhere(id).await,
        63..70 => truncate(shard, id).await,
        70..72 => retention::delete_records(shard, id).await,
        72..80 => shard.resend(id),
        80..84 => shard.check_lookups(id, 1).await,
        84..86 => shard.delete(id, handle).await,
        86..88 if shard.parts.borrow().len() < 6 => {
            // Never a name that is taken.
            let partition = 10 + shared.model.borrow().next_log as i32;
            let known = shard.new_known("alpha", partition);
            shard.create(known).await;
        }
        88..91 => {
            let long = 1 + shared.below(2000);
            shard.env.sleep(Duration::from_millis(long)).await;
        }
        91..93 => retention::enforce(shard).await,
        _ => {}
    }
    shard.signal.raise();
    let short = shared.below(300);
    shard.env.sleep(Duration::from_micros(short)).await;
}

async fn truncate(shard: &Rc<Shard>, id: millstream::model::LogId) {
    if shard.parts.borrow().get(&id).is_some_and(|p| !p.busy) {
        let before = shard.model_end(id);
        shard.truncate(id).await;
        let cut = Offset(shard.model_end(id)) < Offset(before);
        shard.shared.events.borrow_mut().truncations += u64::from(cut);
    }
}
