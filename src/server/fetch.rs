//! Fetch: reads what is there at once, waits when it is too little, answers
//! with slices of the log.
//!
//! A waiting fetch is registered with every partition that it asks for and has
//! one deadline; a partition that gained its share makes it look again. Cold reads are done by one task per request.

use std::rc::Rc;
use std::time::Duration;

use crate::base::DeadlineKey;
use crate::io::Env;
use crate::log::{ColdRead, ReadOutcome, Slices};
use crate::model::limits::PARTITIONS_PER_DATA_REQUEST_MAX;
use crate::model::{ErrorCode, LeaderEpoch, Offset, PartitionIndex};
use crate::partition::{FetchToken, Isolation};
use crate::shard::{Bounds, Output, OwnedPartition, PendingEvent, Place, Reading, Verdict};
use crate::wire::generated::fetch::{EpochEndOffset, FetchPartition};
use crate::wire::{
    FetchOutcome, FetchResponsePlan, FetchResponseTop, FetchView, Piece, Reader, RecordsRef,
    TopicRef,
};

use super::cold;
use super::context::Context;
use super::pending::Pending;
use super::reply::{self, ReplyTo};
use super::sessions::{SessionRequest, SessionUse, Told, TopicKey, Wanted};

/// What is known about one partition of the request.
enum State {
    /// Nothing to read yet.
    Empty,
    /// Batches.
    Found(Slices),
    /// A task reads it.
    Reading,
    /// Why it cannot be read.
    Failed(ErrorCode),
    /// The reader's log parts from ours here (KIP-595).
    Diverging(EpochEndOffset),
}

struct Part {
    topic: TopicKey,
    wanted: FetchPartition,
    partition: Option<Rc<OwnedPartition>>,
    bounds: Option<Bounds>,
    state: State,
    /// Registration with the partition while the fetch waits.
    token: Option<FetchToken>,
    /// Left out of an incremental reply.
    silent: bool,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Waiting,
    Reading(usize),
    Ready,
}

/// A fetch in flight.
pub struct PendingFetch {
    to: ReplyTo,
    error: ErrorCode,
    session: SessionUse,
    isolation: Isolation,
    max_bytes: usize,
    min_bytes: usize,
    parts: Vec<Part>,
    phase: Phase,
    /// Bytes that still have to come before the answer is worth sending.
    missing: u64,
    deadline: Option<DeadlineKey>,
}

