//! One blocking connection for what is not load: topics, offsets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use millstream::wire::frame::write_request;
use millstream::wire::generated::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use millstream::wire::generated::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use millstream::wire::generated::metadata::{MetadataRequest, MetadataRequestTopic};
use millstream::wire::{Message as _, Reader, Request, ResponseHeader};

use crate::Result;
use crate::options::Target;

/// What the load calls itself.
pub(crate) const CLIENT_ID: &str = "millstream-perf";

/// Longest wait for one answer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(30);

const CREATE_TOPICS_VERSION: i16 = 7;
const DELETE_TOPICS_VERSION: i16 = 6;
const METADATA_VERSION: i16 = 12;
const LIST_OFFSETS_VERSION: i16 = 7;
/// Kafka's number for a topic that is there already.
const TOPIC_ALREADY_EXISTS: i16 = 36;
/// Kafka's numbers for a partition that is not there yet: unknown topic or
/// partition, no leader, not the leader, unknown topic id.
const NOT_YET: [i16; 4] = [3, 5, 6, 100];
/// Wait before a partition is asked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Asks ListOffsets for the end.
const LATEST: i64 = -1;

/// A connection.
pub(crate) struct Plain {
    stream: TcpStream,
    next_id: i32,
}

/// A topic as the load addresses it.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    /// Its name.
    pub(crate) name: String,
    /// Its id (KIP-516).
    pub(crate) id: [u8; 16],
}

impl Plain {
    /// Connects.
    pub(crate) fn connect(broker: SocketAddr) -> Result<Self> {
        let stream = connect(broker)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Self { stream, next_id: 0 })
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn ask<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.next_id += 1;
        let mut frame = Vec::new();
        write_request(&mut frame, version, self.next_id, Some(CLIENT_ID), request)?;
        self.stream.write_all(&frame)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        frame.resize(usize::try_from(i32::from_be_bytes(length))?, 0);
        self.stream.read_exact(&mut frame)?;
        let mut reader = Reader::new(&frame);
        let header = ResponseHeader::read(&mut reader, R::KEY, version)?;
        if header.correlation_id != self.next_id {
            return Err(
                format!("answer {} to request {}", header.correlation_id, self.next_id).into()
            );
        }
        Ok(R::Response::decode(reader, version)?)
    }

    /// Finds a topic, or creates it with `partitions` partitions and `configs`.
    pub(crate) fn topic(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(String, String)],
    ) -> Result<Topic> {
        let configs = configs.iter().map(|(key, value)| CreatableTopicConfig {
            name: key.clone(),
            value: Some(value.clone()),
        });
        let wanted = CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: -1,
            configs: configs.collect(),
            ..Default::default()
        };
        let request =
            CreateTopicsRequest { topics: vec![wanted], timeout_ms: 30_000, ..Default::default() };
        let answer = self.ask(CREATE_TOPICS_VERSION, &request)?;
        let made = answer.topics.first().ok_or("CreateTopics answered nothing")?;
        match made.error_code {
            0 => Ok(Topic { name: name.into(), id: made.topic_id }),
            TOPIC_ALREADY_EXISTS => self.existing(name, partitions),
            code => Err(format!("creating {name}: error {code} {:?}", made.error_message).into()),
        }
    }

    fn existing(&mut self, name: &str, partitions: i32) -> Result<Topic> {
        let named = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![named]), ..Default::default() };
        let answer = self.ask(METADATA_VERSION, &request)?;
        let found = answer.topics.first().ok_or("Metadata answered nothing")?;
        if found.error_code != 0 || found.partitions.len() < usize::try_from(partitions)? {
            let (code, have) = (found.error_code, found.partitions.len());
            return Err(format!("topic {name} has {have} partitions, error {code}").into());
        }
        Ok(Topic { name: name.into(), id: found.topic_id })
    }

    /// End offset of each partition from 0. A topic that was just created may
    /// not have led partitions yet: it waits for them.
    pub(crate) fn ends(&mut self, topic: &Topic, partitions: i32) -> Result<Vec<i64>> {
        let until = Instant::now() + ANSWER_MAX;
        loop {
            match self.try_ends(topic, partitions)? {
                Ok(ends) => return Ok(ends),
                Err(code) if NOT_YET.contains(&code) && Instant::now() < until => {
                    std::thread::sleep(AGAIN_AFTER);
                }
                Err(code) => {
                    return Err(format!("ListOffsets of {}: error {code}", topic.name).into());
                }
            }
        }
    }

    /// The ends, or the error code of the first partition that has one.
    fn try_ends(
        &mut self,
        topic: &Topic,
        partitions: i32,
    ) -> Result<std::result::Result<Vec<i64>, i16>> {
        let asked = (0..partitions).map(|index| ListOffsetsPartition {
            partition_index: index,
            current_leader_epoch: -1,
            timestamp: LATEST,
        });
        let topics =
            vec![ListOffsetsTopic { name: topic.name.clone(), partitions: asked.collect() }];
        let request = ListOffsetsRequest { replica_id: -1, topics, ..Default::default() };
        let answer = self.ask(LIST_OFFSETS_VERSION, &request)?;
        let mut ends = vec![-1; usize::try_from(partitions)?];
        for partition in answer.topics.iter().flat_map(|t| &t.partitions) {
            if partition.error_code != 0 {
                return Ok(Err(partition.error_code));
            }
            ends[usize::try_from(partition.partition_index)?] = partition.offset;
        }
        Ok(Ok(ends))
    }
}

/// Deletes a topic.
///
/// # Errors
/// When the broker refuses, or has no such topic.
pub(crate) fn delete(target: &Target) -> Result<()> {
    let state = DeleteTopicState { name: Some(target.topic.clone()), ..Default::default() };
    let request =
        DeleteTopicsRequest { topics: vec![state], timeout_ms: 30_000, ..Default::default() };
    let answer = Plain::connect(target.broker)?.ask(DELETE_TOPICS_VERSION, &request)?;
    match answer.responses.first().map(|response| response.error_code) {
        Some(0) => Ok(()),
        Some(code) => Err(format!("deleting {}: error {code}", target.topic).into()),
        None => Err("DeleteTopics answered nothing".into()),
    }
}

/// A connected socket that sends at once.
pub(crate) fn connect(broker: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(broker).map_err(|e| format!("cannot reach {broker}: {e}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
