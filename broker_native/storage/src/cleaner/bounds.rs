//! What a cleaning may use: memory and time.
use pylog_settings::server::Settings;

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

/// The memory of one of the broker's threads that compact.
impl From<&Settings> for CleanerConfig {
    fn from(broker: &Settings) -> Self {
        let threads = broker.log_cleaner_threads.max(1);
        Self {
            dedupe_bytes: broker.log_cleaner_dedupe_buffer_size / threads,
            load_factor: broker.log_cleaner_io_buffer_load_factor,
            // One half to read, one to write.
            io_bytes: broker.log_cleaner_io_buffer_size / threads / 2,
        }
    }
}

/// How fast a cleaning may go, and whether it may go on.
pub trait Pace {
    /// Called after `bytes` were read or written; may wait. `false` ends the cleaning.
    fn step(&self, bytes: u64) -> bool;
}
