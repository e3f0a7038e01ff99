//! What the client knows of a cluster: its brokers, leaders, coordinators and offsets.
//!
//! | file | what it does |
//! |---|---|
//! | [`cluster`], [`brokers`] | metadata, the connections to brokers; whom to ask first, whose metadata is old |
//! | [`coordinator`] | the brokers that coordinate groups and transactions |
//! | [`offsets`] | offsets by time |
//! | [`address`], [`topic_partition`], [`topic_id`], [`listed_topic`] | what names a broker, a partition, a topic; a topic in a list |
pub mod address;
pub mod brokers;
pub mod cluster;
pub mod coordinator;
pub mod listed_topic;
pub mod offsets;
pub mod topic_id;
pub mod topic_partition;
