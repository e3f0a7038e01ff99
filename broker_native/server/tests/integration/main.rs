//! Every integration test that needs no process of its own, as one program.

mod replication;
mod server;
