//! Ranges of partitions as Arrow batches.
//!
//! | file | what it does |
//! |---|---|
//! | [`plan`] | what to read, and what comes of it |
//! | [`range`], `pump` | the consumer's end; the thread that reads ahead of it |
//! | [`fetcher`], `sources`, `truncation` | one partition's bytes in order; from which replica; whether it still has what was read |
//! | [`local`] | bytes from the broker's own files, where this process sees them |
//! | [`feed`] | batches that no broker sends, and the thread that reads them |
//! | [`directory`] | a data directory read without its broker |
//! | [`stored`] | whole batches in memory: parts, transactions, times |
//! | `outlet` | finished batches to the consumer |
//! | `typing` | the columns of a batch as the plan wants them |
//! | `standstill` | answers that bring nothing new: gaps, pauses, giving up |
//! | [`at_once`] | small ranges of many partitions, from all leaders at once |
//! | [`advance`] | how far a limit of rows or bytes reaches, by the headers of batches |
pub mod advance;
pub mod at_once;
pub mod directory;
pub mod feed;
pub mod fetcher;
pub mod local;
mod outlet;
pub mod plan;
mod pump;
pub mod range;
mod sources;
mod standstill;
pub mod stored;
mod truncation;
mod typing;
