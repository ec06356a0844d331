//! Pages of DescribeTopicPartitions (KIP-966).

use std::sync::Arc;

use super::image::{Image, TopicImage};
use crate::model::PartitionIndex;

/// Where the next page begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The topic.
    pub topic: String,
    /// Its first partition on the page.
    pub partition: PartitionIndex,
}

/// One topic's part of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The topic, as named in the request when it does not exist.
    pub name: String,
    /// The topic; none when it does not exist.
    pub topic: Option<Arc<TopicImage>>,
    /// Its partitions on the page.
    pub partitions: std::ops::Range<usize>,
}

/// Chooses the partitions of one page: `names` (all topics when empty) from
/// `cursor` on, sorted by name, at most `limit` partitions in all. Returns
/// them and where the next page begins.
#[must_use]
pub fn page_partitions(
    image: &Image,
    names: &[&str],
    cursor: Option<&Cursor>,
    limit: usize,
) -> (Vec<Page>, Option<Cursor>) {
    let _ = (image, names, cursor, limit);
    todo!()
}
