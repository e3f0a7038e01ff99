//! The answers of a broker without a lease: its own metadata may be old, so it forwards the request to the other brokers.
//!
//! A client need not be connected to any other broker (librdkafka connects only to those that it needs), and then asks the
//! same one again and again who leads. So a broker without a lease asks the others on the client's behalf. When none of them can be
//! reached the connection is closed, so that the client dials another broker; when they do not know either, the client gets this
//! broker's own metadata.
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::call::{Call, Reply};
use crate::cluster::peers::{PeerError, link};
use pylog_wire::Request;

/// How long to wait for the other brokers. Clients ask again often, and may ask another broker.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(1);

/// What came of forwarding a request.
#[derive(Debug, PartialEq)]
pub enum ForwardedAnswer<R> {
    /// The answer of a broker that knows.
    Known(R),
    /// Nobody knows more than this broker.
    Nothing,
    /// There are other brokers, but none answered.
    CutOff,
}

/// Whether this broker's metadata may be old, and the request is not one that another broker forwards for the same reason.
pub fn is_needed(call: &Call) -> bool {
    !call.shared.cluster.may_lead() && !is_peer(call)
}

/// Whether another broker forwards the request because it has no lease.
pub fn is_peer(call: &Call) -> bool {
    call.shared.cluster.is_clustered()
        && call.client_id.as_deref().is_some_and(|name| name.starts_with(link::CLIENT_ID_PREFIX))
}

/// Whether the client came over the listener over which brokers ask each other: endpoints in their answers are right for it.
pub fn is_over_inter_broker_listener(call: &Call) -> bool {
    call.listener.name == call.shared.settings.inter_broker
}

/// The reply when no other broker was reached: the connection ends, so that the client asks another broker.
pub fn cut_off() -> Reply {
    Reply::Close("this broker reaches neither ZooKeeper nor other brokers".into())
}

/// Asks all others at once; the first answer that `knows` counts.
pub async fn ask<Q>(call: &Call, request: Q, knows: fn(&Q::Response) -> bool) -> ForwardedAnswer<Q::Response>
where
    Q: Request + Send + Sync + 'static,
    Q::Response: Send,
{
    let (request, own) = (Arc::new(request), call.shared.settings.node_id);
    let mut asked = JoinSet::new();
    for broker in call.shared.cluster.now().brokers.iter().filter(|broker| broker.id != own) {
        let (peers, request, id) = (Arc::clone(&call.shared.peers), Arc::clone(&request), broker.id);
        asked.spawn(async move { peers.call(id, request.as_ref()).await });
    }
    let (deadline, mut outcome) = (Instant::now() + FORWARD_TIMEOUT, ForwardedAnswer::Nothing);
    if !asked.is_empty() {
        outcome = ForwardedAnswer::CutOff;
    }
    while let Ok(Some(answered)) = timeout_at(deadline, asked.join_next()).await {
        match answered {
            Ok(Ok(answer)) if knows(&answer) => return ForwardedAnswer::Known(answer),
            Ok(Ok(_) | Err(PeerError::Misunderstood { .. })) => outcome = ForwardedAnswer::Nothing,
            Ok(Err(_)) | Err(_) => {}
        }
    }
    outcome
}
