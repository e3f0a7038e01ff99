//! Every integration test that needs no process of its own, as one program: linked once, and its tests share the cores.
//!
//! `hostile_lengths` (an allocator that counts) and `record_bombs` (the peak memory of its process) stand beside it.

mod columnar_decode;
mod columnar_encode;
mod columnar_filter;
mod power_loss;
mod record_fixtures;
mod record_oracle;
mod record_round_trip;
mod record_validate;
mod replication;
mod runs;
mod server;
mod storage;
