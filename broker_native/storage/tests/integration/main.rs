//! The log engine from outside: what it promises to a server, on a real and on a simulated disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod append_read;
mod changed;
mod compaction;
mod damage;
mod directory;
mod fuzz;
mod many;
mod mirrored;
mod model;
mod power_loss;
mod promises;
mod replicas;
mod transactions;
