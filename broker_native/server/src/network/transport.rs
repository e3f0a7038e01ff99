//! The bytes of one connection: over the socket itself, or over TLS.
//!
//! | | plain | TLS |
//! |---|---|---|
//! | records in files | sendfile | read into one buffer, encrypted from there: one copy |
//! | what is sent at once | what the socket takes | records of 16 KiB, [`send::ENCRYPTED_BYTES`] encrypted ahead of the socket at most |
//! | what is read | into the connection's buffer | a record is decrypted and copied there; one that does not fit waits, and no other is read |
//!
//! A peer that does not read, or does not go on, costs a connection over TLS what is encrypted ahead, one record in each direction and
//! the state of TLS. A peer may end without `close_notify`, as Kafka's clients do.
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::io::buffers::Buffers;
use crate::io::response_queue::ResponseQueue;
use crate::io::send;
use crate::listeners::ListenerTls;
use crate::listeners::newcomers::Handshake;
use crate::shutdown::Shutdown;
use pylog_security::tls::handshake::{Side, failed_io};

/// See the module.
pub enum Transport {
    /// The socket itself.
    Plain(TcpStream),
    /// TLS over it.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Why a connection is not served.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// The peer went away, or the server stops: nothing to say.
    #[error("the connection has ended")]
    Ended,
    /// The handshake failed.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("its TLS handshake took longer than {0} ms (ssl.handshake.timeout.ms)")]
    Late(u64),
    /// Others began meanwhile.
    #[error(
        "its TLS handshake did not go on while many others began (ssl.handshake.max.connections={0} are under way)"
    )]
    PushedOut(usize),
}

impl Transport {
    /// Does the handshake of TLS with the client at `peer`, within the bounds of the listener.
    ///
    /// # Errors
    /// [`NotAccepted`].
    pub async fn accept(
        stream: TcpStream,
        peer: SocketAddr,
        (_place, pushed_out): Handshake,
        tls: &ListenerTls,
        shutdown: &Arc<Shutdown>,
    ) -> Result<Self, NotAccepted> {
        let timeout_ms = tls.handshake_timeout_ms;
        let shaken = async {
            // Of a peer that sends nothing there is nothing but the socket.
            stream.readable().await.map_err(|_| NotAccepted::Ended)?;
            let accepted = TlsAcceptor::from(tls.server.config()).accept(stream).await;
            accepted.map_err(|error| not_accepted(peer, &error))
        };
        let accepted = tokio::select! {
            biased;
            accepted = shaken => accepted?,
            true = pushed_out.wait() => return Err(NotAccepted::PushedOut(tls.handshakes.most())),
            () = tokio::time::sleep(Duration::from_millis(timeout_ms)) => return Err(NotAccepted::Late(timeout_ms)),
            () = shutdown.wait() => return Err(NotAccepted::Ended),
        };
        Ok(Self::Tls(Box::new(accepted)))
    }

    /// Ready when there may be bytes to read.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_read_ready(cx),
            Self::Tls(stream) => {
                let (socket, session) = stream.get_mut();
                // It wants no more while decrypted bytes wait, or after the peer's last ones.
                if session.wants_read() { socket.poll_read_ready(cx) } else { Poll::Ready(Ok(())) }
            }
        }
    }

    /// Reads at most `most` bytes behind those in `buffer`; 0 at the end.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => pin!(stream.read_buf(&mut buffer.limit(most))).poll(cx),
            Self::Tls(stream) => read_records(stream, cx, buffer, most),
        }
    }

    /// Sends some of what waits in `response_queue`, which must not be empty; returns how many bytes. When the last ones are taken from
    /// the queue, the socket has them all.
    ///
    /// # Errors
    /// As [`send::send_some`].
    pub async fn send_some(
        &mut self,
        response_queue: &mut ResponseQueue,
        buffers: &Buffers,
    ) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => send::send_some(stream, response_queue, buffers).await,
            Self::Tls(stream) => send::send_encrypted(stream.as_mut(), response_queue, buffers).await,
        }
    }

    /// Tells the peer that nothing more comes, as far as the socket takes that at once.
    pub async fn end(&mut self) {
        let Self::Tls(stream) = self else { return };
        std::future::poll_fn(|cx| {
            let _ = Pin::new(stream.as_mut()).poll_shutdown(cx);
            Poll::Ready(())
        })
        .await;
    }

    /// The name by which the client dialled this end, if it told one in the handshake of TLS.
    pub fn dialled_name(&self) -> Option<&str> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.get_ref().1.server_name(),
        }
    }

    /// The certificates that the peer showed, its own first.
    pub fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        match self {
            Self::Plain(_) => &[],
            Self::Tls(stream) => stream.get_ref().1.peer_certificates().unwrap_or_default(),
        }
    }
}

/// Reads records until the buffer or what may be read is full, or there are no more.
fn read_records(
    stream: &mut TlsStream<TcpStream>,
    cx: &mut Context<'_>,
    buffer: &mut BytesMut,
    most: usize,
) -> Poll<io::Result<usize>> {
    let mut read = 0;
    while read == 0 || (read < most && buffer.len() < buffer.capacity()) {
        match pin!(stream.read_buf(&mut (&mut *buffer).limit(most - read))).poll(cx) {
            Poll::Ready(Ok(count)) if count > 0 => read += count,
            // The end, or an error, comes again at the next read.
            _ if read > 0 => break,
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Poll::Ready(Ok(0));
            }
            end => return end,
        }
    }
    Poll::Ready(Ok(read))
}

fn not_accepted(peer: SocketAddr, error: &io::Error) -> NotAccepted {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            NotAccepted::Failed(failed_io(&peer.to_string(), Side::Broker, error).to_string())
        }
        // The peer went away before the end: a probe of the port, or a client that does not trust the certificate and has told nothing.
        _ => NotAccepted::Ended,
    }
}
