//! TLS at our layer: records of all sizes that arrive in pieces of all sizes, answers from memory and from files, bytes that make no sense.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use proptest::prelude::*;
use pylog_record::{BatchBuilder, Codec};
use pylog_security::protocol::SecurityProtocol;
use pylog_security::secret::Secret;
use pylog_security::tls::TlsSettings;
use pylog_security::tls::client::{client_config, server_name};
use pylog_security::tls::throwaway::{Authority, Usage, Wanted};
use pylog_server::listeners::ListenerSpec;
use pylog_server::settings::Settings;
use pylog_settings::listener;
use pylog_storage::{Clock, SystemClock};
use pylog_wire::messages::metadata::MetadataRequestTopic;
use pylog_wire::messages::{ApiVersionsRequest, FetchResponse, MetadataRequest};
use pylog_wire::{Message, Request, message};
use rustls::{ClientConfig, ClientConnection};

use crate::server::support::{Broker, TIMEOUT, fetch_request, frame, only, produce_request, topic};

/// Cases of each property, which open a connection or two; PROPTEST_CASES sets another number for long runs.
const CASES: u32 = 40;

/// Numbers that only look random (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Small ones mostly, at most `most`.
    fn size(&mut self, most: usize) -> usize {
        let bits = self.next() % u64::from(usize::BITS - most.leading_zeros() + 1);
        (self.next() as usize % (1 << bits)).clamp(1, most)
    }
}

/// A broker with TLS, and the configuration of a client that trusts it.
fn secure() -> (Broker, Arc<ClientConfig>) {
    secure_with(|_| {})
}

fn secure_with(change: impl Fn(&mut listener::Settings)) -> (Broker, Arc<ClientConfig>) {
    let (not_before, not_after) = (0, SystemClock.now_ms() / 1000 + 3600);
    let authority = Authority::new("test", not_before, not_after).unwrap();
    let hosts = vec!["localhost".into()];
    let wanted = Wanted { common_name: "broker".into(), hosts, not_before, not_after, usage: Usage::Server };
    let own = authority.issue(&wanted).unwrap();
    let mut settings = listener::Settings {
        ssl_keystore_certificate_chain: Secret::new(own.certificate),
        ssl_keystore_key: own.key,
        ..Default::default()
    };
    change(&mut settings);
    let plain = ListenerSpec::plaintext("127.0.0.1", 0);
    let spec = ListenerSpec { name: "SSL".into(), protocol: SecurityProtocol::Ssl, settings, ..plain };
    let trusts =
        TlsSettings { truststore_certificates: Some(authority.certificate().into()), ..Default::default() };
    (Broker::listening(spec, Settings::default()), client_config(&trusts).unwrap())
}

/// A client that chooses how large its records are, and in which pieces they go.
struct Client {
    stream: TcpStream,
    session: ClientConnection,
    numbers: Numbers,
}

impl Client {
    fn connect(broker: &Broker, config: &Arc<ClientConfig>, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let mut config = config.as_ref().clone();
        config.max_fragment_size = Some(32 + numbers.size(16_000));
        let session = ClientConnection::new(Arc::new(config), server_name("localhost").unwrap()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream, session, numbers };
        while client.session.is_handshaking() {
            client.flush();
            if client.session.wants_read() && client.session.is_handshaking() {
                client.read_some();
            }
        }
        client
    }

    /// Sends what is encrypted, in pieces.
    fn flush(&mut self) {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.numbers.size(rest.len()));
            self.stream.write_all(piece).unwrap();
            rest = after;
        }
    }

    fn read_some(&mut self) {
        assert!(self.session.read_tls(&mut self.stream).unwrap() > 0, "the broker closed the connection");
        self.session.process_new_packets().unwrap();
    }

    fn send<Q: Request>(&mut self, request: &Q, version: i16, correlation_id: i32) {
        let bytes = frame(request, version, correlation_id);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(self.numbers.size(rest.len().min(32_000)));
            let taken = self.session.writer().write(piece).unwrap();
            assert_eq!(taken, piece.len());
            self.flush();
            rest = after;
        }
    }

    fn exactly(&mut self, count: usize) -> Vec<u8> {
        let (mut bytes, mut filled) = (vec![0; count], 0);
        while filled < count {
            match self.session.reader().read(&mut bytes[filled..]) {
                Ok(0) => panic!("the broker ended the connection"),
                Ok(read) => filled += read,
                Err(_nothing_yet) => self.read_some(),
            }
        }
        bytes
    }

    fn receive<R: Message>(&mut self, version: i16) -> (i32, R) {
        let prefix: [u8; 4] = self.exactly(4).try_into().unwrap();
        let body = self.exactly(u32::from_be_bytes(prefix) as usize);
        let (header, body) = message::decode_response(body.into(), version).unwrap();
        (header.correlation_id, body)
    }
}

