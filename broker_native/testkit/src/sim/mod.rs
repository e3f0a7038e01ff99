//! A simulated disk: what a machine's file system may show after the power went away.
//!
//! # Model
//! Each directory entry and each file's bytes exist twice: as running processes see them, and as the device has them.
//! `sync_data` makes a file's bytes and length durable, `sync_dir` the names in one directory. [`SimDisk::power_cut`]
//! throws the first view away: of everything that was not synced, each write is kept, dropped or torn at a random byte
//! by the seed; lost bytes inside a file that kept its length read as zeros, as on ext4; each unsynced name is kept or
//! lost. A write that was made after a kept one can be lost, and the other way round: nothing orders writes but syncs.
//!
//! [`Fault`]s make the n-th write or sync fail; a failed sync marks the bytes clean (they will never reach the device,
//! as Linux does: ATC 20 "Can applications recover from fsync failures?"), so an engine that tries again loses data.
//!
//! A renamed directory takes its files along, before and after a cut, whole. A renamed file has its old or its new name
//! after a cut, as every journalling file system promises. Not modelled: reordering inside one write
//! below the byte, and two renames of one directory without a sync between them. Thread-safe by one lock.
//!
//! | file | what it is |
//! |---|---|
//! | `inode` | the bytes of one file, twice |
//! | `file` | open files and locks |
//! | `state`, `fault` | the tree, twice; what goes wrong |
mod fault;
mod file;
mod inode;
mod state;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use self::fault::Dice;
pub use self::fault::{Bites, Fault};
use self::file::{SimFile, SimLock};
use self::inode::{Inode, Pending};
use self::state::{Node, State};
use pylog_storage::disk::{DirEntry, Disk, DiskFile, DiskLock, OpenMode};

/// A disk in memory. Cheap to clone: all clones are the same disk.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets something go wrong later.
    pub fn inject(&self, fault: Fault) {
        let mut state = self.0.lock();
        let when = match fault {
            Fault::Write(n) | Fault::Full(n) => state.writes + n,
            Fault::Sync(n) => state.syncs + n,
            Fault::Halt(n) => state.changes + n,
        };
        state.faults.push((fault, when));
    }

    /// The power goes away and comes back: open files and locks are dead, unsynced data is kept, dropped or torn.
    pub fn power_cut(&self, seed: u64) {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        // Neighbouring seeds must not roll alike.
        let mut dice = Dice::of(seed);
        state.end_processes();
        for (from, to) in std::mem::take(&mut state.moves) {
            if dice.below(2) == 0 {
                move_tree(&mut state.durable, &from, &to);
            } else {
                state.bites.names_lost += 1;
                move_tree(&mut state.seen, &to, &from);
            }
        }
        let mut after = state.durable.clone();
        let names: std::collections::BTreeSet<_> =
            state.seen.keys().chain(state.durable.keys()).cloned().collect();
        for name in names {
            let (seen, durable) = (state.seen.get(&name), state.durable.get(&name));
            if same(seen, durable) {
                continue;
            }
            if dice.below(2) == 0 {
                state.bites.names_lost += 1;
                continue;
            }
            match seen {
                Some(node) => after.insert(name, node.clone()),
                None => after.remove(&name),
            };
        }
        restore_renamed(&state.seen, &state.durable, &mut after);
        let orphan = |path: &Path| {
            path.parent().is_some_and(|dir| !dir.as_os_str().is_empty() && dir != Path::new("/"))
        };
        let dirs = after.clone();
        after.retain(|path, _| !orphan(path) || path.parent().is_some_and(|dir| dirs.contains_key(dir)));
        for node in after.values() {
            if let Node::File(inode) = node {
                inode.lock().cut(&mut dice, &mut state.bites);
            }
        }
        state.seen = after.clone();
        state.durable = after;
    }

    /// The processes die, the disk and its cache stay: kill -9.
    pub fn crash_processes(&self) {
        self.0.lock().end_processes();
    }

    /// Changes of any kind so far, to choose the points of cuts.
    pub fn changes(&self) -> u64 {
        self.0.lock().changes
    }

    /// How often the simulation bit.
    pub fn bites(&self) -> Bites {
        self.0.lock().bites
    }

    /// The bytes of a file as processes see them.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().file(path)?.lock().seen.clone())
    }

    /// Changes a file behind everybody's back, durably: a flipped bit, a cut tail.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let inode = self.0.lock().file(path)?;
        let mut inode = inode.lock();
        change(&mut inode.seen);
        inode.durable = inode.seen.clone();
        inode.pending.clear();
        Ok(())
    }

    /// The time that written files get, milliseconds since the epoch.
    pub fn set_time(&self, now_ms: i64) {
        self.0.lock().now_ms = now_ms;
    }
}

