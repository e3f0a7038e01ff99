//! AlterClientQuotas (49): quotas of users, client ids and addresses are set or removed.
use crate::schema::messages;

messages! {
    /// The changes.
    AlterClientQuotasRequest of AlterClientQuotas {
        entries: Vec<EntryData> [0+],
        validate_only: bool [0+],
    }

    /// The changes of one entity's quotas.
    EntryData {
        entity: Vec<EntityData> [0+],
        ops: Vec<OpData> [0+],
    }

    /// One part of an entity.
    EntityData {
        /// "user", "client-id" or "ip".
        entity_type: String [0+],
        /// Null: the default.
        entity_name: Option<String> [0+],
    }

    /// One change.
    OpData {
        key: String [0+],
        value: f64 [0+],
        remove: bool [0+],
    }

    /// What became of each entity's changes, in their order.
    AlterClientQuotasResponse of AlterClientQuotas {
        throttle_time_ms: i32 [0+],
        entries: Vec<EntryResult> [0+],
    }

    /// What became of one.
    EntryResult {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        entity: Vec<EntityData> [0+],
    }
}
