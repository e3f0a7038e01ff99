//! The level of each logger: what is below it is not written. Changed while threads log; each change is seen soon by all of them.
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::{Level, Metadata};

use crate::loggers;

/// Nothing is written.
pub const OFF: usize = 0;
const ERROR: usize = 1;
const WARN: usize = 2;
const INFO: usize = 3;
const DEBUG: usize = 4;
/// All is written.
pub const TRACE: usize = 5;

/// As numbers: 0 is off, 1 writes errors, up to 5, which writes everything.
#[derive(Debug)]
pub struct Levels([AtomicUsize; loggers::ALL.len()]);

impl Default for Levels {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicUsize::new(INFO)))
    }
}

impl Levels {
    /// Whether `level` is written by the logger `name`. A logger that is not in the list writes nothing.
    pub fn are_written(&self, name: &str, level: Level) -> bool {
        let found = loggers::index(name).and_then(|at| self.0.get(at));
        found.is_some_and(|most| number(level) <= most.load(Ordering::Relaxed))
    }

    /// Whether the event of a call site is written.
    pub fn has(&self, metadata: &Metadata<'_>) -> bool {
        self.are_written(metadata.target(), *metadata.level())
    }

    /// The most detailed level of all loggers.
    pub fn most(&self) -> usize {
        self.0.iter().map(|one| one.load(Ordering::Relaxed)).max().unwrap_or(OFF)
    }

    /// Sets the level of one logger; true when it was another one. Unknown names are passed over.
    pub fn set(&self, name: &str, level: usize) -> bool {
        let found = loggers::index(name).and_then(|at| self.0.get(at));
        found.is_some_and(|one| one.swap(level.min(TRACE), Ordering::Relaxed) != level.min(TRACE))
    }
}

/// The number of a level.
pub fn number(level: Level) -> usize {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => WARN,
        Level::INFO => INFO,
        Level::DEBUG => DEBUG,
        Level::TRACE => TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_writes_what_is_at_its_level_or_above() {
        let levels = Levels::default();
        assert!(levels.are_written(loggers::NETWORK, Level::INFO));
        assert!(!levels.are_written(loggers::NETWORK, Level::DEBUG));
        assert!(levels.set(loggers::NETWORK, DEBUG));
        assert!(!levels.set(loggers::NETWORK, DEBUG), "it was this one already");
        assert!(levels.are_written(loggers::NETWORK, Level::DEBUG));
        assert!(!levels.are_written(loggers::STORAGE, Level::DEBUG), "each logger has its own");
        assert_eq!(levels.most(), DEBUG);
        levels.set(loggers::NETWORK, OFF);
        assert!(!levels.are_written(loggers::NETWORK, Level::ERROR));
    }

    #[test]
    fn a_logger_that_does_not_exist_writes_nothing() {
        let levels = Levels::default();
        assert!(!levels.set("pylog.broker.nothing", TRACE));
        assert!(!levels.are_written("pylog.broker.nothing", Level::ERROR));
    }
}
