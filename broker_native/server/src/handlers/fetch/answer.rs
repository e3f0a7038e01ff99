//! The answering half of Fetch: which partitions are in the answer, and what stands around their records.
use std::collections::BTreeSet;

use super::read::{GatheredPartitions, WantedPartitions};
use crate::call::{Call, Reply};
use crate::fetch_sessions::{AnsweredPartition, SessionOutcome, SessionPlan, TopicKey};
use crate::handlers::common::archived::Records;
use crate::handlers::common::brokers::{BrokerEndpoint, Brokers};
use crate::io::response_queue::{Answer, Part};
use crate::quotas::table::Quota;
use pylog_wire::messages::FetchResponse;
use pylog_wire::messages::fetch::{
    FetchableTopicResponse, InDirectory, LeaderIdAndEpoch, NodeEndpoint, PartitionData, local_reads,
};
use pylog_wire::{Chunk, ErrorCode, message};

/// Runs up to this size are copied into the answer, which then leaves in one write.
const INLINE_BYTES: usize = /* 32 KiB */ 32 << 10;

/// The answer: what stands around the records is encoded, the records themselves are only referred to.
pub fn reply(
    call: &Call,
    wanted: &WantedPartitions,
    plan: &SessionPlan,
    gathered: GatheredPartitions,
) -> Reply {
    let pause_ms = pause_ms(call, wanted, gathered.bytes);
    if pause_ms > 0 {
        return paused(call, plan.unchanged_id(), pause_ms);
    }
    call.shared.metrics.fetched_bytes.add(gathered.bytes as u64);
    let outcome = match complete_session(call, wanted, plan, &gathered) {
        Ok(outcome) => outcome,
        Err((error, session_id)) => return session_error(call, error, session_id),
    };
    let GatheredPartitions { mut partitions, mut records, .. } = gathered;
    let mut topics: Vec<&TopicKey> = wanted.asked.iter().map(|asked| &asked.topic).collect();
    if let Some(sent) = &outcome.sent {
        keep(&mut partitions, sent);
        keep(&mut records, sent);
        keep(&mut topics, sent);
    }
    let in_directory = in_directory(call, wanted, plan, &mut records);
    let lengths: Vec<_> = records.iter().map(|records| records.as_ref().map(Records::len)).collect();
    let response = FetchResponse {
        throttle_time_ms: i32::try_from(wanted.throttle.as_millis()).unwrap_or(i32::MAX),
        session_id: outcome.id,
        node_endpoints: endpoints(call, &partitions),
        responses: by_topic(&topics, partitions),
        in_directory,
        ..Default::default()
    };
    let encoded = message::response_frame_around(&response, call.version, call.correlation_id, lengths);
    match encoded {
        Ok(chunks) => with_records(chunks, records),
        Err(error) => Reply::Close(format!("its answer could not be written: {error}")),
    }
}

/// Where the data directory is, for who asks; for a reader that sees it, where the records lie that its only partition would have in
/// the answer.
fn in_directory(
    call: &Call,
    wanted: &WantedPartitions,
    plan: &SessionPlan,
    records: &mut [Option<Records>],
) -> InDirectory {
    let asks = wanted.local_reads != local_reads::NO && matches!(plan, SessionPlan::Sessionless);
    let Some(here) = call.shared.local_reads.as_ref().filter(|_| asks && !wanted.reader.is_replica()) else {
        return InDirectory::default();
    };
    if let ([only], local_reads::SEES) = (records, wanted.local_reads) {
        let place = match only {
            Some(Records::File(slice)) => here.of(slice),
            Some(Records::Memory(_)) | None => None,
        };
        if let Some(place) = place {
            *only = None;
            return place;
        }
    }
    here.place()
}

/// How long the consumer must wait for these bytes because of quotas; followers have none.
fn pause_ms(call: &Call, wanted: &WantedPartitions, bytes: usize) -> i32 {
    if wanted.reader.is_replica() {
        return 0;
    }
    call.pause_ms.max(call.use_up(Quota::Consume, bytes))
}

