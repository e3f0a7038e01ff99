//! A data directory read without its broker ([`pylog_storage::directory`]), in the way in which brokers are asked.
//!
//! | file | what it does |
//! |---|---|
//! | `answers` | which topics there are, offsets, how far limits reach |
//! | `pump` | the thread of a reader |
//! | `failure` | errors of the directory as the client's |
mod answers;
mod failure;
mod pump;

pub use self::answers::Directory;
pub(super) use self::pump::DirectoryPump;
