//! Every integration test that needs no process of its own, as one program.

mod decode;
mod encode;
mod filter;
mod fixtures;
