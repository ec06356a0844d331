//! Log starts move up: by age and size of segments now and then, by
//! DeleteRecords on request. The log layer makes a new start durable first,
//! then the machine follows and readers below it are sent away.
//!
//! Owner: the shard of the partitions.

use std::rc::Rc;
use std::time::Duration;

use crate::base::once;
use crate::io::{Env, Task as _};
use crate::log::{Error, Result};
use crate::model::Offset;

use super::owner::{OwnedPartition, Owner};

/// Time from a start to the first look at segments, when the interval is not
/// shorter; Kafka's.
const FIRST_LOOK: Duration = Duration::from_secs(30);

impl<E: Env> Owner<E> {
    /// Raises log starts; durable and in force when it returns.
    ///
    /// # Errors
    /// Those of the log layer; nothing has changed then.
    pub async fn advance_log_starts(&self, moves: &[(Rc<OwnedPartition>, Offset)]) -> Result<()> {
        let logs: Vec<_> = moves.iter().map(|(partition, to)| (partition.log, *to)).collect();
        self.logs().advance_log_starts(&logs).await?;
        moves.iter().for_each(|(partition, _)| self.follow_log_start(partition));
        Ok(())
    }

    /// Lets go of segments that are too old or too many, on every partition.
    pub async fn enforce_retention(&self) {
        let now = self.env().wall_ms();
        let mut moves = Vec::new();
        for partition in self.partitions() {
            match self.logs().retained_from(partition.log, now).await {
                Ok(Some(to)) => moves.push((partition, to)),
                Ok(None) | Err(Error::Gone) => {}
                Err(error) => {
                    let (topic, index) = (&partition.topic.name, partition.index);
                    tracing::warn!("retention of {topic}-{index} waits: {error}");
                }
            }
            if self.env().slice_over() {
                self.env().pause().await;
            }
        }
        if moves.is_empty() {
            return;
        }
        match self.let_go(&moves).await {
            // Nothing, or the broker stops.
            Ok(0) | Err(Error::Gone) => {}
            Ok(count) => {
                tracing::info!("retention: {count} segments of {} partitions", moves.len())
            }
            Err(error) => tracing::warn!("retention waits: {error}"),
        }
    }

    async fn let_go(&self, moves: &[(Rc<OwnedPartition>, Offset)]) -> Result<usize> {
        self.advance_log_starts(moves).await?;
        for (partition, to) in moves {
            self.remember_producers(partition, *to).await;
        }
        let logs: Vec<_> = moves.iter().map(|(partition, _)| partition.log).collect();
        self.logs().drop_segments(&logs).await
    }

    /// What the producers' state follows from is about to go: unless a later
    /// snapshot is there, one is made.
    async fn remember_producers(&self, partition: &OwnedPartition, to: Offset) {
        let known = self.logs().newest_snapshot(partition.log);
        if known.is_none_or(|at| at >= to) || partition.with(|m| m.producers().is_empty()) {
            return;
        }
        let (at, bytes) = partition.with(|machine| machine.snapshot());
        let stored = self.logs().put_producer_snapshot(partition.log, bytes, at).await;
        if let Err(error) = stored
            && !matches!(error, Error::Gone)
        {
            let (topic, index) = (&partition.topic.name, partition.index);
            tracing::warn!(
                "producers of {topic}-{index} that sent nothing since offset {to} will be \
                 forgotten by the next start: {error}"
            );
        }
    }

    /// Enforces retention each `interval` (`log.retention.check.interval.ms`)
    /// until the task is dropped.
    pub fn keep_retention(self: &Rc<Self>, interval: Duration) -> E::Task {
        let (owner, env) = (self.clone(), self.env().clone());
        self.env().spawn(async move {
            env.sleep(interval.min(FIRST_LOOK)).await;
            loop {
                // A task of its own: a round that is dropped in the middle
                // would leave logs marked busy.
                let (giver, done) = once();
                let owner = owner.clone();
                let round = async move {
                    owner.enforce_retention().await;
                    giver.give(());
                };
                env.spawn(round).detach();
                done.await;
                env.sleep(interval).await;
            }
        })
    }
}
