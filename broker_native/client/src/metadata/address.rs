//! Where a broker is.

/// Host and port.
pub type Address = (String, u16);
