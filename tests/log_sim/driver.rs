//! One incarnation of the shard: the log set, the partitions on top of it, the
//! pump that stands between them, and what clients do to them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use millstream::io::sim::{Rng, SimEnv};
use millstream::io::{Env as _, Task as _};
use millstream::log::{AppendError, Error, KnownLog, LogHandle, LogSet};
use millstream::model::{LogId, Offset, PartitionIndex, ProducerEpoch, ProducerId, TopicId};
use millstream::partition::{
    AckToken, Acks, Admitted, AppendOutcome, Effects, Partition, PartitionInit,
};
use millstream::record::{BatchView, patch_base};

use crate::errors;
use crate::events::Events;
use crate::model::{Batch, Model, chain_end};
use crate::plan::{self, Plan, Trouble};

/// What outlives the incarnations of one history.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) model: Rc<RefCell<Model>>,
    pub(crate) rng: Rc<RefCell<Rng>>,
    pub(crate) events: Rc<RefCell<Events>>,
    pub(crate) story: Rc<RefCell<Vec<String>>>,
    pub(crate) plan: Rc<Plan>,
}

impl Shared {
    /// A line of the minimal trace.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        self.story.borrow_mut().push(line());
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.rng.borrow_mut().below(bound)
    }

    pub(crate) fn index(&self, bound: usize) -> usize {
        self.rng.borrow_mut().index(bound)
    }

    pub(crate) fn chance(&self, per_mille: u32) -> bool {
        self.rng.borrow_mut().chance(per_mille)
    }
}

