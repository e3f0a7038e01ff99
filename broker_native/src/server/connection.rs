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
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::budget::{FREE_BYTES, Share};
use super::dispatch::{Later, Outcome, Reply, dispatch};
use super::frames::{FrameError, Inbox};
use super::notice::notice;
use super::outbox::{Answer, Outbox};
use super::send::send_all;
use super::shared::Shared;

/// Requests of one connection that may wait for their answers; reading stops then.
const PIPELINE_MAX: usize = 64;
/// Answers are sent before more requests of the same read are handled when so many bytes wait.
const OUTBOX_BYTES: usize = /* 1 MiB */ 1 << 20;
/// A request that holds a share of the budget must go on arriving.
const STALL: Duration = Duration::from_secs(30);

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The peer closed it, it was idle, or the server stops: nothing to say.
    Quiet,
    /// The peer broke the protocol; the sentence is for the log.
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
    /// So many bytes arrived, 0 at the end.
    Read(io::Result<usize>),
    /// The server stops.
    Stop,
    /// Nothing came for too long.
    Idle,
}

/// A request whose answer is not sent: it waits itself, or for one before it.
enum Waiting {
    Answer(Answer),
    Later(Later),
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    shared: Arc<Shared>,
    inbox: Inbox,
    /// Taken for the request that is arriving.
    share: Option<Share>,
    waiting: VecDeque<Waiting>,
    outbox: Outbox,
    /// Nothing is read any more: what waits is answered, then the connection ends.
    draining: bool,
    /// When the last request was read.
    active: Instant,
}

