//! Logins by PLAIN, of clients and of brokers: the passwords are hashed, and wait for each other and for nobody else; what who is logged in may
//! do as a broker.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pylog_client::config;
use pylog_client::error::ClientError;
use pylog_client::net::connection::Connection;
use pylog_client::net::stop::Stop;
use pylog_security::acl::AclBinding;
use pylog_security::protocol::SecurityProtocol;
use pylog_security::sasl::scram::{Hash, derive};
use pylog_security::secret::Secret;
use pylog_security::tls::throwaway::{Authority, Usage, Wanted};
use pylog_server::cluster::peers::way::Way;
use pylog_server::cluster::view::{Broker as Live, ClusterView, Endpoint};
use pylog_server::io::slow::Slow;
use pylog_server::listeners::ListenerSpec;
use pylog_server::settings::Settings;
use pylog_settings::Typed;
use pylog_settings::inter_broker::ClientTexts;
use pylog_storage::{Clock, SystemClock};
use pylog_wire::ErrorCode;
use pylog_wire::messages::MetadataRequest;
use pylog_wire::messages::fetch::ReplicaState;
use serde_json::{Map, Value, json};

use crate::server::cluster_bed::spec;
use crate::server::support::{Broker, batch, fetch_request, produce_request, values};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// A broker that alice and bob log in to.
struct Guarded {
    broker: Broker,
    /// Settings of a client that trusts it.
    client: Vec<(String, String)>,
}

impl Guarded {
    fn start(settings: Settings) -> Self {
        let (not_before, not_after) = (0, SystemClock.now_ms() / 1000 + 3600);
        let authority = Authority::new("test", not_before, not_after).unwrap();
        let (common_name, hosts, usage) = ("broker".into(), vec!["localhost".into()], Usage::Server);
        let own = authority.issue(&Wanted { common_name, hosts, not_before, not_after, usage }).unwrap();
        let mut spec = ListenerSpec::plaintext("127.0.0.1", 0);
        (spec.name, spec.protocol) = ("OUTSIDE".into(), SecurityProtocol::SaslSsl);
        spec.settings.ssl_keystore_certificate_chain = Secret::new(own.certificate);
        spec.settings.ssl_keystore_key = own.key;
        spec.settings.sasl.sasl_enabled_mechanisms = "PLAIN".into();
        let broker = Broker::listening(spec, settings);
        let users = ["alice", "bob"].map(|name| {
            let credential = derive(Hash::Sha256, &Secret::new("swordfish"), b"salt", 4_096).unwrap();
            (name.to_owned(), Hash::Sha256, credential)
        });
        broker.server.shared().security.apply(users, None);
        let client = [
            ("security.protocol", "SASL_SSL"),
            ("sasl.mechanism", "PLAIN"),
            ("ssl.truststore.certificates", authority.certificate()),
            ("request.timeout.ms", "5000"),
        ];
        Self { broker, client: client.map(|(name, text)| (name.into(), text.into())).to_vec() }
    }

    /// With little for slow requests.
    fn busy() -> Self {
        Self::start(Settings { num_io_threads: 2, ..Default::default() })
    }

    fn as_user(&self, user: &str, password: &str) -> Vec<(String, String)> {
        let login = [("sasl.username", user), ("sasl.password", password)];
        let login = login.map(|(name, text)| (name.to_owned(), text.to_owned()));
        self.client.iter().cloned().chain(login).collect()
    }

    /// The connection of a client that has logged in.
    fn connect(&self, user: &str) -> Result<Connection, ClientError> {
        let texts = self.as_user(user, "swordfish");
        let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let settings =
            config::Settings::new([("bootstrap.servers", "localhost:1")].into_iter().chain(texts))?;
        Connection::open("localhost", self.broker.port, &settings, &Stop::default())
    }

