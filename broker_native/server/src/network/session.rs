//! The states of a connection before its requests are served. Pure: no socket, and the time is an argument.
//!
//! ```text
//! no SASL on this listener:   open
//! begun --ApiVersions, once--> begun --SaslHandshake--> exchanging --SaslAuthenticate, ...--> logged in
//! logged in --SaslHandshake, where its session has an end--> exchanging once more (KIP-368) --...--> logged in
//! any --what does not fit, a login that fails--> over
//! ```
//! Before a login nothing but these three requests is even decoded. After a SaslHandshake of version 0 the messages of the mechanism come
//! without a header, as clients before KIP-152 send them. A client that logs in once more must use the same mechanism and be the same
//! principal; it may do so only where its session has an end, and not more than once a second: otherwise its SaslHandshake is answered
//! ILLEGAL_SASL_STATE, as Kafka does. Once a session has ended, only a SaslHandshake is taken.
use std::sync::Arc;

use crate::listeners::LoginRules;
use pylog_security::principal::Principal;
use pylog_security::sasl::{Exchange, Failure, Mechanism, Step};
use pylog_wire::{ApiKey, ErrorCode};

/// Shortest time between two logins over one connection.
const AGAIN_MIN_MS: i64 = 1_000;
/// No session ends later: about 300 years.
const LIFETIME_MAX_MS: i64 = i64::MAX / 1_000_000;

/// What is to be done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It is served.
    Serve,
    /// It is a SaslHandshake for [`Session::handshake`].
    Handshake,
    /// It is a SaslAuthenticate, whose token is the next message of the mechanism.
    Authenticate,
    /// It is the next message of the mechanism itself.
    Token,
    /// The connection ends; the sentence is for the log.
    Refuse(String),
}

/// What comes of a message of the mechanism.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// This is sent, and the client goes on.
    Challenge(Vec<u8>),
    /// The client is logged in.
    LoggedIn {
        /// This is sent.
        bytes: Vec<u8>,
        /// After so long it must log in once more; 0: never.
        lifetime_ms: i64,
    },
    /// This is sent after a while, and the client may say that it read so.
    Refused {
        /// What is sent.
        bytes: Vec<u8>,
        /// For the log.
        cause: String,
    },
    /// The client is told after a while, and the connection ends.
    Failed {
        /// What it is told.
        sentence: String,
        /// For the log; `None`: that was said when the proof was refused.
        cause: Option<String>,
    },
}

/// A connection's session.
#[derive(Debug)]
pub struct Session {
    /// `None` at a listener without SASL.
    rules: Option<Arc<LoginRules>>,
    state: SessionState,
    /// The login that is in force.
    login: Option<Login>,
    /// When the client last began to log in once more.
    last_again_ms: Option<i64>,
}

#[derive(Debug)]
enum SessionState {
    Open,
    Begun { versions: bool },
    Exchanging { exchange: Option<Exchange>, raw: bool },
    LoggedIn,
    Over,
}

#[derive(Debug)]
struct Login {
    principal: Arc<Principal>,
    mechanism: Mechanism,
    ends_ms: Option<i64>,
}

impl Session {
    /// Of a connection to a listener without SASL: all is served.
    pub fn open() -> Self {
        Self { rules: None, state: SessionState::Open, login: None, last_again_ms: None }
    }

    /// Of a connection to a listener with SASL.
    pub fn begun(rules: Arc<LoginRules>) -> Self {
        Self {
            rules: Some(rules),
            state: SessionState::Begun { versions: false },
            login: None,
            last_again_ms: None,
        }
    }

    /// Whether there is nothing to log in to.
    pub fn is_open(&self) -> bool {
        matches!(self.state, SessionState::Open)
    }

    /// The mechanisms that are offered.
    pub fn mechanisms(&self) -> &[Mechanism] {
        self.rules.as_ref().map_or(&[], |rules| &rules.mechanisms)
    }

    /// Whether the client still has to log in for the first time.
    pub fn is_before_login(&self) -> bool {
        self.login.is_none() && !self.is_open()
    }

    /// Whether the next frame is a message of the mechanism, of any length.
    pub fn is_raw(&self) -> bool {
        matches!(self.state, SessionState::Exchanging { raw: true, .. })
    }

    /// Whether the client has been logged in before, and logs in once more.
    pub fn is_again(&self) -> bool {
        self.login.is_some()
    }

    /// Who the client logged in as.
    pub fn principal(&self) -> Option<&Arc<Principal>> {
        self.login.as_ref().map(|login| &login.principal)
    }

    /// What is to be done with a request, of which only the number and the version of its API are read. `now_ms` is the steady clock.
    pub fn next(&mut self, request: &[u8], now_ms: i64) -> Next {
        let (code, version) = api_of(request);
        let key = code.and_then(ApiKey::from_code);
        let name =
            || key.map_or_else(|| format!("API key {}", code.unwrap_or(-1)), |key| key.name().to_owned());
        match &mut self.state {
            SessionState::Open => Next::Serve,
            SessionState::Exchanging { raw: true, .. } => Next::Token,
            SessionState::Begun { versions } => match key {
                // One that is answered with UNSUPPORTED_VERSION is asked again in another version.
                Some(ApiKey::ApiVersions) if !*versions => {
                    *versions = ApiKey::ApiVersions.info().supports(version);
                    Next::Serve
                }
                Some(ApiKey::ApiVersions) => {
                    Next::Refuse("it asked for ApiVersions twice before a login".into())
                }
                Some(ApiKey::SaslHandshake) => handshake_of(version),
                _ => Next::Refuse(format!("it sent {} before a login", name())),
            },
            SessionState::Exchanging { .. } => match key {
                Some(ApiKey::SaslAuthenticate) if ApiKey::SaslAuthenticate.info().supports(version) => {
                    Next::Authenticate
                }
                _ => Next::Refuse(format!("it sent {} in the middle of a login", name())),
            },
            SessionState::LoggedIn => self.next_when_logged_in(key, version, now_ms),
            SessionState::Over => Next::Refuse("its login has failed".into()),
        }
    }