/// Wakes the pump.
#[derive(Default)]
pub(crate) struct Signal {
    set: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    pub(crate) fn raise(&self) {
        self.set.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

struct Raised(Rc<Signal>);

impl Future for Raised {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.set.take() {
            return Poll::Ready(());
        }
        *self.0.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A partition in service.
pub(crate) struct Part {
    pub(crate) handle: LogHandle,
    pub(crate) machine: Partition,
    /// Somebody truncates it.
    pub(crate) busy: bool,
}

/// One running shard.
pub(crate) struct Shard {
    pub(crate) env: SimEnv,
    pub(crate) set: LogSet<SimEnv>,
    pub(crate) shared: Shared,
    pub(crate) parts: RefCell<BTreeMap<LogId, Part>>,
    pub(crate) signal: Rc<Signal>,
    effects: RefCell<Effects>,
    /// The log set said that the process must end.
    pub(crate) dead: Cell<bool>,
}

impl Shard {
    pub(crate) fn new(env: SimEnv, set: LogSet<SimEnv>, shared: Shared) -> Rc<Self> {
        let signal = Rc::new(Signal::default());
        let raised = signal.clone();
        set.set_notifier(Rc::new(move || raised.raise()));
        Rc::new(Self {
            env,
            set,
            shared,
            parts: RefCell::default(),
            signal,
            effects: RefCell::default(),
            dead: Cell::new(false),
        })
    }

    /// Runs rounds whenever something happened.
    pub(crate) async fn pump(self: Rc<Self>) {
        loop {
            self.round();
            Raised(self.signal.clone()).await;
            if self.shared.chance(300) {
                let pause = self.shared.below(200);
                self.env.sleep(Duration::from_micros(pause)).await;
            }
        }
    }

    /// One round: flush, then pass on what became durable.
    fn round(&self) {
        if self.dead.get() {
            return;
        }
        self.set.flush();
        let mut progress = Vec::new();
        self.set.drain_durable(&mut progress);
        for (handle, upto) in progress {
            let mut parts = self.parts.borrow_mut();
            let Some((id, part)) = parts.iter_mut().find(|(_, p)| p.handle == handle) else {
                continue;
            };
            self.shared.model.borrow_mut().log(*id).durable(upto.0);
            let mut effects = self.effects.borrow_mut();
            part.machine.durable(upto, &mut effects);
            self.apply(*id, part, &mut effects);
        }
        if let Some((reason, detail)) = self.set.fatal() {
            let hits = self.env.fault_hits();
            let error = Error::Fatal { reason, detail };
            assert!(errors::called_for(&hits, &error), "{error}, after {hits:?}");
            if !self.dead.replace(true) {
                self.shared.tell(|| format!("fatal: {error}"));
            }
        }
        self.check_bounds();
    }

    /// Passes effects of a partition on, and notes promises.
    fn apply(&self, id: LogId, part: &mut Part, effects: &mut Effects) {
        if let Some(high_watermark) = effects.high_watermark {
            self.set.set_high_watermark(part.handle, high_watermark);
        }
        let mut model = self.shared.model.borrow_mut();
        for done in effects.completed.drain(..) {
            match done.outcome {
                AppendOutcome::Committed { base_offset } => {
                    model.log(id).acknowledged(done.token.0, base_offset.0);
                }
                AppendOutcome::Truncated => {}
                other => panic!("an append ended as {other:?}"),
            }
        }
        *effects = Effects::default();
    }

    fn check_bounds(&self) {
        for (id, part) in &*self.parts.borrow() {
            if part.busy {
                continue;
            }
            let Some((start, durable, end)) = self.set.bounds(part.handle) else {
                panic!("log {id} has no bounds");
            };
            let offsets = part.machine.offsets();
            assert!(start <= durable && durable <= end, "log {id}: {start} {durable} {end}");
            assert_eq!(end, offsets.log_end, "log {id}: log and partition disagree on the end");
            assert!(
                offsets.high_watermark <= offsets.durable && offsets.durable <= durable,
                "log {id}: {offsets:?}, but {durable} is durable"
            );
        }
    }

    /// Puts a recovered or created log into service.
    pub(crate) fn serve(&self, id: LogId, handle: LogHandle, init: PartitionInit) {
        let part = Part { handle, machine: Partition::new(init), busy: false };
        self.parts.borrow_mut().insert(id, part);
    }

    /// A log that nobody is changing.
    pub(crate) fn any_log(&self) -> Option<(LogId, LogHandle)> {
        let parts = self.parts.borrow();
        let free: Vec<_> = parts.iter().filter(|(_, p)| !p.busy).collect();
        (!free.is_empty()).then(|| {
            let (id, part) = free[self.shared.index(free.len())];
            (*id, part.handle)
        })
    }

    /// A producer for the next batch, and the sequence that it must use.
    fn producer(&self, id: LogId) -> Option<(ProducerId, ProducerEpoch, i32)> {
        let which = self.shared.below(4) as i64;
        if which == 3 {
            return None;
        }
        let producer = ProducerId(id.0 as i64 * 10 + which);
        let mut model = self.shared.model.borrow_mut();
        if model.log(id).producers_unknown {
            return None;
        }
        let latest = model.log(id).latest_of(producer).map(|b| b.summary);
        Some(match latest {
            None => (producer, ProducerEpoch(0), 0),
            Some(_) if self.shared.chance(30) => {
                (producer, ProducerEpoch(latest.map_or(0, |s| s.producer_epoch.0) + 1), 0)
            }
            Some(s) => (producer, s.producer_epoch, s.last_sequence() + 1),
        })
    }

    /// Appends one new batch; false when the log is full for the moment.
    pub(crate) fn produce(self: &Rc<Self>, id: LogId) -> bool {
        let producer = self.producer(id);
        let now = self.env.wall_ms();
        let (bytes, stamps) = {
            let mut rng = self.shared.rng.borrow_mut();
            let payload = self.shared.plan.payload(&mut rng);
            plan::batch(&mut rng, payload, now, producer)
        };
        let summary = BatchView::parse(&bytes).expect("whole").0.summary().expect("known codec");
        let mut parts = self.parts.borrow_mut();
        let part = parts.get_mut(&id).expect("the caller has just seen it");
        let acks = if self.shared.chance(500) { Acks::All } else { Acks::Leader };
        let admission = match part.machine.admit(&summary, acks) {
            Ok(Admitted::Append(admission)) => admission,
            other => panic!("log {id}: the next batch of {producer:?} got {other:?}"),
        };
        let (base, epoch) = (admission.base_offset, admission.epoch);
        let appended = match self.set.append(part.handle, &bytes, &summary, base, epoch) {
            Ok(appended) => appended,
            Err(refusal) => {
                drop(parts);
                return self.refused(id, refusal);
            }
        };
        assert_eq!(appended.end_offset, admission.end_offset, "log {id}: another end");
        if let Some(at) = appended.snapshot_at {
            let (offset, snapshot) = part.machine.snapshot();
            assert_eq!(offset, at, "log {id}: a snapshot is wanted elsewhere");
            self.store_snapshot(part.handle, snapshot, at);
        }
        let mut placed = bytes.clone();
        patch_base(&mut placed, base, epoch);
        let mut model = self.shared.model.borrow_mut();
        let token = model.new_token();
        let end = admission.end_offset.0;
        self.shared.tell(|| format!("append log {id} {}..{end}, {} bytes", base.0, placed.len()));
        model.log(id).push(Rc::new(Batch {
            token,
            acks,
            base: base.0,
            end,
            epoch,
            bytes: placed,
            summary,
            stamps,
        }));
        drop(model);
        let mut effects = self.effects.borrow_mut();
        part.machine.appended(&admission, Some((AckToken(token), acks)), &mut effects);
        self.apply(id, part, &mut effects);
        true
    }

    fn refused(&self, id: LogId, refusal: AppendError) -> bool {
        self.shared.tell(|| format!("append log {id} refused: {refusal}"));
        match refusal {
            AppendError::Full => {}
            AppendError::NoSpace if self.shared.plan.trouble.passes() => {}
            AppendError::Poisoned(reason) => {
                let hits = self.env.fault_hits();
                let called_for = errors::reason_called_for(&hits, reason);
                assert!(called_for, "log {id} is poisoned: {reason:?}, after {hits:?}");
                self.dead.set(true);
            }
            other => panic!("log {id}: {other}"),
        }
        false
    }

    fn store_snapshot(self: &Rc<Self>, handle: LogHandle, bytes: Vec<u8>, at: Offset) {
        let shard = self.clone();
        let storing = self.set.put_producer_snapshot(handle, bytes, at);
        self.env
            .spawn(async move {
                shard.check(storing.await);
            })
            .detach();
    }

    /// Passes errors that this history may meet; panics on others. True when
    /// the operation was done.
    pub(crate) fn check(&self, outcome: Result<(), Error>) -> bool {
        match outcome {
            Ok(()) => true,
            Err(Error::Gone) => false,
            Err(error) if self.allowed(&error) => {
                self.shared.tell(|| format!("failed: {error}"));
                if error.fatal_reason().is_some() {
                    assert!(self.set.fatal().is_some(), "told to one, and not to all: {error}");
                    self.dead.set(true);
                }
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn allowed(&self, error: &Error) -> bool {
        match self.shared.plan.trouble {
            Trouble::None | Trouble::Rot => false,
            Trouble::IoError => errors::called_for(&self.env.fault_hits(), error),
            Trouble::Full | Trouble::NoDescriptors | Trouble::NoAllocations => {
                matches!(error, Error::NoSpace { .. })
            }
        }
    }

    /// Sends a producer's latest batch again: it must be recognised.
    pub(crate) fn resend(&self, id: LogId) {
        let which = self.shared.below(3) as i64;
        let producer = ProducerId(id.0 as i64 * 10 + which);
        let model = self.shared.model.borrow();
        let Some(batch) = model.logs.get(&id).and_then(|log| log.latest_of(producer)) else {
            return;
        };
        if model.logs[&id].is_forgotten(producer) || model.logs[&id].producers_unknown {
            return;
        }
        let parts = self.parts.borrow();
        let part = parts.get(&id).expect("the caller has just seen it");
        match part.machine.admit(&batch.summary, Acks::All) {
            Ok(Admitted::Duplicate { base_offset, end_offset, .. }) => {
                assert_eq!((base_offset.0, end_offset.0), (batch.base, batch.end), "log {id}");
            }
            other => panic!("log {id}: the batch at {} sent again got {other:?}", batch.base),
        }
    }

    /// Truncates a suffix that nobody was promised.
    pub(crate) async fn truncate(&self, id: LogId) {
        let (handle, to, epoch) = {
            let mut model = self.shared.model.borrow_mut();
            let log = model.log(id);
            let mut bounds: Vec<i64> =
                log.live.iter().map(|b| b.end).filter(|end| *end >= log.must).collect();
            if log.must == 0 {
                bounds.insert(0, 0);
            }
            if bounds.len() < 2 {
                return;
            }
            let to = bounds[self.shared.index(bounds.len() - 1)];
            log.truncate(to);
            let epoch = model.new_epoch();
            let mut parts = self.parts.borrow_mut();
            let part = parts.get_mut(&id).expect("the caller has just seen it");
            let mut effects = self.effects.borrow_mut();
            part.machine.truncate(Offset(to), &mut effects);
            part.busy = true;
            drop(model);
            self.apply(id, part, &mut effects);
            (part.handle, to, epoch)
        };
        self.shared.tell(|| format!("truncate log {id} to {to}, epoch {epoch}"));
        let done = self.set.truncate(handle, Offset(to), epoch).await;
        if self.check(done) {
            let mut parts = self.parts.borrow_mut();
            let part = parts.get_mut(&id).expect("a busy log stays");
            part.machine.lead(epoch);
            part.busy = false;
            self.shared.tell(|| format!("truncated log {id}"));
        } else if self.parts.borrow().contains_key(&id) {
            // The partition has let go of what the log still holds: the end.
            self.dead.set(true);
        }
    }

    /// A log that the metadata log has just made.
    pub(crate) fn new_known(&self, topic: &str, partition: i32) -> KnownLog {
        let mut model = self.shared.model.borrow_mut();
        model.next_log += 1;
        let log_id = LogId(model.next_log);
        let mut topic_id = [7; 16];
        topic_id[..8].copy_from_slice(&log_id.0.to_be_bytes());
        let known = KnownLog {
            log_id,
            topic: Arc::from(topic),
            partition: PartitionIndex(partition),
            topic_id: TopicId(topic_id),
            class: self.shared.plan.class(&mut self.shared.rng.borrow_mut()),
            epoch_to_start: Some(model.new_epoch()),
            config: self.shared.plan.log,
        };
        model.logs.insert(log_id, crate::model::LogModel::new(known.clone()));
        known
    }

    /// Creates a log that the metadata already knows.
    pub(crate) async fn create(&self, known: KnownLog) {
        self.shared.tell(|| format!("create {} as log {}", known.dir_name(), known.log_id));
        match self.set.create(&known).await {
            Ok(handle) => {
                let zero = Offset::ZERO;
                let init = PartitionInit {
                    epoch: known.epoch_to_start.expect("the test sets it"),
                    log_start: zero,
                    high_watermark: zero,
                    log_end: zero,
                    producers: millstream::partition::producers::ProducerStates::default(),
                };
                self.serve(known.log_id, handle, init);
            }
            Err(error) => {
                self.check(Err(error));
            }
        }
    }

    /// Deletes a log, and mostly makes another of the same name at once.
    pub(crate) async fn delete(&self, id: LogId, handle: LogHandle) {
        let known = {
            let mut model = self.shared.model.borrow_mut();
            self.parts.borrow_mut().remove(&id);
            model.logs.remove(&id).expect("a log in service is known").known
        };
        self.shared.tell(|| format!("delete {} (log {id})", known.dir_name()));
        let again = self.shared.chance(800);
        // The metadata log may know the successor before the old one is gone.
        let early = again && self.shared.chance(500);
        let mut next = early.then(|| self.new_known(&known.topic, known.partition.0));
        let done = self.set.delete(handle).await;
        if !self.check(done) {
            return;
        }
        if again {
            let next =
                next.take().unwrap_or_else(|| self.new_known(&known.topic, known.partition.0));
            self.create(next).await;
            self.shared.events.borrow_mut().delete_and_recreate += 1;
        }
    }

    /// Where the model says that a log ends.
    pub(crate) fn model_end(&self, id: LogId) -> i64 {
        self.shared.model.borrow().logs.get(&id).map_or(0, |log| chain_end(&log.live))
    }
}
