//! What the metadata log can say.
//!
//! Type numbers and field tags are forever: never reuse one. The layout and
//! the rules for change are in `codec`.

use super::codec::{self, DecodeError, Fields, IGNORABLE_TYPES, Writer};
use crate::model::registration::{Listener, NodeRegistration};
use crate::model::{LeaderEpoch, LogId, NodeId, PartitionIndex, ProducerId, ShardId, TopicId};

/// Name of the feature that gates what this log may say.
pub const FEATURE_NAME: &str = "millstream.metadata";

/// Newest level of [`FEATURE_NAME`] that this version can read and write.
pub const FEATURE_LEVEL: u16 = 1;

/// Version of every record type so far.
const VERSION: u64 = 0;

/// Where one copy of a partition lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// The shard of that node which owns it.
    pub shard: ShardId,
}

/// State of one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionRecord {
    /// Its topic.
    pub topic_id: TopicId,
    /// Its index.
    pub index: PartitionIndex,
    /// This incarnation of its log.
    pub log_id: LogId,
    /// Its leader epoch, unless the node's block is newer.
    pub leader_epoch: LeaderEpoch,
    /// Its copies; the first one leads.
    pub replicas: Vec<Replica>,
}

/// One fact of the metadata log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetadataRecord {
    /// From here on the log may use what this level allows.
    FeatureLevel {
        /// Which feature.
        name: String,
        /// Its level.
        level: u16,
    },
    /// The cluster's name for itself, written once.
    ClusterId {
        /// 22 characters, as Kafka makes them.
        id: String,
    },
    /// A node started or changed its addresses.
    Node(NodeRegistration),
    /// A node started: every partition that it leads is in this epoch, or in
    /// its own if that is newer.
    EpochBlock {
        /// The node.
        node: NodeId,
        /// Epoch of its partitions.
        epoch: LeaderEpoch,
    },
    /// A topic exists, without partitions so far.
    Topic {
        /// Its name.
        name: String,
        /// Its id.
        id: TopicId,
    },
    /// A partition exists, or changed.
    Partition(PartitionRecord),
    /// A topic is gone, with its partitions and configs.
    TopicRemoved {
        /// Its id.
        id: TopicId,
    },
    /// A config of a topic is set, or unset.
    TopicConfig {
        /// The topic.
        id: TopicId,
        /// The key.
        key: String,
        /// The value; none unsets.
        value: Option<String>,
    },
    /// Producer ids that only this node may hand out.
    ProducerIdBlock {
        /// The node.
        node: NodeId,
        /// First id of the block.
        first: ProducerId,
        /// Ids in the block.
        count: i64,
    },
    /// Log ids below `next` are taken.
    LogIds {
        /// First log id that is free.
        next: LogId,
    },
}

/// A record that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// One that this version knows.
    Record(MetadataRecord),
    /// One from a newer version that may be skipped.
    Skipped {
        /// Its type.
        kind: u64,
    },
}

mod kind {
    pub(super) const FEATURE_LEVEL: u64 = 1;
    pub(super) const CLUSTER_ID: u64 = 2;
    pub(super) const NODE: u64 = 3;
    pub(super) const EPOCH_BLOCK: u64 = 4;
    pub(super) const TOPIC: u64 = 5;
    pub(super) const PARTITION: u64 = 6;
    pub(super) const TOPIC_REMOVED: u64 = 7;
    pub(super) const TOPIC_CONFIG: u64 = 8;
    pub(super) const PRODUCER_ID_BLOCK: u64 = 9;
    pub(super) const LOG_IDS: u64 = 10;
}

/// The bytes of a record, as the value of a Kafka record.
#[must_use]
pub fn encode(record: &MetadataRecord) -> Vec<u8> {
    let start = |kind| Writer::record(kind, VERSION);
    let mut out;
    match record {
        MetadataRecord::FeatureLevel { name, level } => {
            out = start(kind::FEATURE_LEVEL);
            out.str(1, name).u64(2, u64::from(*level));
        }
        MetadataRecord::ClusterId { id } => {
            out = start(kind::CLUSTER_ID);
            out.str(1, id);
        }
        MetadataRecord::Node(node) => {
            out = start(kind::NODE);
            encode_node(&mut out, node);
        }
        MetadataRecord::EpochBlock { node, epoch } => {
            out = start(kind::EPOCH_BLOCK);
            out.i64(1, node.0.into()).i64(2, epoch.0.into());
        }
        MetadataRecord::Topic { name, id } => {
            out = start(kind::TOPIC);
            out.str(1, name).bytes(2, &id.0);
        }
        MetadataRecord::Partition(partition) => {
            out = start(kind::PARTITION);
            out.bytes(1, &partition.topic_id.0)
                .i64(2, partition.index.0.into())
                .u64(3, partition.log_id.0)
                .i64(4, partition.leader_epoch.0.into());
            for replica in &partition.replicas {
                out.group(5, |group| {
                    group.i64(1, replica.node.0.into()).i64(2, replica.shard.0.into());
                });
            }
        }
        MetadataRecord::TopicRemoved { id } => {
            out = start(kind::TOPIC_REMOVED);
            out.bytes(1, &id.0);
        }
        MetadataRecord::TopicConfig { id, key, value } => {
            out = start(kind::TOPIC_CONFIG);
            out.bytes(1, &id.0).str(2, key).opt_str(3, value.as_deref());
        }
        MetadataRecord::ProducerIdBlock { node, first, count } => {
            out = start(kind::PRODUCER_ID_BLOCK);
            out.i64(1, node.0.into()).i64(2, first.0).i64(3, *count);
        }
        MetadataRecord::LogIds { next } => {
            out = start(kind::LOG_IDS);
            out.u64(1, next.0);
        }
    }
    out.finish()
}

