//! The partition itself: admits appends, follows their durability, takes
//! them back.
//!
//! Owner: one shard. Invariants: the order of [`Offsets`]; an offset is
//! acknowledged only when what its acks asked for is reached; the high
//! watermark never goes back and nothing below it is ever truncated.

use super::acks::{AckQueue, AckToken, Acks, AppendOutcome, Completed};
use super::offsets::Offsets;
use super::producers::{ProducerBatch, ProducerStates, Verdict};
use super::replicator::{Local, Replicator};
use super::waiters::{FetchWaiters, Growth, Wake};
use crate::model::{ErrorCode, LeaderEpoch, Offset, ProducerId, Timestamp};
use crate::record::BatchSummary;

/// How a partition begins: what recovery or creation found.
#[derive(Debug)]
pub struct PartitionInit {
    /// Epoch of the leadership that begins now.
    pub epoch: LeaderEpoch,
    /// First readable offset.
    pub log_start: Offset,
    /// Everything below is committed; on one node all that recovery kept.
    pub high_watermark: Offset,
    /// End of the recovered log, all of it durable.
    pub log_end: Offset,
    /// Producer state at `log_end`.
    pub producers: ProducerStates,
}

/// What changed, for the caller to pass on. Reused: the caller drains it.
#[derive(Debug, Default)]
pub struct Effects {
    /// Acknowledgements that are over; of one kind in offset order.
    pub completed: Vec<Completed>,
    /// Fetches that must look again.
    pub wake: Vec<Wake>,
    /// The high watermark, when it moved.
    pub high_watermark: Option<Offset>,
    /// The last stable offset, when it moved.
    pub last_stable: Option<Offset>,
}

/// Offsets given to a batch that the log has not taken yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// Offset of the first record: patch it into the batch.
    pub base_offset: Offset,
    /// Offset after the last record.
    pub end_offset: Offset,
    /// Leader epoch: patch it into the batch.
    pub epoch: LeaderEpoch,
    size: u64,
    producer: Option<ProducerBatch>,
}

/// The answer to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admitted {
    /// Append it, then call [`Partition::appended`].
    Append(Admission),
    /// It was appended before. Append nothing; answer with these, but only
    /// after [`Partition::wait_for_ack`] on `end_offset`: the first copy may
    /// still be in flight.
    Duplicate {
        /// Where the first copy's first record is.
        base_offset: Offset,
        /// After the first copy's last record.
        end_offset: Offset,
        /// Timestamp of the first copy, for `log_append_time_ms`.
        timestamp: Timestamp,
    },
}

/// One partition on its owner shard.
#[derive(Debug)]
pub struct Partition<R = Local> {
    epoch: LeaderEpoch,
    epoch_start: Offset,
    leading: bool,
    offsets: Offsets,
    producers: ProducerStates,
    /// Wait for the local disk.
    for_durable: AckQueue,
    /// Wait for the high watermark.
    for_commit: AckQueue,
    pub(super) growth: Growth,
    pub(super) waiters: FetchWaiters,
    replicator: R,
}

impl Partition<Local> {
    /// A partition with one replica, leading.
    #[must_use]
    pub fn new(init: PartitionInit) -> Self {
        Self::with_replicator(init, Local)
    }
}

impl<R: Replicator> Partition<R> {
    /// A partition, leading, whose commits `replicator` decides.
    #[must_use]
    pub fn with_replicator(init: PartitionInit, replicator: R) -> Self {
        let PartitionInit { epoch, log_start, high_watermark, log_end, mut producers } = init;
        producers.settle(high_watermark);
        let offsets = Offsets {
            log_start,
            last_stable: high_watermark,
            high_watermark,
            durable: log_end,
            log_end,
        };
        let mut partition = Self {
            epoch,
            epoch_start: log_end,
            leading: true,
            offsets,
            producers,
            for_durable: AckQueue::default(),
            for_commit: AckQueue::default(),
            growth: Growth::new(high_watermark),
            waiters: FetchWaiters::new(),
            replicator,
        };
        partition.offsets.last_stable = partition.stable_bound();
        partition.offsets.assert_ordered();
        // The sizes of recovered batches are not known here: a byte for each
        // record that somebody cannot see yet wakes whoever waits.
        let last_stable = partition.offsets.last_stable;
        partition.growth = Growth::new(last_stable);
        for (from, to) in [(last_stable, high_watermark), (high_watermark, log_end)] {
            if from < to {
                partition.growth.append(to, (to.0 - from.0).unsigned_abs());
            }
        }
        partition.growth.show(high_watermark, last_stable);
        partition
    }

