//! The internal topics that coordinators keep their state in.

/// Holds groups and their offsets.
pub const GROUPS_TOPIC: &str = "__consumer_offsets";
/// Holds transactional ids and their transactions.
pub const TRANSACTIONS_TOPIC: &str = "__transaction_state";
/// Holds what share groups did with records.
pub const SHARES_TOPIC: &str = "__share_group_state";
