//! The metadata as of some record of the log.
//!
//! Owner: each shard has its own and applies the same records in the same
//! order. A [`TopicImage`] that somebody holds never changes: apply makes a
//! new one. Names and ids answer in O(1), listings are sorted by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;

use super::records::{FEATURE_LEVEL, FEATURE_NAME, MetadataRecord, PartitionRecord, Replica};
use crate::model::registration::NodeRegistration;
use crate::model::topic_name::{can_collide, collision_key};
use crate::model::{LeaderEpoch, LogId, NodeId, PartitionIndex, ProducerId, TopicId, TopicView};

/// A record does not fit what came before: the log is damaged, or its reader
/// has a bug.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApplyError {
    /// About a topic that does not exist.
    #[error("metadata record names topic id {0}, which does not exist")]
    NoTopic(TopicId),
    /// A topic whose name or id is taken.
    #[error("metadata record creates topic '{0}', whose name or id is taken")]
    TopicTaken(String),
    /// A partition that leaves a gap.
    #[error("metadata record adds partition {index} of topic '{topic}', which has {count}")]
    PartitionGap {
        /// Topic name.
        topic: String,
        /// Index of the new partition.
        index: PartitionIndex,
        /// Partitions so far.
        count: usize,
    },
    /// A partition without a copy.
    #[error("metadata record gives partition {index} of topic '{topic}' no replica")]
    NoReplica {
        /// Topic name.
        topic: String,
        /// Index of the partition.
        index: PartitionIndex,
    },
    /// About a node that never registered.
    #[error("metadata record names node {0}, which is not registered")]
    NoNode(NodeId),
    /// A number that must grow went back.
    #[error("metadata record moves {what} from {from} to {to}")]
    WentBack {
        /// What it is.
        what: &'static str,
        /// Where it was.
        from: i64,
        /// Where the record wants it.
        to: i64,
    },
    /// The log is for a newer version.
    #[error(
        "the metadata log is at level {level} of {name}, this version supports up to {supported}; \
         run the version that wrote it, or a newer one"
    )]
    FeatureLevel {
        /// Feature name.
        name: String,
        /// Level in the log.
        level: u16,
        /// Newest level supported; 0 for an unknown feature.
        supported: u16,
    },
}

/// One partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionImage {
    /// Its index.
    pub index: PartitionIndex,
    /// This incarnation of its log.
    pub log_id: LogId,
    /// Its own leader epoch; [`Image::leader_epoch`] knows the one that holds.
    pub leader_epoch: LeaderEpoch,
    /// Its copies, never empty; the first one leads.
    pub replicas: Vec<Replica>,
}

impl PartitionImage {
    /// The copy that leads.
    #[must_use]
    pub fn leader(&self) -> Replica {
        self.replicas[0]
    }
}

/// One topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicImage {
    /// Its name.
    pub name: Arc<str>,
    /// Its id.
    pub id: TopicId,
    /// Its partitions, by index.
    pub partitions: Vec<PartitionImage>,
    /// Its own configs, by key.
    pub configs: BTreeMap<String, String>,
}

impl TopicImage {
    /// Copies that each partition has.
    #[must_use]
    pub fn replication_factor(&self) -> usize {
        self.partitions.first().map_or(0, |partition| partition.replicas.len())
    }

    /// The partition with this index.
    #[must_use]
    pub fn partition(&self, index: PartitionIndex) -> Option<&PartitionImage> {
        self.partitions.get(usize::try_from(index.0).ok()?)
    }
}

/// One node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeImage {
    /// What it said about itself last.
    pub registration: NodeRegistration,
    /// Epoch of the partitions that it leads; none before its first start.
    pub epoch: LeaderEpoch,
}

/// All metadata. Equal images answer every question alike.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Image {
    cluster_id: Option<Arc<str>>,
    feature_level: u16,
    nodes: BTreeMap<NodeId, NodeImage>,
    topics: AHashMap<TopicId, Arc<TopicImage>>,
    ids: AHashMap<Arc<str>, TopicId>,
    sorted: BTreeMap<Arc<str>, TopicId>,
    /// Names with `.` or `_` by what they collide under.
    collisions: AHashMap<String, Arc<str>>,
    /// Copies per place, for placement.
    load: BTreeMap<Replica, u32>,
    next_producer_id: ProducerId,
    next_log_id: LogId,
}

