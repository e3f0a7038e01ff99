//! What a client may do, as Kafka answers it without an authorizer: everything.
use pylog_wire::messages::metadata::OPERATIONS_NOT_ASKED;

/// Bits of Kafka's AclOperation that concern a topic: read, write, create, delete, alter, describe, and both of configs.
const TOPIC: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
/// Those that concern a group: read, delete, describe, both of configs.
const GROUP: i32 = bits(&[3, 6, 8, 10, 11]);
/// Those that concern the cluster: create, alter, describe, act as a broker, both of configs, write idempotently.
const CLUSTER: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

const fn bits(operations: &[u8]) -> i32 {
    let (mut set, mut at) = (0, 0);
    while at < operations.len() {
        #[allow(clippy::indexing_slicing)]
        {
            set |= 1 << operations[at];
        }
        at += 1;
    }
    set
}

/// What may be done with a topic.
pub const fn on_topic(asked: bool) -> i32 {
    if asked { TOPIC } else { OPERATIONS_NOT_ASKED }
}

/// What may be done with the cluster.
pub const fn on_cluster(asked: bool) -> i32 {
    if asked { CLUSTER } else { OPERATIONS_NOT_ASKED }
}

/// What may be done with a group.
pub const fn on_group(asked: bool) -> i32 {
    if asked { GROUP } else { OPERATIONS_NOT_ASKED }
}
