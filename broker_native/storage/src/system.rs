//! What systems do in ways of their own with an open file: reserve blocks, forget cached pages.
//!
//! | | Linux | other systems |
//! |---|---|---|
//! | blocks for bytes to come | `fallocate`, the length stays | not reserved: a file grows as it is written |
//! | cached pages | `posix_fadvise` | `msync` of a mapping of the whole file, which is given up at once |
//!
//! Not here: `sendfile`, which the server has with its sockets. No function holds state; any thread may call them.
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Reserves blocks for the first `len` bytes without changing the length; a system or file system that cannot is not an error.
///
/// # Errors
/// The system's: that the disk is full, for one.
#[cfg(target_os = "linux")]
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    if unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, len) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        cause if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        cause => Err(cause),
    }
}

/// Reserves nothing: see the head of this file.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Forgets cached pages that are the same as on the device, so that the next read asks it.
///
/// # Errors
/// None on Linux: there it is advice, which tmpfs, for one, cannot follow.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
pub fn forget_cached(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub use by_mapping::forget_cached;

/// What POSIX has for it. Compiled for tests on Linux, too.
#[cfg(any(test, not(target_os = "linux")))]
mod by_mapping {
    use super::*;

    /// As [`super::forget_cached`].
    ///
    /// # Errors
    /// The system's, of mapping the file and of invalidating the mapping.
    pub fn forget_cached(file: &File) -> io::Result<()> {
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if len == 0 {
            return Ok(());
        }
        // SAFETY: a mapping where the system likes it, of an open file; nothing reads or writes through it.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping of just now, whole.
        let done = match unsafe { libc::msync(at, len, libc::MS_SYNC | libc::MS_INVALIDATE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        // SAFETY: as above; nothing refers to it any more.
        unsafe { libc::munmap(at, len) };
        done
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn cached_pages_are_forgotten_in_either_way_and_what_was_written_stays() {
        let file = tempfile::tempfile().unwrap();
        for forget in [forget_cached, by_mapping::forget_cached] {
            forget(&file).unwrap();
            file.write_all_at(b"records", file.metadata().unwrap().len()).unwrap();
            forget(&file).unwrap();
        }
        let mut read = [0; 14];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"recordsrecords");
    }

    #[test]
    fn a_reservation_leaves_the_length() {
        let file = tempfile::tempfile().unwrap();
        reserve(&file, 1 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
