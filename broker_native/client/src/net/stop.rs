//! Ends a blocked thread: a flag, a pause that ends early, and the socket the thread may be blocked on.
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Shared between a thread and the one that may end it. Cloning gives another handle on the same stop.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<StopState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct StopState {
    stopped: bool,
    sockets: Vec<(u64, TcpStream)>,
    next_id: u64,
}

/// While it lives, a stop shuts its socket down.
#[derive(Debug)]
pub struct Watch {
    stop: Stop,
    id: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.0.state.lock().sockets.retain(|(id, _)| *id != self.id);
    }
}

impl Stop {
    /// Sets the flag, ends pauses and shuts down the watched socket. Idempotent.
    pub fn stop(&self) {
        let mut state = self.0.state.lock();
        state.stopped = true;
        for (_, socket) in state.sockets.drain(..) {
            // A socket that is already closed needs no shutting down.
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.0.changed.notify_all();
    }

    /// Whether [`Stop::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.state.lock().stopped
    }

    /// Waits for `time` or until stopped; says whether it is stopped.
    pub fn pause(&self, time: Duration) -> bool {
        let mut state = self.0.state.lock();
        let until = std::time::Instant::now() + time;
        while !state.stopped && !self.0.changed.wait_until(&mut state, until).timed_out() {}
        state.stopped
    }

    /// Lets a stop shut `socket` down until the answer is dropped; at once if stopped already.
    pub fn watch(&self, socket: &TcpStream) -> Watch {
        let mut state = self.0.state.lock();
        if state.stopped {
            let _ = socket.shutdown(Shutdown::Both);
        }
        let id = state.next_id;
        state.next_id += 1;
        if let Ok(socket) = socket.try_clone() {
            state.sockets.push((id, socket));
        }
        drop(state);
        Watch { stop: self.clone(), id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_stop_ends_a_pause_early() {
        let stop = Stop::default();
        let other = stop.clone();
        let started = Instant::now();
        let thread = std::thread::spawn(move || other.pause(Duration::from_secs(60)));
        stop.stop();
        assert!(thread.join().unwrap());
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_stop_ends_a_blocked_read_even_when_it_came_first() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stop = Stop::default();
        stop.stop();
        let _watch = stop.watch(&socket);
        assert_eq!(std::io::Read::read(&mut socket, &mut [0]).unwrap(), 0);
    }
}
