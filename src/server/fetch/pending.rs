//! A fetch in flight: which partition comes next, what is still missing, and
//! when it is answered.

use std::rc::Rc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::base::DeadlineKey;
use crate::io::Env;
use crate::log::{ColdRead, ReadOutcome};
use crate::model::limits::{COLD_READS_PER_FETCH_MAX, PARTITIONS_PER_DATA_REQUEST_MAX};
use crate::model::{ErrorCode, TopicId};
use crate::partition::{Interest, Isolation, Wake};
use crate::shard::{Pause, PendingEvent, Place, Resumed, Verdict};
use crate::wire::fetch::{FetchPlace, FetchStep, FetchWalk};
use crate::wire::{FetchView, Reader};

use super::super::cold;
use super::super::context::Context;
use super::super::pending::Pending;
use super::super::reply::ReplyTo;
use super::super::sessions::{SessionRequest, SessionUse, Told, TopicKey, Wanted};
use super::admission::Permit;
use super::part::{Part, State, Terms};
use super::reply::Planning;

/// Partitions that a fetch works on in one go, at most: names, looks at, and so
/// on.
pub(super) const SLICE_PARTITIONS_MAX: usize = 4096;

/// Partitions after which it asks whether the shard's slice is over.
const SLICE_PARTITIONS_MIN: usize = 32;

/// One pass over the partitions.
#[derive(Default)]
struct Look {
    next: usize,
    /// Bytes that the client still takes.
    left: usize,
    found: u64,
    /// A partition had data, or one cannot be read.
    any: bool,
    failed: bool,
    /// The answer goes out with whatever is there.
    anyway: bool,
    cold: Vec<(u32, ColdRead)>,
}

enum Phase {
    /// Reads what the request names; only while its frame is there.
    Naming {
        at: FetchPlace,
        topic: TopicKey,
    },
    /// Takes from the session what is to be fetched, from this place of its
    /// order on.
    Collecting(u64),
    /// Looks at partition by partition.
    Looking(Look),
    /// Too little is there: registers with the partitions from this one on.
    Registering(usize),
    /// Waits for reports or the deadline.
    Waiting,
    /// Waits for cold reads.
    Reading(cold::Reads),
    /// Tells the session what the answer says, from this partition on.
    Telling(usize),
    /// Encodes the heads of a long answer.
    Planning,
    Ready,
}

/// Partitions that may still be worked on in this round.
#[derive(Default)]
pub(super) struct Share {
    used: usize,
}

impl Share {
    /// Whether one more may be.
    pub(super) fn take<E: Env>(&mut self, context: &Context<E>) -> bool {
        let used = self.used;
        self.used += 1;
        used < SLICE_PARTITIONS_MAX
            && !(used > 0
                && used.is_multiple_of(SLICE_PARTITIONS_MIN)
                && context.owner.env().slice_over())
    }
}

/// A fetch in flight.
pub struct PendingFetch {
    pub(super) to: ReplyTo,
    pub(super) error: ErrorCode,
    pub(super) session: SessionUse,
    pub(super) terms: Terms,
    max_bytes: usize,
    min_bytes: u64,
    permit: Permit,
    /// Partitions of the answer.
    pub(super) parts: Vec<Part>,
    phase: Phase,
    /// Bytes that are there, as far as they count.
    total: u64,
    /// Partitions of the answer, by topics that follow each other.
    pub(super) groups: SmallVec<[usize; 4]>,
    /// The partition whose topic is the last of them.
    last_told: usize,
    pub(super) planning: Option<Box<Planning>>,
    /// How long the client wants to wait.
    wait: Duration,
    /// Monotonic time at which it wants an answer all the same.
    answer_by: Duration,
    deadline: Option<DeadlineKey>,
    /// It goes on in the next round.
    pauses: bool,
}

