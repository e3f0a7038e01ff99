//! Log lines of the server: one line on stderr each, bounded in number so that a hostile client cannot flood the log.
use std::io::Write;

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Most lines in one [`WINDOW`].
const LINES_MAX: u32 = 20;
/// See [`LINES_MAX`].
const WINDOW: Duration = Duration::from_secs(10);

struct Window {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

static STATE: Mutex<Window> = Mutex::new(Window { began: None, lines: 0, left_out: 0 });

/// What a panic of the broker is called to whom it met.
pub const BUG: &str = "a bug of the broker (see the panic above); please report it";

/// Writes `pylog broker: <line>`, or counts it as left out.
pub fn notice(line: &str) {
    let Some(left_out) = admitted(Instant::now()) else { return };
    let mut err = std::io::stderr().lock();
    // Nobody is left to be told when stderr is closed.
    let _ = if left_out == 0 {
        writeln!(err, "pylog broker: {line}")
    } else {
        writeln!(err, "pylog broker: {line} ({left_out} lines before it were left out)")
    };
}

/// Writes `pylog broker: <line>` whatever was written before: for what no client can bring about.
pub fn report(line: &str) {
    // Nobody is left to be told when stderr is closed.
    let _ = writeln!(std::io::stderr().lock(), "pylog broker: {line}");
}

/// How many lines were left out since the last one, or `None` when this one is left out as well.
fn admitted(now: Instant) -> Option<u64> {
    let mut window = STATE.lock();
    if window.began.is_none_or(|began| now.duration_since(began) > WINDOW) {
        window.began = Some(now);
        window.lines = 0;
    }
    if window.lines >= LINES_MAX {
        window.left_out += 1;
        return None;
    }
    window.lines += 1;
    Some(std::mem::take(&mut window.left_out))
}
