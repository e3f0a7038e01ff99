//! What a broker answers that has no lease, so that what it knows of the cluster may be old: what another broker knows.
//!
//! A client need not be connected to any other broker (librdkafka connects only to those that it needs), and then asks the
//! same one again and again who leads. So one that cannot know asks the others in the client's name. Where none of them can be
//! reached either the connection ends, so that the client dials another broker; where they know no more, the client is told
//! what stands here.
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::call::{Call, Reply};
use crate::cluster::peers::{PeerError, link};
use pylog_wire::Request;

/// How long the others are waited for. Clients ask again often, and may ask elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was heard.
#[derive(Debug, PartialEq)]
pub enum Heard<R> {
    /// From a broker that knows.
    Known(R),
    /// Nobody knows more than this broker.
    Nothing,
    /// There are others, but none answered: this broker is of no use.
    CutOff,
}

/// Whether what this broker knows may be old, and the asker is no broker that asks for the same reason.
pub fn is_needed(call: &Call) -> bool {
    !call.shared.cluster.may_lead() && !is_peer(call)
}

/// Whether another broker asks because it has no lease.
pub fn is_peer(call: &Call) -> bool {
    call.shared.cluster.is_clustered()
        && call.client_id.as_deref().is_some_and(|name| name.starts_with(link::CLIENT_ID_PREFIX))
}

/// The answer when nobody was reached: the client had better ask somebody else.
pub fn useless() -> Reply {
    Reply::Close("this broker reaches neither ZooKeeper nor other brokers".into())
}

/// Asks all others at once; the first answer that `knows` counts.
pub async fn ask<Q>(call: &Call, request: Q, knows: fn(&Q::Response) -> bool) -> Heard<Q::Response>
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
    let (deadline, mut heard) = (Instant::now() + PATIENCE, Heard::Nothing);
    if !asked.is_empty() {
        heard = Heard::CutOff;
    }
    while let Ok(Some(answered)) = timeout_at(deadline, asked.join_next()).await {
        match answered {
            Ok(Ok(answer)) if knows(&answer) => return Heard::Known(answer),
            Ok(Ok(_) | Err(PeerError::Misunderstood { .. })) => heard = Heard::Nothing,
            Ok(Err(_)) | Err(_) => {}
        }
    }
    heard
}
