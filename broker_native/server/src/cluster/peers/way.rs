//! How this broker gets to the others: to which of their listeners, with TLS and a login where that has them.
//!
//! Certificates, keys and passwords are read for each connection, so files that were replaced count from the next one on.
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::cluster::view::{Broker, Endpoint};
use crate::settings::Settings;
use pylog_client::config;
use pylog_client::security::Security;
use pylog_client::security::login::LoginSettings;
use pylog_security::sasl::{Login, Mechanism};
use pylog_security::tls::handshake::{Side, failed_io};
use pylog_settings::inter_broker::ClientTexts;
use pylog_wire::message::{decode_response, request_frame};
use pylog_wire::messages::{SaslAuthenticateRequest, SaslHandshakeRequest, SaslHandshakeResponse};
use pylog_wire::{Chunk, ErrorCode, Request};

/// What is read from.
pub type Reading = Box<dyn AsyncRead + Send + Unpin>;
/// What is written to; flushed after each request.
pub type Writing = Box<dyn AsyncWrite + Send + Unpin>;

/// Longest answer. What brokers ask each other here has no records.
const ANSWER_BYTES_MAX: usize = /* 16 MiB */ 16 << 20;
/// Versions that are spoken before the versions are known; every broker with a login has them.
const HANDSHAKE_VERSION: i16 = 1;
const AUTHENTICATE_VERSION: i16 = 2;
/// Messages of one login; every mechanism has fewer.
const MESSAGES_MAX: i32 = 8;
/// Parts in a hundred of a login's life after which no request begins.
const LIFETIME_PERCENT: u32 = 80;

/// The next frame without its length; `None` when the stream has ended or makes no sense.
pub async fn read_frame(stream: &mut Reading) -> Option<Bytes> {
    let len = usize::try_from(stream.read_i32().await.ok()?).ok()?;
    if len > ANSWER_BYTES_MAX {
        return None;
    }
    let mut frame = vec![0; len];
    stream.read_exact(&mut frame).await.ok()?;
    Some(frame.into())
}

/// See the module.
pub struct Way {
    listener: String,
    client: ClientTexts,
}

/// An open connection, logged in where that is demanded.
pub struct Connected {
    /// From the broker.
    pub reading: Reading,
    /// To it.
    pub writing: Writing,
    /// When the login is about to end, if it does.
    pub until: Option<Instant>,
}

impl Way {
    /// As the settings say.
    pub fn new(settings: &Settings) -> Self {
        Self { listener: settings.inter_broker.clone(), client: settings.inter_broker_client.clone() }
    }

    /// Connects to `broker`; the error is the cause, for people.
    ///
    /// # Errors
    /// It has no such listener, cannot be reached, is not trusted, or refuses the login.
    pub async fn connect(&self, broker: &Broker, client_id: &str) -> Result<Connected, String> {
        let Some(Endpoint(host, port)) = broker.endpoints.get(&self.listener) else {
            return Err(format!("it has no listener called {}", self.listener));
        };
        let security = self.security().await?;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (reading, writing): (Reading, Writing) = match security.tls() {
            None => {
                let (reading, writing) = stream.into_split();
                (Box::new(reading), Box::new(writing))
            }
            Some(tls) => {
                let name = tls.server_name(host).map_err(|error| error.message)?;
                let encrypted = TlsConnector::from(tls.config()).connect(name, stream).await;
                let encrypted = encrypted.map_err(|error| {
                    failed_io(&format!("{host}:{port}"), Side::Client, &error).to_string()
                })?;
                let (reading, writing) = tokio::io::split(encrypted);
                (Box::new(reading), Box::new(writing))
            }
        };
        let mut connected = Connected { reading, writing, until: None };
        if let Some(login) = security.login() {
            connected.until = connected.log_in(login, client_id).await?;
        }
        Ok(connected)
    }

    async fn security(&self) -> Result<Security, String> {
        if self.client.is_empty() {
            return Ok(Security::default());
        }
        let client = self.client.clone();
        // Reads files, and opens keys with passwords.
        let read = tokio::task::spawn_blocking(move || {
            let given = [("bootstrap.servers", "localhost:0")].into_iter().chain(client.iter());
            config::Settings::new(given).map(|settings| settings.security().clone())
        });
        let read = read.await.map_err(|_panic| "its security settings met a bug".to_owned())?;
        read.map_err(|error| error.message)
    }
}

