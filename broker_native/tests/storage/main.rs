//! The log engine from outside: what it promises to a server, on a real and on a simulated disk.
mod support;

mod append_read;
