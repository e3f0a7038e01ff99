//! Promises of the transaction coordinator, without a socket or a clock.
mod bench;
mod ends;
mod life;
mod long;
mod prepared;
mod producers;
mod random;
mod single_use;
