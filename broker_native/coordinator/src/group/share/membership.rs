//! How long a member may stay silent, and how often it is to report.

/// What a group may set for its members, or the broker's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// A member whose heartbeats stay out for this long is removed.
    pub session_timeout_ms: i32,
    /// How often a member is to send a heartbeat.
    pub heartbeat_interval_ms: i32,
}
