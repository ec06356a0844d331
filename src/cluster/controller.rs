//! The controller: a command in, records and a reply out.
//!
//! Pure: time and chance come in as [`Ctx`]; nothing changes until the caller
//! has appended the records and applied them to its image. The caller runs
//! one step at a time, and starts the next one only on an image that has the
//! records of the one before.

use super::image::Image;
use super::records::{FEATURE_LEVEL, FEATURE_NAME, MetadataRecord};
use crate::model::config::{BrokerConfig, DescribedConfig};
use crate::model::registration::NodeRegistration;
use crate::model::{ErrorCode, LeaderEpoch, NodeId, PartitionIndex, ProducerId, TopicId};

/// What a step may know of the world.
pub struct Ctx<'a> {
    /// Source of chance; called once per 64 bits.
    pub random: &'a mut dyn FnMut() -> u64,
}

impl Ctx<'_> {
    /// A version 4 UUID as 16 bytes.
    pub(super) fn uuid(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(self.random)().to_be_bytes());
        bytes[8..].copy_from_slice(&(self.random)().to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        bytes
    }
}

/// A topic to be made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Its partitions; -1 for `num.partitions`, or with assignments.
    pub num_partitions: i32,
    /// Copies of each; -1 for `default.replication.factor`, or with assignments.
    pub replication_factor: i16,
    /// The nodes of each partition, when the client chooses them.
    pub assignments: Vec<(PartitionIndex, Vec<NodeId>)>,
    /// Its configs.
    pub configs: Vec<(String, Option<String>)>,
}

/// A topic by name or by id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicRef {
    /// By name.
    pub name: Option<String>,
    /// Or by id, when not [`TopicId::NONE`].
    pub id: TopicId,
}

/// Partitions to be added to a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddPartitions {
    /// The topic.
    pub name: String,
    /// Partitions that it shall have, old ones included.
    pub count: i32,
    /// The nodes of each new partition, when the client chooses them.
    pub assignments: Option<Vec<Vec<NodeId>>>,
}

/// Something to be decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// A node starts: its addresses, an epoch for its partitions, and on the
    /// first start of all the cluster's id.
    RegisterNode(NodeRegistration),
    /// CreateTopics.
    CreateTopics {
        /// The topics.
        topics: Vec<NewTopic>,
        /// Check only.
        validate_only: bool,
    },
    /// Topics that a Metadata request named and that do not exist.
    AutoCreate {
        /// Their names.
        names: Vec<String>,
    },
    /// DeleteTopics.
    DeleteTopics {
        /// The topics.
        topics: Vec<TopicRef>,
    },
    /// CreatePartitions.
    CreatePartitions {
        /// The topics.
        topics: Vec<AddPartitions>,
        /// Check only.
        validate_only: bool,
    },
    /// A block of producer ids for one node.
    AllocateProducerIds {
        /// The node.
        node: NodeId,
    },
}

/// An error code with what to tell the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorReply {
    /// The code.
    pub code: ErrorCode,
    /// Says what is wrong and what is allowed.
    pub message: String,
}

impl ErrorReply {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A topic that was made, or would be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTopicResult {
    /// As asked for.
    pub name: String,
    /// What it got; an error otherwise.
    pub result: Result<CreatedTopic, ErrorReply>,
}

/// What a new topic looks like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedTopic {
    /// Its id; [`TopicId::NONE`] when only validated.
    pub id: TopicId,
    /// Its partitions.
    pub num_partitions: i32,
    /// Copies of each.
    pub replication_factor: i16,
    /// Its configs as they hold, sorted by name.
    pub configs: Vec<DescribedConfig>,
}

/// A topic that was deleted, or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteTopicResult {
    /// Its name, when known and when the client may see it.
    pub name: Option<String>,
    /// Its id, when known.
    pub id: TopicId,
    /// Why it was not deleted.
    pub error: Option<ErrorReply>,
}

/// A topic that got partitions, or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddPartitionsResult {
    /// Its name.
    pub name: String,
    /// Why it got none.
    pub error: Option<ErrorReply>,
}

/// The answer to a command, to be given once its records are durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// To `RegisterNode`.
    Registered {
        /// Epoch of the partitions that the node leads.
        epoch: LeaderEpoch,
    },
    /// To `CreateTopics` and `AutoCreate`, one per distinct name.
    CreateTopics(Vec<NewTopicResult>),
    /// To `DeleteTopics`.
    DeleteTopics(Vec<DeleteTopicResult>),
    /// To `CreatePartitions`, one per distinct name.
    CreatePartitions(Vec<AddPartitionsResult>),
    /// To `AllocateProducerIds`.
    ProducerIds {
        /// First id of the block.
        first: ProducerId,
        /// Ids in the block.
        count: i64,
    },
    /// The command cannot be carried out at all.
    Refused(ErrorReply),
}

/// Records to append as one batch, and the reply to give after that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// In order; possibly none.
    pub records: Vec<MetadataRecord>,
    /// The answer.
    pub reply: Reply,
}

/// Decides; holds nothing but how this cluster is configured.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Defaults for what requests leave open.
    pub(super) config: BrokerConfig,
}

impl Controller {
    /// A controller with these defaults.
    #[must_use]
    pub const fn new(config: BrokerConfig) -> Self {
        Self { config }
    }

    /// Decides on one command.
    pub fn step(&self, image: &Image, command: Command, ctx: &mut Ctx<'_>) -> Step {
        let _ = (image, command, ctx, FEATURE_LEVEL, FEATURE_NAME);
        todo!()
    }
}
