//! What the tests of several crates share; never part of a wheel.

pub mod runs;
pub mod sim;
