//! The world: virtual time, the seeded scheduler, and the nodes.
//!
//! A step does one thing: polls one woken task, or lets one timer or one I/O
//! operation complete. Which one, the seed says. Time moves a little with each
//! step, and jumps to the next event when nothing can run.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::disk::{Crash, CrashReport, Disk, Fate, LostWrite};
use super::exec::{SimEnv, TaskId, TaskSlot, TaskWaker};
use super::{Faults, Rng};
use crate::io::chunk::ChunkSlice;

/// A node of a world, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeIndex(pub usize);

/// Why a run ended before its future did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The step that `crash_after` named has come.
    CrashPoint,
    /// Nothing can run and nothing will complete.
    Deadlock,
}

/// How this world behaves; drawn from the seed, so that different seeds lie in
/// different corners, and changeable by a test.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// Most virtual nanoseconds that one step takes.
    pub step_ns: u64,
    /// Usual latency of an I/O operation in microseconds.
    pub io_us: u64,
    /// Operations in a thousand that take up to a hundred times as long.
    pub slow_io: u32,
    /// Answers in a thousand of `slice_over` that are yes.
    pub slice_over: u32,
    /// Spawned tasks in a thousand that run up to their first await at once.
    pub eager_spawn: u32,
}

impl Knobs {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            step_ns: [100, 2_000, 20_000][rng.index(3)],
            io_us: [5, 60, 500][rng.index(3)],
            slow_io: [0, 20, 200][rng.index(3)],
            slice_over: [0, 50, 500][rng.index(3)],
            eager_spawn: [0, 500, 1000][rng.index(3)],
        }
    }
}

/// A write on which the process is to die, and how many steps later.
struct Aim {
    wanted: fn(&[u8]) -> bool,
    steps: u64,
}

/// How an operation in flight ends.
pub(super) enum How {
    /// In its own time.
    Finish,
    /// Its process died or the power went: it may have had an effect, none of
    /// it durable, and nobody waits for it.
    Orphan(Fate),
}

pub(super) struct Op {
    pub(super) node: usize,
    pub(super) name: &'static str,
    pub(super) path: Rc<PathBuf>,
    pub(super) pos: u64,
    pub(super) len: usize,
    /// What a write writes.
    pub(super) data: Option<ChunkSlice>,
    pub(super) effect: Effect,
}

/// What an operation does to its node when it ends.
pub(super) type Effect = Box<dyn FnOnce(&mut Node, &mut Rng, How)>;

/// Unwinds out of a poll when the process dies in the middle of it.
pub(super) struct Killed;

pub(super) struct Timer {
    pub(super) done: Cell<bool>,
    pub(super) waker: RefCell<Option<Waker>>,
}

enum Event {
    Timer(usize, Rc<Timer>),
    Io(Op),
}

pub(super) struct Node {
    pub(super) disk: Disk,
    pub(super) faults: Faults,
    /// Counts incarnations; handles of an earlier one are dead.
    pub(super) incarnation: u64,
    pub(super) open_files: usize,
}

pub(super) struct Inner {
    pub(super) rng: Rng,
    pub(super) now: Duration,
    pub(super) wall_ms: i64,
    pub(super) knobs: Knobs,
    pub(super) tasks: BTreeMap<TaskId, TaskSlot>,
    pub(super) next_task: TaskId,
    events: BTreeMap<(Duration, u64), Event>,
    next_event: u64,
    pub(super) nodes: Vec<Node>,
    steps: u64,
    crash_at: Option<u64>,
    crash_on: Option<Aim>,
    hash: u64,
    trace: Option<VecDeque<String>>,
}

const TRACE_LINES: usize = 4000;

