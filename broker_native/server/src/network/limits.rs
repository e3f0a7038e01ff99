//! How many connections there may be: in all (`max.connections`), of one address (`max.connections.per.ip` and its overrides), and
//! how many new ones in a second (`max.connection.creation.rate`). One for all listeners of a broker. Any thread.
//!
//! When other brokers have a listener of their own, they are not refused for `max.connections`, and the rate is not theirs, as in Kafka
//! (KIP-612): clients that take all places cannot keep a broker from replicating.
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::listeners::Listener;
use crate::settings::Settings;

/// So much of a second's connections may come at once after a pause.
const BURST: Duration = Duration::from_secs(1);
/// What stands for no limit.
const UNLIMITED: usize = i32::MAX as usize;

/// See the module.
#[derive(Debug)]
pub struct ConnectionLimits {
    places: Arc<Semaphore>,
    most: usize,
    /// The listener whose connections are counted neither among `places` nor by the rate.
    reserved: Option<String>,
    most_of_address: usize,
    overrides: HashMap<IpAddr, usize>,
    open: Mutex<HashMap<IpAddr, usize>>,
    /// Time between two connections, where there is a rate.
    interval: Option<Duration>,
    /// When the next connection is due.
    next: Mutex<Instant>,
}

/// Why a connection has no place. The sentence names the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// All places are taken.
    #[error("max.connections={0} are open")]
    InAll(usize),
    /// Its address has all that it may have.
    #[error("its address has {0} connections already (max.connections.per.ip)")]
    OfAddress(usize),
}

/// The place of an open connection; given back when dropped.
#[derive(Debug)]
pub struct Place {
    _of_all: Option<OwnedSemaphorePermit>,
    of_address: Option<(Arc<ConnectionLimits>, IpAddr)>,
}

impl ConnectionLimits {
    /// The limits of a broker with so many listeners.
    ///
    /// # Errors
    /// An override of `max.connections.per.ip` cannot be read, or its host is unknown.
    pub fn new(settings: &Settings, listeners: usize) -> io::Result<Self> {
        let rate = settings.max_connection_creation_rate;
        Ok(Self {
            places: Arc::new(Semaphore::new(settings.max_connections.min(Semaphore::MAX_PERMITS))),
            most: settings.max_connections,
            reserved: (listeners > 1 && settings.clustered).then(|| settings.inter_broker.clone()),
            most_of_address: settings.max_connections_per_ip,
            overrides: overrides(&settings.max_connections_per_ip_overrides)?,
            open: Mutex::default(),
            interval: (rate < i32::MAX as u32).then(|| Duration::from_secs(1) / rate.max(1)),
            next: Mutex::new(Instant::now()),
        })
    }

    /// Takes a place for a connection of `address` to `listener`.
    ///
    /// # Errors
    /// [`Full`].
    pub fn enter(self: &Arc<Self>, listener: &Listener, address: IpAddr) -> Result<Place, Full> {
        let address = address.to_canonical();
        let of_address = self.count(address)?.then(|| (Arc::clone(self), address));
        // Given back by its drop when the other place is not there.
        let mut place = Place { _of_all: None, of_address };
        if !self.is_reserved(listener) {
            let permit = Arc::clone(&self.places).try_acquire_owned();
            place._of_all = Some(permit.map_err(|_none| Full::InAll(self.most))?);
        }
        Ok(place)
    }

    fn is_reserved(&self, listener: &Listener) -> bool {
        self.reserved.as_ref() == Some(&listener.name)
    }

    /// Counts one more connection of the address, where these are limited.
    fn count(&self, address: IpAddr) -> Result<bool, Full> {
        let most = self.overrides.get(&address).copied().unwrap_or(self.most_of_address);
        if most >= UNLIMITED {
            return Ok(false);
        }
        let mut open = self.open.lock();
        let count = open.entry(address).or_default();
        if *count >= most {
            if *count == 0 {
                open.remove(&address);
            }
            return Err(Full::OfAddress(most));
        }
        *count += 1;
        Ok(true)
    }

    /// Returns when `listener` may accept another connection.
    pub async fn pace(&self, listener: &Listener) {
        let now = Instant::now();
        if let Some(due) = self.due(listener, now).filter(|due| *due > now) {
            tokio::time::sleep_until(due).await;
        }
    }

