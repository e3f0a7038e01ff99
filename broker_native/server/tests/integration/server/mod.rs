//! The server over raw sockets, started natively: no Python, decisions taken by the test.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod admin;
mod authorization;
mod authorization_rights;
mod cluster_bed;
mod coordinators;
mod coordinators_replicated;
mod decisions;
mod durability;
mod fetch_sessions;
mod followers;
mod leading;
mod leading_readers;
mod limits;
mod listeners;
mod logins;
mod long_poll;
mod membership;
mod middle;
mod naming;
mod offsets;
mod panics;
mod passwords;
mod peers;
mod produce_fetch;
mod quotas;
mod schemas;
mod share_groups;
mod share_groups_apart;
mod stop;
mod support;
mod tls;
mod transactions;
mod transactions_apart;
mod versions;