    fn is_served(&self) -> bool {
        let connection = self.connect("alice");
        connection.and_then(|mut connection| connection.call(&MetadataRequest::default())).is_ok()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Keeps a thread of `slow` busy for a client at `address` until the sender is dropped; returns when it is.
fn keep_busy(
    broker: &Broker,
    slow: impl Fn(&pylog_server::shared::Shared) -> &Slow + Send + 'static,
    address: IpAddr,
) -> Sender<()> {
    let (free, is_free) = channel();
    let (began, has_begun) = channel();
    let shared = std::sync::Arc::clone(broker.server.shared());
    std::thread::spawn(move || {
        let busy = move || {
            began.send(()).unwrap();
            // It is dropped, nothing is sent.
            let _: Result<(), _> = is_free.recv();
        };
        runtime().block_on(slow(&shared).run(address, busy)).unwrap();
    });
    has_begun.recv().unwrap();
    free
}

#[test]
fn who_keeps_all_threads_for_slow_requests_busy_keeps_nobody_from_logging_in() {
    let guarded = Guarded::busy();
    let _busy = [HERE, THERE].map(|address| keep_busy(&guarded.broker, |shared| &shared.slow, address));
    assert!(guarded.is_served());
}

#[test]
fn an_address_that_guesses_passwords_holds_no_other_up_and_no_slow_request() {
    let guarded = Guarded::busy();
    let _guesses = keep_busy(&guarded.broker, |shared| &shared.passwords, THERE);
    assert!(guarded.is_served());
    let (done, is_done) = channel();
    let runtime = runtime();
    let work = move || done.send(()).unwrap();
    runtime.block_on(guarded.broker.server.shared().slow.run(THERE, work)).unwrap();
    is_done.recv().unwrap();
}

#[test]
fn brokers_log_in_to_each_other_by_plain() {
    let guarded = Guarded::start(Settings::default());
    let endpoints =
        BTreeMap::from([("OUTSIDE".to_owned(), Endpoint("localhost".into(), guarded.broker.port))]);
    let other = Live { id: 2, endpoints, rack: None, epoch: 1 };
    let connected = |password: &str| {
        let texts: Map<String, Value> =
            guarded.as_user("alice", password).into_iter().map(|(name, text)| (name, text.into())).collect();
        let settings = Settings {
            inter_broker: "OUTSIDE".into(),
            inter_broker_client: ClientTexts::of(&texts.into()).unwrap(),
            ..Default::default()
        };
        runtime().block_on(Way::new(&settings).connect(&other, "pylog-server-1")).map(|_connected| ())
    };
    connected("swordfish").unwrap();
    assert_eq!(guarded.broker.count("logins"), 1);
    let why = connected("guess").unwrap_err();
    assert!(why.starts_with("it refuses the login") && !why.contains("guess"), "{why}");
}

#[test]
fn a_replica_is_who_may_act_as_a_broker_and_who_may_read_only_is_none() {
    let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    let settings = Settings {
        authorizer_class_name: Some(class.into()),
        node_id: 1,
        clustered: true,
        ..Default::default()
    };
    let guarded = Guarded::start(settings);
    let server = &guarded.broker.server;
    let live = |id| Live { id, endpoints: BTreeMap::new(), rack: None, epoch: 7 };
    server.apply_cluster(ClusterView { brokers: vec![live(1), live(2)], ..Default::default() });
    server.lease_until(Duration::from_secs(3600));
    let spec = spec("t", &[1, 2], &[1, 2], 1);
    let topic_id = spec.topic_id;
    server.apply_topics(vec![spec]).unwrap();
    let allow = |user: &str, operation: &str, kind: &str, name: &str| -> AclBinding {
        let acl = json!({"resource_type": kind, "resource_name": name, "pattern_type": "LITERAL", "host": "*",
            "principal": format!("User:{user}"), "operation": operation, "permission": "ALLOW"});
        serde_json::from_value(acl).unwrap()
    };
    server.apply_acls([
        allow("alice", "CLUSTER_ACTION", "CLUSTER", "kafka-cluster"),
        allow("alice", "WRITE", "TOPIC", "t"),
        allow("bob", "READ", "TOPIC", "t"),
    ]);
    let mut write = produce_request("", 0, batch(&["not committed"]), 1);
    write.topic_data[0].topic_id = topic_id;
    guarded.connect("alice").unwrap().call(&write).unwrap();
    let fetched = |user: &str, replica_id: i32| {
        let mut request = fetch_request("", 0, 0, 1);
        request.topics[0].topic_id = topic_id;
        request.topics[0].partitions[0].current_leader_epoch = 3;
        request.replica_state = ReplicaState { replica_id, replica_epoch: 7 };
        let answer = guarded.connect(user).unwrap().call(&request).unwrap();
        let partition = &answer.responses[0].partitions[0];
        let error = ErrorCode::from_code(answer.error_code.max(partition.error_code)).unwrap();
        (error, values(partition).len())
    };
    assert_eq!(fetched("alice", 2), (ErrorCode::None, 1), "also what consumers do not see yet");
    assert_eq!(fetched("alice", -1), (ErrorCode::TopicAuthorizationFailed, 0));
    assert_eq!(fetched("bob", 2), (ErrorCode::ClusterAuthorizationFailed, 0));
    assert_eq!(fetched("bob", -1), (ErrorCode::None, 0));
}
