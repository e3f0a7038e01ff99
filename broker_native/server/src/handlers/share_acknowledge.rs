//! ShareAcknowledge: a member accepts, releases or rejects records.
//!
//! KIP-932. Version 2 renews locks (KIP-1222).
use super::common::share_call::{
    Acknowledging, SAID_MAX, SAYS_TOO_MUCH, Said, acknowledge, error_of, session_key,
};
use super::common::share_leaders::CurrentLeaders;
use super::common::share_release::release;
use crate::authorization::table::{SHARE_ACKNOWLEDGE_GROUP, SHARE_ACKNOWLEDGE_TOPIC};
use crate::call::{Call, Outcome, Reply};
use crate::share_groups::sessions::{CLOSES, ShareSessionKey};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_acknowledge::{PartitionData, ShareAcknowledgeTopicResponse};
use pylog_wire::messages::{ShareAcknowledgeRequest, ShareAcknowledgeResponse};

/// Answers when the change is written to the log.
pub fn handle(call: Call, request: ShareAcknowledgeRequest) -> Outcome {
    let session = match session_key(&call, request.group_id, request.member_id) {
        Ok(session) => session,
        Err((error, sentence)) => return Outcome::Now(call.answer(&error_response(error, sentence))),
    };
    if let Err(error) = call.check(&SHARE_ACKNOWLEDGE_GROUP, &session.group_id) {
        return Outcome::Now(call.answer(&error_response(error, error.sentence())));
    }
    let said = request.topics.into_iter().flat_map(|topic| {
        let topic_id = topic.topic_id;
        topic.partitions.into_iter().map(move |partition| Said {
            topic_id,
            partition: partition.partition_index,
            batches: partition.acknowledgement_batches,
        })
    });
    let said: Vec<_> = said.collect();
    if said.len() > SAID_MAX {
        return Outcome::Now(call.answer(&error_response(ErrorCode::InvalidRequest, SAYS_TOO_MUCH)));
    }
    let sessions = &call.shared.share_groups.sessions;
    let closed = match request.share_session_epoch {
        CLOSES => sessions.close(&session).map(Some),
        epoch => sessions.acknowledge(&session, epoch).map(|()| None),
    };
    let closed = match closed {
        Ok(closed) => closed,
        Err(error) => return Outcome::Now(call.answer(&error_response(error, error.sentence()))),
    };
    let taken = acknowledge(&call, &session, said, request.is_renew_ack, &SHARE_ACKNOWLEDGE_TOPIC);
    if closed.is_some() {
        // What waits for records in this session ends.
        call.shared.share_groups.group_watchers.wake(&session.group_id);
    }
    Outcome::later(async move {
        if let Some(partitions) = closed {
            release(&call.shared, &session, &partitions).await;
        }
        answer(&call, &session, taken).await
    })
}

async fn answer(call: &Call, session: &ShareSessionKey, taken: Acknowledging) -> Reply {
    let lock_ms = call.shared.share_groups.configs.of(&session.group_id).record_lock_ms;
    let mut response = ShareAcknowledgeResponse {
        acquisition_lock_timeout_ms: i32::try_from(lock_ms).unwrap_or(i32::MAX),
        ..Default::default()
    };
    let mut leaders = CurrentLeaders::of(call);
    for (topic_id, partition_index, waiting) in taken {
        let error = error_of(waiting.await);
        let data = PartitionData {
            partition_index,
            error_code: error.code(),
            error_message: (error != ErrorCode::None).then(|| error.sentence().to_owned()),
            current_leader: leaders.current_leader(&topic_id, partition_index, error),
        };
        match response.responses.last_mut().filter(|topic| topic.topic_id == topic_id) {
            Some(topic) => topic.partitions.push(data),
            None => {
                response.responses.push(ShareAcknowledgeTopicResponse { topic_id, partitions: vec![data] });
            }
        }
    }
    response.node_endpoints = leaders.endpoints();
    call.answer(&response)
}

fn error_response(error: ErrorCode, sentence: &str) -> ShareAcknowledgeResponse {
    ShareAcknowledgeResponse {
        error_code: error.code(),
        error_message: Some(sentence.to_owned()),
        ..Default::default()
    }
}