    /// When the next connection is due, which counts from then on; `None` when they are not counted.
    fn due(&self, listener: &Listener, now: Instant) -> Option<Instant> {
        let interval = self.interval.filter(|_| !self.is_reserved(listener))?;
        let mut next = self.next.lock();
        let due = (*next).max(now.checked_sub(BURST).unwrap_or(now));
        *next = due + interval;
        Some(due)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((limits, address)) = &self.of_address else { return };
        let mut open = limits.open.lock();
        if let Some(count) = open.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                open.remove(address);
            }
        }
    }
}

/// `HOST:COUNT,HOST:COUNT`; a host stands for all of its addresses.
fn overrides(text: &str) -> io::Result<HashMap<IpAddr, usize>> {
    let mut found = HashMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let refused = |why: String| {
            let sentence = format!("max.connections.per.ip.overrides has {entry:?}, {why}");
            io::Error::new(io::ErrorKind::InvalidInput, sentence)
        };
        let (host, count) = entry.rsplit_once(':').unwrap_or((entry, ""));
        let count = count.trim().parse().map_err(|_| refused("which is not HOST:COUNT".into()))?;
        let host = host.trim().trim_start_matches('[').trim_end_matches(']');
        let addresses = (host, 0).to_socket_addrs();
        let addresses = addresses.map_err(|error| refused(format!("whose host is unknown: {error}")))?;
        found.extend(addresses.map(|address| (address.ip().to_canonical(), count)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listeners::ListenerSpec;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn listener(name: &str) -> Listener {
        Listener::new(ListenerSpec { name: name.into(), ..ListenerSpec::plaintext("", 0) }).unwrap()
    }

    fn limits(settings: Settings, listeners: usize) -> Arc<ConnectionLimits> {
        Arc::new(ConnectionLimits::new(&settings, listeners).unwrap())
    }

    #[test]
    fn one_address_has_its_places_and_another_its_own_and_a_place_is_given_back() {
        let overrides = "10.0.0.2:2".to_owned();
        let limits = limits(
            Settings {
                max_connections_per_ip: 1,
                max_connections_per_ip_overrides: overrides,
                ..Default::default()
            },
            1,
        );
        let listener = listener("PLAINTEXT");
        let place = limits.enter(&listener, ONE).unwrap();
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(limits.enter(&listener, mapped).unwrap_err(), Full::OfAddress(1));
        let others = [limits.enter(&listener, OTHER).unwrap(), limits.enter(&listener, OTHER).unwrap()];
        assert_eq!(limits.enter(&listener, OTHER).unwrap_err(), Full::OfAddress(2));
        drop((place, others));
        assert!(limits.open.lock().is_empty());
        limits.enter(&listener, ONE).unwrap();
    }

    #[test]
    fn brokers_with_a_listener_of_their_own_find_a_place_at_once_when_clients_have_all() {
        let settings = Settings {
            max_connections: 1,
            max_connection_creation_rate: 1,
            clustered: true,
            inter_broker: "INTERNAL".into(),
            ..Default::default()
        };
        let limits = limits(settings, 2);
        let _held = limits.enter(&listener("PLAINTEXT"), ONE).unwrap();
        assert_eq!(limits.enter(&listener("PLAINTEXT"), OTHER).unwrap_err(), Full::InAll(1));
        limits.enter(&listener("INTERNAL"), OTHER).unwrap();
        let now = Instant::now();
        assert!(limits.due(&listener("PLAINTEXT"), now).is_some());
        assert_eq!(limits.due(&listener("INTERNAL"), now), None);
    }

    #[test]
    fn an_override_that_is_not_host_and_count_is_refused_by_name() {
        for text in ["10.0.0.1", "10.0.0.1:many", ":"] {
            let error = overrides(text).unwrap_err().to_string();
            assert!(error.starts_with("max.connections.per.ip.overrides has"), "{error}");
        }
    }

    #[test]
    fn connections_beyond_the_rate_wait_and_a_pause_is_made_up_for_by_a_second_at_most() {
        let limits = limits(Settings { max_connection_creation_rate: 10, ..Default::default() }, 1);
        let later = Instant::now() + Duration::from_secs(60);
        let listener = listener("PLAINTEXT");
        let due: Vec<_> = (0..31).map(|_| limits.due(&listener, later).unwrap()).collect();
        assert_eq!(due.iter().filter(|due| **due <= later).count(), 11);
        assert_eq!(*due.last().unwrap(), later + Duration::from_secs(2));
        assert_eq!(ConnectionLimits::new(&Settings::default(), 1).unwrap().due(&listener, later), None);
    }
}
