//! A broker in this process, and a client that speaks frames.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use pylog_record::{BatchBuilder, Codec, batches};
use pylog_server::Server;
use pylog_server::cluster::spec::{PartitionSpec, TopicSpec};
use pylog_server::decide::{Decider, Kind, Question};
use pylog_server::listeners::ListenerSpec;
use pylog_server::settings::Settings;
use pylog_storage::{Clock, Disk, LogConfig, RealDisk, SystemClock};
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic, PartitionData};
use pylog_wire::messages::produce::{PartitionProduceData, PartitionProduceResponse, TopicProduceData};
use pylog_wire::messages::{FetchRequest, FetchResponse, ProduceRequest, ProduceResponse};
use pylog_wire::{Chunk, Message, Request, message};
use uuid::Uuid;

/// No answer takes longer unless something is wrong.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// This broker.
pub const NODE_ID: i32 = 1;

/// A running broker; stopped when dropped.
pub struct Broker {
    pub server: Arc<Server>,
    pub port: u16,
    pub decisions: Arc<Decisions>,
    pub dir: tempfile::TempDir,
    pub clock: Arc<SettableClock>,
    disk: Arc<dyn Disk>,
    listener: ListenerSpec,
    settings: Settings,
}

/// The first id that no broker of a cluster was given.
static NEXT_PRODUCER_ID: AtomicI64 = AtomicI64::new(0);

/// Takes decisions: makes topics that a client asks for, allocates producer ids; keeps other questions until the test answers them.
#[derive(Default)]
pub struct Decisions {
    server: Mutex<Weak<Server>>,
    pub kept: Mutex<Vec<Question>>,
    /// Whether every question is met with a panic.
    pub panics: AtomicBool,
    /// Who is asked about in-sync replicas, when there is somebody.
    pub control: Mutex<Option<Arc<dyn Decider>>>,
}

impl Decider for Decisions {
    fn ask(&self, question: Question) {
        assert!(!self.panics.load(Ordering::SeqCst), "a planted mistake");
        if question.kind == Kind::AllocateProducerIds {
            let first = NEXT_PRODUCER_ID.fetch_add(1000, Ordering::SeqCst);
            let block = format!(r#"{{"first": {first}, "count": 1000}}"#);
            return question.reply.send(block).unwrap();
        }
        let control = self.control.lock().unwrap().clone();
        if let (Kind::AlterPartition, Some(control)) = (question.kind, control) {
            return control.ask(question);
        }
        if question.kind != Kind::AutoCreateTopics {
            self.kept.lock().unwrap().push(question);
            return;
        }
        let asked: serde_json::Value = serde_json::from_str(&question.json).unwrap();
        let server = self.server.lock().unwrap().upgrade().unwrap();
        for name in asked["topics"].as_array().unwrap() {
            server.apply_topics(vec![topic(name.as_str().unwrap(), 1)]).unwrap();
        }
        question.reply.send("{}".into()).unwrap();
    }
}

/// A topic led by this broker.
pub fn topic(name: &str, partitions: i32) -> TopicSpec {
    let partition = |partition| PartitionSpec {
        partition,
        leader: NODE_ID,
        leader_epoch: 3,
        replicas: vec![NODE_ID],
        isr: vec![NODE_ID],
        ..Default::default()
    };
    TopicSpec {
        name: name.into(),
        topic_id: Uuid::new_v4(),
        internal: false,
        config: LogConfig::default(),
        partitions: (0..partitions).map(partition).collect(),
    }
}

/// The machine's clocks, of which that of the day may be set.
#[derive(Default)]
pub struct SettableClock(AtomicI64);

impl SettableClock {
    /// Sets it so much later than it is.
    pub fn set_by_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for SettableClock {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms() + self.0.load(Ordering::SeqCst)
    }

    fn steady_ms(&self) -> i64 {
        SystemClock.steady_ms()
    }
}

fn open(
    dir: &std::path::Path,
    listener: ListenerSpec,
    settings: Settings,
    disk: &Arc<dyn Disk>,
    clock: &Arc<SettableClock>,
    decisions: &Arc<Decisions>,
) -> (Arc<Server>, u16) {
    let (disk, clock) = (Arc::clone(disk), Arc::clone(clock) as _);
    let server = Server::open(disk, clock, dir, settings, Arc::clone(decisions) as _).unwrap();
    let server = Arc::new(server);
    *decisions.server.lock().unwrap() = Arc::downgrade(&server);
    let port = server.listen(vec![listener]).unwrap()[0];
    (server, port)
}

impl Broker {
    pub fn start() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::on(Arc::new(RealDisk), settings)
    }

    /// On another disk than that of this machine.
    pub fn on(disk: Arc<dyn Disk>, settings: Settings) -> Self {
        Self::opened(disk, ListenerSpec::plaintext("127.0.0.1", 0), settings)
    }

    /// With another listener.
    pub fn listening(listener: ListenerSpec, settings: Settings) -> Self {
        Self::opened(Arc::new(RealDisk), listener, settings)
    }

    fn opened(disk: Arc<dyn Disk>, listener: ListenerSpec, settings: Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let decisions = Arc::new(Decisions::default());
        let clock = Arc::default();
        let (server, port) = open(dir.path(), listener.clone(), settings.clone(), &disk, &clock, &decisions);
        Self { server, port, decisions, dir, clock, disk, listener, settings }
    }

