//! What coordinators may know of topics, without the cluster layer.

use std::sync::Arc;

use super::ids::TopicId;

/// Read access to the topics of a metadata image.
pub trait TopicView {
    /// The id of the topic with this name.
    fn topic_id(&self, name: &str) -> Option<TopicId>;

    /// The name of the topic with this id.
    fn topic_name(&self, id: TopicId) -> Option<Arc<str>>;

    /// How many partitions the topic has.
    fn partition_count(&self, id: TopicId) -> Option<i32>;
}