/// Handles a fetch request.
///
/// # Errors
/// Why the connection must be closed.
pub(in crate::server) fn start<E: Env>(
    context: &Rc<Context<E>>,
    place: Place,
    to: ReplyTo,
    reader: Reader<'_>,
) -> Result<Verdict<Pending>, String> {
    let view = FetchView::parse(reader, to.version)
        .map_err(|e| format!("Fetch version {}: {e}", to.version))?;
    if view.partition_count > PARTITIONS_PER_DATA_REQUEST_MAX {
        return Err(format!(
            "a fetch names {} partitions, over the limit of {PARTITIONS_PER_DATA_REQUEST_MAX}",
            view.partition_count
        ));
    }
    if view.forgotten_partition_count > PARTITIONS_PER_DATA_REQUEST_MAX {
        return Err(format!(
            "a fetch forgets {} partitions, over the limit of {PARTITIONS_PER_DATA_REQUEST_MAX}",
            view.forgotten_partition_count
        ));
    }
    let mut fetch = Box::new(PendingFetch::new(context, to, &view));
    let paused = fetch.go_on(context, place, view.walk());
    let fetch = Pending::Fetch(fetch);
    Ok(match paused {
        None => Verdict::Overlap(fetch),
        Some(pause) => Verdict::Partly(fetch, pause),
    })
}

/// Goes on with the partitions that the request names. `frame` is the one that
/// it came in.
pub(in crate::server) fn resume<E: Env>(
    context: &Rc<Context<E>>,
    place: Place,
    fetch: &mut PendingFetch,
    frame: &[u8],
) -> Resumed {
    let Phase::Naming { at, .. } = &fetch.phase else { unreachable!("its frame is not done") };
    let walk = FetchWalk::resume(frame, *at);
    fetch.go_on(context, place, walk).map_or(Resumed::Done, Resumed::Again)
}

impl PendingFetch {
    fn new<E: Env>(context: &Rc<Context<E>>, to: ReplyTo, view: &FetchView<'_>) -> Self {
        let bytes = |value: i32| usize::try_from(value).unwrap_or(0);
        let max_bytes = bytes(view.max_bytes).min(context.fetch_bytes_max);
        let wait_ms = u64::try_from(view.max_wait_ms).unwrap_or(0);
        let mut sessions = context.sessions.borrow_mut();
        let begun = sessions.begin(&SessionRequest {
            id: view.session_id,
            epoch: view.session_epoch,
            by_id: view.version >= crate::wire::topic_ref::TOPIC_ID_FROM,
            names: view.partition_count,
            random: context.owner.env().random(),
        });
        let session = begun.unwrap_or(SessionUse::NONE);
        let partitions = match (begun, session.incremental) {
            (Err(_), _) => 0,
            // What it asks for, the session knows; a larger one ends.
            (_, true) => sessions.partitions(session.id) + view.partition_count,
            (_, false) => view.partition_count,
        };
        let mut fetch = Self {
            to,
            error: ErrorCode::None,
            session,
            terms: Terms {
                isolation: Isolation::from_wire(view.isolation_level),
                replica: view.replica_id >= 0,
            },
            max_bytes,
            // More than fits would wait for the deadline each time (checklist 47).
            min_bytes: bytes(view.min_bytes).min(max_bytes) as u64,
            permit: context.fetches.ask(partitions.min(PARTITIONS_PER_DATA_REQUEST_MAX)),
            parts: Vec::new(),
            phase: Phase::Naming { at: view.walk().place(), topic: TopicKey::Id(TopicId::NONE) },
            total: 0,
            groups: SmallVec::new(),
            last_told: 0,
            planning: None,
            wait: Duration::from_millis(wait_ms),
            answer_by: context.owner.env().monotonic() + Duration::from_millis(wait_ms),
            deadline: None,
            pauses: false,
        };
        if let Err(error) = begun {
            fetch.refuse(error);
        }
        fetch
    }

    /// Answers the whole request with an error of its session.
    fn refuse(&mut self, error: ErrorCode) {
        self.error = error;
        self.session = SessionUse::NONE;
        self.parts = Vec::new();
        self.look();
    }