#[test]
fn records_from_memory_and_from_files_come_as_they_were_written() {
    let (broker, config) = secure();
    broker.server.apply_topics(vec![topic("t", 1)]).unwrap();
    let mut client = Client::connect(&broker, &config, 7);
    let mut written = Vec::new();
    // Below and above what is copied into an answer, and several pieces of a file.
    for size in [1, 10_000, 16_384, 70_000, 300_000, 900_000] {
        let value: Vec<u8> = (0..size).map(|_| client.numbers.next() as u8).collect();
        let mut batch = BatchBuilder::new();
        batch.append(SystemClock.now_ms(), None, Some(&value), &[]).unwrap();
        let batch = batch.finish(Codec::None).unwrap();
        client.send(&produce_request("t", 0, batch, 1), 9, 1);
        let (_, answer) = client.receive::<pylog_wire::messages::ProduceResponse>(9);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
        written.push(value);
    }
    for (offset, value) in written.iter().enumerate() {
        client.send(&fetch_request("t", offset as i64, 0, 1), 12, 2);
        let (_, answer) = client.receive::<FetchResponse>(12);
        let records = only(answer).records.unwrap();
        let (header, bytes) = pylog_record::batches(&records).next().unwrap().unwrap();
        header.verify_crc(bytes).unwrap();
        let body = &bytes[pylog_record::layout::HEADER_LEN..];
        let first = pylog_record::records(body, &header).next().unwrap().unwrap();
        assert_eq!((first.offset, first.value.unwrap() == value.as_slice()), (offset as i64, true));
    }
}

/// What a client says last.
#[derive(Debug, Clone)]
enum End {
    /// Nothing: it is gone.
    Gone,
    /// So many bytes of a request in its records, or fewer: at least one is missing.
    Part(usize),
    /// What is no record of its session.
    Bytes(Vec<u8>),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Gone), any::<usize>().prop_map(End::Part), some_bytes().prop_map(End::Bytes),]
}

/// Random bytes, and the beginnings of records with random bytes in them.
fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop_oneof![4 => prop::collection::vec(any::<u8>(), 0..300), 1 => prop::collection::vec(any::<u8>(), 0..40_000)];
    let record = (20..25_u8, 0..5_u8, any::<u16>(), bytes());
    let record = record.prop_map(|(kind, minor, length, bytes)| {
        [&[kind, 3, minor][..], &length.to_be_bytes(), &bytes].concat()
    });
    prop_oneof![bytes(), record]
}

/// A request with so many topics that nobody has: its frame and its answer have about 30 bytes for each.
fn unknown_topics(count: usize) -> MetadataRequest {
    let name = |number| Some(format!("a-topic-that-nobody-has-{number}"));
    let topic = |number| MetadataRequestTopic { name: name(number), ..Default::default() };
    let topics = Some((0..count).map(topic).collect());
    MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() }
}

/// Waits until the broker has closed a connection on which nothing more is sent.
fn assert_closed(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return,
            Ok(_) => {}
            // A broker that closes a socket with unread bytes resets the connection.
            Err(error) => return assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
}

impl Client {
    fn end(mut self, end: &End) {
        let bytes = match end {
            End::Gone => return,
            End::Bytes(bytes) => bytes.clone(),
            End::Part(size) => {
                self.session.writer().write_all(&frame(&unknown_topics(20), 12, 0)).unwrap();
                let mut records = Vec::new();
                while self.session.wants_write() {
                    self.session.write_tls(&mut records).unwrap();
                }
                records.truncate(size % records.len());
                records
            }
        };
        // The broker may have closed it before all is written.
        let _ = self.stream.write_all(&bytes);
        assert_closed(&self.stream);
    }
}

thread_local!(static SECURE: (Broker, Arc<ClientConfig>) = secure());

/// That another client is served, and nothing in the broker went wrong.
fn assert_serves(broker: &Broker, config: &Arc<ClientConfig>) {
    let mut client = Client::connect(broker, config, 1);
    client.send(&ApiVersionsRequest::default(), 3, 1);
    assert_eq!(client.receive::<<ApiVersionsRequest as Request>::Response>(3).0, 1);
    assert_eq!(broker.count("panics"), 0);
}

fn cases() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(given.unwrap_or(CASES))
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn requests_in_random_records_and_pieces_are_answered_in_their_order_however_the_connection_ends(
        seed in any::<u64>(),
        topics in prop::collection::vec(prop_oneof![4 => 0..4_usize, 1 => 0..1_500_usize], 1..20),
        end in end(),
    ) {
        SECURE.with(|(broker, config)| {
            let mut client = Client::connect(broker, config, seed);
            for (number, count) in topics.iter().enumerate() {
                client.send(&unknown_topics(*count), 12, number as i32);
            }
            for (number, count) in topics.iter().enumerate() {
                let (answered, answer) = client.receive::<<MetadataRequest as Request>::Response>(12);
                assert_eq!((answered, answer.topics.len()), (number as i32, *count));
            }
            client.end(&end);
            assert_serves(broker, config);
        });
    }

    #[test]
    fn random_bytes_in_place_of_a_handshake_end_their_connection_and_no_other(bytes in some_bytes()) {
        SECURE.with(|(broker, config)| {
            let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            // The broker may have closed it before all is written.
            let _ = stream.write_all(&bytes);
            assert_closed(&stream);
            assert_serves(broker, config);
        });
    }
}

#[test]
fn a_peer_that_does_not_go_on_with_its_handshake_is_closed_in_time() {
    let (broker, _config) = secure_with(|settings| settings.ssl_handshake_timeout_ms = 50);
    for begun in [&b""[..], &b"\x16\x03\x01\x02\x00\x01"[..]] {
        let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(begun).unwrap();
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).unwrap_or(0), 0, "the broker closes it");
    }
}
