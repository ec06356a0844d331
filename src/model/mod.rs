//! Kafka's nouns: identifiers, offsets, epochs, error codes, limits and the
//! one configuration table. No I/O, no protocol encoding, no state.

pub mod config;
pub mod error_code;
pub mod ids;
pub mod limits;
pub mod planted;
pub mod registration;
pub mod topic_config;
pub mod topic_name;
mod topic_view;

pub use error_code::ErrorCode;
pub use ids::{
    LeaderEpoch, LogId, NodeId, Offset, PartitionIndex, ProducerEpoch, ProducerId, ShardId,
    Timestamp, TopicId, TopicPartition,
};
pub use topic_config::{CleanupPolicy, CompressionType, DurabilityClass, TopicConfig};
pub use topic_view::TopicView;
