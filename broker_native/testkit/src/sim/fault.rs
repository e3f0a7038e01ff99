//! What goes wrong on the simulated disk: faults that tests ask for, and chance.

/// What goes wrong, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The n-th write from now on (0 is the next) fails after half of its bytes.
    Write(u64),
    /// The n-th write from now on finds the device full after half of its bytes.
    Full(u64),
    /// The n-th `sync_data` from now on fails, and the bytes are lost to the device.
    Sync(u64),
    /// The n-th change of any kind (creation, write, cut, rename, removal, sync) from now on fails, and all that
    /// follow: the power is going away. A [`SimDisk::power_cut`] or [`SimDisk::crash_processes`] ends it.
    Halt(u64),
}

/// How often the simulation really bit; a run without bites shows nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bites {
    /// Unsynced writes lost whole.
    pub dropped: u64,
    /// Unsynced writes kept in part.
    pub torn: u64,
    /// Unsynced writes that happened to reach the device.
    pub kept: u64,
    /// Names (creations, renames, removals) that were undone.
    pub names_lost: u64,
    /// Faults that fired.
    pub faults: u64,
}

/// A small random sequence (xorshift64*), so that a seed replays a cut.
pub(super) struct Dice(u64);

impl Dice {
    /// The sequence of `seed`.
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1)
    }
}