    /// The five offsets.
    #[must_use]
    pub const fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// Epoch of the leadership.
    #[must_use]
    pub const fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// Log end when this leadership began.
    #[must_use]
    pub const fn epoch_start(&self) -> Offset {
        self.epoch_start
    }

    /// Whether appends are taken here.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.leading
    }

    /// The producers, to look at.
    #[must_use]
    pub const fn producers(&self) -> &ProducerStates {
        &self.producers
    }

    /// Acknowledgements that wait.
    #[cfg(test)]
    pub(super) fn pending_acks(&self) -> usize {
        self.for_durable.len() + self.for_commit.len()
    }

    /// Fetches that wait.
    #[cfg(test)]
    pub(super) fn waiting_fetches(&self) -> usize {
        self.waiters.len()
    }

    /// Gives offsets to a validated client batch, or recognises it. Changes
    /// nothing: when the log then refuses the bytes, nothing has happened.
    /// With log-append time, `batch.max_timestamp` is already that time.
    ///
    /// # Errors
    /// `NotLeaderOrFollower`, `NotEnoughReplicas`, and those of
    /// [`ProducerStates::check`].
    pub fn admit(&self, batch: &BatchSummary, acks: Acks) -> Result<Admitted, ErrorCode> {
        if !self.leading {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        self.replicator.may_append(acks)?;
        let producer = producer_batch(batch, self.offsets.log_end);
        match &producer {
            Some(producer) => {
                if let Verdict::Duplicate(known) = self.producers.check(producer)? {
                    return Ok(Admitted::Duplicate {
                        base_offset: known.first_offset(),
                        end_offset: known.last_offset.plus(1),
                        timestamp: known.timestamp,
                    });
                }
            }
            // A transaction needs a producer id.
            None if batch.is_transactional => return Err(ErrorCode::InvalidRecord),
            None => {}
        }
        Ok(Admitted::Append(Admission {
            base_offset: self.offsets.log_end,
            end_offset: self.offsets.log_end.plus(i64::from(batch.last_offset_delta) + 1),
            epoch: self.epoch,
            size: batch.size as u64,
            producer,
        }))
    }

    /// The log has taken an admitted batch. With an `ack`, its token comes
    /// back in `effects` once the acks are reached, possibly in this call.
    pub fn appended(
        &mut self,
        admission: &Admission,
        ack: Option<(AckToken, Acks)>,
        effects: &mut Effects,
    ) {
        assert!(
            admission.base_offset == self.offsets.log_end && admission.epoch == self.epoch,
            "stale admission {admission:?} at {:?} in epoch {}",
            self.offsets,
            self.epoch
        );
        if let Some(producer) = &admission.producer {
            self.producers.apply(producer);
        }
        self.offsets.log_end = admission.end_offset;
        self.growth.append(admission.end_offset, admission.size);
        if let Some((token, acks)) = ack {
            self.wait_for_ack(admission.base_offset, admission.end_offset, token, acks, effects);
        }
        let committed = self.replicator.appended(self.offsets.log_end, self.offsets.durable);
        self.commit(committed, effects);
    }

    /// Waits until `acks` is reached for the batch `base..end`; completes in
    /// this call when it is already.
    pub fn wait_for_ack(
        &mut self,
        base: Offset,
        end: Offset,
        token: AckToken,
        acks: Acks,
        effects: &mut Effects,
    ) {
        let (queue, reached) = match acks {
            Acks::None => return,
            Acks::Leader => (&mut self.for_durable, self.offsets.durable),
            Acks::All => (&mut self.for_commit, self.offsets.high_watermark),
        };
        if end <= reached {
            let outcome = AppendOutcome::Committed { base_offset: base };
            effects.completed.push(Completed { token, outcome });
        } else {
            queue.push(end, base, token);
        }
    }

    /// The request's deadline passed: ends one acknowledgement with
    /// [`AppendOutcome::Timeout`], unless it is over already.
    pub fn time_out(&mut self, end: Offset, token: AckToken, effects: &mut Effects) {
        if self.for_durable.cancel(end, token) || self.for_commit.cancel(end, token) {
            effects.completed.push(Completed { token, outcome: AppendOutcome::Timeout });
        }
    }

    /// Everything below `upto` is durable on this node.
    pub fn durable(&mut self, upto: Offset, effects: &mut Effects) {
        assert!(upto <= self.offsets.log_end, "durable {upto} beyond {:?}", self.offsets);
        if upto <= self.offsets.durable {
            return;
        }
        self.offsets.durable = upto;
        self.for_durable.advance(upto, &mut effects.completed);
        let committed = self.replicator.durable(self.offsets.log_end, upto);
        self.commit(committed, effects);
    }

    /// Everything below `upto` is committed. The local replicator gets here
    /// by itself; a replicated one when its majority answers.
    pub fn commit(&mut self, upto: Offset, effects: &mut Effects) {
        if upto <= self.offsets.high_watermark {
            return;
        }
        self.offsets.high_watermark = upto;
        effects.high_watermark = Some(upto);
        self.producers.settle(upto);
        let stable = self.stable_bound();
        if stable > self.offsets.last_stable {
            self.offsets.last_stable = stable;
            effects.last_stable = Some(stable);
        }
        self.offsets.assert_ordered();
        self.for_commit.advance(upto, &mut effects.completed);
        self.growth.show(upto, self.offsets.last_stable);
        self.waiters.advance(&self.growth, &mut effects.wake);
    }

    /// Takes back the offsets from `to` on, because another leader's log
    /// holds others there. Producer state goes back to what it was.
    ///
    /// Panics below the high watermark, and inside a batch.
    pub fn truncate(&mut self, to: Offset, effects: &mut Effects) {
        let offsets = &mut self.offsets;
        assert!(to >= offsets.high_watermark, "truncation to {to} of committed {offsets:?}");
        if to >= offsets.log_end {
            return;
        }
        assert!(
            to == offsets.high_watermark || self.growth.is_boundary(to),
            "truncation to {to} inside a batch"
        );
        offsets.log_end = to;
        offsets.durable = offsets.durable.min(to);
        self.producers.truncate(to);
        self.growth.truncate(to);
        self.for_durable.truncate(to, &mut effects.completed);
        self.for_commit.truncate(to, &mut effects.completed);
        self.waiters.wake_all(&mut effects.wake);
        self.offsets.assert_ordered();
    }

    /// Leadership ends: nothing is acknowledged any more, fetches look again.
    pub fn resign(&mut self, effects: &mut Effects) {
        self.leading = false;
        self.for_durable.fail_all(AppendOutcome::NotLeader, &mut effects.completed);
        self.for_commit.fail_all(AppendOutcome::NotLeader, &mut effects.completed);
        self.waiters.wake_all(&mut effects.wake);
    }

    /// Leadership begins, in an epoch above every earlier one.
    pub fn lead(&mut self, epoch: LeaderEpoch) {
        assert!(epoch > self.epoch, "epoch {epoch} after {}", self.epoch);
        self.epoch = epoch;
        self.epoch_start = self.offsets.log_end;
        self.leading = true;
    }

    /// Retention or DeleteRecords moved the log start, never beyond the high
    /// watermark. Producer state stays, as in Kafka.
    pub fn advance_log_start(&mut self, to: Offset, effects: &mut Effects) {
        assert!(to <= self.offsets.high_watermark, "log start {to} beyond {:?}", self.offsets);
        if to <= self.offsets.log_start {
            return;
        }
        self.offsets.log_start = to;
        if to > self.offsets.last_stable {
            self.offsets.last_stable = to;
            self.growth.show(self.offsets.high_watermark, to);
            effects.last_stable = Some(to);
        }
        self.waiters.wake_all(&mut effects.wake);
    }

    /// Forgets idle producers (`producer.id.expiration.ms`); returns how many.
    pub fn expire_producers(&mut self, now: Timestamp, expiration_ms: i64) -> usize {
        self.producers.expire(now, expiration_ms)
    }

    /// Producer state at the log end as the bytes of a `.snapshot` file, and
    /// that offset.
    #[must_use]
    pub fn snapshot(&self) -> (Offset, Vec<u8>) {
        (self.offsets.log_end, self.producers.to_snapshot())
    }

    fn stable_bound(&self) -> Offset {
        let high_watermark = self.offsets.high_watermark;
        let undecided = self.producers.first_undecided().unwrap_or(high_watermark);
        undecided.max(self.offsets.log_start).min(high_watermark)
    }
}

/// The producer's side of a batch at `base_offset`; `None` when it is not
/// idempotent. Recovery feeds the batches after a snapshot through this into
/// [`ProducerStates::apply`].
#[must_use]
pub fn producer_batch(batch: &BatchSummary, base_offset: Offset) -> Option<ProducerBatch> {
    (batch.producer_id != ProducerId::NONE).then_some(ProducerBatch {
        producer_id: batch.producer_id,
        producer_epoch: batch.producer_epoch,
        base_sequence: batch.base_sequence,
        base_offset,
        last_offset_delta: batch.last_offset_delta,
        max_timestamp: batch.max_timestamp,
        is_transactional: batch.is_transactional,
        is_control: batch.is_control,
    })
}
