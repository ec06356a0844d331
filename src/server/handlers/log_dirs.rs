//! DescribeLogDirs (KIP-113, KIP-827): the one data directory, its room, and
//! the sizes of the partitions in it.

use std::collections::BTreeMap;

use crate::io::Env;
use crate::model::{ErrorCode, PartitionIndex, TopicId};
use crate::wire::generated::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsRequest,
    DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

use super::super::context::{Context, Request};

/// Partitions that a client asks for: ascending, none twice; `None` for all.
type Wanted = Option<BTreeMap<String, Vec<i32>>>;

/// Describes the data directory. Partitions that are not in it are left out,
/// as in Kafka.
pub(in crate::server) async fn describe<E: Env>(
    request: &Request<E>,
    body: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let context = &request.context;
    let wanted = body.topics.map(sorted);
    let names: Vec<String> = match &wanted {
        Some(wanted) => wanted.keys().cloned().collect(),
        None => context.metadata.image().topics().map(|topic| topic.name.to_string()).collect(),
    };
    let mut topics = Vec::new();
    for name in names {
        give_way(context).await;
        let partitions = partitions(context, &name, &wanted).await;
        if !partitions.is_empty() {
            topics.push(DescribeLogDirsTopic { name, partitions });
        }
    }
    let logs = context.owner.logs();
    let (error, space) = match logs.space().await {
        Ok(space) => (ErrorCode::None, Some(space)),
        Err(error) => {
            tracing::error!("the data directory cannot be described: {error}");
            (ErrorCode::KafkaStorageError, None)
        }
    };
    let bytes = |of: fn(&crate::io::Space) -> u64| {
        space.as_ref().map_or(-1, |space| i64::try_from(of(space)).unwrap_or(i64::MAX))
    };
    let result = DescribeLogDirsResult {
        error_code: error.code(),
        log_dir: logs.data_dir().display().to_string(),
        topics,
        total_bytes: bytes(|space| space.total),
        usable_bytes: bytes(|space| space.usable),
        is_cordoned: false,
    };
    DescribeLogDirsResponse { results: vec![result], ..Default::default() }
}

fn sorted(topics: Vec<DescribableLogDirTopic>) -> BTreeMap<String, Vec<i32>> {
    let mut out: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for topic in topics {
        out.entry(topic.topic).or_default().extend(topic.partitions);
    }
    for partitions in out.values_mut() {
        partitions.sort_unstable();
        partitions.dedup();
    }
    out
}

async fn give_way<E: Env>(context: &Context<E>) {
    if context.owner.env().slice_over() {
        context.owner.env().pause().await;
    }
}

/// The partitions of a topic that are here, with their sizes. Gives way between
/// any two of them: one may have a hundred thousand segments to add up, and a
/// topic as many partitions.
async fn partitions<E: Env>(
    context: &Context<E>,
    name: &str,
    wanted: &Wanted,
) -> Vec<DescribeLogDirsPartition> {
    let Some((id, count)) = topic(context, name) else { return Vec::new() };
    let Some(topic) = context.owner.topic_by_id(id) else { return Vec::new() };
    let indexes = match wanted.as_ref().and_then(|wanted| wanted.get(name)) {
        Some(asked) => asked.clone(),
        None => (0..count).collect(),
    };
    let mut sized = Vec::new();
    for index in indexes {
        give_way(context).await;
        let Some(partition) = topic.partition(PartitionIndex(index)) else { continue };
        let Some(size) = context.owner.logs().size(partition.log) else { continue };
        sized.push(DescribeLogDirsPartition {
            partition_index: index,
            partition_size: i64::try_from(size).unwrap_or(i64::MAX),
            // Of a replica against its partition's high watermark: none.
            offset_lag: 0,
            is_future_key: false,
        });
    }
    sized
}

fn topic<E: Env>(context: &Context<E>, name: &str) -> Option<(TopicId, i32)> {
    let image = context.metadata.image();
    let topic = image.topic(name)?;
    Some((topic.id, i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::image;
    use super::*;
    use crate::io::sim::Sim;
    use crate::model::TopicConfig;
    use crate::server::testing::{Plan, Rig};

    #[test]
    fn a_topic_of_many_partitions_gives_way_between_them() {
        const PARTITIONS: i32 = 50;
        let sim = Sim::new(1);
        sim.run_until(async {
            let topics = vec![("t", PARTITIONS, TopicConfig::default())];
            let plan = Plan { topics, image: image(&[("t", PARTITIONS)]), ..Plan::default() };
            let rig = Rig::new(sim.env(), plan).await;
            sim.knobs(|knobs| knobs.slice_over = 1000);
            let wanted = Some(sorted(vec![DescribableLogDirTopic {
                topic: "t".into(),
                partitions: (0..PARTITIONS).collect(),
            }]));
            for wanted in [None, wanted] {
                let before = rig.env.monotonic();
                let found = partitions(&rig.context, "t", &wanted).await;
                assert_eq!(found.len(), 50);
                let pause = Duration::from_nanos(200);
                assert!(rig.env.monotonic() - before >= pause * 50, "a pause for each");
            }
        });
    }

    #[test]
    fn partitions_asked_for_twice_are_told_once() {
        let topic = |name: &str, partitions: &[i32]| DescribableLogDirTopic {
            topic: name.into(),
            partitions: partitions.to_vec(),
        };
        let found = sorted(vec![topic("b", &[2, 0, 2]), topic("a", &[]), topic("b", &[1, 0])]);
        let found: Vec<_> = found.into_iter().collect();
        assert_eq!(found, [("a".to_owned(), vec![]), ("b".to_owned(), vec![0, 1, 2])]);
    }
}
