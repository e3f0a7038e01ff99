//! `queued.max.request.bytes`: how many bytes of requests may be in memory at once, all connections together.
//!
//! A connection takes its frame's size before it reads the frame's body and gives it back when the request is handled.
//! Small frames ([`FREE_BYTES`] and below) are not counted: a connection's first buffer holds them.
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Frames up to this size are not counted.
pub const FREE_BYTES: usize = super::buffers::SMALL_BYTES;
/// One permit stands for so many bytes (a semaphore counts to 2^29 only on 32-bit machines).
const UNIT_BYTES: usize = 1024;

/// The budget. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    all: u32,
}

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub struct Share {
    _permit: OwnedSemaphorePermit,
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        let all = units(bytes);
        Self { units: Arc::new(Semaphore::new(all as usize)), all }
    }

    /// Takes `bytes`, waiting for others to give back. A frame larger than the whole budget gets the whole budget.
    pub async fn take(&self, bytes: usize) -> Option<Share> {
        let wanted = units(bytes).min(self.all);
        let permit = Arc::clone(&self.units).acquire_many_owned(wanted).await.ok()?;
        Some(Share { _permit: permit })
    }

    /// Bytes that nobody holds.
    pub fn free_bytes(&self) -> usize {
        self.units.available_permits() * UNIT_BYTES
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4)
}
