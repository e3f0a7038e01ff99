//! The broker's settings as the native side reads them, declared in `pylog_settings`.
pub use pylog_settings::server::Settings;
