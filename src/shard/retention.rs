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

/// Time that producer snapshots made in a round have to be committed. What they
/// are wanted for waits for the next round otherwise.
const COMMIT_WAIT: Duration = Duration::from_secs(1);

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
        let mut forgotten = Vec::new();
        for (partition, to) in moves {
            forgotten.push(!self.remember_producers(partition, *to).await);
        }
        let goes = |(known, forgotten): &(&(Rc<OwnedPartition>, Offset), &bool)| {
            **forgotten || self.remembers_producers(&known.0, known.1)
        };
        if !moves.iter().zip(&forgotten).all(|one| goes(&one)) {
            self.env().sleep(COMMIT_WAIT).await;
        }
        let going = moves.iter().zip(&forgotten).filter(goes);
        let logs: Vec<_> = going.map(|((partition, _), _)| partition.log).collect();
        self.logs().drop_segments(&logs).await
    }

    /// Whether the next start knows all producers without the segments before
    /// `to`, whatever a crash leaves of the log's tail.
    fn remembers_producers(&self, partition: &OwnedPartition, to: Offset) -> bool {
        let known = self.logs().newest_snapshot(partition.log);
        known.is_none_or(|at| at >= to) || partition.with(|m| m.producers().is_empty())
    }

    /// What the producers' state follows from is about to go: unless a later
    /// snapshot is there, one is made. `false` when there can be none and the
    /// segments are to go all the same, since the disk is full.
    async fn remember_producers(&self, partition: &OwnedPartition, to: Offset) -> bool {
        if self.remembers_producers(partition, to) {
            return true;
        }
        let (at, bytes) = partition.with(|machine| machine.snapshot());
        let (topic, index) = (&partition.topic.name, partition.index);
        match self.logs().put_producer_snapshot(partition.log, bytes, at).await {
            Ok(()) | Err(Error::Gone) => true,
            Err(error @ Error::NoSpace { .. }) => {
                tracing::warn!(
                    "producers of {topic}-{index} that sent nothing since offset {to} will be \
                     forgotten by the next start: {error}"
                );
                false
            }
            Err(error) => {
                tracing::warn!("retention of {topic}-{index} waits: its producers: {error}");
                true
            }
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::io::ring::Bell;
    use crate::io::sim::{Sim, SimEnv};
    use crate::io::{FileSystem as _, Pool};
    use crate::log::{
        DurabilityClass, KnownLog, LogConfig, LogPools, LogSet, LogSetConfig, ReserveSize,
    };
    use crate::model::{
        LeaderEpoch, LogId, PartitionIndex, ProducerEpoch, ProducerId, ShardId, Timestamp,
        TopicConfig, TopicId,
    };
    use crate::partition::producers::ProducerStates;
    use crate::partition::{Acks, Partition, PartitionInit};
    use crate::record::{BatchBuilder, BatchView, Compression, NewRecord};
    use crate::shard::owner::{Appending, Waiter};
    use crate::shard::{Mailbox, RoundEnd as _};

    const TOPIC_ID: TopicId = TopicId([5; 16]);

    /// An owner of one partition with segments of 64 KiB, none of which is to
    /// stay for longer than 100 ms.
    async fn owned(env: &SimEnv) -> (Rc<Owner<SimEnv>>, Rc<OwnedPartition>) {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        let pool = |name| Pool::new(name, 8 << 20).unwrap();
        let pools = LogPools {
            tail: pool("tail"),
            journal: pool("journal"),
            cold: pool("cold"),
            upkeep: pool("upkeep"),
        };
        let config = LogSetConfig {
            reserve: ReserveSize::Fixed(0),
            ..LogSetConfig::new("/data".into(), ShardId(0), pools)
        };
        let (logs, _) = LogSet::recover(env.clone(), config, &[]).await.unwrap();
        let config =
            LogConfig { segment_bytes: 64 * 1024, retention_ms: 100, ..LogConfig::default() };
        let name: Arc<str> = "events".into();
        let known = KnownLog {
            log_id: LogId(7),
            topic: name.clone(),
            partition: PartitionIndex(0),
            topic_id: TOPIC_ID,
            class: DurabilityClass::Disk,
            epoch_to_start: Some(LeaderEpoch(1)),
            config,
        };
        let log = logs.create(&known).await.unwrap();
        let machine = Partition::new(PartitionInit {
            epoch: LeaderEpoch(1),
            log_start: Offset::ZERO,
            high_watermark: Offset::ZERO,
            log_end: Offset::ZERO,
            producers: ProducerStates::default(),
        });
        let owner = Owner::new(env.clone(), logs, Mailbox::new(Bell::default()));
        let topic = owner.add_topic(&name, TOPIC_ID, Arc::new(TopicConfig::default()));
        let partition = owner.add_partition(&topic, PartitionIndex(0), log, machine);
        (owner, partition)
    }

    fn append(owner: &Owner<SimEnv>, partition: &OwnedPartition, sequence: i32) {
        let mut builder = BatchBuilder::new(Compression::None).producer(
            ProducerId(1),
            ProducerEpoch(0),
            sequence,
        );
        let value = vec![b'x'; 900];
        builder.push(&NewRecord {
            timestamp: Timestamp(1),
            value: Some(&value),
            ..NewRecord::default()
        });
        let bytes = builder.build().unwrap();
        let summary = BatchView::parse(&bytes).unwrap().0.summary().unwrap();
        let waiter = Waiter::Task(once().0);
        let done = owner.append(partition, &bytes, &summary, Acks::None, waiter).unwrap();
        assert!(matches!(done, Appending::Waiting { .. }));
    }

    async fn until_committed(owner: &Owner<SimEnv>, partition: &OwnedPartition) {
        loop {
            owner.end_round();
            let (_, _, end) = owner.logs().bounds(partition.log).unwrap();
            if owner.bounds(partition).high_watermark == end {
                return;
            }
            owner.env().sleep(Duration::from_millis(1)).await;
        }
    }

    /// A crash may lose what a snapshot was taken of, and the snapshot with it:
    /// a start must find the producers in the segments then.
    #[test]
    fn segments_stay_until_a_snapshot_of_their_producers_is_committed() {
        let sim = Sim::new(3);
        let env = sim.env();
        sim.run_until(async {
            let (owner, partition) = owned(&env).await;
            for sequence in 0..200 {
                append(&owner, &partition, sequence);
                until_committed(&owner, &partition).await;
            }
            let to = owner.logs().retained_from(partition.log, 10_000).await.unwrap().unwrap();
            assert_eq!(to, Offset(200), "all are old");
            append(&owner, &partition, 200);
            let moves = [(partition.clone(), to)];
            assert_eq!(owner.let_go(&moves).await.unwrap(), 0, "the snapshot is of offset 201");
            until_committed(&owner, &partition).await;
            assert!(owner.let_go(&moves).await.unwrap() > 2);
        });
    }
}
