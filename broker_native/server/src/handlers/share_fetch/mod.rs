//! ShareFetch: acknowledges records and acquires others, waiting for some up to `max_wait_ms`. `min_bytes` beyond 1 are not waited for:
//! the locks of the records that are there would run meanwhile.
//!
//! KIP-932. Version 2 limits what is acquired to what is asked for (KIP-1206), and renews locks (KIP-1222).
mod read;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use self::read::{ANSWERED_MAX, FoundRecords, WantedRecords, gather};
use super::common::archived::Records;
use super::common::share_admin::NAMED_MAX;
use super::common::share_call::{
    Acknowledging, SAID_MAX, SAYS_TOO_MUCH, Said, acknowledge, error_of, refresh, session_key,
};
use super::common::share_leaders::CurrentLeaders;
use super::common::share_release::release;
use crate::authorization::table::{SHARE_FETCH_GROUP, SHARE_FETCH_TOPIC};
use crate::call::{Call, Outcome, Reply};
use crate::io::response_queue::{Answer, Part};
use crate::quotas::table::Quota;
use crate::share_groups::sessions::{
    CLOSES, OPENS, SessionClient, SessionPartitions, ShareSessionKey, TopicIdPartition,
};
use crate::state::watch::Watch;
use pylog_log::loggers::{COORDINATOR, REQUEST};
use pylog_log::warn;
use pylog_wire::messages::share_fetch::{
    FetchTopic, PartitionData, RECORD_LIMIT, ShareFetchableTopicResponse,
};
use pylog_wire::messages::{ShareFetchRequest, ShareFetchResponse};
use pylog_wire::{Chunk, ErrorCode, message};

/// No client waits longer; a bound for what a hostile one can hold.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// No client is asked to wait longer by itself.
const THROTTLE_MAX: Duration = Duration::from_secs(1);
/// Why a request that opens a session is refused.
const ACKNOWLEDGES_NOTHING: &str =
    "A request that opens a share session cannot acknowledge: nothing was acquired in it.";
/// Why a request that names too many partitions is refused.
const NAMES_TOO_MUCH: &str =
    "A request may name at most 100000 partitions: add them to the session with several requests.";
/// Runs up to this size are copied into the answer, which then leaves in one write.
const INLINE_BYTES: usize = /* 32 KiB */ 32 << 10;

/// Answers when there is something, or the time is over.
pub fn handle(call: Call, mut request: ShareFetchRequest) -> Outcome {
    let session = match session_key(&call, request.group_id.take(), request.member_id.take()) {
        Ok(session) => session,
        Err((error, sentence)) => return Outcome::Now(call.answer(&refused(error, sentence))),
    };
    if let Err(error) = call.check(&SHARE_FETCH_GROUP, &session.group_id) {
        return Outcome::Now(call.answer(&refused(error, error.sentence())));
    }
    if let Some(sentence) = senseless(&request) {
        return Outcome::Now(call.answer(&refused(ErrorCode::InvalidRequest, sentence)));
    }
    let epoch = request.share_session_epoch;
    let (asked, said) = split(std::mem::take(&mut request.topics));
    let sessions = &call.shared.share_groups.sessions;
    let (asked, mut missing) = existing(&call, asked);
    let partitions = match epoch {
        CLOSES => sessions.close(&session),
        _ => {
            let forgotten = forgotten(&request);
            let client = SessionClient { address: call.peer.ip(), connection: call.connection };
            sessions.read(&session, epoch, client, &asked, &forgotten)
        }
    };
    let partitions = match partitions {
        Ok(partitions) => partitions,
        Err(error) => {
            if error == ErrorCode::ShareSessionLimitReached {
                let client = call.peer.ip();
                warn!(
                    target: COORDINATOR, %client,
                    "a member of a share group at {client} is refused: group.share.max.share.sessions are in use"
                );
            }
            return Outcome::Now(call.answer(&refused(error, error.sentence())));
        }
    };
    if epoch == OPENS {
        refresh(&call.shared, &session.group_id, partitions.iter());
    }
    let taken = acknowledge(&call, &session, said, request.is_renew_ack, &SHARE_FETCH_TOPIC);
    if epoch == CLOSES {
        // What waits for records in this session ends.
        call.shared.share_groups.group_watchers.wake(&session.group_id);
        return Outcome::later(async move {
            release(&call.shared, &session, &partitions).await;
            reply(&call, &session, taken, Polled::default()).await
        });
    }
    let wanted = wanted(&call, &request, &session, partitions, &mut missing);
    Outcome::later(async move {
        let polled = match wanted.filter(|_| may_use_more(&call)) {
            Some(wanted) => long_poll(&call, wanted, &request, missing.is_empty()).await,
            None => Ok(Polled::default()),
        };
        match polled {
            Ok(mut polled) => {
                polled.found.extend(missing);
                reply(&call, &session, taken, polled).await
            }
            Err(error) => call.answer(&refused(error, error.sentence())),
        }
    })
}

