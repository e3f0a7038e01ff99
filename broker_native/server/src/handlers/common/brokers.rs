//! The brokers, as clients see them: this one by the address that the client dialled unless another is configured,
//! the others by the address that they registered.
use std::sync::Arc;

use crate::call::Call;
use crate::cluster::view::{Broker, ClusterView};

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

impl From<&Broker> for BrokerEndpoint {
    fn from(broker: &Broker) -> Self {
        Self { id: broker.id, host: broker.host.clone(), port: broker.port.into(), rack: broker.rack.clone() }
    }
}

/// The live brokers at one moment, as the client of one request sees them.
pub struct Brokers {
    own: BrokerEndpoint,
    view: Arc<ClusterView>,
    clustered: bool,
    may_lead: bool,
}

impl Brokers {
    /// As they are now.
    pub fn of(call: &Call) -> Self {
        let settings = &call.shared.settings;
        let dialled = || call.local.ip().to_canonical().to_string();
        let own = BrokerEndpoint {
            id: settings.node_id,
            host: settings.advertised_host.clone().unwrap_or_else(dialled),
            port: settings.advertised_port.unwrap_or_else(|| call.local.port().into()),
            rack: settings.rack.clone(),
        };
        let cluster = &call.shared.cluster;
        Self { own, view: cluster.now(), clustered: cluster.is_clustered(), may_lead: cluster.may_lead() }
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

    /// The broker with this number, if it lives.
    pub fn find(&self, id: i32) -> Option<BrokerEndpoint> {
        if id == self.own.id {
            return Some(self.own.clone());
        }
        self.view.broker(id).map(BrokerEndpoint::from)
    }

    /// Those that belong to the cluster and do not live.
    pub fn dead(&self) -> Vec<BrokerEndpoint> {
        self.view.dead.iter().filter(|broker| broker.id != self.own.id).map(BrokerEndpoint::from).collect()
    }

    /// All of them in the order of their numbers, this one included even while it registers.
    pub fn all(&self) -> Vec<BrokerEndpoint> {
        let others = self.view.brokers.iter().map(|broker| broker.id).filter(|id| *id != self.own.id);
        let mut ids: Vec<i32> = others.chain([self.own.id]).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.find(id)).collect()
    }
}
