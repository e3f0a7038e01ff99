//! One connection to one broker: blocking, one thread at a time, answers in the order of the requests.
//!
//! A request takes the highest version that both sides speak. Several requests may be sent before the first answer is
//! received ([`Connection::send`], [`Connection::receive`]); [`Connection::call`] does both. After any error of the
//! socket or the protocol the connection is of no use: drop it.
//!
//! Where brokers demand a login, a connection is logged in when it is open. When the login is about to end, the next request
//! first waits for the answers that are on their way, which are kept, and logs in again.
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::frame::Frames;
use super::kept::Kept;
use super::login::{self, Exchange};
use super::stop::{Stop, Watch};
use super::tls_error;
use super::transport::Transport;
use super::versions::{self, Versions};
use crate::config::{Settings, millis};
use crate::error::{ClientError, Result, kind};
use crate::security::login::LoginSettings;
use crate::security::terms::Terms;
use pylog_security::sasl::Login;
use pylog_wire::message::{decode_response, request_frame};
use pylog_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use pylog_wire::{Chunk, ErrorCode, Request};

/// Where the error code of an ApiVersions answer stands, in every version: after the correlation id.
const ERROR_CODE: std::ops::Range<usize> = 4..6;

/// Those that clients of this process left to the next ones.
static KEPT: Kept<Connection> = Kept::new();

/// A request whose answer has not been received.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    correlation_id: i32,
    version: i16,
}

impl Sent {
    /// The version that the request was sent in.
    pub fn version(self) -> i16 {
        self.version
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    transport: Transport,
    /// How long an answer may take, from when it is waited for to its last byte.
    timeout: Duration,
    broker: String,
    client_id: String,
    versions: Versions,
    next_correlation_id: i32,
    answer_max_bytes: usize,
    frames: Frames,
    /// Requests whose answers have not been read.
    unanswered: usize,
    /// Whether an answer was read, of whichever request.
    has_answered: bool,
    /// Answers that were read before somebody wanted them, the oldest first; as many as there were requests on their way.
    early: VecDeque<Bytes>,
    login: Option<Arc<LoginSettings>>,
    /// When to log in again.
    login_at: Option<Instant>,
    /// On what terms the next client of this process may have it.
    terms: Option<Arc<Terms>>,
    watch: Option<Watch>,
}

impl Connection {
    /// Connects to `host:port`, agrees on versions and logs in, as far as the settings say so. A token is got first: brokers close
    /// connections on which no login comes.
    ///
    /// # Errors
    /// `UNREACHABLE` naming the address and the cause, retriable; `TOKEN_UNAVAILABLE`, retriable; a TLS handshake or login that failed,
    /// final.
    pub fn open(host: &str, port: u16, settings: &Settings, stop: &Stop) -> Result<Self> {
        let broker = format!("{host}:{port}");
        if let Some(terms) = settings.terms()
            && let Some(mut kept) = KEPT.take(|kept| kept.is_as(&broker, terms), Self::is_quiet)
        {
            kept.watch = Some(stop.watch(kept.socket()));
            return Ok(kept);
        }
        let login = settings.security().login().map(|login| login.begin()).transpose()?;
        let until = Instant::now() + millis(settings.socket_connection_setup_timeout_ms);
        let socket = connect(&broker, host, port, settings)?;
        let watch = stop.watch(&socket);
        let mut connection = Self {
            transport: secured(socket, &broker, host, until, settings)?,
            timeout: Duration::ZERO,
            broker,
            client_id: settings.client_id.clone(),
            versions: Versions::default(),
            next_correlation_id: 0,
            answer_max_bytes: usize::try_from(settings.receive_message_max_bytes).unwrap_or(usize::MAX),
            frames: Frames::default(),
            unanswered: 0,
            has_answered: false,
            early: VecDeque::new(),
            login: settings.security().login().cloned(),
            login_at: None,
            terms: settings.terms().cloned(),
            watch: Some(watch),
        };
        // A port may accept and its broker not answer: whoever tries one address after the other should not wait long.
        let timeout = millis(settings.socket_connection_setup_timeout_ms).min(settings.request_timeout());
        connection.set_timeout(timeout)?;
        let begun =
            connection.negotiate().and_then(|()| login.map_or(Ok(()), |login| connection.log_in(login)));
        begun.map_err(|error| silent(error, &connection.broker))?;
        connection.set_timeout(settings.request_timeout())?;
        Ok(connection)
    }

    /// Leaves the connection to the next client of this process, if its settings say so and nothing is on its way; closes it else.
    pub fn leave(mut self) {
        // While a stop watches, it may shut the socket down.
        self.watch = None;
        if self.terms.is_some() && self.is_quiet() {
            KEPT.put(self);
        }
    }

