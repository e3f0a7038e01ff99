//! What a cleaning may use: memory and time.

/// Memory of one cleaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CleanerConfig {
    /// Most bytes of the map of keys.
    pub dedupe_bytes: usize,
    /// How full the map may get, 0 to 1.
    pub load_factor: f64,
    /// Bytes read, and bytes written, at a time.
    pub io_bytes: usize,
}

/// How fast a cleaning may go, and whether it may go on.
pub trait Pace {
    /// Called after `bytes` were read or written; may wait. `false` ends the cleaning.
    fn step(&self, bytes: u64) -> bool;
}
