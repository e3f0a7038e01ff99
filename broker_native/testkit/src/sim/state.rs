//! The tree of the simulated disk, twice, and what is to go wrong with it. Behind the disk's one lock.
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::fault::{Bites, Fault};
use super::inode::Inode;

/// A node of the tree: a directory or a file.
#[derive(Clone)]
pub(super) enum Node {
    Dir,
    File(Arc<Mutex<Inode>>),
}

#[derive(Default)]
pub(super) struct State {
    pub seen: BTreeMap<PathBuf, Node>,
    pub durable: BTreeMap<PathBuf, Node>,
    /// Directories that were renamed, from and to, and whose parent was not synced since.
    pub moves: Vec<(PathBuf, PathBuf)>,
    pub locks: Vec<PathBuf>,
    /// Increases with each power cut: files opened before are dead.
    pub boot: u64,
    pub changes: u64,
    pub halted: bool,
    pub writes: u64,
    pub syncs: u64,
    pub faults: Vec<(Fault, u64)>,
    pub bites: Bites,
    pub now_ms: i64,
}

impl State {
    /// Whether a fault of this kind is due at this count.
    pub fn due(&mut self, is_kind: impl Fn(&Fault) -> bool, count: u64) -> Option<Fault> {
        let at = self.faults.iter().position(|(fault, when)| is_kind(fault) && *when == count)?;
        self.bites.faults += 1;
        Some(self.faults.swap_remove(at).0)
    }

    /// Counts a change of the disk, which happens only while there is power.
    pub fn change(&mut self) -> io::Result<()> {
        let count = self.changes;
        self.changes += 1;
        self.halted |= self.due(|fault| matches!(fault, Fault::Halt(_)), count).is_some();
        if self.halted { Err(io::Error::other("the power is gone")) } else { Ok(()) }
    }

    /// All processes die: their files and locks, and what was to go wrong with them.
    pub fn end_processes(&mut self) {
        self.boot += 1;
        self.locks.clear();
        self.faults.clear();
        self.halted = false;
    }

    /// The file at `path`, as processes see it.
    pub fn file(&self, path: &Path) -> io::Result<Arc<Mutex<Inode>>> {
        match self.seen.get(path) {
            Some(Node::File(inode)) => Ok(inode.clone()),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