/// Why a request is refused whatever the session is.
fn senseless(request: &ShareFetchRequest) -> Option<&'static str> {
    let named = || request.topics.iter().flat_map(|topic| &topic.partitions);
    let forgotten: usize = request.forgotten_topics_data.iter().map(|topic| topic.partitions.len()).sum();
    let said = named().filter(|partition| !partition.acknowledgement_batches.is_empty()).count();
    if named().count().saturating_add(forgotten) > NAMED_MAX {
        return Some(NAMES_TOO_MUCH);
    }
    if said > SAID_MAX {
        return Some(SAYS_TOO_MUCH);
    }
    (said > 0 && request.share_session_epoch == OPENS).then_some(ACKNOWLEDGES_NOTHING)
}

/// The partitions that are named, and what is acknowledged.
fn split(topics: Vec<FetchTopic>) -> (Vec<TopicIdPartition>, Vec<Said>) {
    let (mut asked, mut said) = (Vec::new(), Vec::new());
    for FetchTopic { topic_id, partitions } in topics {
        for partition in partitions {
            asked.push((topic_id, partition.partition_index));
            let (partition, batches) = (partition.partition_index, partition.acknowledgement_batches);
            if !batches.is_empty() {
                said.push(Said { topic_id, partition, batches });
            }
        }
    }
    (asked, said)
}

/// Splits off partitions that do not exist: they take no room in the session, and the answer names them, up to [`ANSWERED_MAX`].
fn existing(call: &Call, asked: Vec<TopicIdPartition>) -> (Vec<TopicIdPartition>, Vec<FoundRecords>) {
    let image = call.shared.topics.now();
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for (topic_id, number) in asked {
        let topic_partition = (topic_id, number);
        match image.with_id(&topic_id).map(|topic| topic.partition(number).is_some()) {
            Some(true) => there.push(topic_partition),
            _ if missing.len() >= ANSWERED_MAX => {}
            Some(false) => {
                missing.push(FoundRecords::failed(topic_partition, ErrorCode::UnknownTopicOrPartition))
            }
            None => missing.push(FoundRecords::failed(topic_partition, ErrorCode::UnknownTopicId)),
        }
    }
    (there, missing)
}

/// The partitions of a session that the member may read now; the others are answered with the error, up to [`ANSWERED_MAX`].
fn readable(
    call: &Call,
    partitions: SessionPartitions,
    refused: &mut Vec<FoundRecords>,
) -> SessionPartitions {
    if !call.is_guarded() {
        return partitions;
    }
    let image = call.shared.topics.now();
    let mut known: HashMap<Uuid, bool> = HashMap::new();
    partitions.only(|(topic_id, number)| {
        let may = *known.entry(*topic_id).or_insert_with(|| {
            image.with_id(topic_id).is_none_or(|topic| call.may(&SHARE_FETCH_TOPIC, &topic.name))
        });
        if !may && refused.len() < ANSWERED_MAX {
            refused.push(FoundRecords::failed((*topic_id, *number), SHARE_FETCH_TOPIC.error()));
        }
        may
    })
}

fn forgotten(request: &ShareFetchRequest) -> Vec<TopicIdPartition> {
    let topics = request.forgotten_topics_data.iter();
    topics.flat_map(|topic| topic.partitions.iter().map(|number| (topic.topic_id, *number))).collect()
}

