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
/// `cursor` on, sorted by name, at most `limit` partitions in all (at least
/// one). Returns them and where the next page begins, none after the last.
#[must_use]
pub fn page_partitions(
    image: &Image,
    names: &[&str],
    cursor: Option<&Cursor>,
    limit: usize,
) -> (Vec<Page>, Option<Cursor>) {
    let first_name = cursor.map_or("", |cursor| cursor.topic.as_str());
    let mut left = limit.max(1);
    let mut pages = Vec::new();
    let mut add = |name: &str, topic: Option<&Arc<TopicImage>>| -> Option<Cursor> {
        let count = topic.map_or(0, |topic| topic.partitions.len());
        let first = cursor
            .filter(|cursor| cursor.topic == name)
            .map_or(0, |cursor| usize::try_from(cursor.partition.0).unwrap_or(0));
        let first = first.min(count);
        if left == 0 {
            return Some(at(name, first));
        }
        let last = count.min(first + left);
        left -= last - first;
        pages.push(Page { name: name.to_owned(), topic: topic.cloned(), partitions: first..last });
        (last < count).then(|| at(name, last))
    };
    let next = if names.is_empty() {
        image.topics_from(first_name).find_map(|topic| add(&topic.name, Some(topic)))
    } else {
        let mut names: Vec<_> = names.iter().filter(|name| **name >= first_name).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().find_map(|name| add(name, image.topic(name)))
    };
    (pages, next)
}

fn at(topic: &str, partition: usize) -> Cursor {
    let partition = i32::try_from(partition).expect("partition indexes are 32 bits");
    Cursor { topic: topic.to_owned(), partition: PartitionIndex(partition) }
}