impl Inner {
    /// Mixes an event into the trace, and keeps its line when tracing is on.
    pub(super) fn note(&mut self, code: u64, line: impl FnOnce() -> String) {
        self.hash = (self.hash ^ code ^ self.now.as_nanos() as u64)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(23);
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_LINES {
                trace.pop_front();
            }
            trace.push_back(format!("{:>8} {:>12?} {}", self.steps, self.now, line()));
        }
    }

    fn crash_is_due(&mut self) -> bool {
        self.crash_at.take_if(|at| *at <= self.steps).is_some()
    }

    /// Whether the process dies within the present poll, at this point.
    pub(super) fn dies_here(&mut self) -> bool {
        let last = self.crash_at.is_some_and(|at| at <= self.steps);
        last && self.rng.chance(500) && self.crash_at.take().is_some()
    }

    fn at(&mut self, when: Duration, event: Event) {
        self.next_event += 1;
        self.events.insert((when, self.next_event), event);
    }

    pub(super) fn add_timer(&mut self, node: usize, after: Duration, timer: Rc<Timer>) {
        let when = self.now + after;
        self.at(when, Event::Timer(node, timer));
    }

    pub(super) fn submit(&mut self, op: Op) {
        if let Some(data) = &op.data {
            let hit = self.crash_on.take_if(|aim| (aim.wanted)(data));
            if let Some(aim) = hit {
                self.crash_at = Some(self.steps + aim.steps);
            }
        }
        let base = self.knobs.io_us * 1000;
        let slow = self.knobs.slow_io;
        let factor = if self.rng.chance(slow) { self.rng.within(2..=100) } else { 1 };
        let latency = self.rng.within(1..=base * 2 * factor);
        let when = self.now + Duration::from_nanos(latency);
        let (name, pos, len) = (op.name, op.pos, op.len);
        let path = op.path.clone();
        self.note(0x10 ^ pos ^ (len as u64) << 32, || {
            format!("submit {name} {} pos {pos} len {len}", path.display())
        });
        self.at(when, Event::Io(op));
    }

    fn fire(&mut self, key: (Duration, u64)) {
        match self.events.remove(&key) {
            Some(Event::Timer(_, timer)) => {
                self.note(0x20, || "timer".to_owned());
                timer.done.set(true);
                if let Some(waker) = timer.waker.borrow_mut().take() {
                    waker.wake();
                }
            }
            Some(Event::Io(op)) => {
                let (name, pos, len) = (op.name, op.pos, op.len);
                self.note(0x30 ^ pos ^ (len as u64) << 32, || {
                    format!("done   {name} {} pos {pos} len {len}", op.path.display())
                });
                (op.effect)(&mut self.nodes[op.node], &mut self.rng, How::Finish);
            }
            None => {}
        }
    }
}

pub(super) struct World {
    pub(super) inner: RefCell<Inner>,
    pub(super) ready: Arc<Mutex<Vec<TaskId>>>,
    /// Descriptors dropped since the last step: node, incarnation, inode.
    pub(super) closed: RefCell<Vec<(usize, u64, usize)>>,
}

enum Step {
    Poll(TaskId),
    Fired,
    Idle,
}

impl World {
    fn lock_ready(&self) -> std::sync::MutexGuard<'_, Vec<TaskId>> {
        self.ready.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn next(&self) -> Step {
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        inner.steps += 1;
        for (node, incarnation, ino) in self.closed.borrow_mut().drain(..) {
            let node = &mut inner.nodes[node];
            if node.incarnation == incarnation {
                node.disk.opened(ino, -1);
                node.open_files -= 1;
            }
        }
        let mut ready = self.lock_ready();
        if !ready.is_empty() {
            let most = inner.knobs.step_ns;
            inner.now += Duration::from_nanos(inner.rng.within(1..=most));
        }
        let next_event = inner.events.keys().next().copied();
        let due = next_event.is_some_and(|(when, _)| when <= inner.now);
        let waits = due && inner.rng.chance(500);
        if !ready.is_empty() && !waits {
            let pick = inner.rng.index(ready.len());
            return Step::Poll(ready.swap_remove(pick));
        }
        drop(ready);
        match next_event {
            Some(key) => {
                inner.now = inner.now.max(key.0);
                inner.fire(key);
                Step::Fired
            }
            None => Step::Idle,
        }
    }

    /// Polls one task outside of any borrow.
    pub(super) fn poll_task(&self, id: TaskId) {
        let (mut future, waker) = {
            let mut inner = self.inner.borrow_mut();
            let Some(slot) = inner.tasks.get_mut(&id) else { return };
            slot.waker.taken();
            let cancelled = slot.cancelled;
            // A task that wakes itself while it is polled comes here later.
            let Some(future) = slot.future.take() else { return };
            let waker = slot.waker.clone();
            if cancelled {
                inner.tasks.remove(&id);
                inner.note(0x40 ^ id, || format!("cancel task {id}"));
                drop(inner);
                drop(future);
                return;
            }
            inner.note(0x50 ^ id, || format!("poll   task {id}"));
            (future, waker)
        };
        let waker = Waker::from(waker);
        let outcome = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut inner = self.inner.borrow_mut();
        if outcome.is_ready() {
            inner.tasks.remove(&id);
            drop(inner);
            drop(future);
        } else if let Some(slot) = inner.tasks.get_mut(&id) {
            slot.future = Some(future);
            if slot.cancelled {
                slot.waker.wake_up();
            }
        }
    }
}

const MAIN: TaskId = 0;

/// A simulated world. One thread, no real time.
pub struct Sim {
    world: Rc<World>,
}

