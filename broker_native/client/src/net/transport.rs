//! The bytes of one connection: a socket, plain or under TLS. Blocking; one thread at a time.
//!
//! A plain transport does what its socket does, call for call. Under TLS bytes are read from the socket in pieces of up to
//! [`RAW_BYTES`] and decrypted record by record; decrypted bytes go straight into the buffer of who reads. They may wait here while
//! the socket has nothing to read: ask [`Transport::has_waiting`] before waiting for the socket. What is wrong with a record is an
//! error behind the bytes before it. A read that brought no whole record
//! ends as `Interrupted`, so that whoever reads on looks at the time.
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// Bytes that one read may take from a socket under TLS: four records.
const RAW_BYTES: usize = 64 << 10;
/// Encrypted bytes that may wait to be written: what one system call takes.
const UNSENT_BYTES: usize = 256 << 10;

/// An open connection's bytes.
#[derive(Debug)]
pub enum Transport {
    /// The socket itself.
    Plain(TcpStream),
    /// TLS over it.
    Tls(Box<Tls>),
}

/// A TLS session and its socket.
#[derive(Debug)]
pub struct Tls {
    socket: TcpStream,
    session: ClientConnection,
    raw: Vec<u8>,
    /// Which bytes of `raw` the session has not taken.
    untaken: std::ops::Range<usize>,
    /// What is wrong with the bytes behind those that are decrypted, which are read first.
    failed: Option<io::Error>,
}

impl Transport {
    /// Begins TLS over `socket` with the server called `name`, which must be done by `until`. Time-outs of the socket are changed.
    ///
    /// # Errors
    /// Those of the socket; `TimedOut`; `InvalidData` with a [`rustls::Error`] inside.
    pub fn tls(
        socket: TcpStream,
        name: ServerName<'static>,
        config: Arc<ClientConfig>,
        until: Instant,
    ) -> io::Result<Self> {
        let mut session = ClientConnection::new(config, name).map_err(invalid)?;
        session.set_buffer_limit(Some(UNSENT_BYTES));
        let mut tls = Tls { socket, session, raw: vec![0; RAW_BYTES], untaken: 0..0, failed: None };
        tls.shake_hands(until)?;
        Ok(Self::Tls(Box::new(tls)))
    }

    /// The socket, to wait on, to shut down, and for its time-outs.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.socket,
        }
    }

    /// Whether bytes may be read although the socket has none.
    pub fn has_waiting(&mut self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => !tls.untaken.is_empty() || tls.failed.is_some() || tls.has_plaintext(),
        }
    }

    /// Takes some bytes of `parts` and sends what it can; how many were taken. None may be taken while earlier ones are unsent.
    ///
    /// # Errors
    /// Those of the socket and the session; `WriteZero`.
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => not_zero(socket.write_vectored(parts)?),
            Self::Tls(tls) => tls.send(parts),
        }
    }

    /// Whether all that was taken is with the socket.
    pub fn is_sent(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => !tls.session.wants_write(),
        }
    }
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Tls {
    fn shake_hands(&mut self, until: Instant) -> io::Result<()> {
        while self.session.is_handshaking() || self.session.wants_write() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            if self.session.wants_write() {
                self.socket.set_write_timeout(Some(left))?;
                not_zero(self.session.write_tls(&mut self.socket)?)?;
                continue;
            }
            self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match self.fill() {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            while self.session.is_handshaking() && !self.untaken.is_empty() {
                self.take()?;
            }
        }
        Ok(())
    }

    fn has_plaintext(&mut self) -> bool {
        self.session.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Reads from the socket once.
    fn fill(&mut self) -> io::Result<usize> {
        let read = self.socket.read(&mut self.raw)?;
        self.untaken = 0..read;
        Ok(read)
    }

    /// Gives the session some of what was read from the socket.
    fn take(&mut self) -> io::Result<()> {
        let mut rest = self.raw.get(self.untaken.clone()).unwrap_or_default();
        self.untaken.start += self.session.read_tls(&mut rest)?;
        if let Err(error) = self.session.process_new_packets() {
            // The other side is told why, if it still listens.
            let _ = self.session.write_tls(&mut self.socket);
            return Err(invalid(error));
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.session.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.untaken.is_empty() && self.fill()? == 0 {
            // Whether the other side said goodbye does not matter: answers say how long they are.
            return Ok(0);
        }
        while !self.untaken.is_empty() {
            let taken = self.take();
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => taken?,
                done => {
                    self.failed = taken.err();
                    return done;
                }
            }
        }
        // An answer to a key update waits for the next write otherwise.
        if self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Err(ErrorKind::Interrupted.into())
    }

    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken =
            if self.session.wants_write() { 0 } else { self.session.writer().write_vectored(parts)? };
        if self.session.wants_write() {
            not_zero(self.session.write_tls(&mut self.socket)?)?;
        }
        Ok(taken)
    }
}

fn not_zero(written: usize) -> io::Result<usize> {
    if written == 0 { Err(ErrorKind::WriteZero.into()) } else { Ok(written) }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
