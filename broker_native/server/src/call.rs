//! What a handler gets, and what it gives; which APIs are served.
//!
//! A [`Call`] is cheap to clone and may go to any thread. A panic of a handler closes the connection ([`poll_reply`]); work that is
//! done [`guarded`] lets the handler answer UNKNOWN_SERVER_ERROR instead.
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::io::budget;
use crate::io::response_queue::{Answer, Part};
use crate::io::room::NoRoom;
use crate::io::slow::NotDone;
use crate::listeners::Listener;
use crate::quotas::QuotaClient;
use crate::quotas::table::Quota;
use crate::shared::Shared;
use pylog_coordinator::Caller;
use pylog_log::loggers::REQUEST;
use pylog_log::{BUG, warn};
use pylog_security::principal::Principal;
use pylog_wire::{ApiKey, Chunk, Message, WireError, message};

/// The APIs that are served, in the order of their numbers; ApiVersions lists exactly these.
pub const SERVED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::SaslHandshake,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::TxnOffsetCommit,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::DescribeAcls,
    ApiKey::CreateAcls,
    ApiKey::DeleteAcls,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::DescribeLogDirs,
    ApiKey::SaslAuthenticate,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::ElectLeaders,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
    ApiKey::DescribeQuorum,
    ApiKey::UpdateFeatures,
    ApiKey::OffsetDelete,
    ApiKey::DescribeClientQuotas,
    ApiKey::AlterClientQuotas,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::AlterUserScramCredentials,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::UnregisterBroker,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::ListConfigResources,
    ApiKey::DescribeTopicPartitions,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::InitializeShareGroupState,
    ApiKey::ReadShareGroupState,
    ApiKey::WriteShareGroupState,
    ApiKey::DeleteShareGroupState,
    ApiKey::ReadShareGroupStateSummary,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
];

/// What happens to a request.
#[derive(Debug)]
pub enum Reply {
    /// This is sent.
    Answer(Answer),
    /// Nothing is sent (produce with acks=0).
    Nothing,
    /// The connection ends; the sentence is for the log.
    Close(String),
}

impl From<NoRoom> for Reply {
    fn from(why: NoRoom) -> Self {
        Self::Close(why.to_string())
    }
}

impl From<NotDone> for Reply {
    fn from(why: NotDone) -> Self {
        Self::Close(why.to_string())
    }
}

/// A reply that takes time.
pub type Later = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Begins a reply that takes time; it is handed the request's share of the budget.
pub type Owning = Box<dyn FnOnce(budget::BudgetShare) -> Later + Send>;

/// When the reply to a request is ready.
pub enum Outcome {
    /// It is ready now.
    Now(Reply),
    /// When this future completes. All work that must happen in the order of the requests is done already. The buffer that the request
    /// was read into may still be in use, so the request keeps its share of the budget until then.
    Later(Later),
    /// As `Later`, for a request whose own bytes are no longer needed: it gives its share of the budget back at once.
    Freed(Later),
    /// When this future completes. Later requests of the same connection are not handled before that, because this one still has work
    /// to do that must come first.
    InOrder(Later),
    /// As `InOrder`, for a request that takes much memory while it waits; its own bytes are no longer needed.
    Alone(Later),
    /// As `InOrder`, for work that is handed the request's share of the budget and gives it back when the bytes are no longer needed.
    Owning(Owning),
}

impl Outcome {
    /// A reply whose work is still to happen, before that of the requests behind it.
    pub fn in_order(work: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self::InOrder(Box::pin(work))
    }

    /// A reply that takes time.
    pub fn later(work: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self::Later(Box::pin(work))
    }

    /// The reply of `work`, which is done by a thread for slow requests and before the requests behind it.
    pub fn slowly(call: Call, work: impl FnOnce(&Call) -> Reply + Send + 'static) -> Self {
        Self::in_order(async move {
            let (shared, address) = (Arc::clone(&call.shared), call.peer.ip());
            shared.slow.run(address, move || work(&call)).await.unwrap_or_else(Reply::from)
        })
    }

    /// The same, and `ready` is called when the reply is there; not when nobody waits for it any more.
    pub fn when_ready(self, ready: impl FnOnce() + Send + 'static) -> Self {
        match self {
            Self::Now(reply) => {
                ready();
                Self::Now(reply)
            }
            Self::Later(later) => Self::Later(then(later, ready)),
            Self::Freed(later) => Self::Freed(then(later, ready)),
            Self::InOrder(later) => Self::InOrder(then(later, ready)),
            Self::Alone(later) => Self::Alone(then(later, ready)),
            Self::Owning(begin) => Self::Owning(Box::new(|share| then(begin(share), ready))),
        }
    }

    /// Waits for the reply, where a handler calls another one.
    pub async fn reply(self) -> Reply {
        match self {
            Self::Now(reply) => reply,
            Self::Later(later) | Self::Freed(later) | Self::InOrder(later) | Self::Alone(later) => {
                later.await
            }
            Self::Owning(begin) => begin(budget::BudgetShare::default()).await,
        }
    }
}

fn then(later: Later, ready: impl FnOnce() + Send + 'static) -> Later {
    Box::pin(async move {
        let reply = later.await;
        ready();
        reply
    })
}

