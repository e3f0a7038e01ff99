//! One file per request, each with the same verb: `handle(call, request) -> Outcome`.
//!
//! A handler never blocks on anything but the log's files; what waits is put into an `Outcome::Later`.
pub mod alter_configs;
pub mod api_versions;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod create_partitions;
pub mod create_topics;
mod decided;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_topic_partitions;
pub mod fetch;
mod fetch_answer;
mod fetch_read;
pub mod find_coordinator;
mod group_call;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_offsets;
mod lookup;
pub mod metadata;
pub mod offset_for_leader_epoch;
mod operations;
pub mod produce;
pub mod sync_group;