/// What is to be read; nothing for a request that only acknowledges. What the member may not read is `refused`.
fn wanted(
    call: &Call,
    request: &ShareFetchRequest,
    session: &ShareSessionKey,
    partitions: SessionPartitions,
    refused: &mut Vec<FoundRecords>,
) -> Option<WantedRecords> {
    let rights_version = call.rights_version();
    let partitions = readable(call, partitions, refused);
    let only_acknowledges = request.is_renew_ack || request.max_records <= 0 || request.max_bytes <= 0;
    let max_bytes = request.max_bytes.min(call.most_bytes_at_once(call.shared.settings.fetch_max_bytes));
    (!only_acknowledges && !partitions.is_empty()).then(|| WantedRecords {
        session: session.clone(),
        partitions,
        rights_version,
        max_records: request.max_records.into(),
        exact: request.share_acquire_mode == RECORD_LIMIT,
        max_bytes: usize::try_from(max_bytes).unwrap_or(0),
        settings: call.shared.share_groups.configs.of(&session.group_id),
    })
}

/// Whether the member is within its quotas. One that is not acquires nothing: what it got would be locked while it waits.
fn may_use_more(call: &Call) -> bool {
    call.pause_ms == 0 && call.use_up(Quota::Consume, 0) == 0
}

/// What a poll found.
#[derive(Default)]
struct Polled {
    found: Vec<FoundRecords>,
    /// How long the client is asked to wait by itself.
    throttle: Duration,
}

/// Asks for the rights of a member that waits again, where they have changed: what it may not read any more.
///
/// # Errors
/// It may not read in the group's name any more.
fn lost(call: &Call, wanted: &mut WantedRecords) -> Result<Vec<FoundRecords>, ErrorCode> {
    let (now, mut refused) = (call.rights_version(), Vec::new());
    if std::mem::replace(&mut wanted.rights_version, now) != now {
        call.check(&SHARE_FETCH_GROUP, &wanted.session.group_id)?;
        wanted.partitions = readable(call, wanted.partitions.clone(), &mut refused);
    }
    Ok(refused)
}

/// Acquires records. If the request `waits`, tries again whenever a partition has new records or a member gives some back, until there
/// are some, the time is over, the session ends, or the server stops.
///
/// # Errors
/// As [`lost`].
async fn long_poll(
    call: &Call,
    mut wanted: WantedRecords,
    request: &ShareFetchRequest,
    waits: bool,
) -> Result<Polled, ErrorCode> {
    let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(MAX_WAIT);
    let partitions = u32::try_from(wanted.partitions.len()).unwrap_or(u32::MAX);
    let place = call.shared.waiting_partitions.take_now(call.peer.ip(), partitions);
    if place.is_none() {
        let client = call.peer.ip();
        warn!(
            target: REQUEST, %client,
            "a share fetch of {client} does not wait for records: fetches of as many partitions as fetch.wait.max.partitions wait already"
        );
    }
    let throttle = if place.is_none() { max_wait.min(THROTTLE_MAX) } else { Duration::ZERO };
    let over = tokio::time::sleep(max_wait);
    tokio::pin!(over);
    let stop = call.shared.shutdown.wait();
    tokio::pin!(stop);
    let group = call.shared.share_groups.group_watchers.of(&wanted.session.group_id);
    let mut last = !waits || place.is_none() || max_wait.is_zero() || request.min_bytes <= 0;
    let mut has_waited = false;
    loop {
        // Begun before the look: nothing that comes meanwhile is missed.
        let mut watchers = wanted.watchers(call);
        watchers.push(Arc::clone(&group));
        let watch = Watch::over(watchers);
        let refused = lost(call, &mut wanted)?;
        if !refused.is_empty() {
            return Ok(Polled { found: refused, ..Polled::default() });
        }
        match look(call, &wanted).await {
            None => return Ok(Polled::default()),
            Some(found) if !found.is_empty() => return Ok(Polled { found, ..Polled::default() }),
            Some(_nothing) if last => return Ok(Polled { found: Vec::new(), throttle }),
            Some(_nothing) => {}
        }
        if !std::mem::replace(&mut has_waited, true) {
            call.shared.metrics.long_polls.increment();
        }
        tokio::select! {
            () = watch.woken() => {}
            () = &mut over => last = true,
            () = &mut stop => last = true,
        }
    }
}

