//! TLS below a connection, against a server of rustls: large frames both ways, what waits decrypted, who does not speak TLS.
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::fake;
use crate::config::Settings;
use crate::net::connection::{Connection, write_all};
use crate::net::stop::Stop;
use crate::net::tls_error;
use crate::net::transport::Transport;
use pylog_security::tls::TlsSettings;
use pylog_security::tls::server::ServerTls;
use pylog_security::tls::settings::ClientAuth;
use pylog_security::tls::throwaway::{Authority, Usage, Wanted};
use pylog_wire::Chunk;
use pylog_wire::messages::MetadataRequest;

type Served = StreamOwned<ServerConnection, TcpStream>;

/// A server that serves one connection by `serve`, and settings of a client that trusts it.
fn server<T: Send + 'static>(
    serve: impl FnOnce(Served) -> T + Send + 'static,
) -> (u16, Settings, JoinHandle<T>) {
    server_asking(ClientAuth::None, serve)
}

/// The same, which asks its client for a certificate or does not.
fn server_asking<T: Send + 'static>(
    asks: ClientAuth,
    serve: impl FnOnce(Served) -> T + Send + 'static,
) -> (u16, Settings, JoinHandle<T>) {
    let (tls, settings) = trusted(asks);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        serve(StreamOwned::new(ServerConnection::new(tls).unwrap(), socket))
    });
    (port, settings, thread)
}

/// What a server called localhost needs, and settings of a client that trusts it.
pub fn trusted(asks: ClientAuth) -> (Arc<ServerConfig>, Settings) {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let authority = Authority::new("test", now - 60, now + 3600).unwrap();
    let wanted = Wanted {
        common_name: "localhost".into(),
        hosts: vec!["localhost".into()],
        not_before: now - 60,
        not_after: now + 3600,
        usage: Usage::Server,
    };
    let issued = authority.issue(&wanted).unwrap();
    let settings = TlsSettings {
        keystore_certificate_chain: Some(issued.certificate),
        keystore_key: Some(issued.key),
        truststore_certificates: Some(authority.certificate().into()),
        ..TlsSettings::default()
    };
    let given = [
        ("bootstrap.servers", "a:1"),
        ("security.protocol", "SSL"),
        ("ssl.ca.pem", authority.certificate()),
        ("request.timeout.ms", "20000"),
    ];
    (ServerTls::new(settings, asks).unwrap().config(), Settings::new(given).unwrap())
}

fn connect(port: u16, settings: &Settings) -> std::io::Result<Transport> {
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let tls = settings.security().tls().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    Transport::tls(socket, tls.server_name("localhost").unwrap(), tls.config(), until)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 1000) as u8).collect()
}

fn read_exact(transport: &mut Transport, len: usize) -> Vec<u8> {
    let mut read = vec![0; len];
    transport.read_exact(&mut read).unwrap();
    read
}

const LARGE: usize = 3 << 20;

#[test]
fn large_frames_come_through_whole_both_ways() {
    let (port, settings, served) = server(|mut stream| {
        let mut read = vec![0; LARGE];
        stream.read_exact(&mut read).unwrap();
        stream.write_all(&read).unwrap();
        stream.flush().unwrap();
        read
    });
    let mut transport = connect(port, &settings).unwrap();
    let all = pattern(LARGE);
    // Parts of all sizes, as the parts of a frame are.
    let parts = [0, 5, 5, 70_000, 70_001, LARGE];
    let frame: Vec<Chunk> =
        parts.windows(2).map(|ends| Chunk::Bytes(Bytes::copy_from_slice(&all[ends[0]..ends[1]]))).collect();
    write_all(&mut transport, &frame, Duration::from_secs(20)).unwrap();
    assert_eq!(read_exact(&mut transport, LARGE), all);
    assert_eq!(served.join().unwrap(), all);
    assert!(!transport.has_waiting());
}

