//! File descriptors that connections leave to everything else: logs, checkpoints, other brokers, ZooKeeper.
//!
//! The kernel gives the lowest number that is free. So a connection whose number is among the last ones below the limit came when
//! all others were in use. The limit is asked for each time: it may be changed while the broker runs.
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Whether `connection` has one of the last `reserved` descriptors (at most half of all), which are not for connections.
pub fn is_reserved(connection: &impl AsRawFd, reserved: u64) -> bool {
    limit().is_some_and(|limit| is_among_last(connection.as_raw_fd(), reserved, limit))
}

/// Whether the error says that this process, or the machine, has no descriptor left.
pub fn is_none_left(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

fn is_among_last(number: RawFd, reserved: u64, limit: u64) -> bool {
    u64::try_from(number).is_ok_and(|number| number >= limit - reserved.min(limit / 2))
}

/// Descriptors that this process may have; `None` when there is no limit.
fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_reserved_but_never_more_than_half() {
        assert!(!is_among_last(871, 128, 1_000));
        assert!(is_among_last(872, 128, 1_000));
        assert!(!is_among_last(49, 128, 100));
        assert!(is_among_last(50, 128, 100));
        assert!(!is_among_last(99, 0, 100));
        assert!(!is_among_last(RawFd::MAX, 128, u64::MAX));
    }

    #[test]
    fn this_process_has_a_limit_and_its_listener_is_below_the_reserve() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_reserved(&listener, 1));
        assert!(is_reserved(&listener, u64::MAX) || limit().unwrap() > 2 * listener.as_raw_fd() as u64);
    }
}
