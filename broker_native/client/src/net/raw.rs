//! One connection that sends any request by name, in the version asked for, and gives the answer as it is.
//!
//! Nothing is agreed on, retried, completed or interpreted: what a broker does with a request is to be seen, also with
//! one that no client would send. Answers come in the order of the requests. After an error of the socket the
//! connection is of no use. Where the settings name TLS or a login, that comes first.
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::connection::{Connection, connect, secured, write_all};
use super::frame::Frames;
use super::stop::Stop;
use super::transport::Transport;
use crate::config::{Settings, millis};
use crate::error::{ClientError, Result, kind};
use pylog_wire::ApiKey;
use pylog_wire::json::{request_frame_from_json, response_to_json};

/// Largest answer read.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// A request whose answer has not been received.
#[derive(Debug, Clone, Copy)]
struct SentFrame {
    key: ApiKey,
    version: i16,
    correlation_id: i32,
}

/// An open connection.
#[derive(Debug)]
pub struct RawConnection {
    transport: Transport,
    broker: String,
    timeout: Duration,
    next_correlation_id: i32,
    unanswered: VecDeque<SentFrame>,
    frames: Frames,
}

impl RawConnection {
    /// Connects; `request.timeout.ms` of `settings` is how long [`RawConnection::receive`] waits for a byte.
    ///
    /// # Errors
    /// `UNREACHABLE` naming the address and the cause.
    pub fn open(host: &str, port: u16, settings: &Settings) -> Result<Self> {
        let broker = format!("{host}:{port}");
        let transport = if settings.security().login().is_some() {
            Connection::open(host, port, settings, &Stop::default())?.into_transport()
        } else {
            let until = Instant::now() + millis(settings.socket_connection_setup_timeout_ms);
            secured(connect(&broker, host, port, settings)?, &broker, host, until, settings)?
        };
        Ok(Self {
            transport,
            broker,
            timeout: settings.request_timeout(),
            next_correlation_id: 0,
            unanswered: VecDeque::new(),
            frames: Frames::default(),
        })
    }

    /// Sends a request. With `answered` false no answer is expected (Produce with `acks` 0).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an API, version or field that the codec does not have, `UNREACHABLE` when the
    /// connection broke.
    pub fn send(
        &mut self,
        api: &str,
        version: i16,
        json: &str,
        client_id: &str,
        answered: bool,
    ) -> Result<()> {
        let key = ApiKey::from_name(api)
            .ok_or_else(|| ClientError::invalid(format!("this codec has no API called {api:?}")))?;
        let correlation_id = self.next_correlation_id;
        let frame = request_frame_from_json(key, version, correlation_id, Some(client_id), json)
            .map_err(|error| ClientError::invalid(format!("cannot make this {api} request: {error}")))?;
        write_all(&mut self.transport, &frame, self.timeout).map_err(|error| self.broken(&error))?;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        if answered {
            self.unanswered.push_back(SentFrame { key, version, correlation_id });
        }
        Ok(())
    }

    /// The body of the answer to the oldest request that has none.
    ///
    /// # Errors
    /// `UNREACHABLE` when the connection broke, `TIMED_OUT`, `INVALID_ARGUMENT` when no answer is due, `IO` when
    /// the answer is not one.
    pub fn receive(&mut self) -> Result<String> {
        let no_question = || ClientError::invalid("every request sent on this connection has been answered");
        let sent = self.unanswered.pop_front().ok_or_else(no_question)?;
        let frame = self.read_frame()?;
        let (correlation_id, json) = response_to_json(sent.key, sent.version, frame)
            .map_err(|error| ClientError::protocol(&self.broker, error))?;
        if correlation_id != sent.correlation_id {
            return Err(ClientError::protocol(&self.broker, "it belongs to another request"));
        }
        Ok(json)
    }

    fn read_frame(&mut self) -> Result<Bytes> {
        let mut prefix = [0; 4];
        self.transport.read_exact(&mut prefix).map_err(|error| self.broken(&error))?;
        let len = usize::try_from(i32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
        if len > ANSWER_BYTES_MAX {
            return Err(ClientError::protocol(&self.broker, format!("it claims to have {len} bytes")));
        }
        self.frames.read(&mut self.transport, len).map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &std::io::Error) -> ClientError {
        let broker = &self.broker;
        match error.kind() {
            // What Linux says when SO_RCVTIMEO or SO_SNDTIMEO has passed.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::retriable(
                kind::TIMED_OUT,
                format!("broker {broker} did not answer within the time-out"),
            ),
            ErrorKind::UnexpectedEof => {
                ClientError::retriable(kind::UNREACHABLE, format!("broker {broker} closed the connection"))
            }
            _ => ClientError::retriable(
                kind::UNREACHABLE,
                format!("the connection to broker {broker} broke: {error}"),
            ),
        }
    }
}
