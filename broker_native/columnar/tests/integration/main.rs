//! Every integration test that needs no process of its own, as one program.

mod decode;
mod filter;
mod fixtures;
mod row_source;
