//! DescribeClientQuotas (48): the quotas of users, client ids and addresses.
use crate::schema::messages;

messages! {
    /// Whose quotas.
    DescribeClientQuotasRequest of DescribeClientQuotas {
        /// All of them must fit.
        components: Vec<ComponentData> [0+],
        /// Entities with other components do not fit.
        strict: bool [0+],
    }

    /// One part of an entity.
    ComponentData {
        /// "user", "client-id" or "ip".
        entity_type: String [0+],
        /// 0: exactly `match`; 1: the default; 2: any that is given.
        match_type: i8 [0+],
        r#match: Option<String> [0+],
    }

    /// The quotas by entity.
    DescribeClientQuotasResponse of DescribeClientQuotas {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        entries: Option<Vec<EntryData>> [0+],
    }

    /// The quotas of one entity.
    EntryData {
        entity: Vec<EntityData> [0+],
        values: Vec<ValueData> [0+],
    }

    /// One part of an entity.
    EntityData {
        entity_type: String [0+],
        /// Null: the default.
        entity_name: Option<String> [0+],
    }

    /// One quota.
    ValueData {
        key: String [0+],
        value: f64 [0+],
    }
}
