//! Which replica a consumer should read from: one in its own rack (KIP-392). Pure.
use super::leader_state::InSync;
use crate::cluster::view::ClusterView;

/// Kafka's selector, the only one there is.
pub const RACK_AWARE: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

/// The follower in `rack` that has the record at `offset`, the one with the most records of several; `None` when the leader,
/// which stands in `own_rack`, is as near as any.
pub fn nearest(
    in_sync: &[InSync],
    view: &ClusterView,
    own_rack: Option<&str>,
    rack: &str,
    offset: i64,
) -> Option<i32> {
    if rack.is_empty() || own_rack == Some(rack) {
        return None;
    }
    let is_near = |follower: &&InSync| {
        view.broker(follower.id).is_some_and(|broker| broker.rack.as_deref() == Some(rack))
    };
    let has_it =
        |follower: &&InSync| follower.log_start_offset <= offset && offset <= follower.log_end_offset;
    let near = in_sync.iter().filter(is_near).filter(has_it);
    near.max_by_key(|follower| (follower.log_end_offset, -follower.id)).map(|follower| follower.id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cluster::view::Broker;

    fn view(racks: &[(i32, &str)]) -> ClusterView {
        let broker = |&(id, rack): &(i32, &str)| Broker {
            id,
            endpoints: BTreeMap::default(),
            rack: Some(rack.into()),
            epoch: 1,
        };
        ClusterView {
            controller_id: 1,
            brokers: racks.iter().map(broker).collect(),
            ..ClusterView::default()
        }
    }

    fn at(id: i32, log_start_offset: i64, log_end_offset: i64) -> InSync {
        InSync { id, log_start_offset, log_end_offset }
    }

    #[test]
    fn a_consumer_is_sent_to_the_live_follower_of_its_rack_that_has_its_record() {
        let racks = view(&[(1, "a"), (2, "b"), (3, "b")]);
        let followers = [at(2, 0, 10), at(3, 0, 12), at(4, 0, 20)];
        assert_eq!(nearest(&followers, &racks, Some("a"), "b", 5), Some(3));
        assert_eq!(nearest(&followers, &racks, Some("a"), "b", 13), None, "nobody has it yet");
        assert_eq!(nearest(&[at(2, 6, 10)], &racks, Some("a"), "b", 5), None, "deleted there");
        assert_eq!(nearest(&followers, &racks, Some("b"), "b", 5), None, "the leader is as near");
        assert_eq!(nearest(&followers, &racks, Some("a"), "c", 5), None);
        assert_eq!(nearest(&followers, &racks, Some("a"), "", 5), None);
    }
}
