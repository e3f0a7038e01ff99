//! A broker for tests: answers each request as a function of it, over a real socket.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::config::Settings;
use crate::metadata::cluster::Cluster;
use crate::net::stop::Stop;
use pylog_wire::AnyRequest;
use pylog_wire::message::response_frame;
use pylog_wire::messages::metadata::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use pylog_wire::messages::{ApiVersion, ApiVersionsResponse, MetadataResponse};
use pylog_wire::{ApiKey, Chunk, Message, Reader, RequestHeader};

/// What a request is answered with: a frame, or `None` to close the connection.
pub type Answer = Option<Vec<u8>>;

/// A listener and its threads; ends when dropped.
pub struct FakeBroker {
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    ended: Arc<AtomicBool>,
}

/// Everything a handler needs to know of a request.
pub struct Asked {
    /// Version and correlation id.
    pub header: RequestHeader,
    /// The request.
    pub request: AnyRequest,
}

impl Asked {
    /// An answer to this request.
    pub fn answer<R: Message>(&self, response: &R) -> Answer {
        Some(frame(response, self.header.api_version, self.header.correlation_id))
    }
}

/// The whole frame of a response.
pub fn frame<R: Message>(response: &R, version: i16, correlation_id: i32) -> Vec<u8> {
    let chunks = response_frame(response, version, correlation_id).unwrap();
    chunks
        .iter()
        .flat_map(|chunk| if let Chunk::Bytes(bytes) = chunk { bytes.to_vec() } else { vec![] })
        .collect()
}

impl FakeBroker {
    /// Answers ApiVersions itself and all else by `handler`.
    pub fn start(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ended = Arc::new(AtomicBool::new(false));
        let (handler, stop) = (Arc::new(handler), ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let handler = handler.clone();
                std::thread::spawn(move || serve(stream.unwrap(), &*handler));
            }
        });
        Self { port, ended }
    }

    /// Settings of a client of this broker that gives up after twenty seconds: a machine may be busy.
    pub fn settings(&self, given: &[(&str, &str)]) -> Settings {
        let address = format!("127.0.0.1:{}", self.port);
        let base = [
            ("bootstrap.servers", address.as_str()),
            ("retry.backoff.ms", "1"),
            ("default.api.timeout.ms", "20000"),
            ("fetch.max.wait.ms", "1"),
        ];
        Settings::new(base.iter().chain(given).copied()).unwrap()
    }

    /// A client of this broker.
    pub fn cluster(&self, given: &[(&str, &str)]) -> Cluster {
        Cluster::new(self.settings(given), Stop::default()).unwrap()
    }
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // The accepting thread looks at the flag when a connection comes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Metadata of topic `t` with one partition whose leader is the broker at `port`.
pub fn metadata(port: u16) -> MetadataResponse {
    let broker = MetadataResponseBroker {
        node_id: 1,
        host: "127.0.0.1".into(),
        port: port.into(),
        ..Default::default()
    };
    let partition = MetadataResponsePartition { leader_id: 1, ..Default::default() };
    let topic = MetadataResponseTopic {
        name: Some("t".into()),
        topic_id: uuid::Uuid::from_u128(7),
        partitions: vec![partition],
        ..Default::default()
    };
    MetadataResponse { brokers: vec![broker], topics: vec![topic], controller_id: 1, ..Default::default() }
}

fn serve(mut stream: TcpStream, handler: &(impl Fn(&Asked) -> Answer + ?Sized)) {
    while let Some(body) = read_frame(&mut stream) {
        let mut reader = Reader::new(body);
        let header = RequestHeader::decode(&mut reader).unwrap();
        let key = header.key().unwrap();
        let request = AnyRequest::decode(key, &mut reader, header.api_version).unwrap();
        let asked = Asked { header, request };
        let answer = if key == ApiKey::ApiVersions { asked.answer(&versions()) } else { handler(&asked) };
        let Some(answer) = answer else { return };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// What a broker says that speaks all that this client can read.
pub fn versions() -> ApiVersionsResponse {
    let api_keys: Vec<ApiVersion> = pylog_wire::api::TABLE.iter().map(|api| api.advertisement()).collect();
    ApiVersionsResponse { api_keys, ..Default::default() }
}

fn read_frame(stream: &mut TcpStream) -> Option<Bytes> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).ok()?;
    let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
    stream.read_exact(&mut body).ok()?;
    Some(Bytes::from(body))
}
