//! The login of one connection by SASL: SaslHandshake and SaslAuthenticate, as Kafka's clients do since 1.0.
//!
//! A broker may end a login after a while (KIP-368); the client then logs in again over the same connection before that.
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::error::{ClientError, Result, code};
use crate::security::login::LoginSettings;
use pylog_security::sasl::Login;
use pylog_wire::messages::{SaslAuthenticateRequest, SaslHandshakeRequest};
use pylog_wire::{ErrorCode, Request};

/// Messages of one login; every mechanism has fewer.
const MESSAGES_MAX: usize = 8;

/// A connection on which nothing but a login goes on.
pub trait Exchange {
    /// Sends a request, in its newest common version, and waits for the answer.
    ///
    /// # Errors
    /// Those of the connection.
    fn ask<Q: Request>(&mut self, request: &Q) -> Result<Q::Response>;
    /// The broker's address, for messages.
    fn broker(&self) -> &str;
}

/// Goes through `login`, which has begun by `settings`; when to do it again, if the broker says so.
///
/// # Errors
/// The broker's refusal with its own sentence, final; those of the connection. What the broker says is escaped and cut, and has no
/// secret in it.
pub fn log_in(
    connection: &mut impl Exchange,
    settings: &LoginSettings,
    mut login: Login,
) -> Result<Option<Instant>> {
    agree(connection, settings, &login)?;
    let mut message = step(connection, &mut login, &[])?;
    for _ in 0..MESSAGES_MAX {
        let request = SaslAuthenticateRequest { auth_bytes: message.into() };
        let answer = connection.ask(&request)?;
        if answer.error_code != 0 {
            let said = answer.error_message.filter(|said| !said.is_empty()).map(|said| login.said(&said));
            return Err(refused(connection.broker(), settings, code(answer.error_code), said));
        }
        message = step(connection, &mut login, &answer.auth_bytes)?;
        if login.is_done() {
            return Ok(again_at(answer.session_lifetime_ms));
        }
    }
    Err(ClientError::protocol(connection.broker(), "its login does not end"))
}

fn agree(connection: &mut impl Exchange, settings: &LoginSettings, login: &Login) -> Result<()> {
    let mechanism = settings.mechanism();
    let answer = connection.ask(&SaslHandshakeRequest { mechanism: mechanism.name().into() })?;
    let broker = connection.broker();
    match code(answer.error_code) {
        ErrorCode::None => Ok(()),
        ErrorCode::UnsupportedSaslMechanism => Err(ClientError::fatal(
            ErrorCode::UnsupportedSaslMechanism.name(),
            format!(
                "broker {broker} does not take sasl.mechanism={mechanism} there, but {}",
                login.said(&answer.mechanisms.join(", "))
            ),
        )),
        ErrorCode::IllegalSaslState => Err(ClientError::fatal(
            ErrorCode::IllegalSaslState.name(),
            format!(
                "broker {broker} expects no login there; if it is a listener without SASL, set security.protocol to PLAINTEXT or SSL"
            ),
        )),
        error => Err(refused(broker, settings, error, None)),
    }
}

fn step(connection: &impl Exchange, login: &mut Login, challenge: &[u8]) -> Result<Vec<u8>> {
    login.step(challenge).map_err(|error| {
        let message = format!("the login at broker {} failed: {error}", connection.broker());
        ClientError::fatal(ErrorCode::SaslAuthenticationFailed.name(), message)
    })
}

fn refused(broker: &str, settings: &LoginSettings, error: ErrorCode, said: Option<String>) -> ClientError {
    let (who, mechanism) = (settings.who(), settings.mechanism());
    let said = said.unwrap_or_else(|| error.sentence().to_owned());
    let message = format!("broker {broker} refused the login {who} by {mechanism}: {said}");
    ClientError { kind: error.name(), message, retriable: error.is_retriable() }
}

/// At 85 to 95 % of the login's life, as Kafka's clients do: not all connections of a job at once.
fn again_at(lifetime_ms: i64) -> Option<Instant> {
    let lifetime = Duration::from_millis(u64::try_from(lifetime_ms).ok().filter(|life| *life > 0)?);
    let percent = 85 + RandomState::new().hash_one(lifetime_ms) % 11;
    Instant::now().checked_add(lifetime.mul_f64(percent as f64 / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_repeated_shortly_before_its_end_and_never_where_it_has_none() {
        assert_eq!(again_at(0), None);
        assert_eq!(again_at(-1), None);
        let now = Instant::now();
        let at = again_at(100_000).unwrap();
        assert!(at >= now + Duration::from_millis(85_000));
        assert!(at <= Instant::now() + Duration::from_millis(95_000));
    }
}
