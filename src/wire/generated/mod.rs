//! One module per API, generated from `src/wire/schema` by
//! `tests/wire_codegen.rs`. Not to be edited: edit the schema and run
//! `MILLSTREAM_REGENERATE=1 cargo test --test wire_codegen`.
//!
//! The field names are the protocol's, and its documentation is theirs.
#![allow(missing_docs)]
#![allow(clippy::field_reassign_with_default)]

pub mod alter_configs;
mod api_key;
pub mod api_versions;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_topic_partitions;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod list_offsets;
pub mod metadata;
pub mod offset_commit;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sync_group;

pub use api_key::ApiKey;

/// Calls a macro with `(API, module, request, response)` of every API.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_api {
($callback:ident) => {
$callback! {
(Produce, produce, ProduceRequest, ProduceResponse)
(Fetch, fetch, FetchRequest, FetchResponse)
(ListOffsets, list_offsets, ListOffsetsRequest, ListOffsetsResponse)
(Metadata, metadata, MetadataRequest, MetadataResponse)
(OffsetCommit, offset_commit, OffsetCommitRequest, OffsetCommitResponse)
(OffsetFetch, offset_fetch, OffsetFetchRequest, OffsetFetchResponse)
(FindCoordinator, find_coordinator, FindCoordinatorRequest, FindCoordinatorResponse)
(JoinGroup, join_group, JoinGroupRequest, JoinGroupResponse)
(Heartbeat, heartbeat, HeartbeatRequest, HeartbeatResponse)
(LeaveGroup, leave_group, LeaveGroupRequest, LeaveGroupResponse)
(SyncGroup, sync_group, SyncGroupRequest, SyncGroupResponse)
(DescribeGroups, describe_groups, DescribeGroupsRequest, DescribeGroupsResponse)
(ListGroups, list_groups, ListGroupsRequest, ListGroupsResponse)
(ApiVersions, api_versions, ApiVersionsRequest, ApiVersionsResponse)
(CreateTopics, create_topics, CreateTopicsRequest, CreateTopicsResponse)
(DeleteTopics, delete_topics, DeleteTopicsRequest, DeleteTopicsResponse)
(DeleteRecords, delete_records, DeleteRecordsRequest, DeleteRecordsResponse)
(InitProducerId, init_producer_id, InitProducerIdRequest, InitProducerIdResponse)
(OffsetForLeaderEpoch, offset_for_leader_epoch, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse)
(DescribeConfigs, describe_configs, DescribeConfigsRequest, DescribeConfigsResponse)
(AlterConfigs, alter_configs, AlterConfigsRequest, AlterConfigsResponse)
(DescribeLogDirs, describe_log_dirs, DescribeLogDirsRequest, DescribeLogDirsResponse)
(CreatePartitions, create_partitions, CreatePartitionsRequest, CreatePartitionsResponse)
(DeleteGroups, delete_groups, DeleteGroupsRequest, DeleteGroupsResponse)
(IncrementalAlterConfigs, incremental_alter_configs, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse)
(DescribeCluster, describe_cluster, DescribeClusterRequest, DescribeClusterResponse)
(DescribeTopicPartitions, describe_topic_partitions, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse)
}
};
}
