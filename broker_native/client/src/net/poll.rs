//! Waits until one of some sockets can be read: poll(2) by `rustix`, with a byte stream to wake it from another thread.
//!
//! The set of sockets differs from wait to wait, and is small. A selector that keeps it registered (`polling`, `mio`: epoll) would
//! need two more system calls for each socket that comes or goes; this is one call.
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

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
    /// Waits for `timeout`, a wake-up, or a socket with something to read; tells which sockets have.
    ///
    /// # Errors
    /// Those of poll(2); an interrupted wait is an early end.
    pub fn wait(&mut self, sockets: &[BorrowedFd<'_>], timeout: Duration) -> std::io::Result<Vec<bool>> {
        let mut entries = Vec::with_capacity(1 + sockets.len());
        entries.push(PollFd::new(&self.0, PollFlags::IN));
        entries.extend(sockets.iter().map(|socket| PollFd::from_borrowed_fd(*socket, PollFlags::IN)));
        // A time that the system cannot express is as good as for ever.
        match poll(&mut entries, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_ready) => {}
            Err(Errno::INTR) => return Ok(vec![false; sockets.len()]),
            Err(error) => return Err(error.into()),
        }
        let mut readable = entries.iter().map(|entry| !entry.revents().is_empty());
        if readable.next() == Some(true) {
            self.drain();
        }
        Ok(readable.collect())
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while (&self.0).read(&mut bytes).is_ok_and(|count| count > 0) {}
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
