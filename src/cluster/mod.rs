//! The cluster's metadata: records, the image that they make, and the
//! controller that decides on new ones.
//!
//! Truth is the log of topic `__cluster_metadata`, one record per value in
//! ordinary batches. [`Controller::step`] turns a command into records and a
//! reply and changes nothing; [`Image::apply`] is the only thing that changes
//! state, on the controller and on every other shard alike. The records of
//! one step are one batch, so they are replayed all or none.

mod alter_configs;
mod change_topics;
mod codec;
mod controller;
mod create_topics;
mod describe;
mod image;
mod placement;
mod producer_ids;
mod records;

pub use alter_configs::{AlterConfigsResult, ConfigChange, ConfigOp};
pub use codec::DecodeError;
pub use controller::{
    AddPartitions, AddPartitionsResult, Command, Controller, CreatedTopic, Ctx, DeleteTopicResult,
    ErrorReply, NewTopic, NewTopicResult, Reply, Step, TopicRef,
};
pub use describe::{Cursor, Page, page_partitions};
pub use image::{ApplyError, Image, NodeImage, PartitionImage, TopicImage};
pub use producer_ids::ProducerIds;
pub use records::{
    Decoded, FEATURE_LEVEL, FEATURE_NAME, MetadataRecord, PartitionRecord, Replica, decode, encode,
};

#[cfg(test)]
mod tests;