impl Connected {
    /// Logs in; gives when the login is about to end, if it does.
    async fn log_in(&mut self, settings: &LoginSettings, client_id: &str) -> Result<Option<Instant>, String> {
        let mechanism = settings.mechanism();
        let mut login = settings.begin().map_err(|error| error.message)?;
        let question = SaslHandshakeRequest { mechanism: mechanism.name().into() };
        agreed(&login, mechanism, &self.ask(&question, HANDSHAKE_VERSION, 0, client_id).await?)?;
        let mut message = login.step(&[]).map_err(|error| error.to_string())?;
        for number in 1..=MESSAGES_MAX {
            let question = SaslAuthenticateRequest { auth_bytes: Bytes::from(message) };
            let answer = self.ask(&question, AUTHENTICATE_VERSION, number, client_id).await?;
            if answer.error_code != ErrorCode::None.code() {
                let said = answer.error_message.filter(|said| !said.is_empty()).map(|said| login.said(&said));
                let why = said.unwrap_or_else(|| sentence(answer.error_code));
                return Err(format!("it refuses the login {}: {why}", settings.who()));
            }
            message = login.step(&answer.auth_bytes).map_err(|error| error.to_string())?;
            if login.is_done() {
                let lifetime = u64::try_from(answer.session_lifetime_ms).ok().filter(|ms| *ms > 0);
                let good_for = lifetime.map(|ms| Duration::from_millis(ms) / 100 * LIFETIME_PERCENT);
                return Ok(good_for.and_then(|good_for| Instant::now().checked_add(good_for)));
            }
        }
        Err("its login does not end".into())
    }

    async fn ask<Q: Request>(
        &mut self,
        question: &Q,
        version: i16,
        number: i32,
        client_id: &str,
    ) -> Result<Q::Response, String> {
        let ended = || "it ended the connection during the login".to_owned();
        let frame =
            request_frame(question, version, number, Some(client_id)).map_err(|error| error.to_string())?;
        for chunk in frame {
            let Chunk::Bytes(bytes) = chunk else { continue };
            self.writing.write_all(&bytes).await.map_err(|_| ended())?;
        }
        self.writing.flush().await.map_err(|_| ended())?;
        let answer = read_frame(&mut self.reading).await.ok_or_else(ended)?;
        decode_response::<Q::Response>(answer, version)
            .map(|(_, body)| body)
            .map_err(|error| error.to_string())
    }
}

/// Whether the broker takes a login by `mechanism`.
///
/// # Errors
/// Why not.
fn agreed(login: &Login, mechanism: Mechanism, answer: &SaslHandshakeResponse) -> Result<(), String> {
    match ErrorCode::from_code(answer.error_code) {
        Some(ErrorCode::None) => Ok(()),
        Some(ErrorCode::UnsupportedSaslMechanism) => {
            let others = login.said(&answer.mechanisms.join(", "));
            Err(format!("it does not take a login by {mechanism}, but by {others} (sasl.enabled.mechanisms)"))
        }
        Some(ErrorCode::IllegalSaslState) => Err(
            "it expects no login there: its listener for brokers has no SASL (listener.security.protocol.map,              security.inter.broker.protocol)"
                .into(),
        ),
        _ => Err(format!("it refuses a login by {mechanism}: {}", sentence(answer.error_code))),
    }
}

fn sentence(code: i16) -> String {
    ErrorCode::from_code(code).map_or_else(|| format!("error {code}"), |error| error.sentence().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_security::secret::Secret;

    #[test]
    fn what_is_said_of_a_login_that_is_not_taken_fits_the_error() {
        let login = Login::with_password(Mechanism::Plain, "broker", Secret::new("x")).unwrap();
        let why = |error: ErrorCode, mechanisms: &[&str]| {
            let mechanisms = mechanisms.iter().map(|name| (*name).to_owned()).collect();
            let answer = SaslHandshakeResponse { error_code: error.code(), mechanisms };
            agreed(&login, Mechanism::Plain, &answer).unwrap_err()
        };
        assert!(
            why(ErrorCode::UnsupportedSaslMechanism, &["GSSAPI", "SCRAM-SHA-512\n"])
                .contains("GSSAPI, SCRAM-SHA-512\\n")
        );
        assert!(why(ErrorCode::IllegalSaslState, &[]).contains("has no SASL"));
        assert!(why(ErrorCode::UnknownServerError, &[]).contains(ErrorCode::UnknownServerError.sentence()));
    }
}