impl Sim {
    /// A world with one node and an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let knobs = Knobs::draw(&mut rng);
        let start = Duration::from_secs(rng.within(1..=1_000_000));
        let wall_ms = 1_700_000_000_000 + rng.below(1 << 36) as i64;
        let inner = Inner {
            rng,
            now: start,
            wall_ms: wall_ms - start.as_millis() as i64,
            knobs,
            tasks: BTreeMap::new(),
            next_task: MAIN + 1,
            events: BTreeMap::new(),
            next_event: 0,
            nodes: Vec::new(),
            steps: 0,
            crash_at: None,
            crash_on: None,
            hash: 0xcbf2_9ce4_8422_2325 ^ seed,
            trace: None,
        };
        let world =
            World { inner: RefCell::new(inner), ready: Arc::default(), closed: RefCell::default() };
        let sim = Self { world: Rc::new(world) };
        sim.add_node();
        sim
    }

    /// Adds a node with a disk of its own.
    pub fn add_node(&self) -> NodeIndex {
        let mut inner = self.world.inner.borrow_mut();
        inner.nodes.push(Node {
            disk: Disk::default(),
            faults: Faults::default(),
            incarnation: 0,
            open_files: 0,
        });
        NodeIndex(inner.nodes.len() - 1)
    }

    /// The environment of the first node.
    #[must_use]
    pub fn env(&self) -> SimEnv {
        self.env_of(NodeIndex(0))
    }

    /// An environment (one shard's view) of a node in its present incarnation.
    #[must_use]
    pub fn env_of(&self, node: NodeIndex) -> SimEnv {
        SimEnv::new(self.world.clone(), node.0)
    }

    /// Drives the world until `future` is ready; panics when it never can be.
    pub fn run_until<T>(&self, future: impl Future<Output = T>) -> T {
        match self.run(future) {
            Ok(value) => value,
            Err(stop) => panic!("the simulation stopped ({stop:?}) at step {}", self.steps()),
        }
    }

    /// Drives the world until `future` is ready, or until it stops before.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> Result<T, Stop> {
        let mut future = pin!(future);
        let waker = Arc::new(TaskWaker::new(MAIN, self.world.ready.clone()));
        waker.wake_up();
        let handle = Waker::from(waker.clone());
        let mut context = Context::from_waker(&handle);
        let drive = AssertUnwindSafe(|| {
            loop {
                if self.world.inner.borrow_mut().crash_is_due() {
                    break Err(Stop::CrashPoint);
                }
                match self.world.next() {
                    Step::Poll(MAIN) => {
                        waker.taken();
                        self.world.inner.borrow_mut().note(0x60, || "poll   main".to_owned());
                        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                            break Ok(value);
                        }
                    }
                    Step::Poll(id) => self.world.poll_task(id),
                    Step::Fired => {}
                    Step::Idle => break Err(Stop::Deadlock),
                }
            }
        });
        let outcome = match catch_unwind(drive) {
            Ok(outcome) => outcome,
            Err(panic) if panic.is::<Killed>() => Err(Stop::CrashPoint),
            Err(panic) => resume_unwind(panic),
        };
        self.world.lock_ready().retain(|id| *id != MAIN);
        outcome
    }

    /// One step without a main future; false when there is nothing to do.
    pub fn step(&self) -> bool {
        match self.world.next() {
            Step::Poll(id) => self.world.poll_task(id),
            Step::Fired => {}
            Step::Idle => return false,
        }
        true
    }

    /// Steps taken since the world began.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.world.inner.borrow().steps
    }

    /// `run` stops with [`Stop::CrashPoint`] after this many more steps, or in
    /// the middle of an inline write of the last of them.
    pub fn crash_after(&self, steps: Option<u64>) {
        let mut inner = self.world.inner.borrow_mut();
        inner.crash_at = steps.map(|n| inner.steps + n);
        inner.crash_on = None;
    }

    /// As `crash_after`, from when a write is queued for whose bytes `wanted`
    /// holds; once.
    pub fn crash_on_write(&self, wanted: fn(&[u8]) -> bool, steps: u64) {
        self.world.inner.borrow_mut().crash_on = Some(Aim { wanted, steps });
    }

    /// Ends the present incarnation of every node; the world goes on with
    /// their disks, as a new `Sim`. Values of the old incarnation should have
    /// been dropped; whatever they still do has no effect.
    #[must_use]
    pub fn crash(self, kind: Crash) -> (Self, CrashReport) {
        let nodes = self.world.inner.borrow().nodes.len();
        let mut all = CrashReport::default();
        for node in 0..nodes {
            let report = self.crash_node(NodeIndex(node), kind);
            all.writes.extend(report.writes);
            all.entries_lost += report.entries_lost;
            all.in_flight.extend(report.in_flight);
        }
        (self, all)
    }

    /// Ends the present incarnation of one node.
    pub fn crash_node(&self, node: NodeIndex, kind: Crash) -> CrashReport {
        let mut report = CrashReport::default();
        let mut dead_tasks = Vec::new();
        let mut dead_events = Vec::new();
        {
            let mut inner = self.world.inner.borrow_mut();
            let inner = &mut *inner;
            inner.note(0x70 ^ kind as u64, || format!("crash  node {} {kind:?}", node.0));
            inner.nodes[node.0].incarnation += 1;
            inner.nodes[node.0].open_files = 0;
            let gone: Vec<TaskId> =
                inner.tasks.iter().filter(|(_, t)| t.node == node.0).map(|(id, _)| *id).collect();
            dead_tasks.extend(gone.iter().filter_map(|id| inner.tasks.remove(id)));
            let mut ops = Vec::new();
            for (key, event) in std::mem::take(&mut inner.events) {
                match event {
                    Event::Io(op) if op.node == node.0 => ops.push(op),
                    Event::Timer(owner, timer) if owner == node.0 => dead_events.push(timer),
                    other => {
                        inner.events.insert(key, other);
                    }
                }
            }
            while !ops.is_empty() {
                let op = ops.swap_remove(inner.rng.index(ops.len()));
                let fate = Fate::choose(&mut inner.rng);
                if op.name == "write" {
                    report.writes.push(LostWrite {
                        path: (*op.path).clone(),
                        pos: op.pos,
                        len: op.len,
                        fate,
                        in_flight: true,
                        data: op.data.map(|data| data.to_vec()).unwrap_or_default(),
                    });
                } else {
                    report.in_flight.push(op.name);
                }
                (op.effect)(&mut inner.nodes[node.0], &mut inner.rng, How::Orphan(fate));
            }
            inner.nodes[node.0].disk.crash(kind, &mut inner.rng, &mut report);
        }
        // Their drops may call back into the world.
        drop(dead_tasks);
        drop(dead_events);
        report
    }

    /// Faults of a node's disk.
    pub fn faults<T>(&self, node: NodeIndex, change: impl FnOnce(&mut Faults) -> T) -> T {
        change(&mut self.world.inner.borrow_mut().nodes[node.0].faults)
    }

    /// The knobs of this world, to look at or to change.
    pub fn knobs<T>(&self, change: impl FnOnce(&mut Knobs) -> T) -> T {
        change(&mut self.world.inner.borrow_mut().knobs)
    }

    /// Flips one bit of a file, on the medium.
    pub fn flip_bit(&self, node: NodeIndex, path: &Path, pos: u64, bit: u8) -> std::io::Result<()> {
        self.world.inner.borrow_mut().nodes[node.0].disk.flip_bit(path, pos, bit)
    }

    /// Makes a range of a file unreadable for good: reads that touch it get EIO.
    pub fn spoil(
        &self,
        node: NodeIndex,
        path: &Path,
        range: std::ops::Range<u64>,
    ) -> std::io::Result<()> {
        self.world.inner.borrow_mut().nodes[node.0].disk.spoil(path, range)
    }

    /// All files of a node with their bytes, sorted by name.
    #[must_use]
    pub fn files(&self, node: NodeIndex) -> Vec<(PathBuf, Vec<u8>)> {
        self.world.inner.borrow().nodes[node.0].disk.files()
    }

    /// Sets the wall clock forward or back.
    pub fn jump_wall(&self, by_ms: i64) {
        self.world.inner.borrow_mut().wall_ms += by_ms;
    }

    /// A digest of everything that happened so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.world.inner.borrow().hash
    }

    /// Keeps the last events as text from now on.
    pub fn keep_trace(&self) {
        self.world.inner.borrow_mut().trace = Some(VecDeque::new());
    }

    /// Adds a line of the test's own to the trace.
    pub fn note(&self, line: impl FnOnce() -> String) {
        self.world.inner.borrow_mut().note(0x80, line);
    }

    /// The kept lines, oldest first.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.world.inner.borrow().trace.iter().flatten().cloned().collect()
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.world.inner.borrow().tasks.len()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // Tasks hold the world through their environments: break the circle.
        // (A panic may come from within a step; then all of it leaks.)
        let Ok(mut inner) = self.world.inner.try_borrow_mut() else { return };
        let tasks = std::mem::take(&mut inner.tasks);
        let events = std::mem::take(&mut inner.events);
        drop(inner);
        drop(tasks);
        drop(events);
    }
}