impl Image {
    /// The cluster's id, once it has one.
    #[must_use]
    pub fn cluster_id(&self) -> Option<&str> {
        self.cluster_id.as_deref()
    }

    /// Level of the metadata feature; 0 before the first record.
    #[must_use]
    pub const fn feature_level(&self) -> u16 {
        self.feature_level
    }

    /// The nodes, by id.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &NodeImage> {
        self.nodes.values()
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&NodeImage> {
        self.nodes.get(&id)
    }

    /// Topics in the cluster.
    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// All topics, sorted by name as Metadata lists them.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &Arc<TopicImage>> {
        self.sorted.values().map(|id| &self.topics[id])
    }

    /// The topics from `name` on, sorted by name.
    pub fn topics_from(&self, name: &str) -> impl Iterator<Item = &Arc<TopicImage>> {
        let from = std::ops::Bound::Included(name);
        self.sorted
            .range::<str, _>((from, std::ops::Bound::Unbounded))
            .map(|(_, id)| &self.topics[id])
    }

    /// The topic with this name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topics.get(self.ids.get(name)?)
    }

    /// The topic with this id.
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topics.get(&id)
    }

    /// The existing topic that `name` collides with, itself excepted.
    #[must_use]
    pub fn collision(&self, name: &str) -> Option<&str> {
        if !can_collide(name) {
            return None;
        }
        let other = self.collisions.get(&collision_key(name))?;
        (&**other != name).then_some(other)
    }

    /// The epoch in which a partition is led: its own or its node's, whichever
    /// is newer.
    #[must_use]
    pub fn leader_epoch(&self, partition: &PartitionImage) -> LeaderEpoch {
        let node = self.nodes.get(&partition.leader().node);
        node.map_or(LeaderEpoch::NONE, |node| node.epoch).max(partition.leader_epoch)
    }

    /// Copies that a place holds.
    #[must_use]
    pub fn load(&self, place: Replica) -> u32 {
        self.load.get(&place).copied().unwrap_or(0)
    }

    /// First producer id that no block holds.
    #[must_use]
    pub const fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }

    /// First log id that was never used.
    #[must_use]
    pub const fn next_log_id(&self) -> LogId {
        self.next_log_id
    }

    /// Takes in the next record of the log.
    ///
    /// # Errors
    /// When it does not fit; nothing has changed then.
    pub fn apply(&mut self, record: &MetadataRecord) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::FeatureLevel { name, level } => self.set_feature(name, *level)?,
            MetadataRecord::ClusterId { id } => self.cluster_id = Some(id.as_str().into()),
            MetadataRecord::Node(registration) => self.register(registration),
            MetadataRecord::EpochBlock { node, epoch } => self.set_epoch(*node, *epoch)?,
            MetadataRecord::Topic { name, id } => self.add_topic(name, *id)?,
            MetadataRecord::Partition(partition) => self.set_partition(partition)?,
            MetadataRecord::TopicRemoved { id } => self.remove_topic(*id)?,
            MetadataRecord::TopicConfig { id, key, value } => {
                let topic = self.topics.get_mut(id).ok_or(ApplyError::NoTopic(*id))?;
                let configs = &mut Arc::make_mut(topic).configs;
                match value {
                    Some(value) => configs.insert(key.clone(), value.clone()),
                    None => configs.remove(key),
                };
            }
            MetadataRecord::ProducerIdBlock { first, count, .. } => {
                let what = "the next producer id";
                grows(what, self.next_producer_id.0, first.0)?;
                let next = first.0.saturating_add(*count);
                grows(what, self.next_producer_id.0, next)?;
                self.next_producer_id = ProducerId(next);
            }
            MetadataRecord::LogIds { next } => {
                let signed = |id: LogId| i64::try_from(id.0).unwrap_or(i64::MAX);
                grows("the next log id", signed(self.next_log_id), signed(*next))?;
                self.next_log_id = *next;
            }
        }
        Ok(())
    }

    fn set_feature(&mut self, name: &str, level: u16) -> Result<(), ApplyError> {
        let supported = if name == FEATURE_NAME { FEATURE_LEVEL } else { 0 };
        if level > supported {
            return Err(ApplyError::FeatureLevel { name: name.to_owned(), level, supported });
        }
        self.feature_level = level;
        Ok(())
    }

    fn register(&mut self, registration: &NodeRegistration) {
        let registration = registration.clone();
        match self.nodes.get_mut(&registration.node_id) {
            Some(node) => node.registration = registration,
            None => {
                let node = NodeImage { registration, epoch: LeaderEpoch::NONE };
                self.nodes.insert(node.registration.node_id, node);
            }
        }
    }

    fn set_epoch(&mut self, node: NodeId, epoch: LeaderEpoch) -> Result<(), ApplyError> {
        let image = self.nodes.get_mut(&node).ok_or(ApplyError::NoNode(node))?;
        grows("a node's epoch", image.epoch.0.into(), epoch.0.into())?;
        image.epoch = epoch;
        Ok(())
    }

    fn add_topic(&mut self, name: &str, id: TopicId) -> Result<(), ApplyError> {
        if self.ids.contains_key(name) || self.topics.contains_key(&id) {
            return Err(ApplyError::TopicTaken(name.to_owned()));
        }
        let name: Arc<str> = name.into();
        let topic =
            TopicImage { name: name.clone(), id, partitions: Vec::new(), configs: BTreeMap::new() };
        self.topics.insert(id, Arc::new(topic));
        self.ids.insert(name.clone(), id);
        self.sorted.insert(name.clone(), id);
        if can_collide(&name) {
            self.collisions.insert(collision_key(&name), name);
        }
        Ok(())
    }

    fn set_partition(&mut self, record: &PartitionRecord) -> Result<(), ApplyError> {
        let id = record.topic_id;
        let topic = self.topics.get_mut(&id).ok_or(ApplyError::NoTopic(id))?;
        let count = topic.partitions.len();
        let gap = || ApplyError::PartitionGap {
            topic: topic.name.to_string(),
            index: record.index,
            count,
        };
        let at = usize::try_from(record.index.0).ok().filter(|at| *at <= count).ok_or_else(gap)?;
        if record.replicas.is_empty() {
            let topic = topic.name.to_string();
            return Err(ApplyError::NoReplica { topic, index: record.index });
        }
        let image = PartitionImage {
            index: record.index,
            log_id: record.log_id,
            leader_epoch: record.leader_epoch,
            replicas: record.replicas.clone(),
        };
        for place in &image.replicas {
            *self.load.entry(*place).or_default() += 1;
        }
        let partitions = &mut Arc::make_mut(topic).partitions;
        if at == count {
            partitions.push(image);
        } else {
            let old = std::mem::replace(&mut partitions[at], image);
            unload(&mut self.load, &old);
        }
        Ok(())
    }

    fn remove_topic(&mut self, id: TopicId) -> Result<(), ApplyError> {
        let topic = self.topics.remove(&id).ok_or(ApplyError::NoTopic(id))?;
        self.ids.remove(&topic.name);
        self.sorted.remove(&topic.name);
        if can_collide(&topic.name) {
            self.collisions.remove(&collision_key(&topic.name));
        }
        for partition in &topic.partitions {
            unload(&mut self.load, partition);
        }
        Ok(())
    }
}

impl TopicView for Image {
    fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.ids.get(name).copied()
    }

    fn topic_name(&self, id: TopicId) -> Option<Arc<str>> {
        self.topics.get(&id).map(|topic| topic.name.clone())
    }

    fn partition_count(&self, id: TopicId) -> Option<i32> {
        let topic = self.topics.get(&id)?;
        Some(i32::try_from(topic.partitions.len()).expect("partition indexes are 32 bits"))
    }
}

fn unload(load: &mut BTreeMap<Replica, u32>, partition: &PartitionImage) {
    for place in &partition.replicas {
        let count = load.get_mut(place).expect("every copy was counted");
        *count -= 1;
        if *count == 0 {
            load.remove(place);
        }
    }
}

fn grows(what: &'static str, from: i64, to: i64) -> Result<(), ApplyError> {
    if to < from { Err(ApplyError::WentBack { what, from, to }) } else { Ok(()) }
}
