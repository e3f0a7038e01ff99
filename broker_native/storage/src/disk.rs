//! What the log asks of a disk, as two small traits, and the real one.
//!
//! Every byte that the engine writes passes through here, so that a simulated disk can drop, keep or tear what was
//! not synced and fail the n-th call ([`super::sim`]). Nothing is written by mmap: its writes would be invisible to both, and a
//! full disk would turn them into SIGBUS.
//!
//! All methods may be called from any thread. None retries: a failed `sync_data` is reported once, and the caller
//! decides (it poisons the partition).
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::system;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist; only read.
    Read,
    /// It must exist; read and written.
    ReadWrite,
    /// Created when missing, kept as it is otherwise; read and written.
    Create,
    /// Created when missing, emptied otherwise; read and written.
    CreateEmpty,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// File name without the directory.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// Held as long as no other process may use the data directory; dropping it unlocks.
pub trait DiskLock: Send + Sync {}

/// Directories and the files in them.
pub trait Disk: Send + Sync + 'static {
    /// Opens a regular file. A symbolic link is not followed.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Bytes of the regular file, or of that which a link leads to, without opening it.
    fn file_len(&self, path: &Path) -> io::Result<u64>;
    /// Milliseconds since the epoch of the last write to the file.
    fn modified_ms(&self, path: &Path) -> io::Result<i64>;
    /// Whether a symbolic link is there, whatever it leads to.
    fn is_link(&self, path: &Path) -> bool;
    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Makes the directory and its parents.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Renames a file or directory, replacing a file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Unlinks a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Unlinks a directory and all in it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Makes the names in `dir` survive power loss: creations, renames, removals.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the lock file; `None` when another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>>;
}

/// What makes a file another one than all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its number in its file system, which is given again when the file is gone.
    pub inode: u64,
    /// When it was made, in nanoseconds since the epoch.
    pub made_ns: i64,
}

/// One open file. Positions and lengths are bytes.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes`; after an error any part of them may be there.
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;
    /// Reads up to `buf.len()` bytes; 0 at the end of the file.
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize>;
    /// Bytes in the file.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file holds no byte.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// fdatasync. After an error nothing is known about any byte written since the last success.
    fn sync_data(&self) -> io::Result<()>;
    /// Reserves blocks for `len` bytes without changing the length; a file system that cannot is not an error.
    fn reserve(&self, len: u64) -> io::Result<()>;
    /// Writes back and forgets cached pages, so that what is read next is what the device holds. After a failed
    /// fdatasync the kernel may show bytes as clean that never reached the device (ATC 20, "fsyncgate").
    fn drop_cache(&self) -> io::Result<()>;
    /// By what a name that another file took is noticed; `None` when the file is simulated, or its file system does not say it.
    fn identity(&self) -> Option<FileIdentity>;
    /// For sendfile; `None` when the file is simulated.
    fn as_raw_fd(&self) -> Option<RawFd>;

    /// Fills `buf` from `position`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before.
    fn read_exact_at(&self, mut buf: &mut [u8], mut position: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, position)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => {
                    position += n as u64;
                    buf = buf.get_mut(n..).unwrap_or_default();
                }
            }
        }
        Ok(())
    }
}

/// A pipe or a folder where a file should be.
pub(super) fn not_a_file() -> io::Error {
    odd("it is no regular file; move it away")
}

/// Something that is no file where one should be: nothing is wrong with the disk.
pub(super) fn odd(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The file system of this machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::Create => options.write(true).create(true).truncate(false),
            OpenMode::CreateEmpty => options.write(true).create(true).truncate(true),
        };
        // What a link leads to is not ours to change; opening a pipe would block.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path).map_err(|cause| match cause.raw_os_error() {
            Some(libc::ELOOP) => odd("it is a symbolic link; put the file itself there"),
            _ => cause,
        })?;
        if !file.metadata()?.is_file() {
            return Err(not_a_file());
        }
        Ok(Arc::new(RealFile(file)))
    }

    fn file_len(&self, path: &Path) -> io::Result<u64> {
        let found = fs::metadata(path)?;
        if found.is_file() { Ok(found.len()) } else { Err(not_a_file()) }
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        let since_epoch = fs::metadata(path)?.modified()?.duration_since(std::time::UNIX_EPOCH);
        Ok(since_epoch.map_or(0, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
    }

    fn is_link(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            // A name that is not UTF-8 is not one of ours.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(DirEntry { name, is_dir: entry.file_type()?.is_dir() });
            }
        }
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        // SAFETY: the descriptor is open for as long as `file` lives.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Some(Box::new(RealLock(file))));
        }
        let cause = io::Error::last_os_error();
        if cause.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(cause) }
    }
}

/// The kernel drops the flock with the descriptor.
struct RealLock(#[allow(dead_code)] fs::File);

impl DiskLock for RealLock {}

struct RealFile(fs::File);

impl DiskFile for RealFile {
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, position)
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buf, position) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        system::reserve(&self.0, len)
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.0.sync_data()?;
        system::forget_cached(&self.0)
    }

    fn identity(&self) -> Option<FileIdentity> {
        let file = self.0.metadata().ok()?;
        let made = file.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(FileIdentity { inode: file.ino(), made_ns: i64::try_from(made.as_nanos()).ok()? })
    }

    fn as_raw_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
    }
}
