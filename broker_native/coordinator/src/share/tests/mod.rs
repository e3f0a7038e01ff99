//! Promises of share partitions.
mod fencing;
mod machine;
mod property;
mod replay;
mod scene;
mod window;
