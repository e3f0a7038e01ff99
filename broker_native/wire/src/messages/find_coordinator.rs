//! FindCoordinator (10): which broker keeps a group or a transaction.
use crate::schema::messages;

messages! {
    /// Groups or transactional ids: `coordinator_keys` from version 4 on, `key` before.
    FindCoordinatorRequest of FindCoordinator {
        key: String [0-3],
        /// 0: group; 1: transaction; 2: share group.
        key_type: i8 [1+],
        coordinator_keys: Vec<String> [4+],
    }

    /// The coordinators: `coordinators` from version 4 on, the other fields before.
    FindCoordinatorResponse of FindCoordinator {
        throttle_time_ms: i32 [1+],
        error_code: i16 [0-3],
        error_message: Option<String> [1-3] = Some(String::new()),
        node_id: i32 [0-3],
        host: String [0-3],
        port: i32 [0-3],
        coordinators: Vec<Coordinator> [4+],
    }

    /// The coordinator of a key.
    Coordinator {
        key: String [4+],
        node_id: i32 [4+],
        host: String [4+],
        port: i32 [4+],
        error_code: i16 [4+],
        error_message: Option<String> [4+],
    }
}
