//! The copy of topics in another cluster, offset by offset: batches are fetched as they are stored and handed over as they are.
//!
//! | file | what it does |
//! |---|---|
//! | [`running`] | starts a [`lane::Lane`] for each broker of the source, says how far all are, stops them |
//! | [`lane`] | the thread that copies what one broker of the source leads |
//! | [`fetching`], [`handing_over`] | its requests, and what the answers mean |
//! | [`progress`] | how far each partition is, shared by the lanes |
//! | [`pace`] | how many bytes a second |
//! | [`promote`] | ends a mirror in the target |
//! | [`batches`] | the same of one partition, into memory and from there |
//!
//! Nothing is remembered anywhere but in the target: its log's end is the position, and what it has is passed over there. So two
//! lanes, or two mirrors, may copy the same partition and do no harm.
pub mod batches;
pub mod fetching;
pub mod handing_over;
pub mod lane;
pub mod pace;
pub mod progress;
pub mod promote;
pub mod running;
