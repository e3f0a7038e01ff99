//! One client's connection: reads requests, hands them to `dispatch`, sends the answers in the order of the requests.
//!
//! Runs as one task; nothing else touches its socket. All requests of one read are handled before their answers leave in
//! one write. A request that has to wait (a long poll, a durable append, a decision) does not stop those behind it from
//! being handled, up to [`PIPELINE_MAX`]; their answers queue behind it. An idle connection has no buffer.
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::login::{self, Said};
use super::opening::open;
use super::session::{Next, Session};
use super::transport::Transport;
use crate::call::{Dialled, Later, Origin, Outcome, Reply, poll_reply};
use crate::dispatch::dispatch;
use crate::handlers;
use crate::io::budget::{BudgetShare, FREE_BYTES};
use crate::io::frames::{Bounds, Frame, FrameError, Inbox};
use crate::io::response_queue::{Answer, ResponseQueue};
use crate::listeners::Listener;
use crate::listeners::newcomers::{Handshake, Newcomer, Newcomers, PushedOut};
use crate::quotas::table::Quota;
use crate::shared::Shared;
use pylog_log::loggers::NETWORK;
use pylog_log::{debug, warn};
use pylog_security::tls::handshake::{Side, failed_io};

/// Requests of one connection that may wait for their answers; reading stops then.
const PIPELINE_MAX: usize = 64;
/// When more bytes of answers wait, to be sent or for an answer before them, they are sent before more requests are handled.
const RESPONSE_QUEUE_BYTES: usize = /* 1 MiB */ 1 << 20;
/// How long a client that does not read its answers can delay a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Stands for "never" in timers.
const NEVER: Duration = Duration::from_secs(/* 10 years */ 10 * 365 * 86_400);