    fn next_when_logged_in(&mut self, key: Option<ApiKey>, version: i16, now_ms: i64) -> Next {
        let ends_ms = self.login.as_ref().and_then(|login| login.ends_ms);
        let is_soon = self.last_again_ms.is_some_and(|last| now_ms - last < AGAIN_MIN_MS);
        if key == Some(ApiKey::SaslHandshake) && ends_ms.is_some() && !is_soon {
            self.last_again_ms = Some(now_ms);
            return handshake_of(version);
        }
        match ends_ms {
            Some(ends_ms) if ends_ms < now_ms => Next::Refuse(
                "its session is over and it has not logged in again (connections.max.reauth.ms, or the end of its token)".into(),
            ),
            _ => Next::Serve,
        }
    }

    /// A SaslHandshake in `version`: what it is answered, and why the login fails if it does.
    pub fn handshake(&mut self, version: i16, mechanism: &str) -> Result<(), (ErrorCode, String)> {
        let found = mechanism.parse::<Mechanism>().ok().filter(|asked| self.mechanisms().contains(asked));
        let refused = |cause| Err((ErrorCode::UnsupportedSaslMechanism, cause));
        let Some(mechanism) = found else {
            self.state = SessionState::Over;
            let name = pylog_security::sasl::shown::shown(mechanism);
            return refused(format!("it asks for the mechanism {name}, which is not offered here"));
        };
        if let Some(before) =
            self.login.as_ref().map(|login| login.mechanism).filter(|before| *before != mechanism)
        {
            self.state = SessionState::Over;
            return refused(format!("it logged in by {before} and wants to log in again by {mechanism}"));
        }
        self.state = SessionState::Exchanging { exchange: Some(Exchange::new(mechanism)), raw: version == 0 };
        Ok(())
    }

    /// Takes the exchange out, for its next step; [`Session::stepped`] gives it back.
    pub fn exchange(&mut self) -> Option<Exchange> {
        match &mut self.state {
            SessionState::Exchanging { exchange, .. } => exchange.take(),
            _ => None,
        }
    }

    /// What has come of a step of `exchange`.
    pub fn stepped(&mut self, exchange: Exchange, step: Step, now_ms: i64) -> Turn {
        let mechanism = exchange.mechanism();
        match step {
            Step::Challenge(bytes) => {
                self.go_on(exchange);
                Turn::Challenge(bytes)
            }
            Step::Refused { bytes, cause } => {
                self.go_on(exchange);
                Turn::Refused { bytes, cause }
            }
            Step::Done { principal, bytes, lifetime_ms } => {
                self.log_in(mechanism, principal, bytes, lifetime_ms, now_ms)
            }
            Step::Failed(failure) => self.fail(mechanism, &failure),
        }
    }

    fn go_on(&mut self, with: Exchange) {
        if let SessionState::Exchanging { exchange, .. } = &mut self.state {
            *exchange = Some(with);
        }
    }

    fn fail(&mut self, mechanism: Mechanism, failure: &Failure) -> Turn {
        self.state = SessionState::Over;
        Turn::Failed { sentence: failure.sentence(mechanism, self.is_again()), cause: failure.cause.clone() }
    }

    fn log_in(
        &mut self,
        mechanism: Mechanism,
        principal: Principal,
        bytes: Vec<u8>,
        lifetime_ms: Option<i64>,
        now_ms: i64,
    ) -> Turn {
        if let Some(before) =
            self.login.as_ref().map(|login| &login.principal).filter(|before| ***before != principal)
        {
            self.state = SessionState::Over;
            let dotted = |principal: &Principal| format!("{}.{}", principal.kind(), principal.name());
            let (old, new) = (dotted(before), dotted(&principal));
            let sentence = format!("Cannot change principals during re-authentication from {old}: {new}");
            let shown = pylog_security::sasl::shown::shown;
            let cause =
                format!("it was {} and wants to be {}", shown(before.name()), shown(principal.name()));
            return Turn::Failed { sentence, cause: Some(cause) };
        }
        let most = self.rules.as_ref().map(|rules| rules.max_reauth_ms).filter(|most| *most > 0);
        let lifetime_ms = [lifetime_ms, most].into_iter().flatten().min();
        let lifetime_ms = lifetime_ms.map(|lifetime| lifetime.clamp(0, LIFETIME_MAX_MS));
        let ends_ms = lifetime_ms.map(|lifetime| now_ms.saturating_add(lifetime));
        self.login = Some(Login { principal: Arc::new(principal), mechanism, ends_ms });
        self.state = SessionState::LoggedIn;
        Turn::LoggedIn { bytes, lifetime_ms: lifetime_ms.unwrap_or(0) }
    }
}

fn handshake_of(version: i16) -> Next {
    match ApiKey::SaslHandshake.info().supports(version) {
        true => Next::Handshake,
        false => Next::Refuse(format!("SaslHandshake version {version} is not served")),
    }
}

/// The number and the version that a request begins with.
fn api_of(request: &[u8]) -> (Option<i16>, i16) {
    let number = |at: usize| request.get(at..)?.first_chunk().map(|bytes| i16::from_be_bytes(*bytes));
    (number(0), number(2).unwrap_or(-1))
}

#[cfg(test)]
mod tests;