    /// Stops it and starts it anew on its data, at another port.
    pub fn restart(&mut self) {
        self.server.close(Duration::from_secs(5)).unwrap();
        (self.server, self.port) = open(
            self.dir.path(),
            self.listener.clone(),
            self.settings.clone(),
            &self.disk,
            &self.clock,
            &self.decisions,
        );
    }

    /// The bytes of partition 0's log.
    pub fn log_bytes(&self, topic: &str) -> Vec<u8> {
        let entries = std::fs::read_dir(self.dir.path().join(format!("{topic}-0"))).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let mut logs: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
        logs.sort();
        logs.iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// A broker that serves `spec`; returns the topic's id as well.
    pub fn serving(spec: TopicSpec) -> (Self, Uuid) {
        let (broker, id) = (Self::start(), spec.topic_id);
        broker.server.apply_topics(vec![spec]).unwrap();
        (broker, id)
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub fn count(&self, name: &str) -> u64 {
        self.server.shared().metrics.snapshot()[name]
    }

    /// Waits until the counter `name` reaches `least`.
    pub fn wait_for(&self, name: &str, least: u64) {
        let deadline = std::time::Instant::now() + TIMEOUT;
        while self.count(name) < least {
            assert!(std::time::Instant::now() < deadline, "{name} stays at {} < {least}", self.count(name));
            std::thread::yield_now();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.server.close(Duration::from_secs(5)).unwrap();
    }
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub fn send<Q: Request>(&mut self, request: &Q, version: i16, correlation_id: i32) {
        self.stream.write_all(&frame(request, version, correlation_id)).unwrap();
    }

    /// The next frame, without its length; `None` when the broker closed the connection.
    pub fn frame(&mut self) -> Option<Bytes> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).ok()?;
        let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
        self.stream.read_exact(&mut body).unwrap();
        Some(body.into())
    }

    pub fn receive<R: Message>(&mut self, version: i16) -> (i32, R) {
        let frame = self.frame().expect("the broker closed the connection");
        let (header, body) = message::decode_response(frame, version).unwrap();
        (header.correlation_id, body)
    }

    pub fn call<Q: Request>(&mut self, request: &Q, version: i16) -> Q::Response {
        self.send(request, version, 77);
        let (correlation_id, answer) = self.receive(version);
        assert_eq!(correlation_id, 77);
        answer
    }

    /// Appends a batch of `values`; the partition's answer.
    pub fn produce(&mut self, topic: &str, values: &[&str]) -> PartitionProduceResponse {
        let mut answer: ProduceResponse = self.call(&produce_request(topic, 0, batch(values), 1), 9);
        answer.responses.remove(0).partition_responses.remove(0)
    }

    /// Fetches partition 0 from `offset`, waiting for nothing.
    pub fn fetch(&mut self, topic: &str, offset: i64) -> PartitionData {
        let answer: FetchResponse = self.call(&fetch_request(topic, offset, 0, 1), 12);
        only(answer)
    }
}

/// The one partition of an answer.
pub fn only(mut answer: FetchResponse) -> PartitionData {
    assert_eq!(answer.error_code, 0);
    assert_eq!(answer.responses.len(), 1);
    let mut topic = answer.responses.remove(0);
    assert_eq!(topic.partitions.len(), 1);
    topic.partitions.remove(0)
}

/// A request's bytes, length included.
pub fn frame<Q: Request>(request: &Q, version: i16, correlation_id: i32) -> Vec<u8> {
    let chunks = message::request_frame(request, version, correlation_id, Some("test")).unwrap();
    let bytes = |chunk: &Chunk| match chunk {
        Chunk::Bytes(bytes) => bytes.to_vec(),
        Chunk::Records { .. } => panic!("a request has no records apart"),
    };
    chunks.iter().flat_map(bytes).collect()
}

pub fn batch(values: &[&str]) -> Vec<u8> {
    let now_ms = pylog_storage::Clock::now_ms(&SystemClock);
    let mut builder = BatchBuilder::new();
    for value in values {
        builder.append(now_ms, None, Some(value.as_bytes()), &[]).unwrap();
    }
    builder.finish(Codec::None).unwrap()
}

pub fn produce_request(topic: &str, partition: i32, batch: Vec<u8>, acks: i16) -> ProduceRequest {
    let partition_data =
        vec![PartitionProduceData { index: partition, records: Some(batch.into()), ..Default::default() }];
    let topic_data = vec![TopicProduceData { name: topic.into(), partition_data, ..Default::default() }];
    ProduceRequest { acks, timeout_ms: 10_000, topic_data, ..Default::default() }
}

pub fn fetch_request(topic: &str, offset: i64, max_wait_ms: i32, min_bytes: i32) -> FetchRequest {
    let partitions =
        vec![FetchPartition { fetch_offset: offset, partition_max_bytes: 1 << 20, ..Default::default() }];
    let topics = vec![FetchTopic { topic: topic.into(), partitions, ..Default::default() }];
    FetchRequest { max_wait_ms, min_bytes, topics, ..Default::default() }
}

/// The values of all records fetched, with their offsets.
pub fn values(fetched: &PartitionData) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    for view in batches(fetched.records.as_ref().unwrap()) {
        let (header, bytes) = view.unwrap();
        header.verify_crc(bytes).unwrap();
        let body = &bytes[pylog_record::layout::HEADER_LEN..];
        for record in pylog_record::records(body, &header) {
            let record = record.unwrap();
            found.push((record.offset, String::from_utf8(record.value.unwrap().to_vec()).unwrap()));
        }
    }
    found
}