/// Numbers of connections.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The peer closed it, it was idle, or the server stops: nothing to say.
    Quiet,
    /// The peer broke the protocol, or took too long; the sentence is for the log.
    Refused(String),
    /// The socket or a segment file failed.
    Io(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What a connection waits for.
enum Event {
    /// The oldest waiting request has its answer.
    Answered(Reply),
    /// Number of bytes that arrived, 0 at the end.
    Read(io::Result<usize>),
    /// The server stops.
    Stop,
    /// The client has waited as long as its quota asks.
    PauseOver,
    /// Nothing came for too long.
    Idle,
    /// A request did not arrive in time.
    Late,
}

/// A request whose answer is not sent: it waits itself, or for one before it.
enum Waiting {
    Answer(Answer),
    /// It keeps its share of the budget.
    Later(Later, #[allow(dead_code)] BudgetShare),
    /// No request behind it is handled before; so it is the last one. Its bytes are still in memory.
    InOrder(Later, #[allow(dead_code)] BudgetShare),
}

struct Connection {
    stream: Transport,
    from: Origin,
    session: Session,
    /// Its place among those that have not logged in.
    newcomer: Option<Newcomer>,
    shared: Arc<Shared>,
    inbox: Inbox,
    /// What the request that is arriving holds of the budget.
    share: BudgetShare,
    /// When that request must be there.
    deadline: Option<Instant>,
    waiting: VecDeque<Waiting>,
    /// Bytes of the answers in it.
    queued: usize,
    response_queue: ResponseQueue,
    /// The oldest answer waits for room: nothing more is handled meanwhile.
    roomless: bool,
    /// Until when nothing is handled, because the client used more than its quota.
    paused_until: Option<Instant>,
    /// Nothing is read any more: what waits is answered, then the connection ends.
    draining: bool,
    /// When the last request was read.
    active: Instant,
}

/// Serves `stream` until it ends; `handshake` is its place among those that begin, at a listener with TLS.
pub async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    handshake: Option<Handshake>,
    listener: Arc<Listener>,
    shared: Arc<Shared>,
) {
    let accepted = Instant::now();
    let Ok(local) = stream.local_addr() else { return };
    let Some((stream, principal)) = open(stream, peer, handshake, &listener, &shared).await else { return };
    let host = stream.dialled_name().map_or_else(|| local.ip().to_canonical().to_string().into(), Into::into);
    let dialled = Dialled { host, port: local.port() };
    let (session, newcomer, overdue) = match &listener.login {
        None => (Session::open(), None, None),
        Some(login) => {
            let (newcomer, pushed_out) = login.newcomers.begin(peer.ip());
            let overdue = overdue(Arc::clone(&login.newcomers), pushed_out, accepted, Arc::clone(&shared));
            (Session::begun(Arc::clone(&login.rules)), Some(newcomer), Some(Box::pin(overdue)))
        }
    };
    let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let is_counted = !session.is_before_login();
    let from = Origin { listener, principal, dialled, peer, connection, busy: Duration::ZERO, is_counted };
    let inbox = Inbox::new(bounds(&session, &shared));
    let mut connection = Connection {
        stream,
        from,
        session,
        newcomer,
        shared: Arc::clone(&shared),
        inbox,
        share: BudgetShare::default(),
        deadline: None,
        waiting: VecDeque::new(),
        queued: 0,
        response_queue: ResponseQueue::default(),
        roomless: false,
        paused_until: None,
        draining: false,
        active: Instant::now(),
    };
    let number = connection.from.connection;
    let end = tokio::select! {
        // First, because a client that sends without end leaves no time for what comes second.
        biased;
        Some(why) = async { Some(overdue?.await) } => End::Refused(why),
        end = connection.run() => end,
    };
    connection.report(&end);
    connection.stream.end().await;
    let buffer = connection.inbox.release();
    connection.shared.buffers.give_back(buffer);
    // First what waits on it, which could acquire more.
    drop(connection);
    handlers::common::share_release::disconnected(&shared, number).await;
}

impl Connection {
    async fn run(&mut self) -> End {
        match self.turns().await {
            Ok(()) => End::Quiet,
            Err(end) => end,
        }
    }

    /// Handles, sends, waits, until nothing is left to do.
    async fn turns(&mut self) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        let mut stop = pin!(shared.shutdown.wait());
        let mut armed = false;
        let mut idle = pin!(tokio::time::sleep(self.idle_timeout()));
        loop {
            self.handle().await?;
            self.send().await?;
            if self.draining && self.waiting.is_empty() {
                return Ok(());
            }
            self.make_room().await?;
            for time in [self.deadline, self.paused_until].into_iter().flatten() {
                if time < idle.deadline() {
                    idle.as_mut().reset(time);
                }
            }
            let event = std::future::poll_fn(|cx| {
                // The signal wakes this task once it was registered; later looks at the flag take no lock.
                if !std::mem::replace(&mut armed, true) {
                    let _ = stop.as_mut().poll(cx);
                }
                self.poll_event(cx, idle.as_mut())
            });
            match event.await {
                Event::Answered(reply) => {
                    self.waiting.pop_front();
                    self.answered(reply)?;
                    self.release_answers();
                }
                // The peer sends no more; it may still read what it asked for.
                Event::Read(Ok(0)) => self.draining = true,
                Event::Read(Err(error)) => return Err(error.into()),
                Event::Read(Ok(count)) => {
                    self.shared.metrics.bytes_in.add(count as u64);
                    self.active = Instant::now();
                }
                Event::Stop => self.draining = true,
                Event::PauseOver => {
                    self.paused_until = None;
                    self.active = Instant::now();
                }
                Event::Idle => return Ok(()),
                Event::Late => return Err(self.late()),
            }
        }
    }

    /// Handles all requests that are there.
    async fn handle(&mut self) -> Result<(), End> {
        while self.has_room() {
            let Some(mut frame) = self.inbox.next_frame()? else { break };
            let Some(outcome) = self.outcome(&mut frame).await? else {
                self.inbox.handled(frame);
                (self.deadline, self.share) = (None, BudgetShare::default());
                continue;
            };
            self.inbox.handled(frame);
            self.deadline = None;
            let share = std::mem::take(&mut self.share);
            match outcome {
                Outcome::Now(reply) => self.reply(reply)?,
                Outcome::Later(later) => self.waiting.push_back(Waiting::Later(later, share)),
                Outcome::Freed(later) => {
                    self.waiting.push_back(Waiting::Later(later, BudgetShare::default()))
                }
                Outcome::InOrder(later) => self.waiting.push_back(Waiting::InOrder(later, share)),
                Outcome::Owning(begin) => {
                    self.waiting.push_back(Waiting::InOrder(begin(share), BudgetShare::default()));
                }
                Outcome::Alone(later) => {
                    self.waiting.push_back(Waiting::InOrder(later, BudgetShare::default()))
                }
            }
            if self.response_queue.bytes() > RESPONSE_QUEUE_BYTES {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Has the request handled; `None` when it was one of a login, which is answered.
    async fn outcome(&mut self, frame: &mut Frame) -> Result<Option<Outcome>, End> {
        if !self.session.is_open() {
            match self.session.next(&frame.body(), self.shared.clock.steady_ms()) {
                Next::Serve => {}
                Next::Refuse(why) => return Err(End::Refused(why)),
                next => return self.log_in(next, frame).await.map(|()| None),
            }
        }
        let begun = self.shared.quotas.is_limited(Quota::Request).then(Instant::now);
        let outcome = dispatch(&self.shared, &mut self.from, frame);
        if let Some(begun) = begun {
            self.from.busy += begun.elapsed();
        }
        Ok(Some(outcome))
    }

    /// Serves a request of a login. Nothing else is handled meanwhile.
    async fn log_in(&mut self, next: Next, frame: &Frame) -> Result<(), End> {
        let turn = login::turn(&mut self.session, &self.shared, &self.from, next, frame.body());
        match turn.await.map_err(End::Refused)? {
            Said::GoOn(reply) => self.reply(reply)?,
            Said::Over(reply) => {
                // An answer that waits for an earlier one is not waited for: who fails is not served any more.
                if self.waiting.is_empty() {
                    self.reply(reply)?;
                    self.send().await?;
                }
                return Err(End::Quiet);
            }
        }
        if let Some(principal) = self.session.principal() {
            self.from.principal = Arc::clone(principal);
            self.from.is_counted = true;
            self.newcomer = None;
        }
        self.inbox.set_bounds(bounds(&self.session, &self.shared));
        Ok(())
    }

    /// Whether another request may be handled.
    fn has_room(&self) -> bool {
        self.waiting.len() < PIPELINE_MAX
            && self.queued <= RESPONSE_QUEUE_BYTES
            && !self.roomless
            && self.paused_until.is_none()
            && !matches!(self.waiting.back(), Some(Waiting::InOrder(..)))
    }

    /// The oldest request that waited, which is taken off, has its reply: sends the answer, or has it wait for room.
    fn answered(&mut self, reply: Reply) -> Result<(), End> {
        self.roomless = false;
        match reply {
            Reply::Answer(answer) => match self.admit(answer) {
                Ok(answer) => {
                    self.pause(answer.pause_ms);
                    self.response_queue.push(answer);
                }
                Err(later) => {
                    self.roomless = true;
                    self.waiting.push_front(Waiting::Later(later, BudgetShare::default()));
                }
            },
            Reply::Nothing => {}
            Reply::Close(why) => return Err(End::Refused(why)),
        }
        Ok(())
    }

    /// The answer with its room; or what waits for that.
    fn admit(&self, answer: Answer) -> Result<Answer, Later> {
        self.shared.room.admit(self.from.peer.ip(), answer).map_err(|waits| -> Later {
            Box::pin(async move { waits.await.map_or_else(Reply::from, Reply::Answer) })
        })
    }

    /// Queues the answer of the newest request, behind those that wait.
    fn reply(&mut self, reply: Reply) -> Result<(), End> {
        match reply {
            Reply::Answer(answer) => match self.admit(answer) {
                Ok(answer) if self.waiting.is_empty() => {
                    self.pause(answer.pause_ms);
                    self.response_queue.push(answer);
                }
                Ok(answer) => {
                    self.pause(answer.pause_ms);
                    self.queued += answer.bytes();
                    self.waiting.push_back(Waiting::Answer(answer));
                }
                Err(later) => self.waiting.push_back(Waiting::InOrder(later, BudgetShare::default())),
            },
            Reply::Nothing => {}
            Reply::Close(why) => return Err(End::Refused(why)),
        }
        Ok(())
    }

    /// Handles nothing more for `pause_ms`.
    fn pause(&mut self, pause_ms: i32) {
        if pause_ms > 0 {
            let until = Instant::now() + Duration::from_millis(u64::try_from(pause_ms).unwrap_or(0));
            self.paused_until = self.paused_until.max(Some(until));
            // What has begun to arrive is not waited for meanwhile.
            self.deadline = None;
        }
    }

    /// Moves answers that only waited for an earlier one into the response queue.
    fn release_answers(&mut self) {
        while let Some(Waiting::Answer(_)) = self.waiting.front() {
            if let Some(Waiting::Answer(answer)) = self.waiting.pop_front() {
                self.queued = self.queued.saturating_sub(answer.bytes());
                self.response_queue.push(answer);
            }
        }
    }

    /// Sends all answers. A client that reads nothing for too long loses its connection.
    async fn send(&mut self) -> Result<(), End> {
        while !self.response_queue.is_empty() {
            let timeout = self.idle_timeout();
            let sent = tokio::select! {
                // The other is not even begun when the socket takes the bytes at once.
                biased;
                sent = self.stream.send_some(&mut self.response_queue, &self.shared.buffers) => sent?,
                () = given_up(&self.shared, timeout) => return Err(End::Quiet),
            };
            self.shared.metrics.bytes_out.add(sent as u64);
        }
        Ok(())
    }

    /// How long a connection may be idle (`connections.max.idle.ms`).
    fn idle_timeout(&self) -> Duration {
        let idle_ms = self.shared.settings.connections_max_idle_ms;
        u64::try_from(idle_ms).map_or(NEVER, Duration::from_millis).min(NEVER)
    }

    /// Why a request that did not arrive in time ends the connection.
    fn late(&self) -> End {
        let timeout_ms = self.shared.settings.socket_request_receive_timeout_ms;
        End::Refused(format!(
            "a request did not arrive within {timeout_ms} ms (socket.request.receive.timeout.ms)"
        ))
    }

    /// Takes budget for more of the arriving request, and a buffer that it fits into. Nothing is taken for a request that
    /// could not be handled yet.
    async fn make_room(&mut self) -> Result<(), End> {
        if self.inbox.is_empty() || !self.has_room() {
            return Ok(());
        }
        let timeout = Duration::from_millis(self.shared.settings.socket_request_receive_timeout_ms);
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + timeout.min(NEVER));
        self.inbox.compact();
        let wanted = self.inbox.wanted_bytes()?.unwrap_or(0);
        let arrived = self.inbox.buffer().len();
        if wanted > FREE_BYTES && arrived >= self.share.bytes() {
            let (shared, address) = (Arc::clone(&self.shared), self.from.peer.ip());
            let bytes = wanted.min(2 * arrived);
            tokio::select! {
                biased;
                () = shared.budget.grow(&mut self.share, address, bytes) => {}
                () = tokio::time::sleep_until(deadline) => return Err(self.late()),
                () = shared.shutdown.wait() => return Err(End::Quiet),
            }
        }
        let full = self.inbox.buffer().len() == self.inbox.capacity();
        if wanted > self.inbox.capacity() && (full || self.inbox.capacity() < crate::io::buffers::LARGE_BYTES)
        {
            let size = wanted.min(crate::io::buffers::LARGE_BYTES.max(2 * self.inbox.capacity()));
            let buffer = self.shared.buffers.for_bytes(size);
            let old = self.inbox.replace_buffer(buffer);
            self.shared.buffers.give_back(old);
        }
        Ok(())
    }

    fn poll_event(&mut self, cx: &mut Context<'_>, idle: Pin<&mut Sleep>) -> Poll<Event> {
        if let Some(Waiting::Later(later, _) | Waiting::InOrder(later, _)) = self.waiting.front_mut()
            && let Poll::Ready(reply) = poll_reply(&self.shared, later, cx)
        {
            return Poll::Ready(Event::Answered(reply));
        }
        if self.draining {
            return Poll::Pending;
        }
        if self.shared.shutdown.is_given() {
            return Poll::Ready(Event::Stop);
        }
        if self.has_room()
            && let Poll::Ready(read) = self.poll_read(cx)
        {
            return Poll::Ready(Event::Read(read));
        }
        self.poll_idle(cx, idle)
    }

    /// Reads once. The buffer is borrowed when bytes are there and given back when none are.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.inbox.has_buffer() {
            ready!(self.stream.poll_readable(cx))?;
            self.inbox.replace_buffer(self.shared.buffers.small());
        }
        // Of a request that is counted, no more than it may hold.
        let left = self.share.bytes().saturating_sub(self.inbox.buffer().len()).max(1);
        let read = self.stream.poll_read(cx, self.inbox.buffer(), left);
        if read.is_pending() && self.inbox.is_empty() {
            let buffer = self.inbox.release();
            self.shared.buffers.give_back(buffer);
        }
        read
    }

    /// Ready when nothing came for too long and nothing is waited for, or when a request is late.
    fn poll_idle(&self, cx: &mut Context<'_>, mut idle: Pin<&mut Sleep>) -> Poll<Event> {
        while idle.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if self.paused_until.is_some_and(|until| until <= now) {
                return Poll::Ready(Event::PauseOver);
            }
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Poll::Ready(Event::Late);
            }
            let is_idle = self.waiting.is_empty() && self.paused_until.is_none();
            let since = if is_idle { self.active } else { now };
            let due = since + self.idle_timeout();
            if due <= now {
                return Poll::Ready(Event::Idle);
            }
            idle.as_mut().reset(self.deadline.into_iter().chain(self.paused_until).fold(due, Instant::min));
        }
        Poll::Pending
    }

    fn report(&self, end: &End) {
        let peer = self.from.peer;
        let client = peer.ip();
        match end {
            End::Quiet => debug!(target: NETWORK, %client, "the connection of {peer} has ended"),
            End::Refused(why) => {
                self.shared.metrics.refused.increment();
                warn!(target: NETWORK, %client, "closed the connection of {peer}: {why}");
            }
            // TLS fails behind the handshake, too: so a client says that it does not trust the certificate.
            End::Io(error) if is_of_tls(error) => {
                self.shared.metrics.refused.increment();
                let (listener, why) =
                    (&self.from.listener, failed_io(&peer.to_string(), Side::Broker, error));
                warn!(target: NETWORK, %client, "closed the connection of {peer} to the listener {listener}: {why}");
            }
            // A peer that went away is no news; a segment file that cannot be read is.
            End::Io(error) if is_peer(error) => {
                debug!(target: NETWORK, %client, "lost the connection of {peer}: {error}");
            }
            End::Io(error) => warn!(target: NETWORK, %client, "lost the connection of {peer}: {error}"),
        }
    }
}

