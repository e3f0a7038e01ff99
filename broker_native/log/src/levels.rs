//! The level of each logger: an event below it is not written. Levels change while threads log; all threads see a change soon.
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::{Level, Metadata};

use crate::loggers;

/// The level of a logger that writes nothing.
pub const OFF: usize = 0;
const ERROR: usize = 1;
const WARN: usize = 2;
const INFO: usize = 3;
const DEBUG: usize = 4;
/// The level of a logger that writes everything.
pub const TRACE: usize = 5;

/// The level of each logger as a number: 0 writes nothing, 1 only errors, and so on up to 5, which writes everything.
#[derive(Debug)]
pub struct Levels([AtomicUsize; loggers::ALL.len()]);

impl Default for Levels {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicUsize::new(INFO)))
    }
}

impl Levels {
    /// Whether `level` is written by the logger `name`. A logger that is not in the list writes nothing.
    pub fn writes(&self, name: &str, level: Level) -> bool {
        let found = loggers::index(name).and_then(|at| self.0.get(at));
        found.is_some_and(|most_detailed| number(level) <= most_detailed.load(Ordering::Relaxed))
    }

    /// Whether the event of a call site is written.
    pub fn writes_event(&self, metadata: &Metadata<'_>) -> bool {
        self.writes(metadata.target(), *metadata.level())
    }

    /// The most detailed level of all loggers.
    pub fn most_detailed(&self) -> usize {
        self.0.iter().map(|level| level.load(Ordering::Relaxed)).max().unwrap_or(OFF)
    }

    /// Sets the level of one logger; true when that changed it. A name that is not in the list is ignored.
    pub fn set(&self, name: &str, level: usize) -> bool {
        let found = loggers::index(name).and_then(|at| self.0.get(at));
        let level = level.min(TRACE);
        found.is_some_and(|known| known.swap(level, Ordering::Relaxed) != level)
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
        assert!(levels.writes(loggers::NETWORK, Level::INFO));
        assert!(!levels.writes(loggers::NETWORK, Level::DEBUG));
        assert!(levels.set(loggers::NETWORK, DEBUG));
        assert!(!levels.set(loggers::NETWORK, DEBUG), "the level was this already");
        assert!(levels.writes(loggers::NETWORK, Level::DEBUG));
        assert!(!levels.writes(loggers::STORAGE, Level::DEBUG), "each logger has its own");
        assert_eq!(levels.most_detailed(), DEBUG);
        levels.set(loggers::NETWORK, OFF);
        assert!(!levels.writes(loggers::NETWORK, Level::ERROR));
    }

    #[test]
    fn a_logger_that_does_not_exist_writes_nothing() {
        let levels = Levels::default();
        assert!(!levels.set("pylog.broker.nothing", TRACE));
        assert!(!levels.writes("pylog.broker.nothing", Level::ERROR));
    }
}
