//! What the clients of a broker share, counted in units. No address may hold more than half of it, so that there is always
//! something left for the others.
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Addresses that hold nothing are removed when there are this many, and then at twice the number of those that remained.
const ADDRESSES_MIN: usize = 64;

/// The units, and who holds some.
#[derive(Debug)]
pub struct Shares {
    all: Arc<Semaphore>,
    count: u32,
    /// Most units of one address.
    each: u32,
    addresses: Mutex<Addresses>,
}

#[derive(Debug, Default)]
struct Addresses {
    known: HashMap<IpAddr, Weak<Semaphore>>,
    look_at: usize,
}

/// Units that were taken; given back when dropped.
#[derive(Debug)]
pub struct Share {
    all: OwnedSemaphorePermit,
    own: OwnedSemaphorePermit,
}

impl Share {
    /// Takes what `more` holds.
    pub fn merge(&mut self, more: Self) {
        self.all.merge(more.all);
        self.own.merge(more.own);
    }

    /// Gives back all but `units` of them.
    pub fn keep(&mut self, units: u32) {
        let more = self.all.num_permits().saturating_sub(units as usize);
        // What is split off is given back when it is dropped.
        drop(self.all.split(more));
        drop(self.own.split(more));
    }

    /// Number of units.
    pub fn units(&self) -> u32 {
        u32::try_from(self.all.num_permits()).unwrap_or(u32::MAX)
    }
}

impl Shares {
    /// `count` units.
    pub fn new(count: u32) -> Self {
        Self {
            all: Arc::new(Semaphore::new(count as usize)),
            count,
            each: count.div_ceil(2),
            addresses: Mutex::default(),
        }
    }

    /// Takes `wanted` units for a client at `address`, waiting for others to give back: its own address first, then all.
    /// `None` when that would be more than an address may hold, together with the `held` units that the client has.
    pub async fn take(&self, address: IpAddr, wanted: u32, held: u32) -> Option<Share> {
        if wanted.saturating_add(held) > self.each {
            return None;
        }
        let own = self.of(address.to_canonical()).acquire_many_owned(wanted).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(wanted).await.ok()?;
        Some(Share { all, own })
    }

    /// As [`Shares::take`] when nobody has to be waited for.
    pub fn take_now(&self, address: IpAddr, wanted: u32) -> Option<Share> {
        let own = self.of(address.to_canonical()).try_acquire_many_owned(wanted).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(wanted).ok()?;
        Some(Share { all, own })
    }

    /// Most units of one address.
    pub fn each(&self) -> u32 {
        self.each
    }

    /// Units in all.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Units that nobody holds.
    pub fn free(&self) -> usize {
        self.all.available_permits()
    }

    fn of(&self, address: IpAddr) -> Arc<Semaphore> {
        let mut addresses = self.addresses.lock();
        if let Some(own) = addresses.known.get(&address).and_then(Weak::upgrade) {
            return own;
        }
        if addresses.known.len() >= addresses.look_at.max(ADDRESSES_MIN) {
            addresses.known.retain(|_, own| own.strong_count() > 0);
            addresses.look_at = 2 * addresses.known.len();
        }
        let own = Arc::new(Semaphore::new(self.each as usize));
        addresses.known.insert(address, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    /// What is taken at once.
    async fn now(shares: &Shares, last: u8, wanted: u32) -> Option<Share> {
        tokio::select! {
            biased;
            share = shares.take(address(last), wanted, 0) => share,
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn an_address_that_holds_its_half_waits_and_another_one_does_not() {
        let shares = Shares::new(10);
        let first = now(&shares, 1, 3).await.unwrap();
        let second = now(&shares, 1, 2).await.unwrap();
        assert!(now(&shares, 1, 1).await.is_none());
        let other = now(&shares, 2, 5).await.unwrap();
        assert_eq!(shares.free(), 0);
        drop((first, other));
        assert!(now(&shares, 1, 4).await.is_none(), "its second share is still there");
        assert!(shares.take_now(address(1), 1).is_some() && shares.take_now(address(1), 4).is_none());
        drop(second);
        assert_eq!(now(&shares, 1, 5).await.unwrap().units(), 5);
        assert!(now(&shares, 1, 6).await.is_none(), "more than an address may hold");
    }

    #[tokio::test]
    async fn addresses_that_hold_nothing_are_not_kept() {
        let shares = Shares::new(10);
        for last in 0..=255 {
            drop(now(&shares, last, 1).await.unwrap());
        }
        assert!(shares.addresses.lock().known.len() <= ADDRESSES_MIN);
    }
}
