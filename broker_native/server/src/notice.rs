//! Log lines of the server.
use pylog_log::{error, loggers, warn};

pub use pylog_log::BUG;

/// Something was refused, skipped, cut or given up.
pub fn notice(line: &str) {
    warn!(target: loggers::BROKER, "{line}");
}

/// What no client can bring about.
pub fn report(line: &str) {
    error!(target: loggers::BROKER, "{line}");
}
