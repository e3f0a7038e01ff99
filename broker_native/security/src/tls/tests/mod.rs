//! Handshakes in memory between the two configurations, real stores of keytool and OpenSSL, hostile ones.
mod bags;
mod fuzz;
mod handshakes;
mod link;
mod listener;
mod names;
mod stores;