    /// Whether it leads to `broker` and was opened on these terms.
    fn is_as(&self, broker: &str, terms: &Terms) -> bool {
        self.broker == broker && self.terms.as_deref() == Some(terms)
    }

    /// Whether nothing is on its way, and the other side has neither said something nor hung up.
    fn is_quiet(&mut self) -> bool {
        if self.unanswered > 0 || self.has_waiting() || !self.transport.is_sent() {
            return false;
        }
        let socket = self.socket();
        let peeked = socket.set_nonblocking(true).and_then(|()| socket.peek(&mut [0]));
        let is_silent = peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        is_silent && socket.set_nonblocking(false).is_ok()
    }

    /// The bytes below, of a connection on which nothing is on its way.
    pub(super) fn into_transport(self) -> Transport {
        self.transport
    }

    /// How long to wait for an answer, to its last byte.
    fn set_timeout(&mut self, time: Duration) -> Result<()> {
        self.timeout = time;
        self.transport.socket().set_read_timeout(Some(time)).map_err(|error| self.broken("wait for", &error))
    }

    /// The broker's address, for messages.
    pub fn broker(&self) -> &str {
        &self.broker
    }

    /// The socket, to wait on; unless [`Connection::has_waiting`].
    pub fn socket(&self) -> &TcpStream {
        self.transport.socket()
    }

    /// Whether some of an answer may be read although the socket has nothing to read.
    pub fn has_waiting(&mut self) -> bool {
        !self.early.is_empty() || self.transport.has_waiting()
    }

    /// What the broker speaks.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// Those of [`Connection::send`] and [`Connection::receive`].
    pub fn call<Q: Request>(&mut self, request: &Q) -> Result<Q::Response> {
        let sent = self.send(request)?;
        self.receive::<Q>(sent)
    }

    /// Sends a request in the highest version both sides speak.
    ///
    /// # Errors
    /// `UNSUPPORTED_VERSION` when there is none, `UNREACHABLE` when the connection broke.
    pub fn send<Q: Request>(&mut self, request: &Q) -> Result<Sent> {
        let version = self.versions.pick::<Q>(&self.broker)?;
        self.send_as(request, version)
    }

    /// As [`Connection::send`], in version `newest` at the latest.
    ///
    /// # Errors
    /// Those of [`Connection::send`].
    pub fn send_up_to<Q: Request>(&mut self, request: &Q, newest: i16) -> Result<Sent> {
        let version = self.versions.pick::<Q>(&self.broker)?;
        self.send_as(request, version.min(newest))
    }

    /// Sends a request in a given version.
    ///
    /// # Errors
    /// `UNREACHABLE` when the connection broke, `INVALID_ARGUMENT` when the request cannot be written; those of a login that
    /// had to be repeated.
    pub fn send_as<Q: Request>(&mut self, request: &Q, version: i16) -> Result<Sent> {
        if self.login_at.is_some_and(|at| at <= Instant::now()) {
            self.log_in_again()?;
        }
        self.put(request, version)
    }

    /// No answer is expected of a request (Produce with `acks` 0).
    pub fn has_no_answer(&mut self, _sent: Sent) {
        self.unanswered -= 1;
    }

    fn put<Q: Request>(&mut self, request: &Q, version: i16) -> Result<Sent> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        let frame = request_frame(request, version, correlation_id, Some(&self.client_id));
        let frame =
            frame.map_err(|error| ClientError::invalid(format!("cannot send this request: {error}")))?;
        let written = write_all(&mut self.transport, &frame, self.timeout);
        written.map_err(|error| self.broken("write to", &error))?;
        self.unanswered += 1;
        Ok(Sent { correlation_id, version })
    }

    /// Receives the answer of the oldest request that has none.
    ///
    /// # Errors
    /// `UNREACHABLE` when the connection broke, `TIMED_OUT` when the answer is not there, whole, after `request.timeout.ms`, `IO`
    /// when it is none.
    pub fn receive<Q: Request>(&mut self, sent: Sent) -> Result<Q::Response> {
        let frame = match self.early.pop_front() {
            Some(frame) => frame,
            None => self.read_frame()?,
        };
        self.decode::<Q>(frame, sent)
    }

    fn log_in(&mut self, login: Login) -> Result<()> {
        if let Some(settings) = self.login.clone() {
            self.login_at = login::log_in(self, &settings, login)?;
        }
        Ok(())
    }

    /// Nothing may be on its way during a login, so that its answers are known.
    fn log_in_again(&mut self) -> Result<()> {
        let Some(settings) = &self.login else { return Ok(()) };
        let login = settings.begin()?;
        self.login_at = None;
        while self.unanswered > 0 {
            let frame = self.read_frame()?;
            self.early.push_back(frame);
        }
        self.log_in(login)
    }

