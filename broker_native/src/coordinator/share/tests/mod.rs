//! Promises of share partitions.
mod machine;
mod property;
mod window;
