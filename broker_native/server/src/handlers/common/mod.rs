//! What several handlers share.
//!
//! | file | what it owns |
//! |---|---|
//! | [`lookup`] | the log that a request names, with the checks that every data request makes |
//! | [`brokers`] | brokers, as answers list them |
//! | [`operations`] | what a client may do, for clients that ask |
//! | [`answered`], [`group_call`], [`transactions`] | answers of coordinators, of groups and of transactions |
//! | [`internal_topic`] | a coordinator's topic, made when it is first needed |
//! | [`decided`], [`acls`] | requests that Python decides; those of them that change ACLs |
//! | [`naming`] | settings of topics that name something else |
//! | [`forwarded_metadata`] | what another broker is asked, when this one may not know |
//! | [`archived`] | what is asked of the archive: records, and what else only it has |
//! | [`large`] | requests whose answers are large |
//! | [`repeated`] | refusals that repeat what was asked |
//! | [`share_call`], [`share_admin`] | requests about share groups: of their members; of tools |
//! | [`share_leaders`], [`share_log_ends`], [`share_release`] | where share partitions are led; how far their logs go; what a member leaves behind |
pub(super) mod acls;
pub(super) mod answered;
pub(super) mod archived;
pub(super) mod brokers;
pub(super) mod decided;
pub(super) mod forwarded_metadata;
pub(super) mod group_call;
pub(super) mod internal_topic;
pub mod large;
pub(super) mod lookup;
pub(super) mod naming;
pub(super) mod operations;
pub(super) mod repeated;
pub(super) mod share_admin;
pub(super) mod share_call;
pub(super) mod share_leaders;
pub(super) mod share_log_ends;
pub mod share_release;
pub(super) mod transactions;
