//! Promises of the KIP-848 coordinator, driven as clients drive it: heartbeats, silence, growing topics.
mod commits;
mod epochs;
mod golden;
mod joining;
mod property;
mod reconciling;
mod requests;
mod restart;
pub(in crate::group) mod scene;
mod static_members;
mod topics;
