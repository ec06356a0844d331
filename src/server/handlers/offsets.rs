//! ListOffsets (KIP-79, KIP-207, KIP-320, KIP-734) and OffsetForLeaderEpoch
//! (KIP-101, KIP-320).

use ahash::{AHashMap, AHashSet};

use crate::io::Env;
use crate::log::TimestampOffset;
use crate::model::{ErrorCode, LeaderEpoch, Offset, Timestamp};
use crate::partition::{Isolation, ListOffset, OffsetSpec};
use crate::shard::OwnedPartition;
use crate::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopic, ListOffsetsTopicResponse,
};
use crate::wire::generated::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};

use super::super::context::{Context, Request};
use super::support::owned_partition;

/// First version with leader epochs in answers.
const EPOCH_FROM: i16 = 4;

/// First version whose clients know OFFSET_NOT_AVAILABLE (KIP-207).
const NOT_AVAILABLE_FROM: i16 = 5;

/// What is known of an offset that was asked for; -1 throughout for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    offset: Offset,
    timestamp: Timestamp,
    epoch: LeaderEpoch,
}

const NOTHING: Answer =
    Answer { offset: Offset(-1), timestamp: Timestamp::NONE, epoch: LeaderEpoch::NONE };

impl From<TimestampOffset> for Answer {
    fn from(found: TimestampOffset) -> Self {
        Self { offset: found.offset, timestamp: found.timestamp, epoch: found.epoch }
    }
}

/// Finds offsets by time, and the ends of partitions.
pub(in crate::server) async fn list<E: Env>(
    request: &Request<E>,
    body: ListOffsetsRequest,
) -> ListOffsetsResponse {
    let (context, version) = (&request.context, request.version);
    let isolation = Isolation::from_wire(body.isolation_level);
    let mut duplicates = Duplicates::of(&body.topics);
    let mut topics = Vec::with_capacity(body.topics.len());
    for topic in body.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in topic.partitions {
            if context.owner.env().slice_over() {
                context.owner.env().pause().await;
            }
            let answer = match duplicates.judge(&topic.name, partition.partition_index) {
                Mention::Only => lookup(context, version, &topic.name, &partition, isolation).await,
                Mention::FirstOfMany => Err(ErrorCode::InvalidRequest),
                Mention::Again => continue,
            };
            partitions.push(listed(version, partition.partition_index, answer));
        }
        topics.push(ListOffsetsTopicResponse { name: topic.name, partitions });
    }
    ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }
}