    /// Reads on what the request names, then does what it can; why it is not
    /// done with its frame.
    fn go_on<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        place: Place,
        walk: FetchWalk<'_>,
    ) -> Option<Pause> {
        if !self.admit(context) {
            return Some(Pause::NoMemory);
        }
        let mut share = Share::default();
        if !self.name(context, walk, &mut share) {
            return Some(Pause::Slice);
        }
        self.run(context, place, share);
        None
    }

    /// Whether there is room for what it names.
    fn admit<E: Env>(&mut self, context: &Context<E>) -> bool {
        let (owner, first) = (&context.owner, !self.permit.is_queued());
        let hurry = |other| owner.mailbox().post(other, PendingEvent::Deadline);
        if self.permit.admit(owner.env().monotonic(), hurry) {
            if self.parts.capacity() == 0 {
                self.parts.reserve_exact(self.permit.partitions());
            }
            return true;
        }
        context.counters.fetches_held_back.add(first.into());
        // Answers that nobody reads hold room too.
        owner.lack_memory();
        false
    }

    /// Reads names; `false` when the slice is over.
    fn name<E: Env>(
        &mut self,
        context: &Context<E>,
        mut walk: FetchWalk<'_>,
        share: &mut Share,
    ) -> bool {
        let Phase::Naming { at, topic } = &mut self.phase else { return true };
        let mut sessions = context.sessions.borrow_mut();
        let session = self.session;
        loop {
            if !share.take(context) {
                *at = walk.place();
                return false;
            }
            match walk.next() {
                None => break,
                Some(FetchStep::Topic(reference)) => *topic = TopicKey::of(&reference),
                Some(FetchStep::Forgotten(index)) => sessions.forget(session.id, topic, index),
                Some(FetchStep::Wanted(partition)) => {
                    let wanted = Wanted { topic: topic.clone(), partition };
                    if session.id != 0 {
                        sessions.put(session.id, wanted.clone());
                    }
                    if !session.incremental {
                        self.parts.push(Part::new(wanted));
                    }
                }
            }
        }
        let ended = if session.id == 0 { Ok(false) } else { sessions.end(session.id) };
        drop(sessions);
        match ended {
            Err(error) => self.refuse(error),
            Ok(true) if session.incremental => self.phase = Phase::Collecting(0),
            Ok(lives) => {
                if !lives {
                    self.session = SessionUse::NONE;
                }
                self.look();
            }
        }
        true
    }

    /// Takes partitions from the session; `false` when the slice is over.
    fn collect<E: Env>(&mut self, context: &Context<E>, share: &mut Share) -> bool {
        let Phase::Collecting(from) = &mut self.phase else { unreachable!("it collects") };
        let sessions = context.sessions.borrow();
        // What a later request of the session added meanwhile is not for this one.
        while self.parts.len() < self.permit.partitions()
            && let Some((at, wanted)) = sessions.next(self.session.id, *from)
        {
            if !share.take(context) {
                return false;
            }
            self.parts.push(Part::new(wanted));
            *from = at + 1;
        }
        drop(sessions);
        self.look();
        true
    }

    /// Begins to look for what is there.
    fn look(&mut self) {
        if self.parts.is_empty() {
            self.min_bytes = 0;
        }
        self.look_again(self.wait.is_zero());
    }

    /// Starts a pass over all partitions; `anyway` answers with too little as
    /// well.
    fn look_again(&mut self, anyway: bool) {
        if matches!(self.phase, Phase::Waiting) {
            self.permit.unpark();
        }
        self.phase = Phase::Looking(Look { left: self.max_bytes, anyway, ..Look::default() });
    }

    /// Works until there is something to wait for, or the slice is over.
    fn run<E: Env>(&mut self, context: &Rc<Context<E>>, place: Place, mut share: Share) {
        while !self.pauses {
            let done = match &mut self.phase {
                Phase::Collecting(_) => self.collect(context, &mut share),
                Phase::Looking(_) => self.look_on(context, place, &mut share),
                Phase::Registering(_) => self.register(context, place, &mut share),
                Phase::Telling(_) => self.tell(context, &mut share),
                Phase::Planning => self.plan_on(context, &mut share),
                Phase::Naming { .. } | Phase::Waiting | Phase::Reading(_) | Phase::Ready => return,
            };
            if !done {
                self.pauses = true;
                context.owner.mailbox().next_round(place);
            }
        }
    }

    /// Looks at partitions; `false` when the slice is over.
    fn look_on<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        place: Place,
        share: &mut Share,
    ) -> bool {
        let Phase::Looking(look) = &mut self.phase else { unreachable!("it looks") };
        while let Some(part) = self.parts.get_mut(look.next) {
            if !share.take(context) {
                return false;
            }
            look.at(part, context, self.terms);
            look.next += 1;
        }
        let look = std::mem::take(look);
        self.total = look.found;
        self.phase = if !look.anyway && !look.failed && look.found < self.min_bytes {
            Phase::Registering(0)
        } else if look.cold.is_empty() {
            Phase::Telling(0)
        } else {
            Phase::Reading(cold::start(context, place, look.cold))
        };
        true
    }

    /// Registers with partitions; `false` when the slice is over.
    fn register<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        place: Place,
        share: &mut Share,
    ) -> bool {
        let Phase::Registering(next) = &mut self.phase else { unreachable!("it registers") };
        if self.deadline.is_none() {
            let mailbox = context.owner.mailbox();
            self.deadline = Some(mailbox.deadline(self.answer_by, place));
        }
        let missing = self.min_bytes - self.total;
        let only = self.parts.len() == 1;
        while let Some(part) = self.parts.get_mut(*next) {
            if !share.take(context) {
                return false;
            }
            let limit_bytes = missing.min(part.room());
            // One of several tells of each batch, since the total is what counts.
            let report_bytes = if only { limit_bytes } else { 1 };
            let interest = Interest { report_bytes, limit_bytes };
            let index = u32::try_from(*next).expect("the limit is far below");
            part.wait(context, (place, index), self.terms.isolation, interest);
            *next += 1;
        }
        self.phase = Phase::Waiting;
        self.permit.park(place);
        true
    }

    /// Tells the session what the answer will say, and counts its topics;
    /// `false` when the slice is over.
    fn tell<E: Env>(&mut self, context: &Rc<Context<E>>, share: &mut Share) -> bool {
        let Phase::Telling(next) = &mut self.phase else { unreachable!("it tells") };
        if let Some(key) = self.deadline.take() {
            context.owner.mailbox().cancel(key);
        }
        let mut sessions = context.sessions.borrow_mut();
        while *next < self.parts.len() {
            if !share.take(context) {
                return false;
            }
            let part = &mut self.parts[*next];
            if self.session.id != 0 {
                // After an error the next answer is news, whatever was told before it.
                let bounds = part.told_bounds();
                let told = Told {
                    high_watermark: bounds.map_or(-1, |b| b.high_watermark.0),
                    log_start: bounds.map_or(-1, |b| b.log_start.0),
                };
                let has_records = matches!(part.state, State::Found(_));
                let index = part.wanted.partition;
                let news = sessions.tell(self.session.id, &part.topic, index, told, has_records);
                let plain = matches!(part.state, State::Empty | State::Found(_));
                part.silent = self.session.incremental && plain && !news;
            }
            if !self.parts[*next].silent {
                match self.groups.last_mut() {
                    Some(count) if self.parts[self.last_told].topic == self.parts[*next].topic => {
                        *count += 1;
                    }
                    _ => self.groups.push(1),
                }
                self.last_told = *next;
            }
            *next += 1;
        }
        let long = self.parts.len() > SLICE_PARTITIONS_MAX;
        self.phase = if long { Phase::Planning } else { Phase::Ready };
        true
    }

    /// Encodes heads of a long answer; `false` when the slice is over.
    fn plan_on<E: Env>(&mut self, context: &Context<E>, share: &mut Share) -> bool {
        let mut planning = self.planning.take().unwrap_or_default();
        let done = self.plan(&mut planning, || share.take(context));
        self.planning = Some(planning);
        if done {
            self.phase = Phase::Ready;
        }
        done
    }

    /// Takes what the pump delivers.
    pub(in crate::server) fn event<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        place: Place,
        event: PendingEvent,
    ) {
        match event {
            PendingEvent::Round => self.pauses = false,
            PendingEvent::Wake { index, wake } => self.reported(context, index as usize, wake),
            PendingEvent::Deadline => self.overdue(),
            PendingEvent::Read { index, batches } => {
                let Phase::Reading(reads) = &mut self.phase else {
                    unreachable!("only a fetch that reads is read for")
                };
                let last = reads.came();
                self.parts[index as usize].state = match batches {
                    Ok(slices) => State::Found(slices),
                    Err(ErrorCode::None) => State::Empty,
                    Err(error) => State::Failed(error),
                };
                if last {
                    self.phase = Phase::Telling(0);
                }
            }
            PendingEvent::Appended { .. } | PendingEvent::Answer(_) | PendingEvent::Abandon(_) => {
                unreachable!("a fetch waits for data alone")
            }
        }
        self.run(context, place, Share::default());
    }

    /// A partition reports. Nothing else is asked, unless that is enough.
    fn reported<E: Env>(&mut self, context: &Context<E>, index: usize, wake: Wake) {
        if !matches!(self.phase, Phase::Registering(_) | Phase::Waiting) {
            return; // It looks at everything already.
        }
        context.counters.fetch_reports.add(1);
        let part = &mut self.parts[index];
        if part.token != Some(wake.token) {
            return; // Of a registration that is over.
        }
        if wake.over {
            part.token = None;
        }
        // Of the first data a whole batch comes, whatever the limits say.
        if wake.bytes == 0 || (self.total == 0 && wake.bytes > part.room()) {
            return self.look_again(false);
        }
        let counts = wake.bytes.min(part.room());
        part.counted += counts;
        self.total += counts;
        if self.total >= self.min_bytes {
            self.look_again(true);
        }
    }

    fn overdue(&mut self) {
        match &mut self.phase {
            Phase::Naming { .. } | Phase::Collecting(_) => self.wait = Duration::ZERO,
            Phase::Looking(look) => look.anyway = true,
            Phase::Registering(_) | Phase::Waiting => self.look_again(true),
            // The answer is on its way.
            Phase::Reading(_) | Phase::Telling(_) | Phase::Planning | Phase::Ready => {}
        }
    }

    /// Whether the answer is known.
    pub(in crate::server) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// The request is given up.
    pub(in crate::server) fn forget<E: Env>(mut self, context: &Rc<Context<E>>) {
        for part in &mut self.parts {
            part.stop_waiting(context);
        }
        if let Some(key) = self.deadline.take() {
            context.owner.mailbox().cancel(key);
        }
    }
}

