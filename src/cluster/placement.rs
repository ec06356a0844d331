//! Where the copies of new partitions go.
//!
//! Copies of one partition are on different nodes; the replication factor
//! counts nodes, never shards. The least loaded node gets the next copy, and
//! on it the least loaded shard; lower numbers first, so that equal images
//! place alike.

use std::collections::BTreeMap;

use super::image::{Image, NodeImage};
use super::records::Replica;
use crate::model::{NodeId, ShardId};

/// Loads as they grow while one command places its partitions.
pub(super) struct Placer<'a> {
    image: &'a Image,
    placed: BTreeMap<Replica, u32>,
}

impl<'a> Placer<'a> {
    pub(super) const fn new(image: &'a Image) -> Self {
        Self { image, placed: BTreeMap::new() }
    }

    /// The copies of one more partition, leader first; none when there are
    /// fewer nodes than copies.
    pub(super) fn place(&mut self, replication_factor: usize) -> Option<Vec<Replica>> {
        let load = |node: &NodeImage| places(node).map(|place| self.load(place)).sum::<u32>();
        let mut nodes: Vec<_> =
            self.image.nodes().map(|node| (load(node), node.registration.node_id)).collect();
        if nodes.len() < replication_factor {
            return None;
        }
        nodes.sort_unstable();
        nodes.truncate(replication_factor);
        nodes.into_iter().map(|(_, node)| self.place_on(node)).collect()
    }

    /// A copy on this node; none when it is not registered.
    pub(super) fn place_on(&mut self, node: NodeId) -> Option<Replica> {
        let place = places(self.image.node(node)?).min_by_key(|place| self.load(*place))?;
        *self.placed.entry(place).or_default() += 1;
        Some(place)
    }

    fn load(&self, place: Replica) -> u32 {
        self.image.load(place) + self.placed.get(&place).copied().unwrap_or(0)
    }
}

/// The shards of a node.
fn places(node: &NodeImage) -> impl Iterator<Item = Replica> {
    let id = node.registration.node_id;
    (0..node.registration.shards).map(move |shard| Replica { node: id, shard: ShardId(shard) })
}
