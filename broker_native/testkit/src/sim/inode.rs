//! One file of the simulated disk: its bytes as processes see them, as the device has them, and what lies between.
use super::fault::{Bites, Dice};

/// One write or length change that the device has not confirmed.
pub(super) enum Pending {
    Write { position: u64, bytes: Vec<u8> },
    SetLen(u64),
}

#[derive(Default)]
pub(super) struct Inode {
    /// As processes see it.
    pub seen: Vec<u8>,
    /// As the device has it.
    pub durable: Vec<u8>,
    pub pending: Vec<Pending>,
    pub modified_ms: i64,
}

impl Inode {
    pub fn apply(bytes: &mut Vec<u8>, change: &Pending) {
        match change {
            Pending::SetLen(len) => bytes.resize(*len as usize, 0),
            Pending::Write { position, bytes: new } => {
                let (start, end) = (*position as usize, *position as usize + new.len());
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                if let Some(part) = bytes.get_mut(start..end) {
                    part.copy_from_slice(new);
                }
            }
        }
    }

    pub fn change(&mut self, change: Pending) {
        Self::apply(&mut self.seen, &change);
        self.pending.push(change);
    }

    /// What the device holds after the power went away.
    pub fn cut(&mut self, dice: &mut Dice, bites: &mut Bites) {
        let mut device = std::mem::take(&mut self.durable);
        for change in std::mem::take(&mut self.pending) {
            match dice.below(3) {
                0 => {
                    bites.kept += 1;
                    Self::apply(&mut device, &change);
                }
                1 => {
                    bites.dropped += 1;
                    // The length may have reached the device without the bytes.
                    if let (Pending::Write { position, bytes }, 0) = (&change, dice.below(2)) {
                        let end = *position as usize + bytes.len();
                        device.resize(device.len().max(end), 0);
                    }
                }
                _ => {
                    bites.torn += 1;
                    if let Pending::Write { position, mut bytes } = change {
                        bytes.truncate(dice.below(bytes.len().max(1) as u64) as usize);
                        Self::apply(&mut device, &Pending::Write { position, bytes });
                    }
                }
            }
        }
        self.durable.clone_from(&device);
        self.seen = device;
    }
}