fn encode_node(out: &mut Writer, node: &NodeRegistration) {
    out.i64(1, node.node_id.0.into())
        .bytes(2, &node.incarnation)
        .opt_str(3, node.rack.as_deref())
        .i64(4, node.shards.into());
    for listener in &node.listeners {
        out.group(5, |group| {
            group
                .str(1, &listener.name)
                .str(2, &listener.host)
                .i64(3, listener.port.into())
                .i64(4, listener.security_protocol.into());
        });
    }
}

/// Reads the value of a Kafka record of the metadata log.
///
/// # Errors
/// When the bytes are damaged, or say something that this version does not
/// know and that must not be skipped.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let (kind, version, body) = codec::open(bytes)?;
    let Some(name) = name_of(kind) else {
        return if kind >= IGNORABLE_TYPES {
            Ok(Decoded::Skipped { kind })
        } else {
            Err(DecodeError::UnknownType(kind))
        };
    };
    if version > VERSION {
        let supported = VERSION;
        return Err(DecodeError::UnknownVersion { record: name, version, supported });
    }
    let mut fields = Fields::parse(name, body)?;
    let record = decode_body(kind, &mut fields)?;
    fields.finish()?;
    Ok(Decoded::Record(record))
}

const fn name_of(kind: u64) -> Option<&'static str> {
    Some(match kind {
        kind::FEATURE_LEVEL => "feature level",
        kind::CLUSTER_ID => "cluster id",
        kind::NODE => "node",
        kind::EPOCH_BLOCK => "epoch block",
        kind::TOPIC => "topic",
        kind::PARTITION => "partition",
        kind::TOPIC_REMOVED => "topic removed",
        kind::TOPIC_CONFIG => "topic config",
        kind::PRODUCER_ID_BLOCK => "producer id block",
        kind::LOG_IDS => "log ids",
        _ => return None,
    })
}

fn decode_body(kind: u64, f: &mut Fields<'_>) -> Result<MetadataRecord, DecodeError> {
    Ok(match kind {
        kind::FEATURE_LEVEL => {
            let level = u16::try_from(f.u64(2)?).unwrap_or(u16::MAX);
            MetadataRecord::FeatureLevel { name: f.str(1)?, level }
        }
        kind::CLUSTER_ID => MetadataRecord::ClusterId { id: f.str(1)? },
        kind::NODE => MetadataRecord::Node(decode_node(f)?),
        kind::EPOCH_BLOCK => {
            MetadataRecord::EpochBlock { node: NodeId(f.int(1)?), epoch: LeaderEpoch(f.int(2)?) }
        }
        kind::TOPIC => MetadataRecord::Topic { name: f.str(1)?, id: TopicId(f.array(2)?) },
        kind::PARTITION => {
            let mut replicas = Vec::new();
            for bytes in f.each(5) {
                let mut group = Fields::parse("replica", bytes)?;
                replicas
                    .push(Replica { node: NodeId(group.int(1)?), shard: ShardId(group.int(2)?) });
                group.finish()?;
            }
            MetadataRecord::Partition(PartitionRecord {
                topic_id: TopicId(f.array(1)?),
                index: PartitionIndex(f.int(2)?),
                log_id: LogId(f.u64(3)?),
                leader_epoch: LeaderEpoch(f.int(4)?),
                replicas,
            })
        }
        kind::TOPIC_REMOVED => MetadataRecord::TopicRemoved { id: TopicId(f.array(1)?) },
        kind::TOPIC_CONFIG => MetadataRecord::TopicConfig {
            id: TopicId(f.array(1)?),
            key: f.str(2)?,
            value: f.opt_str(3)?,
        },
        kind::PRODUCER_ID_BLOCK => MetadataRecord::ProducerIdBlock {
            node: NodeId(f.int(1)?),
            first: ProducerId(f.i64(2)?),
            count: f.i64(3)?,
        },
        kind::LOG_IDS => MetadataRecord::LogIds { next: LogId(f.u64(1)?) },
        _ => unreachable!("decode knows the name of type {kind} and not its fields"),
    })
}

fn decode_node(f: &mut Fields<'_>) -> Result<NodeRegistration, DecodeError> {
    let mut listeners = Vec::new();
    for bytes in f.each(5) {
        let mut group = Fields::parse("listener", bytes)?;
        listeners.push(Listener {
            name: group.str(1)?,
            host: group.str(2)?,
            port: group.int(3)?,
            security_protocol: group.int(4)?,
        });
        group.finish()?;
    }
    Ok(NodeRegistration {
        node_id: NodeId(f.int(1)?),
        incarnation: f.array(2)?,
        rack: f.opt_str(3)?,
        shards: f.int(4)?,
        listeners,
    })
}