/// How often a request names a partition. Like Kafka's, an answer has each
/// once, and those named twice are refused (checklist 61).
struct Duplicates(AHashMap<(String, i32), bool>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mention {
    Only,
    FirstOfMany,
    Again,
}

impl Duplicates {
    fn of(topics: &[ListOffsetsTopic]) -> Self {
        let mut seen = AHashSet::new();
        let mut duplicates = AHashMap::new();
        for topic in topics {
            for partition in &topic.partitions {
                if !seen.insert((topic.name.as_str(), partition.partition_index)) {
                    duplicates.insert((topic.name.clone(), partition.partition_index), false);
                }
            }
        }
        Self(duplicates)
    }

    fn judge(&mut self, topic: &str, partition: i32) -> Mention {
        if self.0.is_empty() {
            return Mention::Only;
        }
        match self.0.get_mut(&(topic.to_owned(), partition)) {
            None => Mention::Only,
            Some(answered) => {
                if std::mem::replace(answered, true) {
                    Mention::Again
                } else {
                    Mention::FirstOfMany
                }
            }
        }
    }
}

async fn lookup<E: Env>(
    context: &Context<E>,
    version: i16,
    topic: &str,
    asked: &ListOffsetsPartition,
    isolation: Isolation,
) -> Result<Answer, ErrorCode> {
    let spec = OffsetSpec::from_wire(asked.timestamp, version)?;
    let partition = owned_partition(context, topic, asked.partition_index)?;
    let found = partition.with(|machine| {
        machine.check_epoch(LeaderEpoch(asked.current_leader_epoch))?;
        machine.list_offset(spec, isolation)
    })?;
    let search = async |at: Timestamp, upper: Offset| {
        context.owner.logs().offset_for_timestamp(partition.log, at, upper).await
    };
    let searched = match found {
        ListOffset::Nothing => return Ok(NOTHING),
        ListOffset::Bound(offset) => {
            let epoch = epoch_of_bound(context, &partition, spec);
            return Ok(Answer { offset, timestamp: Timestamp::NONE, epoch });
        }
        ListOffset::Search { at, upper } => search(at, upper).await,
        ListOffset::SearchMax { upper } => newest(async |at| search(at, upper).await).await,
    };
    match searched {
        Ok(found) => Ok(found.map_or(NOTHING, Answer::from)),
        Err(error) => {
            tracing::warn!("offset of {topic}-{} by time: {error}", asked.partition_index);
            Err(ErrorCode::KafkaStorageError)
        }
    }
}

/// The epoch of the record at a bound, or of the one that will be there.
fn epoch_of_bound<E: Env>(
    context: &Context<E>,
    partition: &OwnedPartition,
    spec: OffsetSpec,
) -> LeaderEpoch {
    if spec == OffsetSpec::Latest {
        return partition.with(|machine| machine.epoch());
    }
    let start = partition.with(|machine| machine.offsets().log_start);
    context.owner.logs().epoch_at(partition.log, start).unwrap_or(LeaderEpoch::NONE)
}

/// The first record with the largest timestamp (KIP-734), by searches for "not
/// older than": doubling steps, then halves, 126 at most.
async fn newest<Error>(
    mut find: impl AsyncFnMut(Timestamp) -> Result<Option<TimestampOffset>, Error>,
) -> Result<Option<TimestampOffset>, Error> {
    let Some(mut best) = find(Timestamp(0)).await? else { return Ok(None) };
    let mut step = 1_i64;
    // Nothing is as new as this.
    let mut beyond = loop {
        if best.timestamp.0 == i64::MAX {
            return Ok(Some(best));
        }
        let at = best.timestamp.0.saturating_add(step);
        match find(Timestamp(at)).await? {
            Some(found) => best = found,
            None => break at,
        }
        step = step.saturating_mul(2);
    };
    while beyond - best.timestamp.0 > 1 {
        let at = best.timestamp.0 + (beyond - best.timestamp.0) / 2;
        match find(Timestamp(at)).await? {
            Some(found) => best = found,
            None => beyond = at,
        }
    }
    Ok(Some(best))
}

fn listed(
    version: i16,
    partition_index: i32,
    answer: Result<Answer, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    match answer {
        Ok(answer) => ListOffsetsPartitionResponse {
            partition_index,
            error_code: ErrorCode::None.code(),
            timestamp: answer.timestamp.0,
            offset: answer.offset.0,
            leader_epoch: if version >= EPOCH_FROM { answer.epoch.0 } else { -1 },
        },
        Err(code) => {
            let code = match code {
                ErrorCode::OffsetNotAvailable if version < NOT_AVAILABLE_FROM => {
                    ErrorCode::LeaderNotAvailable
                }
                other => other,
            };
            ListOffsetsPartitionResponse {
                partition_index,
                error_code: code.code(),
                ..ListOffsetsPartitionResponse::default()
            }
        }
    }
}

/// Says where leader epochs end, for clients that look for truncation.
pub(in crate::server) async fn for_leader_epoch<E: Env>(
    request: &Request<E>,
    body: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let context = &request.context;
    let mut topics = Vec::with_capacity(body.topics.len());
    for topic in body.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            if context.owner.env().slice_over() {
                context.owner.env().pause().await;
            }
            let answer = end_of_epoch(context, &topic.topic, &asked);
            partitions.push(epoch_end(asked.partition, answer));
        }
        topics.push(OffsetForLeaderTopicResult { topic: topic.topic, partitions });
    }
    OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }
}

fn end_of_epoch<E: Env>(
    context: &Context<E>,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
    let partition = owned_partition(context, topic, asked.partition)?;
    partition.with(|machine| machine.check_epoch(LeaderEpoch(asked.current_leader_epoch)))?;
    Ok(context.owner.logs().end_of_epoch(partition.log, LeaderEpoch(asked.leader_epoch)))
}

