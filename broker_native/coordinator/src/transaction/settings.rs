//! The broker's settings about transactions.
pub use pylog_settings::transactions::{SINGLE_USE, Settings};
