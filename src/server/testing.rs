//! The handlers of a shard on the simulated machine, with connections that go
//! on round by round, as a pump makes them: for the tests of this layer.

use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Image;
use crate::io::ring::{Bell, ConnId};
use crate::io::sim::SimEnv;
use crate::io::{Env, FileSystem, Pool};
use crate::log::{KnownLog, LogPools, LogSet, LogSetConfig};
use crate::model::config::BrokerConfig;
use crate::model::{
    DurabilityClass, LeaderEpoch, LogId, NodeId, Offset, PartitionIndex, ShardId, TopicConfig,
    TopicId,
};
use crate::partition::producers::ProducerStates;
use crate::partition::{Partition, PartitionInit};
use crate::record::{BatchBuilder, Compression, NewRecord};
use crate::shard::metadata::{METADATA_TOPIC, METADATA_TOPIC_ID, log_config, metadata_log};
use crate::shard::replies::ReplyQueue;
use crate::shard::{
    ConnectionHandler, Mailbox, Metadata, Output, Owner, Place, ReplySeq, Resumed, RoundEnd,
    Verdict,
};
use crate::wire::generated::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use crate::wire::{Message, Reader, Request, RequestHeader, ResponseHeader, Writer};

use super::context::{Context, ContextParts};
use super::dispatch::{ConnectionState, Dispatcher};
use super::pending::Pending;

/// A version of produce requests.
pub(super) const PRODUCE: i16 = 9;

/// What a rig is made of.
pub(super) struct Plan {
    /// Name, partitions and settings.
    pub(super) topics: Vec<(&'static str, i32, TopicConfig)>,
    pub(super) image: Image,
    pub(super) tail_bytes: usize,
    pub(super) kept_bytes: usize,
    pub(super) commands_max: usize,
    pub(super) fetch_partitions_max: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            image: Image::default(),
            tail_bytes: 16 << 20,
            kept_bytes: 1 << 20,
            commands_max: 10,
            fetch_partitions_max: 1_000_000,
        }
    }
}

/// One connection of a client.
struct Connection {
    id: ConnId,
    state: ConnectionState,
    input: VecDeque<Vec<u8>>,
    replies: ReplyQueue<Pending>,
    partly: Option<ReplySeq>,
    output: Output,
    closed: Option<String>,
}

/// A shard without sockets.
pub(super) struct Rig {
    pub(super) env: SimEnv,
    pub(super) context: Rc<Context<SimEnv>>,
    pub(super) tail: Pool,
    pub(super) kept: Pool,
    mailbox: Mailbox,
    handler: Rc<Dispatcher<SimEnv>>,
    connections: Vec<Connection>,
    send: Pool,
    next_id: i32,
}

fn pool(name: &'static str, bytes: usize) -> Pool {
    Pool::new(name, bytes).unwrap()
}