/// Handles a fetch request.
///
/// # Errors
/// Why the connection must be closed.
pub(super) fn start<E: Env>(
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
    fetch.attempt(context, place, false);
    if fetch.phase == Phase::Waiting {
        let wait = Duration::from_millis(u64::try_from(view.max_wait_ms).unwrap_or(0));
        let at = context.owner.env().monotonic() + wait;
        fetch.deadline = Some(context.owner.mailbox().deadline(at, place));
        fetch.wait(context, place);
    }
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
        let mut fetch = Self {
            to,
            error,
            session,
            isolation: Isolation::from_wire(view.isolation_level),
            max_bytes,
            // More than fits would wait for the deadline each time (checklist 47).
            min_bytes: bytes(view.min_bytes).min(max_bytes),
            parts: wanted.into_iter().map(|wanted| Part::find(context, wanted)).collect(),
            phase: Phase::Ready,
            missing: 0,
            deadline: None,
        };
        if view.max_wait_ms <= 0 || fetch.parts.is_empty() {
            fetch.min_bytes = 0;
        }
        if view.replica_id >= 0 {
            // No other node replicates from this one yet.
            fetch.parts.iter_mut().for_each(|p| p.fail(ErrorCode::NotLeaderOrFollower));
        }
        fetch
    }

    /// Reads everything anew; the outcome is ready, being read, or too little.
    /// `anyway` answers with too little as well.
    fn attempt<E: Env>(&mut self, context: &Rc<Context<E>>, place: Place, anyway: bool) {
        let mut left = self.max_bytes;
        let (mut found, mut first, mut failed) = (0, true, false);
        let mut cold = Vec::new();
        for (index, part) in self.parts.iter_mut().enumerate() {
            match part.read(context, self.isolation, left, first) {
                // The next batch does not fit: not served, so it keeps its turn.
                Some(ReadOutcome::Hot(slices)) if slices.is_empty() => {}
                Some(ReadOutcome::Hot(slices)) => {
                    let bytes = slices.iter().map(|s| s.len()).sum::<usize>();
                    found += bytes;
                    left = left.saturating_sub(bytes);
                    first = false;
                    part.state = State::Found(slices);
                }
                Some(ReadOutcome::Cold(read)) => {
                    let bytes = context.owner.logs().cold_bytes_max(&read).min(left);
                    found += bytes.max(1);
                    left = left.saturating_sub(bytes);
                    first = false;
                    part.state = State::Reading;
                    cold.push((u32::try_from(index).expect("parts fit a frame"), read));
                }
                Some(ReadOutcome::Empty | ReadOutcome::OutOfRange) | None => {}
            }
            failed |= matches!(part.state, State::Failed(_) | State::Diverging(_));
        }
        let enough = anyway || failed || found >= self.min_bytes;
        if !enough {
            self.missing = (self.min_bytes - found) as u64;
            self.phase = Phase::Waiting;
            // What was found is read again then; held meanwhile, it could be
            // the very memory for which producers wait.
            self.parts.iter_mut().for_each(|part| part.state = State::Empty);
        } else if cold.is_empty() {
            self.finish(context);
        } else {
            self.phase = Phase::Reading(cold.len());
            read_cold(context, place, cold);
        }
    }

    /// Registers with every partition.
    fn wait<E: Env>(&mut self, context: &Rc<Context<E>>, place: Place) {
        let share = self.missing.div_ceil(self.parts.len().max(1) as u64);
        for part in &mut self.parts {
            part.wait(context, place, self.isolation, share);
        }
    }

    fn stop_waiting<E: Env>(&mut self, context: &Rc<Context<E>>) {
        for part in &mut self.parts {
            if let (Some(partition), Some(token)) = (&part.partition, part.token.take()) {
                context.owner.cancel_wait(partition, token);
            }
        }
    }

    /// Takes what the pump delivers.
    pub(super) fn event<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        place: Place,
        event: PendingEvent,
    ) {
        match (event, &self.phase) {
            (PendingEvent::Wake { .. }, Phase::Waiting) => self.again(context, place, false),
            (PendingEvent::Deadline, Phase::Waiting) => {
                self.deadline = None;
                self.again(context, place, true);
            }
            (PendingEvent::Read { index, batches }, Phase::Reading(left)) => {
                let left = left - 1;
                self.parts[index as usize].state = match batches {
                    Ok(slices) => State::Found(slices),
                    Err(ErrorCode::None) => State::Empty,
                    Err(error) => State::Failed(error),
                };
                self.phase = Phase::Reading(left);
                if left == 0 {
                    self.finish(context);
                }
            }
            // A wait that ended in the round in which the answer was found.
            _ => {}
        }
    }

    fn again<E: Env>(&mut self, context: &Rc<Context<E>>, place: Place, anyway: bool) {
        self.stop_waiting(context);
        self.attempt(context, place, anyway);
        if self.phase == Phase::Waiting {
            self.wait(context, place);
        }
    }

    /// The answer is known: tells the session what it will say.
    fn finish<E: Env>(&mut self, context: &Rc<Context<E>>) {
        self.phase = Phase::Ready;
        if let Some(key) = self.deadline.take() {
            context.owner.mailbox().cancel(key);
        }
        if self.session.id == 0 {
            return;
        }
        let mut sessions = context.sessions.borrow_mut();
        for part in &mut self.parts {
            let told = Told {
                high_watermark: part.bounds.map_or(-1, |b| b.high_watermark.0),
                log_start: part.bounds.map_or(-1, |b| b.log_start.0),
            };
            let has_records = matches!(part.state, State::Found(_));
            let index = part.wanted.partition;
            let news = sessions.tell(self.session.id, &part.topic, index, told, has_records);
            let plain = matches!(part.state, State::Empty | State::Found(_));
            part.silent = self.session.incremental && plain && !news;
        }
    }

    /// Whether the answer is known.
    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The request is given up.
    pub(super) fn forget<E: Env>(mut self, context: &Rc<Context<E>>) {
        self.stop_waiting(context);
        if let Some(key) = self.deadline.take() {
            context.owner.mailbox().cancel(key);
        }
    }

    /// Encodes the reply: heads through `scratch`, records as they are.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(super) fn encode(
        mut self,
        scratch: &mut Vec<u8>,
        out: &mut Output,
    ) -> Result<bool, String> {
        self.parts.retain(|part| !part.silent);
        let mut pieces = Vec::with_capacity(self.parts.len() * 2 + 1);
        let start = reply::begin(scratch, self.to);
        let planned = self.plan(scratch, &mut pieces);
        let planned = planned.and_then(|record_bytes| reply::end(scratch, start, record_bytes));
        planned.map_err(|e| format!("Fetch reply: {e}"))?;
        let mut room = true;
        for piece in pieces {
            match piece {
                Piece::Head(range) => room &= out.write(&scratch[range]),
                Piece::Records(number) => {
                    if let State::Found(slices) = &mut self.parts[number].state {
                        slices.drain(..).for_each(|slice| out.slice(slice));
                    }
                }
            }
        }
        Ok(room)
    }

    fn plan(
        &self,
        scratch: &mut Vec<u8>,
        pieces: &mut Vec<Piece>,
    ) -> Result<usize, crate::wire::WireError> {
        let groups = || self.parts.chunk_by(|a, b| a.topic == b.topic);
        let top = FetchResponseTop {
            throttle_time_ms: 0,
            error_code: self.error,
            session_id: self.session.id,
            topic_count: groups().count(),
        };
        let mut plan = FetchResponsePlan::new(scratch, pieces, self.to.version, top)?;
        let mut number = 0;
        for group in groups() {
            plan.topic(&group[0].topic.reference(), group.len())?;
            for part in group {
                plan.partition(&part.outcome(number, self.isolation))?;
                number += 1;
            }
        }
        plan.finish(&[])
    }
}