/// Where a client connected to.
#[derive(Debug, Clone)]
pub struct Dialled {
    /// The name of the TLS handshake (SNI, RFC 6066), which the broker's certificate has to be for; else this end's address.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

/// The connection that a request comes over.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The listener that accepted it.
    pub listener: Arc<Listener>,
    /// Who the client is; anonymous before a login, and where nobody asks.
    pub principal: Arc<Principal>,
    /// What the client dialled.
    pub dialled: Dialled,
    /// The client's address.
    pub peer: SocketAddr,
    /// No two connections of a broker have the same.
    pub connection: u64,
    /// How long its requests kept a network thread busy, as far as no quota knows of it.
    pub busy: Duration,
    /// Whether its requests count for quotas: not before a login, because the user is not known.
    pub is_counted: bool,
}

/// What a handler has besides the request.
#[derive(Clone)]
pub struct Call {
    /// The server.
    pub shared: Arc<Shared>,
    /// The listener that the request came over.
    pub listener: Arc<Listener>,
    /// Who the client is.
    pub principal: Arc<Principal>,
    /// Version of request and answer.
    pub version: i16,
    /// Comes back with the answer.
    pub correlation_id: i32,
    /// What the client dialled.
    pub dialled: Dialled,
    /// The client's address.
    pub peer: SocketAddr,
    /// Which connection; no two of a broker have the same.
    pub connection: u64,
    /// The client's name for itself.
    pub client_id: Option<String>,
    /// How long the client is asked to wait because of quotas, in milliseconds; 0 when it is within them.
    pub pause_ms: i32,
}

impl Call {
    /// The client, as coordinators know it.
    pub fn caller(&self) -> Caller {
        Caller {
            client_id: self.client_id.clone().unwrap_or_default(),
            host: format!("/{}", self.peer.ip().to_canonical()),
            version: self.version,
        }
    }

    /// Who uses the broker by this request.
    pub fn client(&self) -> QuotaClient<'_> {
        QuotaClient { user: self.principal.name(), client_id: self.client_id.as_deref().unwrap_or_default() }
    }

    /// Adds `bytes` to what the client used, unless it must wait first: for how long, in milliseconds.
    pub fn use_up(&self, quota: Quota, bytes: usize) -> i32 {
        self.shared.quotas.record_within(quota, self.client(), bytes as f64, self.shared.clock.steady_ms())
    }

    /// Adds `bytes` to what the client used: how long it must wait before it uses more, in milliseconds.
    pub fn used(&self, quota: Quota, bytes: usize) -> i32 {
        self.shared.quotas.record(quota, self.client(), bytes as f64, self.shared.clock.steady_ms())
    }

    /// `bytes`, or fewer if the client's quota would not allow as many at once.
    pub fn most_bytes_at_once(&self, bytes: i32) -> i32 {
        let most = self.shared.quotas.most_at_once(Quota::Consume, self.client());
        most.map_or(bytes, |most| bytes.min(most as i32))
    }

    /// Sends `response`.
    pub fn answer<R: Message>(&self, response: &R) -> Reply {
        if self.pause_ms > 0 {
            return self.answer_then_pause(response.clone(), self.pause_ms);
        }
        self.parts(message::response_frame(response, self.version, self.correlation_id))
    }

    /// Sends `response`, and reads nothing more from the client for `pause_ms`; it is asked to wait as long (KIP-219).
    pub fn answer_then_pause<R: Message>(&self, mut response: R, pause_ms: i32) -> Reply {
        response.set_throttle_time_ms(pause_ms);
        match self.parts(message::response_frame(&response, self.version, self.correlation_id)) {
            Reply::Answer(answer) => Reply::Answer(Answer { pause_ms, ..answer }),
            reply => reply,
        }
    }

    /// Sends nothing; a client that used more than its quota is not read for a while all the same.
    pub fn no_answer(&self) -> Reply {
        match self.pause_ms {
            0 => Reply::Nothing,
            pause_ms => Reply::Answer(Answer { pause_ms, ..Answer::default() }),
        }
    }

    /// Sends what was encoded; records that lie in files are the caller's.
    pub fn parts(&self, encoded: Result<Vec<Chunk>, WireError>) -> Reply {
        let chunks = match encoded {
            Ok(chunks) => chunks,
            Err(error) => return Reply::Close(format!("its answer could not be written: {error}")),
        };
        let bytes = |chunk| match chunk {
            Chunk::Bytes(bytes) => Some(Part::Bytes(bytes)),
            Chunk::Records { .. } => None,
        };
        Reply::Answer(Answer { parts: chunks.into_iter().filter_map(bytes).collect(), ..Answer::default() })
    }
}

/// Polls a reply. Never panics: a panic inside closes the connection.
pub fn poll_reply(shared: &Shared, later: &mut Later, cx: &mut Context<'_>) -> Poll<Reply> {
    match catch_unwind(AssertUnwindSafe(|| later.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_panic) => {
            shared.metrics.panics.increment();
            Poll::Ready(Reply::Close(BUG.into()))
        }
    }
}

/// The result of `work`; `None` when it panics, so that the caller can answer UNKNOWN_SERVER_ERROR.
pub async fn guarded<T>(shared: &Shared, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let guarded = std::future::poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    });
    let done = guarded.await;
    if done.is_none() {
        met_a_bug(shared);
    }
    done
}

/// As [`guarded`] for work that takes no time.
pub fn guarded_now<T>(shared: &Shared, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        met_a_bug(shared);
    }
    done
}

fn met_a_bug(shared: &Shared) {
    shared.metrics.panics.increment();
    warn!(target: REQUEST, "a request is answered with UNKNOWN_SERVER_ERROR: it met {BUG}");
}