impl Rig {
    pub(super) async fn new(env: SimEnv, plan: Plan) -> Self {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        env.fs().sync_dir(Path::new("/")).await.unwrap();
        let tail = pool("tail", plan.tail_bytes);
        let (journal, cold) = (pool("journal", 4 << 20), pool("cold", 16 << 20));
        let upkeep = pool("upkeep", 4 << 20);
        let pools = LogPools { tail: tail.clone(), journal, cold, upkeep };
        let config = LogSetConfig::new("/data".into(), ShardId(0), pools);
        let own = Arc::new(TopicConfig::default());
        let mut known = vec![metadata_log(&own)];
        for (number, (name, partitions, config)) in (1..).zip(&plan.topics) {
            let topic: Arc<str> = (*name).into();
            known.extend((0..*partitions).map(|index| KnownLog {
                log_id: LogId(number * 1_000_000 + index as u64 + 1),
                topic: topic.clone(),
                partition: PartitionIndex(index),
                topic_id: TopicId([number as u8; 16]),
                class: DurabilityClass::Os,
                epoch_to_start: Some(LeaderEpoch(1)),
                config: log_config(config),
            }));
        }
        let (logs, found) = LogSet::recover(env.clone(), config, &known).await.unwrap();
        let mailbox = Mailbox::new(Bell::default());
        let owner = Owner::new(env.clone(), logs, mailbox.clone());
        let mut handles = found.iter().map(|found| found.handle);
        let hidden = owner.hidden_topic(METADATA_TOPIC, METADATA_TOPIC_ID, own);
        let log = handles.next().unwrap();
        let log = owner.add_partition(&hidden, PartitionIndex(0), log, machine());
        for (number, (name, partitions, config)) in (1..).zip(&plan.topics) {
            let id = TopicId([number; 16]);
            let topic = owner.add_topic(&(*name).into(), id, Arc::new(config.clone()));
            for index in 0..*partitions {
                let log = handles.next().unwrap();
                owner.add_partition(&topic, PartitionIndex(index), log, machine());
            }
        }
        let metadata =
            Metadata::new(owner.clone(), NodeId(1), BrokerConfig::default(), plan.image, log);
        let kept = pool("kept", plan.kept_bytes);
        let context = Context::new(ContextParts {
            owner,
            metadata,
            listener: "PLAINTEXT".into(),
            fetch_bytes_max: 1 << 20,
            fetch_sessions_max: 10,
            fetch_partitions_max: plan.fetch_partitions_max,
            commands_max: plan.commands_max,
            kept_pool: kept.clone(),
        });
        let handler = Dispatcher::new(context.clone());
        let send = pool("send", 16 << 20);
        let connections = Vec::new();
        Self { env, context, tail, kept, mailbox, handler, connections, send, next_id: 0 }
    }

    pub(super) fn connect(&mut self) -> usize {
        let id = ConnId::numbered(u32::try_from(self.connections.len()).unwrap());
        self.connections.push(Connection {
            id,
            state: self.handler.open(id, None),
            input: VecDeque::new(),
            replies: ReplyQueue::default(),
            partly: None,
            output: Output::new(self.send.clone()),
            closed: None,
        });
        self.connections.len() - 1
    }

    /// The connection is gone: all that it asked for is given up.
    pub(super) fn disconnect(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        while let Some((seq, pending)) = connection.replies.pop_last() {
            self.handler.forget(Place { conn: connection.id, seq }, pending);
        }
        connection.input.clear();
    }

    /// Leaves a request in a connection's input; returns its correlation id.
    pub(super) fn send<R: Request>(&mut self, at: usize, version: i16, request: &R) -> i32 {
        self.next_id += 1;
        let client_id = Some("test".into());
        let header =
            RequestHeader { key: R::KEY, version, correlation_id: self.next_id, client_id };
        let mut frame = Vec::new();
        header.write(&mut Writer::new(&mut frame)).unwrap();
        frame.extend(request.encode(version).unwrap());
        self.connections[at].input.push_back(frame);
        self.next_id
    }

    /// A turn of each connection, the end of the round, and what came of it.
    pub(super) fn round(&mut self) {
        self.begin();
        self.context.owner.end_round();
        self.deliver();
    }

    /// A round that does not end: nothing becomes durable.
    pub(super) fn turns(&mut self) {
        self.begin();
        self.deliver();
    }

    fn begin(&mut self) {
        self.mailbox.begin_round(self.env.monotonic());
        for connection in &mut self.connections {
            connection.turn(&self.handler);
        }
    }

    fn deliver(&mut self) {
        let mut events = Vec::new();
        while !self.mailbox.is_empty() {
            self.mailbox.swap(&mut events);
            for (place, event) in events.drain(..) {
                let connection = &mut self.connections[place.conn.index()];
                let Some(pending) = connection.replies.get_mut(place.seq) else { continue };
                let told = self.handler.event(place, &mut connection.state, pending, event);
                connection.closed = connection.closed.take().or(told.err());
            }
        }
        for connection in &mut self.connections {
            connection.settle(&self.handler);
        }
    }

    /// Rounds, a millisecond apart, until `done`.
    pub(super) async fn rounds(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..100_000 {
            self.round();
            if done(self) {
                return;
            }
            self.env.sleep(Duration::from_millis(1)).await;
        }
        panic!("it does not come to an end");
    }