impl Part {
    fn find<E: Env>(context: &Rc<Context<E>>, wanted: Wanted) -> Self {
        let topic = match wanted.topic.reference() {
            TopicRef::Name(name) => context.owner.topic(&name),
            TopicRef::Id(id) => context.owner.topic_by_id(id),
        };
        let by_id = matches!(wanted.topic, TopicKey::Id(_));
        let partition =
            topic.as_ref().and_then(|t| t.partition(PartitionIndex(wanted.partition.partition)));
        let mut part = Self {
            topic: wanted.topic,
            wanted: wanted.partition,
            partition,
            bounds: None,
            state: State::Empty,
            token: None,
            silent: false,
        };
        if topic.is_none() && by_id {
            part.fail(ErrorCode::UnknownTopicId);
        } else if part.partition.is_none() {
            part.fail(ErrorCode::UnknownTopicOrPartition);
        }
        part
    }

    fn fail(&mut self, error: ErrorCode) {
        self.partition = None;
        self.state = State::Failed(error);
    }

    fn max_bytes(&self) -> usize {
        usize::try_from(self.wanted.partition_max_bytes).unwrap_or(0)
    }

    /// Looks at the partition; `None` when it has nothing, or failed.
    fn read<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        isolation: Isolation,
        left: usize,
        first: bool,
    ) -> Option<ReadOutcome> {
        let partition = self.partition.clone()?;
        self.state = State::Empty;
        self.bounds = Some(context.owner.bounds(&partition));
        let epoch = LeaderEpoch(self.wanted.current_leader_epoch);
        let offset = Offset(self.wanted.fetch_offset);
        let last_fetched = LeaderEpoch(self.wanted.last_fetched_epoch);
        let checked = partition
            .with(|machine| machine.check_epoch(epoch))
            .and_then(|()| context.owner.diverging(&partition, last_fetched, offset));
        match checked {
            Err(error) => {
                self.state = State::Failed(error);
                return None;
            }
            Ok(Some((epoch, end))) => {
                let end = EpochEndOffset { epoch: epoch.0, end_offset: end.0 };
                self.state = State::Diverging(end);
                return None;
            }
            Ok(None) => {}
        }
        let max_bytes = self.max_bytes().min(left);
        if max_bytes == 0 && !first {
            // Bounds are checked all the same (checklist 48).
            if let Err(error) = partition.with(|m| m.fetch_bounds(offset, isolation)) {
                self.state = State::Failed(error);
            }
            return None;
        }
        match context.owner.read(&partition, offset, isolation, max_bytes, first) {
            Ok(Reading::Found(outcome)) => Some(outcome),
            Ok(Reading::Nothing) => None,
            Err(error) => {
                self.state = State::Failed(error);
                None
            }
        }
    }

    fn wait<E: Env>(
        &mut self,
        context: &Rc<Context<E>>,
        place: Place,
        isolation: Isolation,
        share: u64,
    ) {
        if let Some(partition) = &self.partition {
            let offset = Offset(self.wanted.fetch_offset);
            let token = context.owner.wait_for_data(partition, place, offset, isolation, share);
            self.token = Some(token);
        }
    }

    fn outcome(&self, number: usize, isolation: Isolation) -> FetchOutcome<'_> {
        let mut outcome = FetchOutcome::failed(self.wanted.partition, ErrorCode::None);
        if let Some(bounds) = &self.bounds {
            outcome.high_watermark = bounds.high_watermark.0;
            outcome.last_stable_offset = bounds.last_stable.0;
            outcome.log_start_offset = bounds.log_start.0;
        }
        // Null unless read committed, and then never null (checklist 49).
        outcome.aborted_transactions =
            (isolation == Isolation::ReadCommitted).then_some([].as_slice());
        match &self.state {
            State::Empty | State::Reading => {}
            State::Found(slices) => {
                let length = slices.iter().map(|slice| slice.len()).sum();
                outcome.records = Some(RecordsRef { number, length });
            }
            State::Failed(error) => {
                return FetchOutcome::failed(self.wanted.partition, *error);
            }
            State::Diverging(end) => outcome.diverging_epoch = Some(end.clone()),
        }
        outcome
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