/// Gives files their old name back (their new one when another file has that) which had a name on the device, have one
/// as processes see it, and lost both: a rename is atomic.
fn restore_renamed(
    seen: &BTreeMap<PathBuf, Node>,
    durable: &BTreeMap<PathBuf, Node>,
    after: &mut BTreeMap<PathBuf, Node>,
) {
    let inode = |node: &Node| match node {
        Node::File(inode) => Some(Arc::as_ptr(inode)),
        Node::Dir => None,
    };
    let now: BTreeMap<_, _> = seen.iter().filter_map(|(name, node)| Some((inode(node)?, name))).collect();
    let mut named: std::collections::BTreeSet<_> = after.values().filter_map(inode).collect();
    for (old_name, node) in durable {
        let Some(file) = inode(node).filter(|file| !named.contains(file)) else { continue };
        let Some(new_name) = now.get(&file) else { continue };
        let name = if after.contains_key(old_name) { (*new_name).clone() } else { old_name.clone() };
        after.insert(name, node.clone());
        named.insert(file);
    }
}

/// Renames a file, or a directory with all in it.
fn move_tree(names: &mut BTreeMap<PathBuf, Node>, from: &Path, to: &Path) {
    let moved: Vec<_> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
    for path in moved {
        let target = match path.strip_prefix(from) {
            Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
            _ => to.to_path_buf(),
        };
        if let Some(node) = names.remove(&path) {
            names.insert(target, node);
        }
    }
}

fn same(one: Option<&Node>, other: Option<&Node>) -> bool {
    match (one, other) {
        (None, None) | (Some(Node::Dir), Some(Node::Dir)) => true,
        (Some(Node::File(a)), Some(Node::File(b))) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        let inode = match state.file(path) {
            Ok(inode) => inode,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let may_create = matches!(mode, OpenMode::Create | OpenMode::CreateEmpty);
                let has_parent = path.parent().is_none_or(|dir| state.seen.contains_key(dir));
                if !may_create || !has_parent {
                    return Err(cause);
                }
                state.change()?;
                let inode = Arc::new(Mutex::new(Inode { modified_ms: state.now_ms, ..Inode::default() }));
                state.seen.insert(path.to_path_buf(), Node::File(inode.clone()));
                inode
            }
            Err(cause) => return Err(cause),
        };
        if mode == OpenMode::CreateEmpty {
            state.change()?;
            inode.lock().change(Pending::SetLen(0));
        }
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.0), inode, boot: state.boot, writable }))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        Ok(self.0.lock().file(path)?.lock().seen.len() as u64)
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        Ok(self.0.lock().file(path)?.lock().modified_ms)
    }

    fn is_link(&self, _path: &Path) -> bool {
        false
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.0.lock();
        if !matches!(state.seen.get(dir), Some(Node::Dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.seen.iter().filter(|(path, _)| path.parent() == Some(dir));
        let entry = |(path, node): (&PathBuf, &Node)| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some(DirEntry { name, is_dir: matches!(node, Node::Dir) })
        };
        Ok(inside.filter_map(entry).collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.change()?;
        for dir in dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
            state.seen.entry(dir.to_path_buf()).or_insert(Node::Dir);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.change()?;
        if !state.seen.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // A directory whose own name is not durable yet is one name more that may be lost, nothing to move back.
        if matches!(state.durable.get(from), Some(Node::Dir)) {
            state.moves.push((from.to_path_buf(), to.to_path_buf()));
        }
        move_tree(&mut state.seen, from, to);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.change()?;
        state.file(path)?;
        state.seen.remove(path);
        Ok(())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.change()?;
        if !state.seen.contains_key(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.seen.retain(|path, _| !path.starts_with(dir));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        state.change()?;
        let inside = |path: &PathBuf| path.parent() == Some(dir);
        for (from, to) in std::mem::take(&mut state.moves) {
            if inside(&from) {
                move_tree(&mut state.durable, &from, &to);
            } else {
                state.moves.push((from, to));
            }
        }
        // A directory that was moved away or removed takes its children along.
        state.durable.retain(|path, _| !inside(path) || state.seen.contains_key(path));
        let kept = state.durable.clone();
        state.durable.retain(|path, _| {
            path.parent().is_none_or(|up| up == Path::new("") || kept.contains_key(up) || inside(path))
        });
        for (path, node) in state.seen.iter().filter(|(path, _)| inside(path) || *path == dir) {
            state.durable.insert(path.clone(), node.clone());
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        self.open(path, OpenMode::Create)?;
        let mut state = self.0.lock();
        if state.locks.iter().any(|held| held == path) {
            return Ok(None);
        }
        state.locks.push(path.to_path_buf());
        Ok(Some(Box::new(SimLock { disk: Arc::clone(&self.0), path: path.to_path_buf(), boot: state.boot })))
    }
}

#[cfg(test)]
mod tests;
