//! UnregisterBroker (64): a broker that is gone for good is forgotten.
use crate::schema::messages;

messages! {
    /// The broker to forget.
    UnregisterBrokerRequest of UnregisterBroker {
        broker_id: i32 [0+],
    }

    /// Whether it is forgotten.
    UnregisterBrokerResponse of UnregisterBroker {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
