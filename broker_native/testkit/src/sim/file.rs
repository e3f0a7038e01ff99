//! An open file, and a lock that is held, on the simulated disk. Both are dead once the power was cut.
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::fault::Fault;
use super::inode::{Inode, Pending};
use super::state::State;
use pylog_storage::disk::{DiskFile, DiskLock, FileIdentity};

pub(super) struct SimLock {
    pub disk: Arc<Mutex<State>>,
    pub path: PathBuf,
    pub boot: u64,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        if state.boot == self.boot {
            state.locks.retain(|held| *held != self.path);
        }
    }
}

pub(super) struct SimFile {
    pub disk: Arc<Mutex<State>>,
    pub inode: Arc<Mutex<Inode>>,
    pub boot: u64,
    pub writable: bool,
}

impl SimFile {
    /// The disk, unless the process that opened the file is dead.
    fn alive(&self, state: &State) -> io::Result<()> {
        if state.boot == self.boot { Ok(()) } else { Err(io::Error::other("the process is dead")) }
    }
}

impl DiskFile for SimFile {
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        self.alive(&state)?;
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        state.change()?;
        let count = state.writes;
        state.writes += 1;
        let fault = state.due(|fault| matches!(fault, Fault::Write(_) | Fault::Full(_)), count);
        let whole = fault.is_none();
        let part = if whole { bytes } else { bytes.get(..bytes.len() / 2).unwrap_or_default() };
        let mut inode = self.inode.lock();
        inode.modified_ms = state.now_ms;
        inode.change(Pending::Write { position, bytes: part.to_vec() });
        match fault {
            None => Ok(()),
            Some(Fault::Full(_)) => Err(io::ErrorKind::StorageFull.into()),
            Some(_) => Err(io::Error::other("injected write error")),
        }
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.alive(&self.disk.lock())?;
        let inode = self.inode.lock();
        let rest = inode.seen.get(position as usize..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.lock().seen.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        self.alive(&state)?;
        state.change()?;
        self.inode.lock().change(Pending::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        self.alive(&state)?;
        state.change()?;
        let count = state.syncs;
        state.syncs += 1;
        let mut inode = self.inode.lock();
        if state.due(|fault| matches!(fault, Fault::Sync(_)), count).is_some() {
            // The kernel marks the pages clean: the device never gets them, and the next sync reports success.
            inode.pending.clear();
            return Err(io::Error::other("injected sync error"));
        }
        for change in std::mem::take(&mut inode.pending) {
            Inode::apply(&mut inode.durable, &change);
        }
        Ok(())
    }

    fn reserve(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.sync_data()?;
        let mut inode = self.inode.lock();
        // The length is not cached with the pages: what never reached the device reads as zeros.
        let len = inode.seen.len();
        inode.seen = inode.durable.clone();
        inode.seen.resize(len, 0);
        Ok(())
    }

    fn identity(&self) -> Option<FileIdentity> {
        None
    }

    fn as_raw_fd(&self) -> Option<RawFd> {
        None
    }
}