/// Serves `stream` until it ends.
pub async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let Ok(local) = stream.local_addr() else { return };
    let inbox = Inbox::new(shared.settings.socket_request_max_bytes);
    let mut connection = Connection {
        stream,
        peer,
        local,
        shared,
        inbox,
        share: None,
        waiting: VecDeque::new(),
        outbox: Outbox::default(),
        draining: false,
        active: Instant::now(),
    };
    let end = connection.run().await;
    connection.report(&end);
    let buffer = connection.inbox.release();
    connection.shared.buffers.give_back(buffer);
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
        let idle_ms = u64::try_from(shared.settings.connections_max_idle_ms).ok();
        let mut idle = pin!(idle_ms.map(|ms| tokio::time::sleep(Duration::from_millis(ms))));
        loop {
            self.handle().await?;
            self.send().await?;
            if self.draining && self.waiting.is_empty() {
                return Ok(());
            }
            self.make_room().await?;
            let event =
                std::future::poll_fn(|cx| self.poll_event(cx, stop.as_mut(), idle.as_mut().as_pin_mut()));
            match event.await {
                Event::Answered(reply) => {
                    self.waiting.pop_front();
                    match reply {
                        Reply::Answer(answer) => self.outbox.push(answer),
                        Reply::Nothing => {}
                        Reply::Close(why) => return Err(End::Refused(why)),
                    }
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
                Event::Idle => return Ok(()),
            }
        }
    }

    /// Handles all requests that are there.
    async fn handle(&mut self) -> Result<(), End> {
        while self.waiting.len() < PIPELINE_MAX {
            let Some(mut frame) = self.inbox.next_frame()? else { break };
            let outcome = dispatch(&self.shared, self.local, &mut frame);
            self.inbox.handled(frame);
            self.share = None;
            match outcome {
                Outcome::Now(reply) => self.reply(reply)?,
                Outcome::Later(later) => self.waiting.push_back(Waiting::Later(later)),
            }
            if self.outbox.bytes() > OUTBOX_BYTES {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Queues the answer of the newest request, behind those that wait.
    fn reply(&mut self, reply: Reply) -> Result<(), End> {
        match reply {
            Reply::Answer(answer) if self.waiting.is_empty() => self.outbox.push(answer),
            Reply::Answer(answer) => self.waiting.push_back(Waiting::Answer(answer)),
            Reply::Nothing => {}
            Reply::Close(why) => return Err(End::Refused(why)),
        }
        Ok(())
    }

    /// Lets go the answers that only waited for one before them.
    fn release_answers(&mut self) {
        while let Some(Waiting::Answer(_)) = self.waiting.front() {
            if let Some(Waiting::Answer(answer)) = self.waiting.pop_front() {
                self.outbox.push(answer);
            }
        }
    }

    async fn send(&mut self) -> Result<(), End> {
        if !self.outbox.is_empty() {
            let sent = send_all(&mut self.stream, &mut self.outbox, &self.shared.buffers).await?;
            self.shared.metrics.bytes_out.add(sent);
        }
        Ok(())
    }

    /// Gets a buffer that the arriving request fits into, and the right to hold that many bytes.
    async fn make_room(&mut self) -> Result<(), End> {
        if self.inbox.is_empty() {
            return Ok(());
        }
        self.inbox.compact();
        let wanted = self.inbox.wanted_bytes()?.unwrap_or(0);
        if wanted > FREE_BYTES && self.share.is_none() {
            let shared = Arc::clone(&self.shared);
            self.share = tokio::select! {
                share = shared.budget.take(wanted) => share,
                () = shared.shutdown.wait() => return Err(End::Quiet),
            };
        }
        let full = self.inbox.buffer().len() == self.inbox.capacity();
        if wanted > self.inbox.capacity() && (full || self.inbox.capacity() < super::buffers::LARGE_BYTES) {
            let size = wanted.min(super::buffers::LARGE_BYTES.max(2 * self.inbox.capacity()));
            let buffer = self.shared.buffers.for_bytes(size);
            let old = self.inbox.replace_buffer(buffer);
            self.shared.buffers.give_back(old);
        }
        Ok(())
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        stop: Pin<&mut impl Future<Output = ()>>,
        idle: Option<Pin<&mut Sleep>>,
    ) -> Poll<Event> {
        if let Some(Waiting::Later(later)) = self.waiting.front_mut() {
            if let Poll::Ready(reply) = later.as_mut().poll(cx) {
                return Poll::Ready(Event::Answered(reply));
            }
        }
        if self.draining {
            return Poll::Pending;
        }
        if self.waiting.len() < PIPELINE_MAX {
            if let Poll::Ready(read) = self.poll_read(cx) {
                return Poll::Ready(Event::Read(read));
            }
        }
        if stop.poll(cx).is_ready() {
            return Poll::Ready(Event::Stop);
        }
        self.poll_idle(cx, idle)
    }

    /// Reads once. The buffer is borrowed when bytes are there and given back when none are.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.inbox.has_buffer() {
            ready!(self.stream.poll_read_ready(cx))?;
            self.inbox.replace_buffer(self.shared.buffers.small());
        }
        let read = pin!(self.stream.read_buf(self.inbox.buffer())).poll(cx);
        if read.is_pending() && self.inbox.is_empty() {
            let buffer = self.inbox.release();
            self.shared.buffers.give_back(buffer);
        }
        read
    }

    /// Ready when nothing came for too long and nothing is waited for.
    fn poll_idle(&self, cx: &mut Context<'_>, idle: Option<Pin<&mut Sleep>>) -> Poll<Event> {
        let Some(mut idle) = idle else { return Poll::Pending };
        ready!(idle.as_mut().poll(cx));
        let max_ms = u64::try_from(self.shared.settings.connections_max_idle_ms).unwrap_or(u64::MAX);
        let mut limit = Duration::from_millis(max_ms);
        if self.share.is_some() {
            limit = limit.min(STALL);
        }
        let now = Instant::now();
        let since = if self.waiting.is_empty() { self.active } else { now };
        let due = since + limit;
        if due <= now {
            return Poll::Ready(Event::Idle);
        }
        idle.as_mut().reset(due);
        // Registers the new time.
        match idle.poll(cx) {
            Poll::Ready(()) => Poll::Ready(Event::Idle),
            Poll::Pending => Poll::Pending,
        }
    }

    fn report(&self, end: &End) {
        match end {
            End::Quiet => {}
            End::Refused(why) => {
                self.shared.metrics.refused.one();
                notice(&format!("closed the connection of {}: {why}", self.peer));
            }
            // A peer that went away is no news; a segment file that cannot be read is.
            End::Io(error) if is_peer(error) => {}
            End::Io(error) => notice(&format!("lost the connection of {}: {error}", self.peer)),
        }
    }
}

fn is_peer(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted | Kind::TimedOut
    )
}