fn read_cold<E: Env>(context: &Rc<Context<E>>, place: Place, reads: Vec<(u32, ColdRead)>) {
    cold::start(context.owner.logs().clone(), context.owner.clone(), place, reads);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Pool;

    fn part(state: State) -> Part {
        let bounds = Bounds {
            log_start: Offset(3),
            high_watermark: Offset(9),
            last_stable: Offset(7),
            epoch: LeaderEpoch(2),
        };
        Part {
            topic: TopicKey::Name("t".into()),
            wanted: FetchPartition { partition: 4, ..FetchPartition::default() },
            partition: None,
            bounds: Some(bounds),
            state,
            token: None,
            silent: false,
        }
    }

    #[test]
    fn c49_the_list_of_aborted_transactions_depends_on_the_isolation() {
        let empty = part(State::Empty);
        let outcome = empty.outcome(0, Isolation::ReadUncommitted);
        assert_eq!(outcome.aborted_transactions, None);
        let outcome = empty.outcome(0, Isolation::ReadCommitted);
        assert_eq!(outcome.aborted_transactions, Some([].as_slice()));
        assert_eq!((outcome.high_watermark, outcome.last_stable_offset), (9, 7));
        assert_eq!((outcome.log_start_offset, outcome.records.unwrap().length), (3, 0));
    }

    #[test]
    fn an_outcome_has_records_or_an_error_or_where_logs_part() {
        let pool = Pool::new("test", 4096).unwrap();
        let mut chunk = pool.take(10).unwrap();
        chunk.extend(b"0123456789");
        let slices = std::iter::repeat_n(chunk.freeze(), 2).collect();
        let found = part(State::Found(slices));
        let outcome = found.outcome(6, Isolation::ReadUncommitted);
        let records = outcome.records.unwrap();
        assert_eq!((records.number, records.length), (6, 20));

        let failed = part(State::Failed(ErrorCode::OffsetOutOfRange));
        let outcome = failed.outcome(0, Isolation::ReadUncommitted);
        assert_eq!((outcome.error_code, outcome.high_watermark), (ErrorCode::OffsetOutOfRange, -1));

        let parted = part(State::Diverging(EpochEndOffset { epoch: 1, end_offset: 5 }));
        let outcome = parted.outcome(0, Isolation::ReadUncommitted);
        assert_eq!(outcome.diverging_epoch.unwrap().end_offset, 5);
        assert_eq!(outcome.records.unwrap().length, 0);
    }
}
