//! Kafka's nouns: identifiers, offsets, epochs, error codes, limits and the
//! one configuration table. No I/O, no protocol encoding, no state.

pub mod error_code;
pub mod ids;

pub use error_code::ErrorCode;
pub use ids::{
    LeaderEpoch, LogId, NodeId, Offset, PartitionIndex, ProducerEpoch, ProducerId, ShardId,
    Timestamp, TopicId, TopicPartition,
};
