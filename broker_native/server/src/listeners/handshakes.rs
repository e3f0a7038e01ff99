//! The TLS handshakes of one listener that are under way: a bounded number of them. Any thread.
//!
//! When one more would be too many, an older one ends: of the address that has the most of them under way, the one that began the
//! longest ago. So connections that never go on push out each other, while a client that does go on is through in a moment.
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// See the module.
#[derive(Debug)]
pub struct Handshakes {
    most: usize,
    under_way: Mutex<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    begun: u64,
    count: usize,
    /// By address, in the order in which they began. No address is without one.
    by_address: HashMap<IpAddr, BTreeMap<u64, oneshot::Sender<()>>>,
}

/// A handshake that is under way; over when dropped.
#[derive(Debug)]
pub struct Handshake {
    number: u64,
    address: IpAddr,
    pushed_out: oneshot::Receiver<()>,
    of: Arc<Handshakes>,
}

impl Handshakes {
    /// At most `most` at the same time.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), under_way: Mutex::default() })
    }

    /// A client at `address` begins one. Another one ends where there are too many.
    pub fn begin(self: &Arc<Self>, address: IpAddr) -> Handshake {
        let address = address.to_canonical();
        let (push_out, pushed_out) = oneshot::channel();
        let mut under_way = self.under_way.lock();
        if under_way.count >= self.most {
            under_way.push_out();
        }
        let number = under_way.begun;
        under_way.begun += 1;
        under_way.count += 1;
        under_way.by_address.entry(address).or_default().insert(number, push_out);
        Handshake { number, address, pushed_out, of: Arc::clone(self) }
    }
}

impl UnderWay {
    fn push_out(&mut self) {
        let oldest = |of: &BTreeMap<u64, _>| of.first_key_value().map_or(0, |(number, _)| *number);
        let crowd = self.by_address.iter().max_by_key(|(_, of)| (of.len(), u64::MAX - oldest(of)));
        let Some((&address, of)) = crowd else { return };
        self.remove(address, oldest(of));
    }

    fn remove(&mut self, address: IpAddr, number: u64) {
        let Some(of) = self.by_address.get_mut(&address) else { return };
        // Dropping the sender tells it.
        if of.remove(&number).is_some() {
            self.count -= 1;
        }
        if of.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl Handshake {
    /// Returns when this one has to end because others began.
    pub async fn pushed_out(&mut self) {
        // The sender only ever drops.
        let _ = (&mut self.pushed_out).await;
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.of.under_way.lock().remove(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(number: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, number).into()
    }

    fn is_pushed_out(handshake: &mut Handshake) -> bool {
        handshake.pushed_out.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_oldest_of_the_address_with_the_most_ends_for_a_new_one() {
        let handshakes = Handshakes::new(3);
        let mut good = handshakes.begin(at(1));
        let mut first = handshakes.begin(at(2));
        let mut second = handshakes.begin(at(2));
        let mut other = handshakes.begin(at(3));
        assert!(is_pushed_out(&mut first) && !is_pushed_out(&mut good) && !is_pushed_out(&mut second));
        // Each address has one now: the oldest ends.
        let _newest = handshakes.begin(at(4));
        assert!(is_pushed_out(&mut good) && !is_pushed_out(&mut second) && !is_pushed_out(&mut other));
        assert_eq!(handshakes.under_way.lock().count, 3);
    }

    #[test]
    fn one_that_is_over_makes_room_and_leaves_nothing_behind() {
        let handshakes = Handshakes::new(1);
        drop(handshakes.begin(at(1)));
        let mut next = handshakes.begin(at(2));
        assert!(!is_pushed_out(&mut next));
        let mut last = handshakes.begin(at(2));
        assert!(is_pushed_out(&mut next) && !is_pushed_out(&mut last));
        drop((next, last));
        let under_way = handshakes.under_way.lock();
        assert!(under_way.by_address.is_empty() && under_way.count == 0);
    }
}
