//! Every integration test that needs no process of its own, as one program.
//!
//! `bombs` (the peak memory of its process) stands beside it.

mod oracle;
mod round_trip;
mod validate;
