//! Logins by PLAIN, whose passwords are hashed: they wait for each other, and for nobody else.
use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};

use pylog_client::config;
use pylog_client::net::connection::Connection;
use pylog_client::net::stop::Stop;
use pylog_security::protocol::SecurityProtocol;
use pylog_security::sasl::scram::{Hash, derive};
use pylog_security::secret::Secret;
use pylog_security::tls::throwaway::{Authority, Usage, Wanted};
use pylog_server::io::slow::Slow;
use pylog_server::listeners::ListenerSpec;
use pylog_server::settings::Settings;
use pylog_storage::{Clock, SystemClock};
use pylog_wire::messages::MetadataRequest;

use crate::server::support::Broker;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// A broker that alice logs in to, and the settings of her client.
fn broker() -> (Broker, config::Settings) {
    let (not_before, not_after) = (0, SystemClock.now_ms() / 1000 + 3600);
    let authority = Authority::new("test", not_before, not_after).unwrap();
    let hosts = vec!["localhost".into()];
    let wanted = Wanted { common_name: "broker".into(), hosts, not_before, not_after, usage: Usage::Server };
    let own = authority.issue(&wanted).unwrap();
    let mut spec = ListenerSpec::plaintext("127.0.0.1", 0);
    (spec.name, spec.protocol) = ("OUTSIDE".into(), SecurityProtocol::SaslSsl);
    spec.settings.ssl_keystore_certificate_chain = Secret::new(own.certificate);
    spec.settings.ssl_keystore_key = own.key;
    spec.settings.sasl.sasl_enabled_mechanisms = "PLAIN".into();
    let broker = Broker::listening(spec, Settings { num_io_threads: 2, ..Default::default() });
    let credential = derive(Hash::Sha256, &Secret::new("swordfish"), b"salt", 4_096).unwrap();
    broker.server.shared().security.apply([("alice".into(), Hash::Sha256, credential)], None);
    let settings = config::Settings::new([
        ("bootstrap.servers", "localhost:1"),
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.username", "alice"),
        ("sasl.password", "swordfish"),
        ("ssl.truststore.certificates", authority.certificate()),
        ("request.timeout.ms", "5000"),
    ]);
    (broker, settings.unwrap())
}

fn is_served(broker: &Broker, settings: &config::Settings) -> bool {
    let connection = Connection::open("localhost", broker.port, settings, &Stop::default());
    connection.and_then(|mut connection| connection.call(&MetadataRequest::default())).is_ok()
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let busy = move || {
            began.send(()).unwrap();
            // It is dropped, nothing is sent.
            let _: Result<(), _> = is_free.recv();
        };
        runtime.block_on(slow(&shared).run(address, busy)).unwrap();
    });
    has_begun.recv().unwrap();
    free
}

#[test]
fn who_keeps_all_threads_for_slow_requests_busy_keeps_nobody_from_logging_in() {
    let (broker, settings) = broker();
    let _busy = [HERE, THERE].map(|address| keep_busy(&broker, |shared| &shared.slow, address));
    assert!(is_served(&broker, &settings));
}

#[test]
fn an_address_that_guesses_passwords_holds_no_other_up_and_no_slow_request() {
    let (broker, settings) = broker();
    let _guesses = keep_busy(&broker, |shared| &shared.passwords, THERE);
    assert!(is_served(&broker, &settings));
    let (done, is_done) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let work = move || done.send(()).unwrap();
    runtime.block_on(broker.server.shared().slow.run(THERE, work)).unwrap();
    is_done.recv().unwrap();
}
