//! Large requests, other than Produce. They are read and answered by the threads of slow requests ([`slow`]): 36,000 partitions of a
//! Fetch take 50 ms, and the network threads serve everybody else meanwhile.
//!
//! Those of the kinds whose answers grow with them wait for room before they are read, and their answers hold some
//! until they are sent (`queued.max.response.bytes`). One request has at most half of it, and so a bound for what it may ask.
//!
//! While a large Fetch waits for records, `fetch.wait.max.partitions` bounds what it takes.
//!
//! [`slow`]: crate::io::slow
use std::sync::Arc;

use crate::call::{Call, Later, Outcome, Reply};
use crate::io::budget;
use crate::io::room::holding;
use pylog_wire::{ApiKey, Reader, WireError};

/// Reads a request and hands it to its handler.
pub type Answering = fn(Call, ApiKey, Reader) -> Result<Outcome, WireError>;

/// How many times its bytes a request takes while it is read and answered. Measured for Fetch, 42 to 51 times: a partition has 16 bytes,
/// and takes some 800 in the tables of the handler and in the answer. The others are not above.
pub const TIMES: usize = 52;

/// Whether the answer to a request of this kind can be much larger than the request: it names many things, and the answer says much
/// about each. Of the other kinds, Produce and what coordinators write are larger than their answers, and a question to Python takes
/// its room when it is asked.
fn grows(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::Fetch
            | ApiKey::ListOffsets
            | ApiKey::Metadata
            | ApiKey::OffsetFetch
            | ApiKey::FindCoordinator
            | ApiKey::DescribeGroups
            | ApiKey::AlterReplicaLogDirs
            | ApiKey::DescribeLogDirs
            | ApiKey::DeleteGroups
            | ApiKey::DeleteRecords
            | ApiKey::OffsetDelete
            | ApiKey::OffsetForLeaderEpoch
            | ApiKey::DescribeProducers
            | ApiKey::DescribeTransactions
            | ApiKey::DescribeTopicPartitions
            | ApiKey::ConsumerGroupDescribe
            | ApiKey::ShareGroupDescribe
            | ApiKey::DescribeShareGroupOffsets
            | ApiKey::ReadShareGroupState
            | ApiKey::ReadShareGroupStateSummary
    )
}

/// Has `answering` read and answer the request, when there is room where it takes some.
pub fn handle(call: Call, key: ApiKey, reader: Reader, answering: Answering) -> Outcome {
    Outcome::Owning(Box::new(move |request_bytes| -> Later {
        if grows(key) {
            Box::pin(when_there_is_room(call, key, reader, answering, request_bytes))
        } else {
            Box::pin(without_room(call, key, reader, answering, request_bytes))
        }
    }))
}

/// Has the request read and answered by a thread for slow requests; or the reply that it comes to nothing.
async fn slowly(call: Call, key: ApiKey, reader: Reader, answering: Answering) -> Result<Outcome, Reply> {
    let (shared, address) = (Arc::clone(&call.shared), call.peer.ip());
    let outcome =
        shared.slow.run(address, move || answering(call, key, reader)).await.map_err(Reply::from)?;
    outcome.map_err(|error| Reply::Close(error.to_string()))
}

/// The request keeps its share of the budget until it has its answer.
async fn without_room(
    call: Call,
    key: ApiKey,
    reader: Reader,
    answering: Answering,
    _request_bytes: budget::BudgetShare,
) -> Reply {
    match slowly(call, key, reader, answering).await {
        Ok(outcome) => outcome.reply().await,
        Err(reply) => reply,
    }
}

async fn when_there_is_room(
    call: Call,
    key: ApiKey,
    reader: Reader,
    answering: Answering,
    request_bytes: budget::BudgetShare,
) -> Reply {
    let bytes = reader.left();
    let what = format!("a {} request of {bytes} bytes", key.name());
    let held = match call.shared.room.take(call.peer.ip(), bytes.saturating_mul(TIMES), &what).await {
        Ok(held) => held,
        Err(no_room) => return no_room.into(),
    };
    let outcome = match slowly(call, key, reader, answering).await {
        Ok(outcome) => outcome,
        Err(reply) => return reply,
    };
    drop(request_bytes);
    let reply = match outcome {
        Outcome::Now(reply) => reply,
        waits if key == ApiKey::Fetch => {
            drop(held);
            return waits.reply().await;
        }
        waits => waits.reply().await,
    };
    match reply {
        Reply::Answer(answer) => Reply::Answer(holding(answer, held)),
        reply => reply,
    }
}