    fn decode<Q: Request>(&self, frame: Bytes, sent: Sent) -> Result<Q::Response> {
        let (header, answer) = decode_response::<Q::Response>(frame, sent.version)
            .map_err(|error| ClientError::protocol(&self.broker, error))?;
        if header.correlation_id != sent.correlation_id {
            return Err(ClientError::protocol(&self.broker, "it belongs to another request"));
        }
        Ok(answer)
    }

    /// Asks what the broker speaks; a broker that does not know our version of the question answers in version 0.
    fn negotiate(&mut self) -> Result<()> {
        let sent = self.put(&versions::question(), versions::FIRST_ASKED)?;
        let frame = self.read_frame()?;
        let unsupported = ErrorCode::UnsupportedVersion.code().to_be_bytes();
        let mut answer: ApiVersionsResponse = if frame.get(ERROR_CODE) == Some(&unsupported[..]) {
            self.decode::<ApiVersionsRequest>(frame, Sent { version: versions::LAST_RESORT, ..sent })?
        } else {
            self.decode::<ApiVersionsRequest>(frame, sent)?
        };
        if answer.error_code != 0 && answer.api_keys.is_empty() {
            let sent = self.put(&versions::question(), versions::LAST_RESORT)?;
            answer = self.receive::<ApiVersionsRequest>(sent)?;
        }
        self.versions = Versions::new(&answer);
        Ok(())
    }

    fn read_frame(&mut self) -> Result<Bytes> {
        let timeout = self.timeout;
        let mut timely = Timely::new(&mut self.transport, timeout);
        let read = read_within(&mut timely, &self.frames, self.answer_max_bytes);
        let was_changed = timely.accounted > Duration::ZERO;
        let frame = read.map_err(|failed| self.unread(failed))?;
        self.unanswered = self.unanswered.saturating_sub(1);
        self.has_answered = true;
        if was_changed {
            self.set_timeout(timeout)?;
        }
        Ok(frame)
    }

    fn unread(&self, failed: Unread) -> ClientError {
        let broker = &self.broker;
        match failed {
            Unread::Broken(error) => self.broken("read from", &error),
            Unread::TooLong(prefix) if self.is_plain() && tls_error::is_alert(prefix) => {
                tls_error::tls_there(broker)
            }
            Unread::TooLong(prefix) => ClientError::fatal(
                kind::PROTOCOL,
                format!(
                    "broker {broker} announced an answer of {} bytes, but receive.message.max.bytes is {}; is this a Kafka port?",
                    u32::from_be_bytes(prefix),
                    self.answer_max_bytes
                ),
            ),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self.transport, Transport::Plain(_))
    }

    /// What may be the matter when a broker closes a connection without a word.
    fn closed(&self) -> String {
        let broker = &self.broker;
        // Nothing but the question for versions was answered: brokers that demand TLS or a login hang up so.
        let is_new = self.next_correlation_id <= 2 && self.login.is_none();
        let hint = match (is_new, self.is_plain()) {
            (true, true) => "; if it demands TLS or a login there, set security.protocol",
            (true, false) => "; if it demands a login there, set security.protocol=SASL_SSL",
            (false, _) => "",
        };
        format!("broker {broker} closed the connection{hint}")
    }

    fn broken(&self, what: &str, error: &std::io::Error) -> ClientError {
        let broker = &self.broker;
        if let Some(error) = tls_error::of_connection(broker, error, self.has_answered) {
            return error;
        }
        match error.kind() {
            // What Linux says when SO_RCVTIMEO or SO_SNDTIMEO has passed.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::retriable(
                kind::TIMED_OUT,
                format!("broker {broker} did not answer within request.timeout.ms"),
            ),
            ErrorKind::UnexpectedEof => ClientError::retriable(kind::UNREACHABLE, self.closed()),
            _ => ClientError::retriable(
                kind::UNREACHABLE,
                format!("could not {what} broker {broker}: {error}"),
            ),
        }
    }
}

impl Exchange for Connection {
    fn ask<Q: Request>(&mut self, request: &Q) -> Result<Q::Response> {
        let version = self.versions.pick::<Q>(&self.broker)?;
        let sent = self.put(request, version)?;
        let frame = self.read_frame()?;
        self.decode::<Q>(frame, sent)
    }

    fn broker(&self) -> &str {
        &self.broker
    }
}

/// Why a frame could not be read.
enum Unread {
    Broken(std::io::Error),
    /// Its length, which is more than may be.
    TooLong([u8; 4]),
}

