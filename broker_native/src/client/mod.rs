//! The native client: blocking sockets, no runtime, fork-safe.
