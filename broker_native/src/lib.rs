//! The native half of pylog: everything that touches a byte.
//!
//! # Layout
//! | room | what it owns | may import |
//! |---|---|---|
//! | [`record`] | v2 record batches: layout, CRC, codecs, reader, builder, partitioner | nothing |
//! | [`columnar`] | record batch <-> Arrow | `record` |
//! | [`storage`] | segments, indexes, recovery, retention; the disk and clock traits | `record` |
//! | [`wire`] | sans-IO codec of Kafka's messages; error codes; API table | nothing |
//! | [`coordinator`] | groups and transactions as pure state machines | `wire`, `record` |
//! | [`replica`] | leaders and followers of replicated partitions | `wire`, `record`, `storage`, `client` |
//! | [`server`] | sockets, connections, one handler per request | `wire`, `record`, `storage`, `coordinator`, `replica` |
//! | [`client`] | metadata, consumer, producer, admin over blocking sockets | `wire`, `record`, `columnar` |
//! | `py` | the only room that sees Python (feature `python`) | all |
//!
//! Nothing here starts a thread, a runtime or a socket when it is loaded: Spark's Python daemon forks.
pub mod client;
pub mod columnar;
pub mod coordinator;
#[cfg(feature = "python")]
mod py;
pub mod record;
pub mod replica;
pub mod server;
pub mod storage;
pub mod wire;
