//! A fetch in flight: which partition comes next, what is still missing, and
//! when it is answered.

use std::rc::Rc;
use std::time::Duration;

use crate::base::DeadlineKey;
use crate::io::Env;
use crate::log::{ColdRead, ReadOutcome};
use crate::model::ErrorCode;
use crate::model::limits::PARTITIONS_PER_DATA_REQUEST_MAX;
use crate::partition::{Interest, Isolation, Wake};
use crate::shard::{PendingEvent, Place, Verdict};
use crate::wire::{FetchView, Reader};

use super::super::cold;
use super::super::context::Context;
use super::super::pending::Pending;
use super::super::reply::ReplyTo;
use super::super::sessions::{SessionRequest, SessionUse, Told, TopicKey, Wanted};
use super::part::{Part, State, Terms};

/// Partitions that a fetch works on in one go, at most.
pub(super) const SLICE_PARTITIONS_MAX: usize = 1024;

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
    /// Looks at partition by partition.
    Looking(Look),
    /// Too little is there: registers with the partitions from this one on.
    Registering(usize),
    /// Waits for reports or the deadline.
    Waiting,
    /// Waits for so many cold reads.
    Reading(usize),
    /// Tells the session what the answer says, from this partition on.
    Telling(usize),
    Ready,
}

/// Partitions that may still be worked on in this round.
struct Share {
    used: usize,
}

impl Share {
    /// Whether one more may be.
    fn take<E: Env>(&mut self, context: &Context<E>) -> bool {
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
    pub(super) parts: Vec<Part>,
    phase: Phase,
    /// Bytes that are there, as far as they count.
    total: u64,
    /// Monotonic time at which the client wants an answer all the same.
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
    let mut fetch = Box::new(PendingFetch::new(context, to, &view));
    fetch.look_again(view.max_wait_ms <= 0);
    fetch.run(context, place);
    Ok(Verdict::Overlap(Pending::Fetch(fetch)))
}

impl PendingFetch {
    fn new<E: Env>(context: &Rc<Context<E>>, to: ReplyTo, view: &FetchView<'_>) -> Self {
        let (session, wanted, error) = match begin_session(context, view) {
            Ok((session, wanted)) => (session, wanted, ErrorCode::None),
            Err(error) => (SessionUse::NONE, Vec::new(), error),
        };
        let bytes = |value: i32| usize::try_from(value).unwrap_or(0);
        let max_bytes = bytes(view.max_bytes).min(context.fetch_bytes_max);
        // More than fits would wait for the deadline each time (checklist 47).
        let min_bytes = if wanted.is_empty() { 0 } else { bytes(view.min_bytes).min(max_bytes) };
        let wait_ms = u64::try_from(view.max_wait_ms).unwrap_or(0);
        Self {
            to,
            error,
            session,
            terms: Terms {
                isolation: Isolation::from_wire(view.isolation_level),
                replica: view.replica_id >= 0,
            },
            max_bytes,
            min_bytes: min_bytes as u64,
            parts: wanted.into_iter().map(Part::new).collect(),
            phase: Phase::Ready,
            total: 0,
            answer_by: context.owner.env().monotonic() + Duration::from_millis(wait_ms),
            deadline: None,
            pauses: false,
        }
    }

    /// Starts a pass over all partitions; `anyway` answers with too little as
    /// well.
    fn look_again(&mut self, anyway: bool) {
        self.phase = Phase::Looking(Look { left: self.max_bytes, anyway, ..Look::default() });
    }

    /// Works until there is something to wait for, or the slice is over.
    fn run<E: Env>(&mut self, context: &Rc<Context<E>>, place: Place) {
        let mut share = Share { used: 0 };
        while !self.pauses {
            let done = match &mut self.phase {
                Phase::Looking(_) => self.look(context, place, &mut share),
                Phase::Registering(_) => self.register(context, place, &mut share),
                Phase::Telling(_) => self.tell(context, &mut share),
                Phase::Waiting | Phase::Reading(_) | Phase::Ready => return,
            };
            if !done {
                self.pauses = true;
                context.owner.mailbox().next_round(place);
            }
        }
    }