fn read_within(
    stream: &mut Timely<'_>,
    frames: &Frames,
    max_bytes: usize,
) -> std::result::Result<Bytes, Unread> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).map_err(Unread::Broken)?;
    let len = usize::try_from(i32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
    if len > max_bytes {
        return Err(Unread::TooLong(prefix));
    }
    frames.read(stream, len).map_err(Unread::Broken)
}

/// A transport whose bytes must all be there in time, however they drip. Its time-out is that time when this begins.
struct Timely<'a> {
    transport: &'a mut Transport,
    begun: Instant,
    timeout: Duration,
    /// By how much the socket's own time-out was shortened.
    accounted: Duration,
}

impl<'a> Timely<'a> {
    fn new(transport: &'a mut Transport, timeout: Duration) -> Self {
        Self { transport, begun: Instant::now(), timeout, accounted: Duration::ZERO }
    }
}

impl Read for Timely<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let spent = self.begun.elapsed();
        let left = self.timeout.checked_sub(spent).filter(|left| !left.is_zero());
        let left = left.ok_or(ErrorKind::TimedOut)?;
        // A large answer comes in many reads: not each needs another time-out.
        if spent - self.accounted > self.timeout / 16 {
            self.transport.socket().set_read_timeout(Some(left))?;
            self.accounted = spent;
        }
        self.transport.read(buffer)
    }
}

/// The error of a broker that says nothing when it is asked what it speaks.
fn silent(error: ClientError, broker: &str) -> ClientError {
    if error.kind != kind::TIMED_OUT {
        return error;
    }
    let message = format!("broker {broker} did not answer within socket.connection.setup.timeout.ms");
    ClientError { message, ..error }
}

/// Sends all parts of a frame without joining them. The socket's own time-out counts for each part that is taken; a peer
/// that takes them in drips is given up after `timeout`, too.
pub(crate) fn write_all(
    transport: &mut Transport,
    frame: &[Chunk],
    timeout: Duration,
) -> std::io::Result<()> {
    let begun = Instant::now();
    let parts = frame.iter().map(|chunk| match chunk {
        Chunk::Bytes(bytes) => &bytes[..],
        Chunk::Records { .. } => &[],
    });
    let mut parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
    let mut rest = &mut parts[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() || !transport.is_sent() {
        match transport.send(rest) {
            Ok(taken) => IoSlice::advance_slices(&mut rest, taken),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if (!rest.is_empty() || !transport.is_sent()) && begun.elapsed() >= timeout {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// `socket` as the bytes of a connection: under TLS where the settings say so, agreed on by `until`.
pub(super) fn secured(
    socket: TcpStream,
    broker: &str,
    host: &str,
    until: Instant,
    settings: &Settings,
) -> Result<Transport> {
    let Some(tls) = settings.security().tls() else { return Ok(Transport::Plain(socket)) };
    let transport = Transport::tls(socket, tls.server_name(host)?, tls.config(), until);
    let transport = transport.map_err(|error| tls_error::of_handshake(broker, &error))?;
    let timeout = Some(settings.request_timeout());
    let socket = transport.socket();
    let restored = socket.set_write_timeout(timeout).and_then(|()| socket.set_read_timeout(timeout));
    restored.map_err(|error| tls_error::of_handshake(broker, &error))?;
    Ok(transport)
}

/// A socket to `host:port` with the time-outs and buffers of `settings`; `broker` is the address for messages.
pub(super) fn connect(broker: &str, host: &str, port: u16, settings: &Settings) -> Result<TcpStream> {
    let unreachable = |cause: String| {
        ClientError::retriable(kind::UNREACHABLE, format!("could not connect to {broker}: {cause}"))
    };
    let addresses = (host, port).to_socket_addrs().map_err(|error| unreachable(error.to_string()))?;
    let until = Instant::now() + millis(settings.socket_connection_setup_timeout_ms);
    let mut cause = "the name has no address".to_owned();
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        match connect_one(address, left.max(Duration::from_millis(1)), settings) {
            Ok(stream) => return Ok(stream),
            Err(error) => cause = error.to_string(),
        }
    }
    Err(unreachable(cause))
}

fn connect_one(address: SocketAddr, timeout: Duration, settings: &Settings) -> std::io::Result<TcpStream> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    if let Ok(size) = usize::try_from(settings.receive_buffer_bytes) {
        socket.set_recv_buffer_size(size)?;
    }
    if let Ok(size) = usize::try_from(settings.send_buffer_bytes) {
        socket.set_send_buffer_size(size)?;
    }
    socket.connect_timeout(&address.into(), timeout)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(settings.request_timeout()))?;
    stream.set_write_timeout(Some(settings.request_timeout()))?;
    Ok(stream)
}
