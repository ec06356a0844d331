//! DeleteRecords (KIP-107): the log start moves up (checklist 107). The files
//! go with the next look at retention.

use std::collections::HashMap;
use std::rc::Rc;

use crate::io::Env;
use crate::model::topic_name::is_internal;
use crate::model::{ErrorCode, Offset};
use crate::partition::Isolation;
use crate::shard::OwnedPartition;
use crate::wire::generated::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest,
    DeleteRecordsResponse, DeleteRecordsTopic, DeleteRecordsTopicResult,
};

use super::super::context::{Context, Request};
use super::support::{NEVER_THROTTLED, as_known, change, owned_partition};

/// The offset in a request that means the high watermark.
const HIGH_WATERMARK: i64 = -1;

/// Low watermark in an answer that has an error.
const NO_WATERMARK: i64 = -1;

/// Raises log starts; all partitions of a request with one write.
pub(in crate::server) async fn delete<E: Env>(
    request: &Request<E>,
    body: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let context = &request.context;
    let mut moves = Vec::new();
    let mut topics = Vec::new();
    for topic in merged(body.topics) {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            if context.owner.env().slice_over() {
                context.owner.env().pause().await;
            }
            let found = target(context, &topic.name, asked);
            partitions.push((asked.partition_index, found.as_ref().err().copied()));
            moves.extend(found);
        }
        topics.push((topic.name, partitions));
    }
    let (done, throttle_time_ms) = advance(request, &moves, body.timeout_ms).await;
    let mut moved = moves.into_iter();
    let mut result = |(partition_index, refused): (i32, Option<ErrorCode>)| {
        let outcome = match refused {
            Some(code) => Err(code),
            None => {
                let (partition, _) = moved.next().expect("one for each that was not refused");
                done.map(|()| partition.with(|machine| machine.offsets().log_start))
            }
        };
        DeleteRecordsPartitionResult {
            partition_index,
            low_watermark: outcome.map_or(NO_WATERMARK, |start| start.0),
            error_code: outcome.err().unwrap_or(ErrorCode::None).code(),
        }
    };
    let mut answered = Vec::with_capacity(topics.len());
    for (name, partitions) in topics {
        let partitions = partitions.into_iter().map(&mut result).collect();
        answered.push(DeleteRecordsTopicResult { name, partitions });
    }
    DeleteRecordsResponse { topics: answered, throttle_time_ms }
}

/// Makes the moves, all with one write; what the client is told of them, and how
/// long it is to wait.
async fn advance<E: Env>(
    request: &Request<E>,
    moves: &[(Rc<OwnedPartition>, Offset)],
    timeout_ms: i32,
) -> (Result<(), ErrorCode>, i32) {
    if moves.is_empty() {
        return (Ok(()), 0);
    }
    let (owner, moves) = (request.context.owner.clone(), moves.to_vec());
    let advanced = async move { owner.advance_log_starts(&moves).await };
    match change(&request.context, timeout_ms, advanced).await {
        Ok(Ok(())) => (Ok(()), 0),
        Ok(Err(error)) => {
            tracing::warn!("records were not deleted: {error}");
            (Err(ErrorCode::KafkaStorageError), 0)
        }
        Err(refused) => {
            let (refused, throttle_time_ms) = as_known(refused, request.version, NEVER_THROTTLED);
            (Err(refused.code), throttle_time_ms)
        }
    }
}

/// Each topic and each partition once, the last offset asked for, as Kafka
/// reads the request.
fn merged(topics: Vec<DeleteRecordsTopic>) -> Vec<DeleteRecordsTopic> {
    let mut out: Vec<DeleteRecordsTopic> = Vec::with_capacity(topics.len());
    let mut by_name: HashMap<String, usize> = HashMap::new();
    let mut by_partition: HashMap<(usize, i32), usize> = HashMap::new();
    for DeleteRecordsTopic { name, partitions } in topics {
        let at = *by_name.entry(name.clone()).or_insert_with(|| {
            out.push(DeleteRecordsTopic { name, partitions: Vec::new() });
            out.len() - 1
        });
        let known = &mut out[at].partitions;
        for partition in partitions {
            let place = by_partition.entry((at, partition.partition_index)).or_insert_with(|| {
                known.push(partition.clone());
                known.len() - 1
            });
            known[*place].offset = partition.offset;
        }
    }
    out
}

