//! One blocking connection for what is not load: topics, offsets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use millstream::wire::frame::write_request;
use millstream::wire::generated::create_topics::{CreatableTopic, CreateTopicsRequest};
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use millstream::wire::generated::metadata::{MetadataRequest, MetadataRequestTopic};
use millstream::wire::{Message as _, Reader, Request, ResponseHeader};

use crate::Result;

/// What the load calls itself.
pub(crate) const CLIENT_ID: &str = "millstream-perf";

/// Longest wait for one answer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(30);

const CREATE_TOPICS_VERSION: i16 = 7;
const METADATA_VERSION: i16 = 12;
const LIST_OFFSETS_VERSION: i16 = 7;
/// Kafka's number for a topic that is there already.
const TOPIC_ALREADY_EXISTS: i16 = 36;
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

    /// Finds a topic, or creates it with `partitions` partitions.
    pub(crate) fn topic(&mut self, name: &str, partitions: i32) -> Result<Topic> {
        let wanted = CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: -1,
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

    /// End offset of each partition from 0.
    pub(crate) fn ends(&mut self, topic: &Topic, partitions: i32) -> Result<Vec<i64>> {
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
                return Err(format!("ListOffsets: {partition:?}").into());
            }
            ends[usize::try_from(partition.partition_index)?] = partition.offset;
        }
        Ok(ends)
    }
}

/// A connected socket that sends at once.
pub(crate) fn connect(broker: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(broker).map_err(|e| format!("cannot reach {broker}: {e}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