/// Why a client that does not log in is waited for no longer; never returns when it has.
async fn overdue(
    newcomers: Arc<Newcomers>,
    pushed_out: PushedOut,
    accepted: Instant,
    shared: Arc<Shared>,
) -> String {
    let deadline_ms = shared.settings.sasl.sasl_login_deadline_ms;
    let deadline = accepted + Duration::from_millis(deadline_ms).min(NEVER);
    tokio::select! {
        is_pushed_out = pushed_out.wait() => {
            if !is_pushed_out {
                std::future::pending::<()>().await;
            }
            let most = newcomers.most();
            format!("it did not log in while many others began (sasl.login.max.connections={most} have not logged in)")
        }
        () = tokio::time::sleep_until(deadline) => {
            format!("it did not log in within {deadline_ms} ms (sasl.login.deadline.ms)")
        }
    }
}

/// How long the next request may be.
fn bounds(session: &Session, shared: &Shared) -> Bounds {
    let before_login = || {
        let most = shared.settings.sasl.sasl_server_max_receive_size;
        Bounds::of_requests(most, "sasl.server.max.receive.size, before a login")
    };
    match (session.is_raw(), session.is_before_login()) {
        (true, _) => Bounds { min_bytes: 0, ..before_login() },
        (false, true) => before_login(),
        (false, false) => {
            Bounds::of_requests(shared.settings.socket_request_max_bytes, "socket.request.max.bytes")
        }
    }
}

/// Waits until a peer that does not read its answers is given up.
async fn given_up(shared: &Shared, timeout: Duration) {
    let stopped = async {
        shared.shutdown.wait().await;
        tokio::time::sleep(STOP_TIMEOUT).await;
    };
    tokio::select! {
        () = tokio::time::sleep(timeout) => {}
        () = stopped => {}
    }
}

fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}

fn is_peer(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted | Kind::TimedOut
    )
}