    /// Looks at partitions; `false` when the slice is over.
    fn look<E: Env>(&mut self, context: &Rc<Context<E>>, place: Place, share: &mut Share) -> bool {
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
            let reads = look.cold.len();
            cold::start(context.owner.logs().clone(), context.owner.clone(), place, look.cold);
            Phase::Reading(reads)
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
        true
    }

    /// Tells the session what the answer will say; `false` when the slice is
    /// over.
    fn tell<E: Env>(&mut self, context: &Rc<Context<E>>, share: &mut Share) -> bool {
        let Phase::Telling(next) = &mut self.phase else { unreachable!("it tells") };
        if let Some(key) = self.deadline.take() {
            context.owner.mailbox().cancel(key);
        }
        let mut sessions = context.sessions.borrow_mut();
        while self.session.id != 0
            && let Some(part) = self.parts.get_mut(*next)
        {
            if !share.take(context) {
                return false;
            }
            let told = Told {
                high_watermark: part.bounds.map_or(-1, |b| b.high_watermark.0),
                log_start: part.bounds.map_or(-1, |b| b.log_start.0),
            };
            let has_records = matches!(part.state, State::Found(_));
            let index = part.wanted.partition;
            let news = sessions.tell(self.session.id, &part.topic, index, told, has_records);
            let plain = matches!(part.state, State::Empty | State::Found(_));
            part.silent = self.session.incremental && plain && !news;
            *next += 1;
        }
        self.phase = Phase::Ready;
        true
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
                let Phase::Reading(left) = &mut self.phase else {
                    unreachable!("only a fetch that reads is read for")
                };
                *left -= 1;
                self.parts[index as usize].state = match batches {
                    Ok(slices) => State::Found(slices),
                    Err(ErrorCode::None) => State::Empty,
                    Err(error) => State::Failed(error),
                };
                if *left == 0 {
                    self.phase = Phase::Telling(0);
                }
            }
            PendingEvent::Appended { .. } | PendingEvent::Answer(_) | PendingEvent::Abandon(_) => {
                unreachable!("a fetch waits for data alone")
            }
        }
        self.run(context, place);
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
            Phase::Looking(look) => look.anyway = true,
            Phase::Registering(_) | Phase::Waiting => self.look_again(true),
            // The answer is on its way.
            Phase::Reading(_) | Phase::Telling(_) | Phase::Ready => {}
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
    /// Looks at one partition.
    fn at<E: Env>(&mut self, part: &mut Part, context: &Rc<Context<E>>, terms: Terms) {
        let bytes = match part.look(context, terms, self.left, !self.any) {
            // The next batch does not fit: not served, so it keeps its turn;
            // but what waits there is no less than fits.
            Some(ReadOutcome::Hot(slices)) if slices.is_empty() => {
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

fn begin_session<E: Env>(
    context: &Rc<Context<E>>,
    view: &FetchView<'_>,
) -> Result<(SessionUse, Vec<Wanted>), ErrorCode> {
    let wanted = view
        .topics()
        .flat_map(|topic| {
            let key = TopicKey::of(&topic.topic);
            topic.partitions().map(move |partition| Wanted { topic: key.clone(), partition })
        })
        .collect();
    let mut forgotten = view.forgotten().flat_map(|topic| {
        let key = TopicKey::of(&topic.topic);
        topic.partitions().map(move |index| (key.clone(), index)).collect::<Vec<_>>()
    });
    context.sessions.borrow_mut().begin(SessionRequest {
        id: view.session_id,
        epoch: view.session_epoch,
        by_id: view.version >= crate::wire::topic_ref::TOPIC_ID_FROM,
        wanted,
        forgotten: &mut forgotten,
        random: context.owner.env().random(),
    })
}
