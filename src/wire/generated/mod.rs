//! One module per API, generated from `src/wire/schema` by
//! `tests/wire_codegen.rs`. Not to be edited: edit the schema and run
//! `MILLSTREAM_REGENERATE=1 cargo test --test wire_codegen`.
//!
//! The field names are the protocol's, and its documentation is theirs.
#![allow(missing_docs)]
#![allow(clippy::field_reassign_with_default)]

mod api_key;
pub mod api_versions;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_topic_partitions;
pub mod fetch;
pub mod find_coordinator;
pub mod init_producer_id;
pub mod list_offsets;
pub mod metadata;
pub mod offset_for_leader_epoch;
pub mod produce;

pub use api_key::ApiKey;

/// Calls a macro with `(ApiKey variant, request, response)` of every API.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_api {
($callback:ident) => {
$callback! {
(Produce, $crate::wire::generated::produce::ProduceRequest, $crate::wire::generated::produce::ProduceResponse)
(Fetch, $crate::wire::generated::fetch::FetchRequest, $crate::wire::generated::fetch::FetchResponse)
(ListOffsets, $crate::wire::generated::list_offsets::ListOffsetsRequest, $crate::wire::generated::list_offsets::ListOffsetsResponse)
(Metadata, $crate::wire::generated::metadata::MetadataRequest, $crate::wire::generated::metadata::MetadataResponse)
(FindCoordinator, $crate::wire::generated::find_coordinator::FindCoordinatorRequest, $crate::wire::generated::find_coordinator::FindCoordinatorResponse)
(ApiVersions, $crate::wire::generated::api_versions::ApiVersionsRequest, $crate::wire::generated::api_versions::ApiVersionsResponse)
(CreateTopics, $crate::wire::generated::create_topics::CreateTopicsRequest, $crate::wire::generated::create_topics::CreateTopicsResponse)
(DeleteTopics, $crate::wire::generated::delete_topics::DeleteTopicsRequest, $crate::wire::generated::delete_topics::DeleteTopicsResponse)
(InitProducerId, $crate::wire::generated::init_producer_id::InitProducerIdRequest, $crate::wire::generated::init_producer_id::InitProducerIdResponse)
(OffsetForLeaderEpoch, $crate::wire::generated::offset_for_leader_epoch::OffsetForLeaderEpochRequest, $crate::wire::generated::offset_for_leader_epoch::OffsetForLeaderEpochResponse)
(DescribeConfigs, $crate::wire::generated::describe_configs::DescribeConfigsRequest, $crate::wire::generated::describe_configs::DescribeConfigsResponse)
(CreatePartitions, $crate::wire::generated::create_partitions::CreatePartitionsRequest, $crate::wire::generated::create_partitions::CreatePartitionsResponse)
(DescribeCluster, $crate::wire::generated::describe_cluster::DescribeClusterRequest, $crate::wire::generated::describe_cluster::DescribeClusterResponse)
(DescribeTopicPartitions, $crate::wire::generated::describe_topic_partitions::DescribeTopicPartitionsRequest, $crate::wire::generated::describe_topic_partitions::DescribeTopicPartitionsResponse)
}
};
}
