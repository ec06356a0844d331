//! One partition of a fetch: what is wanted of it and what was found.

use std::rc::Rc;

use crate::io::Env;
use crate::log::{ReadOutcome, Slices};
use crate::model::{ErrorCode, LeaderEpoch, Offset, PartitionIndex};
use crate::partition::{FetchToken, Interest, Isolation};
use crate::shard::{Bounds, OwnedPartition, Place, Reading};
use crate::wire::generated::fetch::{EpochEndOffset, FetchPartition};
use crate::wire::{FetchOutcome, RecordsRef, TopicRef};

use super::super::context::Context;
use super::super::sessions::{TopicKey, Wanted};

/// What is known about one partition of the request.
pub(super) enum State {
    /// Nobody has looked for it.
    New,
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

pub(super) struct Part {
    pub(super) topic: TopicKey,
    pub(super) wanted: FetchPartition,
    partition: Option<Rc<OwnedPartition>>,
    pub(super) bounds: Option<Bounds>,
    pub(super) state: State,
    /// Bytes that count towards what the client waits for.
    pub(super) counted: u64,
    /// From where the partition's reports count, when it was looked at.
    seen: u64,
    /// Registration with the partition while the fetch waits.
    pub(super) token: Option<FetchToken>,
    /// Left out of an incremental reply.
    pub(super) silent: bool,
}

/// What all partitions of a request share.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) isolation: Isolation,
    /// A replica asks, and none may.
    pub(super) replica: bool,
}

impl Part {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            topic: wanted.topic,
            wanted: wanted.partition,
            partition: None,
            bounds: None,
            state: State::New,
            counted: 0,
            seen: 0,
            token: None,
            silent: false,
        }
    }

    /// Most bytes that the client takes of it.
    pub(super) fn max_bytes(&self) -> usize {
        usize::try_from(self.wanted.partition_max_bytes).unwrap_or(0)
    }

    /// Bytes of it that could still count.
    pub(super) fn room(&self) -> u64 {
        (self.max_bytes() as u64).saturating_sub(self.counted)
    }

    /// Whether the answer cannot wait for it.
    pub(super) fn is_failed(&self) -> bool {
        matches!(self.state, State::Failed(_) | State::Diverging(_))
    }

    /// The bounds that the answer carries: none with an error.
    pub(super) fn told_bounds(&self) -> Option<Bounds> {
        self.bounds.filter(|_| !matches!(self.state, State::Failed(_)))
    }

    fn find<E: Env>(&mut self, context: &Context<E>, terms: Terms) {
        let topic = match self.topic.reference() {
            TopicRef::Name(name) => context.owner.topic(&name),
            TopicRef::Id(id) => context.owner.topic_by_id(id),
        };
        let index = PartitionIndex(self.wanted.partition);
        self.partition = topic.as_ref().and_then(|topic| topic.partition(index));
        let by_id = matches!(self.topic, TopicKey::Id(_));
        self.state = match (&topic, &self.partition) {
            // No other node replicates from this one yet.
            _ if terms.replica => State::Failed(ErrorCode::NotLeaderOrFollower),
            (None, _) if by_id => State::Failed(ErrorCode::UnknownTopicId),
            (_, None) => State::Failed(ErrorCode::UnknownTopicOrPartition),
            _ => State::Empty,
        };
        if self.is_failed() {
            self.partition = None;
        }
    }

    /// Looks at the partition; `None` when it has nothing, or failed. `left`
    /// bytes may still be read, whatever they are for the `first` with data.
    pub(super) fn look<E: Env>(
        &mut self,
        context: &Context<E>,
        terms: Terms,
        left: usize,
        first: bool,
    ) -> Option<ReadOutcome> {
        self.stop_waiting(context);
        self.counted = 0;
        if matches!(self.state, State::New) {
            self.find(context, terms);
        }
        let partition = self.partition.clone()?;
        let offset = Offset(self.wanted.fetch_offset);
        self.state = State::Empty;
        self.bounds = Some(context.owner.bounds(&partition));
        self.seen = partition.with(|machine| machine.seen_bytes(offset, terms.isolation));
        context.counters.partitions_read.add(1);
        match self.read(context, &partition, terms.isolation, self.max_bytes().min(left), first) {
            Ok(Reading::Found(outcome)) => Some(outcome),
            Ok(Reading::Nothing) => None,
            Err(state) => {
                self.state = state;
                None
            }
        }
    }

    fn read<E: Env>(
        &self,
        context: &Context<E>,
        partition: &OwnedPartition,
        isolation: Isolation,
        max_bytes: usize,
        first: bool,
    ) -> Result<Reading, State> {
        let epoch = LeaderEpoch(self.wanted.current_leader_epoch);
        let offset = Offset(self.wanted.fetch_offset);
        let last_fetched = LeaderEpoch(self.wanted.last_fetched_epoch);
        partition.with(|machine| machine.check_epoch(epoch)).map_err(State::Failed)?;
        let parted = context.owner.diverging(partition, last_fetched, offset);
        if let Some((epoch, end)) = parted.map_err(State::Failed)? {
            return Err(State::Diverging(EpochEndOffset { epoch: epoch.0, end_offset: end.0 }));
        }
        if max_bytes == 0 && !first {
            // Bounds are checked all the same (checklist 48).
            let bounds = partition.with(|machine| machine.fetch_bounds(offset, isolation));
            return bounds.map(|_| Reading::Nothing).map_err(State::Failed);
        }
        let read = context.owner.read(partition, offset, isolation, max_bytes, first);
        read.map_err(State::Failed)
    }

    /// Registers with the partition, for what came since it was looked at.
    pub(super) fn wait<E: Env>(
        &mut self,
        context: &Context<E>,
        at: (Place, u32),
        isolation: Isolation,
        interest: Interest,
    ) {
        // What was found is read again then; held meanwhile, it could be the
        // very memory for which producers wait.
        self.state = State::Empty;
        if let Some(partition) = &self.partition {
            let token = context.owner.wait_for_data(partition, at, self.seen, isolation, interest);
            self.token = Some(token);
        }
    }

    pub(super) fn stop_waiting<E: Env>(&mut self, context: &Context<E>) {
        if let (Some(partition), Some(token)) = (&self.partition, self.token.take()) {
            context.owner.cancel_wait(partition, token);
        }
    }

    /// What the reply says of it; its records have this number.
    pub(super) fn outcome(&self, number: usize, isolation: Isolation) -> FetchOutcome<'_> {
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
            State::New | State::Empty | State::Reading => {}
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