/// The partition, and where its log shall begin.
fn target<E: Env>(
    context: &Context<E>,
    topic: &str,
    asked: &DeleteRecordsPartition,
) -> Result<(Rc<OwnedPartition>, Offset), ErrorCode> {
    let partition = owned_partition(context, topic, asked.partition_index)?;
    if is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let cleanup = partition.topic.config().cleanup;
    if cleanup.compact && !cleanup.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    let (leads, watermark) = partition
        .with(|machine| (machine.is_leader(), machine.upper_bound(Isolation::ReadUncommitted)));
    if !leads {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    Ok((partition, bounded(asked.offset, watermark)?))
}

fn bounded(asked: i64, watermark: Offset) -> Result<Offset, ErrorCode> {
    match asked {
        HIGH_WATERMARK => Ok(watermark),
        0.. if asked <= watermark.0 => Ok(Offset(asked)),
        _ => Err(ErrorCode::OffsetOutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::Sim;
    use crate::model::TopicConfig;
    use crate::server::handlers::testing::image;
    use crate::server::testing::{Plan, Rig};

    #[test]
    fn c107_offsets_that_may_be_asked_for() {
        let refused = Err(ErrorCode::OffsetOutOfRange);
        for (asked, want) in [
            (-1, Ok(Offset(7))),
            (0, Ok(Offset(0))),
            (7, Ok(Offset(7))),
            (8, refused),
            (-2, refused),
            (i64::MIN, refused),
            (i64::MAX, refused),
        ] {
            assert_eq!(bounded(asked, Offset(7)), want, "{asked}");
        }
    }

    #[test]
    fn c107_a_partition_named_twice_is_answered_once() {
        let partition =
            |partition_index, offset| DeleteRecordsPartition { partition_index, offset };
        let topic = |name: &str, partitions| DeleteRecordsTopic { name: name.into(), partitions };
        let asked = vec![
            topic("a", vec![partition(0, 1), partition(1, 2), partition(0, 3)]),
            topic("b", vec![]),
            topic("a", vec![partition(1, 4), partition(2, 5)]),
        ];
        let want = vec![
            topic("a", vec![partition(0, 3), partition(1, 4), partition(2, 5)]),
            topic("b", vec![]),
        ];
        assert_eq!(merged(asked), want);
    }

    #[test]
    fn c107_a_slow_disk_is_waited_for_as_long_as_the_client_says() {
        const VERSION: i16 = 2;
        let sim = Sim::new(1);
        sim.run_until(async {
            let topics = vec![("t", 1, TopicConfig::default())];
            let plan = Plan { topics, image: image(&[("t", 1)]), ..Plan::default() };
            let mut rig = Rig::new(sim.env(), plan).await;
            let client = rig.connect();
            rig.append(client, 0, 100).await;
            let ask = |timeout_ms| DeleteRecordsRequest {
                topics: vec![DeleteRecordsTopic {
                    name: "t".into(),
                    partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }],
                }],
                timeout_ms,
            };
            let result = |answer: DeleteRecordsResponse| {
                let partition = &answer.topics[0].partitions[0];
                (partition.error_code, partition.low_watermark)
            };
            sim.knobs(|knobs| knobs.io_us = 5_000_000);
            let id = rig.send(client, VERSION, &ask(1500));
            let answer = rig.answer::<DeleteRecordsRequest>(client, VERSION, id).await;
            assert_eq!(result(answer), (ErrorCode::RequestTimedOut.code(), NO_WATERMARK));
            // It happens all the same.
            let id = rig.send(client, VERSION, &ask(60_000));
            let answer = rig.answer::<DeleteRecordsRequest>(client, VERSION, id).await;
            assert_eq!(result(answer), (0, 1));
        });
    }
}
