//! What the requests of share groups have in common: ask the machine that keeps a share partition; take acknowledgements.
use uuid::Uuid;

use crate::authorization::table::Right;
use crate::call::Call;
use crate::cluster::view::Cluster;
use crate::coordinators::Waiting;
use crate::share_groups::sessions::{ShareSessionKey, TopicIdPartition};
use crate::shared::Shared;
use pylog_coordinator::share::{ShareKey, ShareReply, ShareRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::AcknowledgementBatch;

/// Why a broker of a cluster keeps no share groups.
pub const NOT_AT_THE_LEVEL: &str =
    "Share groups need level 2 of pylog.version: raise it when all brokers of the cluster support it.";
/// The first level of a cluster whose brokers keep share groups together.
const LEVEL: i16 = 2;

/// Longest id of a member, as in Kafka.
const MEMBER_ID_MAX: usize = 36;
/// Most partitions whose records one request acknowledges: all that it says is taken at once.
pub const SAID_MAX: usize = 10_000;
/// Why a request that acknowledges in more is refused.
pub const SAYS_TOO_MUCH: &str =
    "A request may acknowledge records of at most 10000 partitions: send several requests.";
/// An acknowledgement that prolongs the lock.
const RENEW: i8 = 4;

/// Whether this broker keeps no share groups.
pub fn is_refused(call: &Call) -> bool {
    !are_kept(&call.shared.cluster)
}

/// Whether share groups are kept: by a broker that is alone, or by all of a cluster. One that has not heard of the level yet, at its
/// start, does not refuse them: members would give up for good.
pub fn are_kept(cluster: &Cluster) -> bool {
    !cluster.is_clustered() || cluster.now().level.is_none_or(|level| level.now >= LEVEL)
}

/// Asks the share partition, if this broker leads its partition. It has taken the request when this returns.
pub fn ask(shared: &Shared, key: ShareKey, request: ShareRequest) -> Waiting<ShareReply> {
    let settings = shared.share_groups.configs.of(&key.group_id);
    shared.coordinators.share_partitions.ask(key, settings, request)
}

/// Partitions of which no member holds records are read again before the next member gets some, because an administrator may have moved
/// the group meanwhile.
pub fn refresh<'a>(shared: &Shared, group_id: &str, partitions: impl Iterator<Item = &'a TopicIdPartition>) {
    for (topic_id, partition) in partitions {
        let key = ShareKey { group_id: group_id.to_owned(), topic_id: *topic_id, partition: *partition };
        // It has happened when this returns.
        drop(ask(shared, key, ShareRequest::Refresh));
    }
}

/// The session that the request belongs to.
///
/// # Errors
/// INVALID_REQUEST when it names no group or member; UNSUPPORTED_VERSION in a cluster of a lower level. With a sentence.
pub fn session_key(
    call: &Call,
    group_id: Option<String>,
    member_id: Option<String>,
) -> Result<ShareSessionKey, (ErrorCode, &'static str)> {
    if is_refused(call) {
        return Err((ErrorCode::UnsupportedVersion, NOT_AT_THE_LEVEL));
    }
    let group_id = group_id.filter(|id| !id.is_empty() && i16::try_from(id.len()).is_ok());
    let member_id = member_id.filter(|id| !id.is_empty() && id.len() <= MEMBER_ID_MAX);
    match (group_id, member_id) {
        (Some(group_id), Some(member_id)) => Ok(ShareSessionKey { group_id, member_id }),
        _ => Err((
            ErrorCode::InvalidRequest,
            "The request names no group, or no member of at most 36 characters.",
        )),
    }
}

/// What a member says of the records of one partition.
pub struct Said {
    /// Which topic.
    pub topic_id: Uuid,
    /// Which partition of it.
    pub partition: i32,
    /// What.
    pub batches: Vec<AcknowledgementBatch>,
}

/// Acknowledgements that are under way: topic, partition, outcome.
pub type Acknowledging = Vec<(Uuid, i32, Waiting<ShareReply>)>;

/// Hands acknowledgements over, in their order, of topics on which the client has the `right`; `renews`: the request says that some
/// of them renew.
pub fn acknowledge(
    call: &Call,
    session: &ShareSessionKey,
    said: Vec<Said>,
    renews: bool,
    right: &Right,
) -> Acknowledging {
    let image = call.shared.topics.now();
    let may_renew = call.shared.share_groups.configs.of(&session.group_id).renews;
    let hand_over = |Said { topic_id, partition, batches }| {
        let asks_renewal =
            batches.iter().any(|batch: &AcknowledgementBatch| batch.acknowledge_types.contains(&RENEW));
        let topic = image.with_id(&topic_id);
        let known = topic.map(|topic| topic.partition(partition).is_some());
        let waiting = match known {
            None => Waiting::now(Err(ErrorCode::UnknownTopicId)),
            Some(_) if topic.is_some_and(|topic| !call.may(right, &topic.name)) => {
                Waiting::now(Err(right.error()))
            }
            Some(false) => Waiting::now(Err(ErrorCode::UnknownTopicOrPartition)),
            Some(true) if asks_renewal && !renews => Waiting::now(Err(ErrorCode::InvalidRequest)),
            Some(true) if asks_renewal && !may_renew => Waiting::now(Err(ErrorCode::InvalidRecordState)),
            Some(true) => {
                let key = ShareKey { group_id: session.group_id.clone(), topic_id, partition };
                let member_id = session.member_id.clone();
                ask(&call.shared, key, ShareRequest::Acknowledge { member_id, batches })
            }
        };
        (topic_id, partition, waiting)
    };
    said.into_iter().map(hand_over).collect()
}

/// The error of an answer, or none.
pub fn error_of(answer: Result<ShareReply, ErrorCode>) -> ErrorCode {
    match answer {
        Ok(ShareReply::Done(error)) => error,
        Ok(_) => ErrorCode::UnknownServerError,
        // The client has to try again.
        Err(ErrorCode::NotCoordinator) => ErrorCode::CoordinatorNotAvailable,
        Err(error) => error,
    }
}
