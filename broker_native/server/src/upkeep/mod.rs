//! Work that no request asks for.
//!
//! | file | what it owns |
//! |---|---|
//! | [`background`] | begins work again that met a bug |
//! | [`maintenance`] | the thread for what is due by the clock: retention, rolls, checkpoints |
//! | [`compaction`] | the threads that compact logs |
pub mod background;
pub mod compaction;
pub mod maintenance;
