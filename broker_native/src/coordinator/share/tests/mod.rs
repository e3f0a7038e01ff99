//! Promises of share partitions.
mod machine;
mod property;
mod replay;
mod window;