/// Nothing now: the consumer asks again after the pause (KIP-219).
fn paused(call: &Call, session_id: i32, pause_ms: i32) -> Reply {
    call.answer_then_pause(FetchResponse { session_id, ..Default::default() }, pause_ms)
}

/// The session cannot go on: the client begins another.
pub fn session_error(call: &Call, error: ErrorCode, session_id: i32) -> Reply {
    call.answer(&FetchResponse { error_code: error.code(), session_id, ..Default::default() })
}

fn complete_session(
    call: &Call,
    wanted: &WantedPartitions,
    plan: &SessionPlan,
    gathered: &GatheredPartitions,
) -> Result<SessionOutcome, (ErrorCode, i32)> {
    let len = |records: &Option<Records>| records.as_ref().map_or(0, Records::len);
    let answered: Vec<_> = match plan {
        SessionPlan::Sessionless => Vec::new(),
        SessionPlan::Begin { .. } | SessionPlan::Continue { .. } => {
            let each = gathered.partitions.iter().zip(&gathered.records);
            each.map(|(data, records)| AnsweredPartition::of(data, len(records))).collect()
        }
    };
    wanted.reader.sessions(call).complete(plan, &wanted.asked, &answered, call.shared.clock.steady_ms())
}

/// Leaves those whose place in `sent` is true.
fn keep<T>(each: &mut Vec<T>, sent: &[bool]) {
    let mut sent = sent.iter();
    each.retain(|_| sent.next().copied().unwrap_or(true));
}

/// Puts neighbours of the same topic under one name.
fn by_topic(topics: &[&TopicKey], partitions: Vec<PartitionData>) -> Vec<FetchableTopicResponse> {
    let mut responses: Vec<FetchableTopicResponse> = Vec::new();
    let mut last: Option<&TopicKey> = None;
    for (topic, data) in topics.iter().zip(partitions) {
        match responses.last_mut() {
            Some(response) if last == Some(*topic) => response.partitions.push(data),
            _ => responses.push(begun(topic, data)),
        }
        last = Some(topic);
    }
    responses
}

fn begun(topic: &TopicKey, data: PartitionData) -> FetchableTopicResponse {
    let partitions = vec![data];
    match topic {
        TopicKey::Name(name) => {
            FetchableTopicResponse { topic: name.as_ref().to_owned(), partitions, ..Default::default() }
        }
        TopicKey::Id(id) => FetchableTopicResponse { topic_id: *id, partitions, ..Default::default() },
    }
}

/// Where the leaders are that partitions name.
fn endpoints(call: &Call, partitions: &[PartitionData]) -> Vec<NodeEndpoint> {
    let nobody = LeaderIdAndEpoch::default();
    if partitions.iter().all(|data| data.current_leader == nobody) {
        return Vec::new();
    }
    let leaders: BTreeSet<i32> = partitions.iter().map(|data| data.current_leader.leader_id).collect();
    let brokers = Brokers::of(call);
    let found = leaders.into_iter().filter_map(|id| brokers.find(id));
    let endpoint = |BrokerEndpoint { id, host, port, rack }| NodeEndpoint { node_id: id, host, port, rack };
    found.map(endpoint).collect()
}

fn with_records(chunks: Vec<Chunk>, mut records: Vec<Option<Records>>) -> Reply {
    let part = |chunk| match chunk {
        Chunk::Bytes(bytes) => Some(Part::Bytes(bytes)),
        Chunk::Records { index, .. } => records.get_mut(index).and_then(Option::take).map(Records::part),
    };
    let answer = Answer { parts: chunks.into_iter().filter_map(part).collect(), ..Answer::default() };
    match answer.inlined(INLINE_BYTES) {
        Ok(answer) => Reply::Answer(answer),
        Err(error) => Reply::Close(format!("a segment file cannot be read: {error}")),
    }
}
