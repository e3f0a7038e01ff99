//! Every setting of brokers, topics, groups and clients, once: Kafka's name, type, default, valid values, meaning.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`setting`] | what one setting is, and the rows of the tables |
//! | [`secret`] | a text that is never shown |
//! | [`typed`] | the Rust types that a setting may have, and types that are one of a few words |
//! | [`given`] | reads and checks the values that are given |
//! | `declare` | the macro that turns a declaration into a struct, its reading and its rows |
//! | [`nearest`] | the known name that is nearest to an unknown one |
//! | [`client`], [`client_security`], [`topic`], [`server`], [`listener`], [`groups`], [`share`], [`transactions`], [`sasl`] | settings that the native half reads, a struct each |
//! | [`inter_broker`] | how a broker reaches the others |
//! | [`cluster`], [`archive`], [`log_defaults`], [`internal_topics`] | settings of brokers that Python alone reads |
//! | [`tables`] | all settings, in one table each for clients, brokers, topics and groups |
//!
//! A default stands in a declaration and nowhere else. A struct is read from JSON under Kafka's names; a name that is unknown, missing
//! or of another type is refused with a sentence that names it. Python reads the tables through the native module and checks what
//! users give (`pylog_spark/broker/setting.py`); the values that it hands over are checked once more as they are read.
//! Nothing here holds a lock, a file or a socket.
mod declare;

pub mod archive;
pub mod client;
pub mod client_security;
pub mod cluster;
pub mod given;
pub mod groups;
pub mod inter_broker;
pub mod internal_topics;
pub mod listener;
pub mod log_defaults;
pub mod nearest;
pub mod sasl;
pub mod secret;
pub mod server;
pub mod setting;
pub mod share;
pub mod tables;
pub mod topic;
pub mod transactions;
pub mod typed;

pub use given::Refused;
pub use secret::Secret;
pub use setting::{Importance, Kind, Row, Setting, Synonym, Valid};
pub use typed::Typed;