/// What there is for the member; `None` when its session is over: what was found for it goes to others.
async fn look(call: &Call, wanted: &WantedRecords) -> Option<Vec<FoundRecords>> {
    let sessions = &call.shared.share_groups.sessions;
    if !sessions.goes_on(&wanted.session, &wanted.partitions) {
        return None;
    }
    let found = gather(call, wanted).await;
    if found.is_empty() || sessions.goes_on(&wanted.session, &wanted.partitions) {
        return Some(found);
    }
    release(&call.shared, &wanted.session, &wanted.partitions).await;
    None
}

async fn reply(call: &Call, session: &ShareSessionKey, taken: Acknowledging, polled: Polled) -> Reply {
    let mut answered: BTreeMap<TopicIdPartition, (PartitionData, Option<Records>)> = BTreeMap::new();
    for FoundRecords { topic_partition, data, records } in polled.found {
        answered.insert(topic_partition, (data, records));
    }
    for (topic_id, partition_index, waiting) in taken {
        let error = error_of(waiting.await);
        let (data, _) = answered.entry((topic_id, partition_index)).or_default();
        data.partition_index = partition_index;
        data.acknowledge_error_code = error.code();
        data.acknowledge_error_message = (error != ErrorCode::None).then(|| error.sentence().to_owned());
    }
    // Records that were acquired are sent in any case; the member waits before it gets others.
    let bytes = answered.values().filter_map(|(_, records)| records.as_ref()).map(Records::len).sum();
    let pause_ms = call.pause_ms.max(call.used(Quota::Consume, bytes));
    let throttle_ms = i32::try_from(polled.throttle.as_millis()).unwrap_or(i32::MAX);
    let lock_ms = call.shared.share_groups.configs.of(&session.group_id).record_lock_ms;
    let mut response = ShareFetchResponse {
        throttle_time_ms: pause_ms.max(throttle_ms),
        acquisition_lock_timeout_ms: i32::try_from(lock_ms).unwrap_or(i32::MAX),
        ..Default::default()
    };
    let mut all_records = Vec::with_capacity(answered.len());
    let mut leaders = CurrentLeaders::of(call);
    for ((topic_id, number), (mut data, records)) in answered {
        all_records.push(records);
        let errors = [data.error_code, data.acknowledge_error_code];
        if errors.contains(&ErrorCode::NotLeaderOrFollower.code()) {
            data.current_leader = leaders.current_leader(&topic_id, number, ErrorCode::NotLeaderOrFollower);
        }
        match response.responses.last_mut().filter(|topic| topic.topic_id == topic_id) {
            Some(topic) => topic.partitions.push(data),
            None => {
                response.responses.push(ShareFetchableTopicResponse { topic_id, partitions: vec![data] });
            }
        }
    }
    response.node_endpoints = leaders.endpoints();
    with_records(call, &response, all_records, pause_ms)
}

fn with_records(
    call: &Call,
    response: &ShareFetchResponse,
    mut records: Vec<Option<Records>>,
    pause_ms: i32,
) -> Reply {
    let lengths: Vec<_> = records.iter().map(|records| records.as_ref().map(Records::len)).collect();
    call.shared.metrics.fetched_bytes.add(lengths.iter().flatten().sum::<usize>() as u64);
    let encoded = message::response_frame_around(response, call.version, call.correlation_id, lengths);
    let chunks = match encoded {
        Ok(chunks) => chunks,
        Err(error) => return Reply::Close(format!("its answer could not be written: {error}")),
    };
    let part = |chunk| match chunk {
        Chunk::Bytes(bytes) => Some(Part::Bytes(bytes)),
        Chunk::Records { index, .. } => records.get_mut(index).and_then(Option::take).map(Records::part),
    };
    let parts = chunks.into_iter().filter_map(part).collect();
    let answer = Answer { parts, pause_ms, ..Answer::default() };
    match answer.inlined(INLINE_BYTES) {
        Ok(answer) => Reply::Answer(answer),
        Err(error) => Reply::Close(format!("a segment file cannot be read: {error}")),
    }
}

fn refused(error: ErrorCode, sentence: &str) -> ShareFetchResponse {
    ShareFetchResponse {
        error_code: error.code(),
        error_message: Some(sentence.to_owned()),
        ..Default::default()
    }
}