/// An unknown epoch is no error: -1 and -1 (checklist 62).
fn epoch_end(
    partition: i32,
    answer: Result<Option<(LeaderEpoch, Offset)>, ErrorCode>,
) -> EpochEndOffset {
    match answer {
        Ok(None) => EpochEndOffset { partition, ..EpochEndOffset::default() },
        Ok(Some((epoch, end))) => EpochEndOffset {
            error_code: ErrorCode::None.code(),
            partition,
            leader_epoch: epoch.0,
            end_offset: end.0,
        },
        Err(code) => {
            EpochEndOffset { error_code: code.code(), partition, ..EpochEndOffset::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Message, Reader};
    use futures_lite::future::block_on;
    use proptest::prelude::*;

    fn searched(timestamps: &[i64]) -> (Option<TimestampOffset>, usize) {
        let mut searches = 0;
        let found = block_on(newest(async |at: Timestamp| {
            searches += 1;
            let index = timestamps.iter().position(|ts| *ts >= at.0);
            Ok::<_, ()>(index.map(|index| TimestampOffset {
                offset: Offset(i64::try_from(index).unwrap()),
                timestamp: Timestamp(timestamps[index]),
                epoch: LeaderEpoch(3),
            }))
        }));
        (found.unwrap(), searches)
    }

    fn newest_by_scan(timestamps: &[i64]) -> Option<i64> {
        let most = *timestamps.iter().filter(|ts| **ts >= 0).max()?;
        timestamps.iter().position(|ts| *ts == most).map(|index| i64::try_from(index).unwrap())
    }

    #[test]
    fn c60_the_newest_record_is_found_in_few_searches() {
        for timestamps in [
            &[][..],
            &[-1, -1],
            &[0],
            &[5, 5, 5],
            &[i64::MAX, 3],
            &[3, i64::MAX - 1],
            &[1_700_000_000_000, 1_700_000_600_000, 1_700_000_300_000, 1_700_000_600_000],
        ] {
            let (found, searches) = searched(timestamps);
            assert_eq!(found.map(|f| f.offset.0), newest_by_scan(timestamps), "{timestamps:?}");
            assert!(searches <= 130, "{searches} searches in {timestamps:?}");
        }
    }

    proptest! {
        #[test]
        fn c60_the_newest_record_is_that_of_a_scan(
            timestamps in prop::collection::vec(
                prop_oneof![0_i64..20, any::<i64>(), 1_700_000_000_000_i64..1_700_000_001_000], 0..40)
        ) {
            let (found, searches) = searched(&timestamps);
            prop_assert_eq!(found.map(|f| f.offset.0), newest_by_scan(&timestamps));
            prop_assert!(searches <= 130);
        }
    }

    fn topics(names: &[(&str, &[i32])]) -> Vec<ListOffsetsTopic> {
        let partition = |index: &i32| ListOffsetsPartition {
            partition_index: *index,
            ..ListOffsetsPartition::default()
        };
        let topic = |(name, partitions): &(&str, &[i32])| ListOffsetsTopic {
            name: (*name).into(),
            partitions: partitions.iter().map(partition).collect(),
        };
        names.iter().map(topic).collect()
    }

    #[test]
    fn c61_a_partition_named_twice_is_refused_once() {
        let mut duplicates =
            Duplicates::of(&topics(&[("a", &[0, 1, 0]), ("b", &[0]), ("a", &[0])]));
        assert_eq!(duplicates.judge("a", 0), Mention::FirstOfMany);
        assert_eq!(duplicates.judge("a", 1), Mention::Only);
        assert_eq!(duplicates.judge("a", 0), Mention::Again);
        assert_eq!(duplicates.judge("b", 0), Mention::Only);
        assert_eq!(duplicates.judge("a", 0), Mention::Again);
        assert_eq!(Duplicates::of(&topics(&[("a", &[0, 1])])).judge("a", 0), Mention::Only);
    }

    #[test]
    fn c61_old_clients_are_told_that_the_leader_is_not_available() {
        for (version, code) in [(1, 5), (4, 5), (5, 78), (11, 78)] {
            let response = listed(version, 0, Err(ErrorCode::OffsetNotAvailable));
            assert_eq!(response.error_code, code, "version {version}");
        }
    }

    #[test]
    fn c58_c59_answers_fit_every_version() {
        let found = Answer { offset: Offset(7), timestamp: Timestamp(9), epoch: LeaderEpoch(2) };
        for version in 1..=11 {
            let partitions = vec![
                listed(version, 0, Ok(found)),
                listed(version, 1, Ok(NOTHING)),
                listed(version, 2, Err(ErrorCode::UnknownTopicOrPartition)),
            ];
            let topics = vec![ListOffsetsTopicResponse { name: "t".into(), partitions }];
            let response = ListOffsetsResponse { topics, ..ListOffsetsResponse::default() };
            let bytes = response.encode(version).unwrap();
            let back = ListOffsetsResponse::decode(Reader::new(&bytes), version).unwrap();
            let seen: Vec<_> = back.topics[0]
                .partitions
                .iter()
                .map(|p| (p.error_code, p.offset, p.timestamp, p.leader_epoch))
                .collect();
            let epoch = if version >= 4 { 2 } else { -1 };
            assert_eq!(seen, [(0, 7, 9, epoch), (0, -1, -1, -1), (3, -1, -1, -1)]);
        }
    }

    #[test]
    fn c62_an_unknown_epoch_is_no_error() {
        let seen = |answer| {
            let end = epoch_end(4, answer);
            (end.error_code, end.partition, end.leader_epoch, end.end_offset)
        };
        assert_eq!(seen(Ok(None)), (0, 4, -1, -1));
        assert_eq!(seen(Ok(Some((LeaderEpoch(2), Offset(30))))), (0, 4, 2, 30));
        assert_eq!(seen(Err(ErrorCode::FencedLeaderEpoch)), (74, 4, -1, -1));
    }
}