    /// The next answer of a connection, which must be to this request.
    pub(super) async fn answer<R: Request>(
        &mut self,
        at: usize,
        version: i16,
        id: i32,
    ) -> R::Response {
        self.rounds(|rig| !rig.connections[at].output.is_empty()).await;
        self.answered::<R>(at, version, id)
    }

    /// As `answer`, of what was answered already.
    pub(super) fn answered<R: Request>(&mut self, at: usize, version: i16, id: i32) -> R::Response {
        let pieces = self.connections[at].output.take(Vec::new());
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        let (length, frame) = bytes.split_first_chunk::<4>().expect("it is answered");
        assert_eq!(u32::from_be_bytes(*length) as usize, frame.len(), "one answer");
        let mut reader = Reader::new(frame);
        let header = ResponseHeader::read(&mut reader, R::KEY, version).unwrap();
        assert_eq!(header.correlation_id, id);
        R::Response::decode(reader, version).unwrap()
    }

    /// Produces one batch to topic `t` and waits for its answer.
    pub(super) async fn append(&mut self, at: usize, index: i32, size: usize) {
        let id = self.send(at, PRODUCE, &produce(index, batch(size)));
        let answer = self.answer::<ProduceRequest>(at, PRODUCE, id).await;
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }

    /// Whether nothing of a connection waits to be sent.
    pub(super) fn is_silent(&self, at: usize) -> bool {
        self.connections[at].output.is_empty()
    }

    /// Requests of a connection that are in flight, and those not started.
    pub(super) fn in_flight(&self, at: usize) -> (usize, usize) {
        (self.connections[at].replies.len(), self.connections[at].input.len())
    }

    /// Why a connection was closed.
    pub(super) fn closed(&self, at: usize) -> Option<&str> {
        self.connections[at].closed.as_deref()
    }
}

impl Connection {
    fn turn(&mut self, handler: &Dispatcher<SimEnv>) {
        while self.closed.is_none()
            && let Some(frame) = self.input.front()
        {
            let place = |seq| Place { conn: self.id, seq };
            if let Some(seq) = self.partly {
                let pending = self.replies.get_mut(seq).unwrap();
                match handler.resume(place(seq), &mut self.state, pending, frame) {
                    Resumed::Done => self.partly = None,
                    Resumed::Again(_) => return,
                    Resumed::Close(reason) => self.closed = Some(reason),
                }
            } else {
                let (at, alone) = (place(self.replies.next_seq()), self.replies.is_empty());
                match handler.frame(at, &mut self.state, frame, alone) {
                    Verdict::Overlap(pending) | Verdict::Alone(pending) => {
                        self.replies.push(pending);
                    }
                    Verdict::Silent => {}
                    Verdict::Partly(pending, _) => {
                        self.partly = Some(self.replies.push(pending));
                        return;
                    }
                    Verdict::Hold => return,
                    Verdict::Close(reason) => self.closed = Some(reason),
                }
            }
            self.input.pop_front();
        }
    }

    fn settle(&mut self, handler: &Dispatcher<SimEnv>) {
        // One answer at a time, so that a test sees each.
        while self.output.is_empty()
            && self.replies.front().is_some_and(|pending| handler.is_ready(pending))
        {
            let pending = self.replies.pop().unwrap();
            handler.encode(&mut self.state, pending, &mut self.output).unwrap();
        }
    }
}

/// A batch of one record with a value of this size.
pub(super) fn batch(size: usize) -> Vec<u8> {
    let value = vec![b'v'; size];
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(&NewRecord { value: Some(&value), ..NewRecord::default() });
    builder.build().unwrap()
}

/// A request of version [`PRODUCE`] that appends records to topic `t`.
pub(super) fn produce(index: i32, records: Vec<u8>) -> ProduceRequest {
    let partition = PartitionProduceData { index, records: Some(records.into()) };
    let topic = TopicProduceData {
        name: "t".into(),
        partition_data: vec![partition],
        ..TopicProduceData::default()
    };
    ProduceRequest { acks: 1, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() }
}

fn machine() -> Partition {
    Partition::new(PartitionInit {
        epoch: LeaderEpoch(1),
        log_start: Offset::ZERO,
        high_watermark: Offset::ZERO,
        log_end: Offset::ZERO,
        producers: ProducerStates::default(),
    })
}
