//! TLS below a connection at its edges: records and pieces of all sizes both ways, and ends at any place.
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use rustls::{ServerConfig, ServerConnection};

use super::tls::trusted;
use crate::config::Settings;
use crate::net::connection::write_all;
use crate::net::transport::Transport;
use pylog_security::tls::settings::ClientAuth;
use pylog_wire::Chunk;

/// Nothing takes longer unless something is wrong.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Cases of the property, which open a connection each; PROPTEST_CASES sets another number for long runs.
const CASES: u32 = 40;

static TRUSTED: LazyLock<(Arc<ServerConfig>, Settings)> = LazyLock::new(|| trusted(ClientAuth::None));

/// How the server ends, when it has said all.
#[derive(Debug, Clone)]
enum End {
    Gone,
    CloseNotify,
    /// So many bytes of the records of [`MORE`], or fewer: at least one is missing.
    Part(usize),
    /// What is no record of its session.
    Bytes(Vec<u8>),
}

/// What the server begins to say last.
const MORE: &[u8] = &[7; 5_000];

fn end() -> impl Strategy<Value = End> {
    let bytes = || prop::collection::vec(any::<u8>(), 1..300);
    let record = (20..25_u8, 0..5_u8, any::<u16>(), bytes());
    let record = record.prop_map(|(kind, minor, length, bytes)| {
        [&[kind, 3, minor][..], &length.to_be_bytes(), &bytes].concat()
    });
    prop_oneof![
        Just(End::Gone),
        Just(End::CloseNotify),
        any::<usize>().prop_map(End::Part),
        bytes().prop_map(End::Bytes),
        record.prop_map(End::Bytes),
    ]
}

/// Sizes of records, or of pieces: each is followed by the next, the last by the first.
fn sizes(most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..40_usize, 1..most], 1..6)
}

/// `bytes` in pieces of `sizes`.
fn pieces<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    pieces
}

/// The server's side of one connection: says back what it is sent, `total` bytes, and ends.
fn serve(listener: &TcpListener, config: Arc<ServerConfig>, total: usize, sizes: &[usize], end: &End) {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut session = ServerConnection::new(config).unwrap();
    session.set_buffer_limit(None);
    let mut received = Vec::new();
    while received.len() < total || session.is_handshaking() || session.wants_write() {
        if session.wants_write() {
            session.write_tls(&mut socket).unwrap();
            continue;
        }
        assert!(session.read_tls(&mut socket).unwrap() > 0, "the client closed the connection");
        let waits = session.process_new_packets().unwrap().plaintext_bytes_to_read();
        let begin = received.len();
        received.resize(begin + waits, 0);
        session.reader().read_exact(&mut received[begin..]).unwrap();
    }
    session.writer().write_all(&received).unwrap();
    let mut bytes = encrypted(&mut session);
    match end {
        End::Gone => {}
        End::CloseNotify => {
            session.send_close_notify();
            bytes.extend(encrypted(&mut session));
        }
        End::Part(size) => {
            session.writer().write_all(MORE).unwrap();
            let more = encrypted(&mut session);
            bytes.extend(&more[..size % more.len()]);
        }
        End::Bytes(more) => bytes.extend(more),
    }
    // A client that has seen what makes no sense is gone before it has all.
    let _ = pieces(&bytes, sizes).into_iter().try_for_each(|piece| socket.write_all(piece));
    let _ = socket.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut socket, &mut std::io::sink());
}

fn encrypted(session: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Connects with records of at most `largest` bytes.
fn connect(port: u16, largest: usize) -> Transport {
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let tls = TRUSTED.1.security().tls().unwrap();
    let mut config = tls.config().as_ref().clone();
    config.max_fragment_size = Some(largest);
    let name = tls.server_name("localhost").unwrap();
    let transport = Transport::tls(socket, name, Arc::new(config), Instant::now() + TIMEOUT).unwrap();
    transport.socket().set_read_timeout(Some(TIMEOUT)).unwrap();
    transport
}

/// All that comes, read in `sizes`, and how it ends.
fn read_all(transport: &mut Transport, sizes: &[usize]) -> (Vec<u8>, Option<ErrorKind>) {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 20_000]);
    for size in sizes.iter().cycle() {
        match transport.read(&mut buffer[..*size]) {
            Ok(0) => break,
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (all, Some(error.kind())),
        }
    }
    (all, None)
}

fn cases() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(given.unwrap_or(CASES))
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn random_records_and_pieces_come_through_whole_however_the_connection_ends(
        frames in prop::collection::vec(prop_oneof![1..300_usize, 1..70_000_usize], 1..5),
        largest in (32..16_384_usize, 32..16_384_usize),
        parts in sizes(40_000),
        sent in sizes(20_000),
        read in sizes(20_000),
        end in end(),
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut config = TRUSTED.0.as_ref().clone();
        config.max_fragment_size = Some(largest.0);
        let all: Vec<u8> = (0..frames.iter().sum()).map(|at: usize| (at * 7 + at / 1000) as u8).collect();
        let (back, ended) = std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, Arc::new(config), all.len(), &sent, &end));
            let mut transport = connect(port, largest.1);
            for frame in pieces(&all, &frames) {
                let chunks = pieces(frame, &parts).into_iter().map(|part| Chunk::Bytes(Bytes::copy_from_slice(part)));
                write_all(&mut transport, &chunks.collect::<Vec<_>>(), TIMEOUT).unwrap();
            }
            read_all(&mut transport, &read)
        });
        let (own, more) = back.split_at(all.len().min(back.len()));
        prop_assert!(own == all, "{} bytes of {} came back", own.len(), all.len());
        match end {
            End::Gone | End::CloseNotify => prop_assert!(more.is_empty() && ended.is_none(), "{:?}", ended),
            End::Part(_) => prop_assert!(more.len() < MORE.len() && MORE.starts_with(more) && ended.is_none()),
            End::Bytes(_) => {
                prop_assert!(more.is_empty());
                prop_assert!(matches!(ended, None | Some(ErrorKind::InvalidData)), "{:?}", ended);
            }
        }
    }
}
