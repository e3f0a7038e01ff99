//! Handshakes in memory between the two configurations.