impl Look {
    fn is_put_off(&self, outcome: &ReadOutcome) -> bool {
        match outcome {
            ReadOutcome::Hot(slices) => slices.is_empty(),
            ReadOutcome::Cold(_) => self.cold.len() >= COLD_READS_PER_FETCH_MAX,
            ReadOutcome::Empty | ReadOutcome::OutOfRange => false,
        }
    }

    /// Looks at one partition.
    fn at<E: Env>(&mut self, part: &mut Part, context: &Rc<Context<E>>, terms: Terms) {
        let bytes = match part.look(context, terms, self.left, !self.any) {
            // The next batch does not fit, or files are read for enough others:
            // not served, so it keeps its turn; but what waits there is no less
            // than fits.
            Some(outcome) if self.is_put_off(&outcome) => {
                part.counted = part.max_bytes().min(self.left) as u64;
                self.found += part.counted;
                return;
            }
            Some(ReadOutcome::Hot(slices)) => {
                let bytes = slices.iter().map(|slice| slice.len()).sum::<usize>();
                part.state = State::Found(slices);
                bytes
            }
            Some(ReadOutcome::Cold(read)) => {
                let bytes = context.owner.logs().cold_bytes_max(&read).min(self.left).max(1);
                part.state = State::Reading;
                self.cold.push((u32::try_from(self.next).expect("the limit is far below"), read));
                bytes
            }
            Some(ReadOutcome::Empty | ReadOutcome::OutOfRange) | None => {
                self.failed |= part.is_failed();
                return;
            }
        };
        self.any = true;
        part.counted = bytes as u64;
        self.found += part.counted;
        self.left = self.left.saturating_sub(bytes);
    }
}
