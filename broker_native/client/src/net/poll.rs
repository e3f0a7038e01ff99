//! Waits until one of some sockets can be read: poll(2), with a byte stream to wake it from another thread.
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The end that wakes.
#[derive(Debug)]
pub struct Waker(UnixStream);

/// The end that is woken.
#[derive(Debug)]
pub struct Wakeable(UnixStream);

/// A connected pair.
///
/// # Errors
/// When the process has no file descriptors left.
pub fn waker() -> std::io::Result<(Waker, Wakeable)> {
    let (left, right) = UnixStream::pair()?;
    left.set_nonblocking(true)?;
    right.set_nonblocking(true)?;
    Ok((Waker(left), Wakeable(right)))
}

impl Waker {
    /// Ends the other end's present or next wait.
    pub fn wake(&self) {
        // A full stream holds a wake-up already; a closed one has nobody to wake.
        let _ = (&self.0).write(&[1]);
    }
}

impl Wakeable {
    /// Waits for `timeout`, a wake-up, or a socket with something to read; gives the sockets that have.
    ///
    /// # Errors
    /// Those of poll(2); an interrupted wait is an early end.
    pub fn wait(&mut self, sockets: &[BorrowedFd<'_>], timeout: Duration) -> std::io::Result<Vec<bool>> {
        let own = std::iter::once(self.0.as_raw_fd());
        let all = own.chain(sockets.iter().map(AsRawFd::as_raw_fd));
        let mut entries: Vec<libc::pollfd> =
            all.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        // Rounded up, or a wait of less than a millisecond would spin.
        let timeout_ms = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the length are those of `entries`, which outlives the call; every descriptor is
        // borrowed for the time of the call.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout_ms) };
        if ready < 0 {
            let error = std::io::Error::last_os_error();
            return if error.kind() == ErrorKind::Interrupted {
                Ok(vec![false; sockets.len()])
            } else {
                Err(error)
            };
        }
        let mut readable = entries.iter().map(|entry| entry.revents != 0);
        if readable.next() == Some(true) {
            self.drain();
        }
        Ok(readable.collect())
    }

    fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self.0.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::time::Instant;

    #[test]
    fn a_wake_up_that_came_first_is_not_lost_and_counts_once() {
        let (waker, mut wakeable) = waker().unwrap();
        waker.wake();
        waker.wake();
        let started = Instant::now();
        wakeable.wait(&[], Duration::from_secs(60)).unwrap();
        assert!(started.elapsed() < Duration::from_secs(30));
        let started = Instant::now();
        wakeable.wait(&[], Duration::from_millis(5)).unwrap();
        assert!(started.elapsed() >= Duration::from_millis(5));
    }

    #[test]
    fn only_the_socket_with_something_to_read_is_told() {
        let (_waker, mut wakeable) = waker().unwrap();
        let (silent, _other) = UnixStream::pair().unwrap();
        let (talked_to, mut talker) = UnixStream::pair().unwrap();
        talker.write_all(b"x").unwrap();
        let readable = wakeable.wait(&[silent.as_fd(), talked_to.as_fd()], Duration::from_secs(60)).unwrap();
        assert_eq!(readable, [false, true]);
    }
}
