//! The brokers, as the clients of one listener see them: this one by the address that the client dialled unless another is
//! configured, the others by the address that they registered for the listener of this name. One that has no such listener
//! cannot be reached and is left out.
use std::sync::Arc;

use crate::call::Call;
use crate::cluster::view::{Broker, ClusterView, Endpoint};
use crate::listeners::Listener;

/// A broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// Its number.
    pub id: i32,
    /// Where clients reach it.
    pub host: String,
    /// Its port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<String>,
}

impl BrokerEndpoint {
    /// Where the broker's listener of this name is; `None` when it has none.
    fn of(broker: &Broker, listener: &str) -> Option<Self> {
        let Endpoint(host, port) = broker.endpoints.get(listener)?;
        Some(Self { id: broker.id, host: host.clone(), port: (*port).into(), rack: broker.rack.clone() })
    }
}

/// The live brokers at one moment, as the client of one request sees them.
pub struct Brokers {
    own: BrokerEndpoint,
    listener: Arc<Listener>,
    view: Arc<ClusterView>,
    clustered: bool,
    may_lead: bool,
}

impl Brokers {
    /// As they are now.
    pub fn of(call: &Call) -> Self {
        let (settings, listener) = (&call.shared.settings, &call.listener);
        let own = BrokerEndpoint {
            id: settings.node_id,
            host: listener.advertised_host.clone().unwrap_or_else(|| call.dialled.host.to_string()),
            port: listener.advertised_port.unwrap_or(call.dialled.port).into(),
            rack: settings.rack.clone(),
        };
        let cluster = &call.shared.cluster;
        Self {
            own,
            listener: Arc::clone(listener),
            view: cluster.now(),
            clustered: cluster.is_clustered(),
            may_lead: cluster.may_lead(),
        }
    }

    /// This broker's number.
    pub fn own_id(&self) -> i32 {
        self.own.id
    }

    /// The controller, -1 when there is none: this broker when it is alone.
    pub fn controller_id(&self) -> i32 {
        if self.clustered { self.view.controller_id } else { self.own.id }
    }

    /// How often a controller was elected, 0 for a broker that is alone.
    pub fn controller_epoch(&self) -> i32 {
        self.view.controller_epoch
    }

    /// Whether a broker that leads by its document does, as far as this one knows: without a lease it knows that it does not
    /// lead itself, and that it does not know who does.
    pub fn may_lead(&self, id: i32) -> bool {
        id != self.own.id || self.may_lead
    }

    /// Whether the broker lives. One that answers does.
    pub fn is_alive(&self, id: i32) -> bool {
        id == self.own.id || self.view.broker(id).is_some()
    }

    /// Whether clients of this listener can reach the broker: it lives, and has such a listener.
    pub fn is_reached(&self, id: i32) -> bool {
        let has_listener = |broker: &Broker| broker.endpoints.contains_key(&self.listener.name);
        id == self.own.id || self.view.broker(id).is_some_and(has_listener)
    }

    /// The broker with this number, if clients of this listener can reach it.
    pub fn find(&self, id: i32) -> Option<BrokerEndpoint> {
        if id == self.own.id {
            return Some(self.own.clone());
        }
        BrokerEndpoint::of(self.view.broker(id)?, &self.listener.name)
    }

    /// The listener that the request came over.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Those that belong to the cluster and do not live.
    pub fn dead(&self) -> Vec<BrokerEndpoint> {
        let dead = self.view.dead.iter().filter(|broker| broker.id != self.own.id);
        dead.filter_map(|broker| BrokerEndpoint::of(broker, &self.listener.name)).collect()
    }

    /// All of them in the order of their numbers, this one included even while it registers.
    pub fn all(&self) -> Vec<BrokerEndpoint> {
        let others = self.view.brokers.iter().map(|broker| broker.id).filter(|id| *id != self.own.id);
        let mut ids: Vec<i32> = others.chain([self.own.id]).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.find(id)).collect()
    }
}
