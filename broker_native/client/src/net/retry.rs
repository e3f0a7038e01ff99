//! How often and how long: the one place that decides whether a failed attempt is followed by another.
use super::stop::Stop;
use crate::config::Settings;
use crate::error::{ClientError, Result, kind};
use std::time::{Duration, Instant};

/// The attempts of one operation, or of one stretch without progress.
#[derive(Debug)]
pub struct Retry {
    what: String,
    started: Instant,
    limit: Duration,
    attempt: u32,
    stop: Stop,
}

impl Retry {
    /// Allows attempts at `what` (the object of "could not ...") for `limit`, until `stop`.
    pub fn new(what: impl Into<String>, limit: Duration, stop: &Stop) -> Self {
        Self { what: what.into(), started: Instant::now(), limit, attempt: 0, stop: stop.clone() }
    }

    /// Starts anew after progress.
    pub fn reset(&mut self) {
        self.started = Instant::now();
        self.attempt = 0;
    }

    /// The time at which no further attempt is made.
    pub fn deadline(&self) -> Instant {
        self.started + self.limit
    }

    /// Pauses before the next attempt.
    ///
    /// # Errors
    /// `error` itself when it is not retriable or no time is left (then with the time it took); `CLOSED` when stopped.
    pub fn after(&mut self, error: ClientError, settings: &Settings) -> Result<()> {
        if self.stop.is_stopped() {
            return Err(closed(&self.what));
        }
        if !error.retriable {
            return Err(error);
        }
        let pause = settings.backoff(self.attempt);
        let spent = self.started.elapsed();
        if spent + pause >= self.limit {
            return Err(self.exhausted(error, spent));
        }
        self.attempt += 1;
        if self.stop.pause(pause) { Err(closed(&self.what)) } else { Ok(()) }
    }

    fn exhausted(&self, error: ClientError, spent: Duration) -> ClientError {
        let message = format!(
            "could not {} within {:.1} s ({} attempts): {}",
            self.what,
            spent.as_secs_f64(),
            self.attempt + 1,
            error.message
        );
        ClientError { kind: error.kind, message, retriable: false }
    }
}

fn closed(what: &str) -> ClientError {
    ClientError::fatal(kind::CLOSED, format!("could not {what}: closed meanwhile"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new([("bootstrap.servers", "a:1"), ("retry.backoff.ms", "0")]).unwrap()
    }

    #[test]
    fn a_fatal_error_is_returned_as_it_is() {
        let mut retry = Retry::new("x", Duration::from_secs(9), &Stop::default());
        let error = ClientError::fatal("SOME", "sentence");
        assert_eq!(retry.after(error.clone(), &settings()), Err(error));
    }

    #[test]
    fn a_retriable_error_ends_with_the_time_limit_and_keeps_its_cause() {
        let mut retry = Retry::new("list topics", Duration::ZERO, &Stop::default());
        let error = retry.after(ClientError::retriable("UNREACHABLE", "refused"), &settings()).unwrap_err();
        assert_eq!((error.kind, error.retriable), ("UNREACHABLE", false));
        assert!(error.message.starts_with("could not list topics within"), "{}", error.message);
        assert!(error.message.ends_with("refused"), "{}", error.message);
    }

    #[test]
    fn a_stop_ends_the_attempts() {
        let stop = Stop::default();
        stop.stop();
        let mut retry = Retry::new("x", Duration::from_secs(9), &stop);
        let error = retry.after(ClientError::retriable("UNREACHABLE", "refused"), &settings()).unwrap_err();
        assert_eq!(error.kind, "CLOSED");
    }
}
