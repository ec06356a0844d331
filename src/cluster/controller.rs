//! The controller: a command in, records and a reply out.
//!
//! Pure: time and chance come in as [`Ctx`]; nothing changes until the caller
//! has appended the records and applied them to its image. The caller runs
//! one step at a time, and starts the next one only on an image that has the
//! records of the one before.

use super::alter_configs::{AlterConfigsResult, ConfigChange};
use super::change_topics;
use super::image::Image;
use super::records::{FEATURE_LEVEL, FEATURE_NAME, MetadataRecord};
use crate::model::config::{BrokerConfig, DescribedConfig};
use crate::model::limits::PRODUCER_ID_BLOCK;
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
    /// IncrementalAlterConfigs and AlterConfigs, for topics.
    AlterConfigs {
        /// The topics, none twice, each with its change.
        changes: Vec<(String, ConfigChange)>,
        /// Check only.
        validate_only: bool,
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
    /// To `AlterConfigs`, one per change.
    AlterConfigs(Vec<AlterConfigsResult>),
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
    #[must_use]
    pub fn step(&self, image: &Image, command: Command, ctx: &mut Ctx<'_>) -> Step {
        match command {
            Command::RegisterNode(registration) => register_node(image, registration, ctx),
            Command::CreateTopics { topics, validate_only } => {
                let (records, mut results) = self.create_topics(image, topics, ctx);
                if !validate_only {
                    return Step { records, reply: Reply::CreateTopics(results) };
                }
                let created = results.iter_mut().filter_map(|topic| topic.result.as_mut().ok());
                created.for_each(|topic| topic.id = TopicId::NONE);
                Step { records: Vec::new(), reply: Reply::CreateTopics(results) }
            }
            Command::AutoCreate { names } => self.auto_create(image, names, ctx),
            Command::DeleteTopics { topics } => self.delete_topics(image, topics),
            Command::CreatePartitions { topics, validate_only } => {
                let (records, results) = change_topics::create_partitions(image, topics);
                let records = if validate_only { Vec::new() } else { records };
                Step { records, reply: Reply::CreatePartitions(results) }
            }
            Command::AllocateProducerIds { node } => allocate_producer_ids(image, node),
            Command::AlterConfigs { changes, validate_only } => {
                let (records, results) = self.alter_configs(image, changes);
                let records = if validate_only { Vec::new() } else { records };
                Step { records, reply: Reply::AlterConfigs(results) }
            }
        }
    }

    fn auto_create(&self, image: &Image, names: Vec<String>, ctx: &mut Ctx<'_>) -> Step {
        if !self.config.flag("auto.create.topics.enable") {
            return Step { records: Vec::new(), reply: Reply::CreateTopics(Vec::new()) };
        }
        let topic = |name| NewTopic {
            name,
            num_partitions: -1,
            replication_factor: -1,
            ..NewTopic::default()
        };
        let topics = names.into_iter().map(topic).collect();
        let (records, results) = self.create_topics(image, topics, ctx);
        Step { records, reply: Reply::CreateTopics(results) }
    }
}

fn register_node(image: &Image, registration: NodeRegistration, ctx: &mut Ctx<'_>) -> Step {
    let node = registration.node_id;
    if node.0 < 0 || registration.shards == 0 {
        let message = format!("node {node} with {} shards cannot register", registration.shards);
        let reply = Reply::Refused(ErrorReply::new(ErrorCode::InvalidRegistration, message));
        return Step { records: Vec::new(), reply };
    }
    let mut records = Vec::new();
    if image.feature_level() < FEATURE_LEVEL {
        let name = FEATURE_NAME.to_owned();
        records.push(MetadataRecord::FeatureLevel { name, level: FEATURE_LEVEL });
    }
    if image.cluster_id().is_none() {
        records.push(MetadataRecord::ClusterId { id: base64_url(&ctx.uuid()) });
    }
    // One record for all partitions of the node: an epoch above every epoch in
    // which it led any of them.
    let led = image
        .topics()
        .flat_map(|topic| &topic.partitions)
        .filter(|partition| partition.leader().node == node)
        .map(|partition| image.leader_epoch(partition))
        .max();
    let before = image.node(node).map_or(LeaderEpoch::NONE, |node| node.epoch);
    let epoch = LeaderEpoch(led.map_or(before, |led| led.max(before)).0 + 1);
    records.push(MetadataRecord::Node(registration));
    records.push(MetadataRecord::EpochBlock { node, epoch });
    Step { records, reply: Reply::Registered { epoch } }
}

fn allocate_producer_ids(image: &Image, node: NodeId) -> Step {
    let first = image.next_producer_id();
    let count = PRODUCER_ID_BLOCK;
    if image.node(node).is_none() || first.0.checked_add(count).is_none() {
        let message = format!("broker {node} is not registered, or producer ids are used up");
        let reply = Reply::Refused(ErrorReply::new(ErrorCode::UnknownServerError, message));
        return Step { records: Vec::new(), reply };
    }
    Step {
        records: vec![MetadataRecord::ProducerIdBlock { node, first, count }],
        reply: Reply::ProducerIds { first, count },
    }
}

/// 22 characters without padding, as Kafka writes ids.
fn base64_url(bytes: &[u8; 16]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let number = u128::from_be_bytes(*bytes);
    let digit = |at: u32| {
        // 16 bytes are 21 digits of 6 bits and one of 2, filled up on the right.
        let six = if at < 21 { number >> (122 - 6 * at) } else { number << 4 };
        char::from(ALPHABET[(six & 63) as usize])
    };
    (0..22).map(digit).collect()
}
