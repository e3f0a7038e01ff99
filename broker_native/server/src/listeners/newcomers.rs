//! Connections of one listener whose clients are still at the beginning, in the handshake of TLS or before their login: a bounded number of
//! them. Any thread.
//!
//! When one more would be too many, an older one ends: of the address that has the most of them, the one that began the longest ago. So
//! connections that never go on push out each other, while a client that does go on is through in a moment.
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// See the module.
#[derive(Debug)]
pub struct Newcomers {
    most: usize,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    begun: u64,
    count: usize,
    /// By address, in the order in which they began. No address is without one.
    by_address: HashMap<IpAddr, BTreeMap<u64, oneshot::Sender<()>>>,
}

/// The place of a connection; given back when dropped.
#[derive(Debug)]
pub struct Newcomer {
    number: u64,
    address: IpAddr,
    of: Arc<Newcomers>,
}

/// Whether a connection has to end because others began.
#[derive(Debug)]
pub struct PushedOut(oneshot::Receiver<()>);

/// A handshake of TLS that is under way: its place, and whether it has to end.
pub type Handshake = (Newcomer, PushedOut);

impl Newcomers {
    /// At most `most` at the same time.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), present: Mutex::default() })
    }

    /// How many there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// A connection of a client at `address` begins. Another one ends where there are too many.
    pub fn begin(self: &Arc<Self>, address: IpAddr) -> (Newcomer, PushedOut) {
        let address = address.to_canonical();
        let (push_out, pushed_out) = oneshot::channel();
        let mut present = self.present.lock();
        if present.count >= self.most {
            present.push_out();
        }
        let number = present.begun;
        present.begun += 1;
        present.count += 1;
        present.by_address.entry(address).or_default().insert(number, push_out);
        (Newcomer { number, address, of: Arc::clone(self) }, PushedOut(pushed_out))
    }
}

impl Present {
    fn push_out(&mut self) {
        let oldest = |of: &BTreeMap<u64, _>| of.first_key_value().map_or(0, |(number, _)| *number);
        let crowd = self.by_address.iter().max_by_key(|(_, of)| (of.len(), u64::MAX - oldest(of)));
        let Some((&address, of)) = crowd else { return };
        if let Some(push_out) = self.remove(address, oldest(of)) {
            // It may have ended just now by itself.
            let _ = push_out.send(());
        }
    }

    fn remove(&mut self, address: IpAddr, number: u64) -> Option<oneshot::Sender<()>> {
        let of = self.by_address.get_mut(&address)?;
        let removed = of.remove(&number);
        self.count -= usize::from(removed.is_some());
        if of.is_empty() {
            self.by_address.remove(&address);
        }
        removed
    }
}

impl PushedOut {
    /// True when the connection has to end because others began, false when it has given its place back.
    pub async fn wait(self) -> bool {
        self.0.await.is_ok()
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.of.present.lock().remove(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(number: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, number).into()
    }

    fn is_pushed_out((_, pushed_out): &mut (Newcomer, PushedOut)) -> bool {
        pushed_out.0.try_recv() == Ok(())
    }

    #[test]
    fn the_oldest_of_the_address_with_the_most_ends_for_a_new_one() {
        let newcomers = Newcomers::new(3);
        let mut good = newcomers.begin(at(1));
        let mut first = newcomers.begin(at(2));
        let mut second = newcomers.begin(at(2));
        let mut other = newcomers.begin(at(3));
        assert!(is_pushed_out(&mut first) && !is_pushed_out(&mut good) && !is_pushed_out(&mut second));
        // Each address has one now: the oldest ends.
        let _newest = newcomers.begin(at(4));
        assert!(is_pushed_out(&mut good) && !is_pushed_out(&mut second) && !is_pushed_out(&mut other));
        assert_eq!(newcomers.present.lock().count, 3);
    }

    #[test]
    fn one_that_is_through_makes_room_and_leaves_nothing_behind() {
        let newcomers = Newcomers::new(1);
        drop(newcomers.begin(at(1)));
        let mut next = newcomers.begin(at(2));
        assert!(!is_pushed_out(&mut next));
        let mut last = newcomers.begin(at(2));
        assert!(is_pushed_out(&mut next) && !is_pushed_out(&mut last));
        drop((next, last));
        let present = newcomers.present.lock();
        assert!(present.by_address.is_empty() && present.count == 0);
    }

    #[tokio::test]
    async fn who_is_through_is_not_pushed_out_any_more() {
        let newcomers = Newcomers::new(1);
        let (place, pushed_out) = newcomers.begin(at(1));
        drop(place);
        let (_place, other) = newcomers.begin(at(1));
        let _last = newcomers.begin(at(1));
        assert!(!pushed_out.wait().await && other.wait().await);
    }
}
