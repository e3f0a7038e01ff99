//! A data directory read without its broker ([`pylog_storage::directory`]), in the way in which brokers are asked.
//!
//! | file | what it does |
//! |---|---|
//! | `answers` | which topics there are, and offsets |
//! | `feed` | its batches for a reader |
//! | `failure` | errors of the directory as the client's |
mod answers;
mod failure;
mod feed;

pub use self::answers::Directory;
pub use self::feed::DirectoryFeed;