#[test]
fn what_is_decrypted_and_not_read_is_said_to_wait() {
    let (port, settings, served) = server(|mut stream| {
        stream.write_all(b"firstsecond").unwrap();
        stream.flush().unwrap();
        stream
    });
    let mut transport = connect(port, &settings).unwrap();
    assert_eq!(read_exact(&mut transport, 5), b"first");
    assert!(transport.has_waiting());
    assert_eq!(read_exact(&mut transport, 6), b"second");
    assert!(!transport.has_waiting());
    drop(served.join().unwrap());
    assert_eq!(transport.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_server_that_takes_nothing_is_given_up() {
    let (port, settings, served) = server(|mut stream| {
        stream.conn.complete_io(&mut stream.sock).unwrap();
        stream
    });
    let mut transport = connect(port, &settings).unwrap();
    let timeout = Duration::from_millis(300);
    transport.socket().set_write_timeout(Some(timeout)).unwrap();
    let frame = [Chunk::Bytes(Bytes::from(vec![0; 64 << 20]))];
    let error = write_all(&mut transport, &frame, timeout).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
    drop(served.join().unwrap());
}

#[test]
fn a_server_that_does_not_speak_tls_is_told_apart_from_one_that_is_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(&[0, 0, 0, 10, 0, 0, 0, 0, 0, 35, 0, 0, 0, 0]).unwrap();
        let (gone, _) = listener.accept().unwrap();
        drop(gone);
        socket
    });
    let settings = server(drop).1;
    let error = tls_error::of_handshake("b:1", &connect(port, &settings).unwrap_err());
    assert!(!error.retriable && error.message.contains("security.protocol"), "{}", error.message);
    let error = tls_error::of_handshake("b:1", &connect(port, &settings).unwrap_err());
    assert!(error.retriable && error.message.contains("security.protocol"), "{}", error.message);
    drop(served.join().unwrap());
}

/// Reads a request and answers as `with` says, of its correlation id.
fn answer(stream: &mut Served, with: impl FnOnce(i32) -> Vec<u8>) {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).unwrap();
    let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
    stream.read_exact(&mut body).unwrap();
    stream.write_all(&with(i32::from_be_bytes(body[4..8].try_into().unwrap()))).unwrap();
    stream.flush().unwrap();
}

/// Answers the question for versions.
fn answer_versions(stream: &mut Served) {
    answer(stream, |correlation_id| fake::frame(&fake::versions(), 3, correlation_id));
}

#[test]
fn a_broker_behind_tls_that_answers_nothing_but_the_question_for_versions_may_demand_a_login() {
    let (port, settings, served) = server(|mut stream| {
        answer_versions(&mut stream);
        answer(&mut stream, |_| Vec::new());
    });
    let mut connection = Connection::open("localhost", port, &settings, &Stop::default()).unwrap();
    let error = connection.call(&MetadataRequest::default()).unwrap_err();
    assert!(error.retriable && error.message.contains("security.protocol=SASL_SSL"), "{}", error.message);
    served.join().unwrap();
}

/// Takes the next bytes with a change in them, and says so in an alert as TLS does.
fn alert(stream: &mut Served) {
    let mut bytes = [0; 4096];
    let read = stream.sock.read(&mut bytes).unwrap();
    bytes[read - 1] ^= 1;
    stream.conn.read_tls(&mut &bytes[..read]).unwrap();
    stream.conn.process_new_packets().unwrap_err();
    stream.conn.write_tls(&mut stream.sock).unwrap();
}

#[test]
fn an_alert_is_final_before_the_first_answer_and_later_as_good_as_a_lost_connection() {
    let (port, settings, served) = server_asking(ClientAuth::Required, |mut stream| {
        let refused = stream.conn.complete_io(&mut stream.sock).is_err();
        assert!(refused, "a client without a certificate");
        // Whoever closes a socket with unread bytes takes back the alert.
        let _ = std::io::copy(&mut stream.sock, &mut std::io::sink());
    });
    let error = Connection::open("localhost", port, &settings, &Stop::default()).unwrap_err();
    assert_eq!((error.kind, error.retriable), ("SSL_AUTHENTICATION_FAILED", false), "{}", error.message);
    served.join().unwrap();

    let (port, settings, served) = server(|mut stream| {
        answer_versions(&mut stream);
        alert(&mut stream);
    });
    let mut connection = Connection::open("localhost", port, &settings, &Stop::default()).unwrap();
    let error = connection.call(&MetadataRequest::default()).unwrap_err();
    assert_eq!((error.kind, error.retriable), ("UNREACHABLE", true), "{}", error.message);
    assert!(error.message.contains("BadRecordMac"), "{}", error.message);
    served.join().unwrap();
}

#[test]
fn a_plain_client_at_a_tls_port_is_told_so() {
    let (port, _, served) = server(|mut stream| {
        let failed = stream.conn.complete_io(&mut stream.sock).is_err();
        // What rustls wants to say of it.
        let _ = stream.conn.write_tls(&mut stream.sock);
        failed
    });
    let plain = Settings::new([("bootstrap.servers", "a:1")]).unwrap();
    let error = Connection::open("127.0.0.1", port, &plain, &Stop::default()).unwrap_err();
    assert_eq!((error.kind, error.retriable), ("SSL_AUTHENTICATION_FAILED", false), "{}", error.message);
    assert!(error.message.contains("security.protocol"), "{}", error.message);
    assert!(served.join().unwrap());
}
