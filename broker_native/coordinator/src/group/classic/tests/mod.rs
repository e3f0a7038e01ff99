//! Promises of classic groups, kept by the whole machine of a partition: no sockets, no clock, ids that count.
mod bench;
mod commits;
mod deadlines;
mod join;
mod leave;
mod log;
mod property;
mod static_members;
mod sync;
