//! Logins with tokens that something gives, or does not: when it is asked, and what becomes of a client without a token.
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fake::{Answer, Asked, FakeBroker, metadata};
use crate::config::Settings;
use crate::error::{ClientError, Result, kind};
use crate::metadata::cluster::Cluster;
use crate::net::connection::Connection;
use crate::net::stop::Stop;
use crate::security::tokens::{Token, TokenSource};
use pylog_settings::Secret;
use pylog_wire::AnyRequest;
use pylog_wire::messages::{SaslAuthenticateResponse, SaslHandshakeResponse};

const SENTENCE: &str = "The server of tokens https://tokens.test cannot be asked: refused";

/// Gives what `give` makes of the number of the question, which counts from 0.
struct Counted<F> {
    asked: Arc<AtomicUsize>,
    give: F,
}

impl<F> std::fmt::Debug for Counted<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counted")
    }
}

impl<F: Fn(usize) -> Result<()> + Send + Sync> TokenSource for Counted<F> {
    fn token(&self) -> Result<Token> {
        (self.give)(self.asked.fetch_add(1, Ordering::SeqCst))?;
        Ok(Token { value: Secret::new("a.b.c"), extensions: Vec::new() })
    }
}

fn unavailable() -> ClientError {
    ClientError::retriable(kind::TOKEN, SENTENCE)
}

/// Settings of a client of `addresses` that logs in with tokens, and how often it has asked for one.
fn settings(
    addresses: &str,
    give: impl Fn(usize) -> Result<()> + Send + Sync + 'static,
) -> (Settings, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let source = Counted { asked: asked.clone(), give };
    let given = [
        ("bootstrap.servers", addresses),
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "OAUTHBEARER"),
        ("sasl.oauthbearer.token.provider", "module:function"),
        ("retry.backoff.ms", "1"),
        ("default.api.timeout.ms", "20000"),
    ];
    let settings = Settings::new(given).unwrap().with_tokens(|_| Arc::new(source));
    (settings, asked)
}

/// A broker that takes any token, and counts the connections that log in.
fn broker() -> (FakeBroker, Arc<AtomicUsize>) {
    let logins = Arc::new(AtomicUsize::new(0));
    let counted = logins.clone();
    let broker = FakeBroker::start(move |asked: &Asked| -> Answer {
        match &asked.request {
            AnyRequest::SaslHandshake(_) => {
                counted.fetch_add(1, Ordering::SeqCst);
                asked.answer(&SaslHandshakeResponse::default())
            }
            AnyRequest::SaslAuthenticate(_) => asked.answer(&SaslAuthenticateResponse::default()),
            AnyRequest::Metadata(_) => asked.answer(&metadata(7)),
            _ => None,
        }
    });
    (broker, logins)
}

#[test]
fn a_client_without_a_token_says_so_and_asks_for_it_once_however_many_brokers_there_are() {
    let (settings, asked) = settings("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", |_| Err(unavailable()));
    let mut cluster = Cluster::new(settings, Stop::default()).unwrap();
    let error = cluster.metadata(None, false).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), ("TOKEN_UNAVAILABLE", SENTENCE));
    assert!(error.retriable);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // As with a wrong address, who never reached a broker is not left waiting.
    let error = cluster.retrying("list topics", |cluster| cluster.metadata(None, false)).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), ("TOKEN_UNAVAILABLE", SENTENCE));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_client_of_a_known_cluster_goes_on_when_there_are_tokens_again_and_blames_no_broker() {
    let ((first, logins), (second, others)) = (broker(), broker());
    let addresses = format!("127.0.0.1:{},127.0.0.1:{}", first.port, second.port);
    let give = |number| if (1..4).contains(&number) { Err(unavailable()) } else { Ok(()) };
    let (settings, asked) = settings(&addresses, give);
    let mut cluster = Cluster::new(settings, Stop::default()).unwrap();
    cluster.metadata(None, false).unwrap();
    cluster.close();
    let known = ("127.0.0.1".to_owned(), first.port);
    cluster.retrying("list topics", |cluster| cluster.connection(&known).map(drop)).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 5);
    assert_eq!((logins.load(Ordering::SeqCst), others.load(Ordering::SeqCst)), (2, 0));
    cluster.close();
    // Were it marked as failed, the other one would be asked before it.
    assert_eq!(cluster.any().unwrap(), known);
}

#[test]
fn a_token_is_got_before_the_connection_is_opened_that_a_broker_waits_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let (settings, asked) = settings(&format!("127.0.0.1:{port}"), move |_| {
        counted.fetch_add(usize::from(listener.accept().is_ok()), Ordering::SeqCst);
        Err(unavailable())
    });
    let error = Connection::open("127.0.0.1", port, &settings, &Stop::default()).unwrap_err();
    assert_eq!((error.kind, asked.load(Ordering::SeqCst)), ("TOKEN_UNAVAILABLE", 1));
    assert_eq!(seen.load(Ordering::SeqCst), 0, "it was connected");
}
