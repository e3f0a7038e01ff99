//! The server over raw sockets, started natively: no Python, decisions taken by the test.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod admin;
mod coordinators;
mod decisions;
mod durability;
mod fetch_sessions;
mod limits;
mod long_poll;
mod offsets;
mod produce_fetch;
mod stop;
mod support;
mod transactions;
mod versions;
