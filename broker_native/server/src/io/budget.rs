//! `queued.max.request.bytes`: how many bytes of requests may be in memory at once, all connections together.
//!
//! A request is counted as it arrives: it holds at most twice the bytes that are there, whatever length it claims, so that claims cost
//! nothing to anybody. What it holds is given back when it is handled, or answered
//! where it has to wait for that. Small requests ([`FREE_BYTES`] and below) are not
//! counted: a connection's first buffer holds them. No address may hold more than half ([`Shares`]).
//!
//! Requests that each have a part of the budget and wait for more could wait for each other for ever. Therefore one of those
//! that wait, at any time, may go on without asking ([`BudgetShare::is_unbounded`]); its size is bounded by `socket.request.max.bytes`.
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{self, Shares};

/// Requests up to this size are not counted.
pub const FREE_BYTES: usize = super::buffers::SMALL_BYTES;
/// Bytes that one unit stands for (on 32-bit machines a semaphore counts only to 2^29).
const UNIT_BYTES: usize = 1024;

/// The budget.
#[derive(Debug)]
pub struct Budget {
    units: Shares,
    /// Held by the request that may go on without asking.
    exempt: Arc<Semaphore>,
}

/// What a request holds; given back when dropped.
#[derive(Debug, Default)]
pub struct BudgetShare {
    held: Option<shares::Share>,
    exempt: Option<OwnedSemaphorePermit>,
}

impl BudgetShare {
    /// Bytes that may be there of the request.
    pub fn bytes(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |held| held.units() as usize * UNIT_BYTES);
        if self.is_unbounded() { usize::MAX } else { held.max(FREE_BYTES) }
    }

    /// Whether it may go on without asking.
    pub fn is_unbounded(&self) -> bool {
        self.exempt.is_some()
    }
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self { units: Shares::new(units(bytes)), exempt: Arc::new(Semaphore::new(1)) }
    }

    /// Lets the request of a client at `address` hold `bytes` in all, waiting for others to give back.
    pub async fn grow(&self, share: &mut BudgetShare, address: IpAddr, bytes: usize) {
        let held = share.held.as_ref().map_or(0, shares::Share::units);
        let more = units(bytes).saturating_sub(held);
        tokio::select! {
            biased;
            Some(more) = self.units.take(address, more, held) => match &mut share.held {
                Some(held) => held.merge(more),
                held => *held = Some(more),
            },
            exempt = Arc::clone(&self.exempt).acquire_owned() => share.exempt = exempt.ok(),
        }
    }

    /// Bytes that nobody holds.
    pub fn free_bytes(&self) -> usize {
        self.units.free() * UNIT_BYTES
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const MIB: usize = 1 << 20;

    #[tokio::test]
    async fn of_requests_that_wait_for_each_other_one_at_a_time_goes_on() {
        let budget = Budget::new(8 * MIB);
        let mut shares: [BudgetShare; 3] = Default::default();
        for share in &mut shares {
            budget.grow(share, HERE, MIB).await;
        }
        let [first, second, third] = &mut shares;
        budget.grow(first, HERE, 2 * MIB).await;
        assert!(!first.is_unbounded());
        budget.grow(second, HERE, 3 * MIB).await;
        assert!(second.is_unbounded());
        let none = tokio::select! {
            biased;
            () = budget.grow(third, HERE, 3 * MIB) => false,
            () = std::future::ready(()) => true,
        };
        assert!(none, "two of them go on");
        *second = BudgetShare::default();
        budget.grow(third, HERE, 3 * MIB).await;
        assert!(third.bytes() >= 3 * MIB);
    }
}
