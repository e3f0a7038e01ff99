//! A broker's side of a login, for any mechanism.
//!
//! One message of the client after the other goes into [`Exchange::step`], until it says that the client is logged in or that it failed;
//! then the exchange is over and any further message fails. What failed is told to the client in Kafka's sentence, which does not say
//! whether there is such a user; the cause is for the broker's own log, and has no secret.
use super::credentials::Credentials;
use super::mechanism::Mechanism;
use super::oauthbearer::{INVALID_TOKEN, SEPARATOR, TokenMessage};
use super::plain::PlainMessage;
use super::scram::messages::ClientFirst;
use super::scram::server::ScramServer;
use super::scram::{Hash, new_nonce};
use super::shown::shown;
use crate::principal::Principal;

/// What comes of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// This is sent, and the client goes on.
    Challenge(Vec<u8>),
    /// The client is logged in.
    Done {
        /// As whom.
        principal: Principal,
        /// This is sent, possibly nothing.
        bytes: Vec<u8>,
        /// For how long its proof is good; `None`: it has no end.
        lifetime_ms: Option<i64>,
    },
    /// The client's proof is refused. This is sent; the client says that it read so, if it says anything, and then the login fails.
    Refused {
        /// What is sent.
        bytes: Vec<u8>,
        /// Why, for the log: as [`Failure::cause`].
        cause: String,
    },
    /// The login failed.
    Failed(Failure),
}

/// A failed login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the client is told; `None`: nothing but that it failed ([`Failure::sentence`]).
    sentence: Option<String>,
    /// Why, for the log; names are escaped, and there is no secret in it. `None`: that was said with [`Step::Refused`].
    pub cause: Option<String>,
}

impl Failure {
    fn silent(cause: impl Into<String>) -> Step {
        Step::Failed(Self { sentence: None, cause: Some(cause.into()) })
    }

    fn saying(sentence: impl Into<String>, cause: impl Into<String>) -> Step {
        Step::Failed(Self { sentence: Some(sentence.into()), cause: Some(cause.into()) })
    }

    /// What the client is told, in Kafka's words. `again`: it was logged in before (KIP-368).
    pub fn sentence(&self, mechanism: Mechanism, again: bool) -> String {
        let during = if again { "re-authentication" } else { "authentication" };
        self.sentence.clone().unwrap_or_else(|| {
            format!("Authentication failed during {during} due to invalid credentials with SASL mechanism {mechanism}")
        })
    }
}

const OTHER_IDENTITY: &str =
    "Authentication failed: Client requested an authorization id that is different from username";
const WRONG_PASSWORD: &str = "Authentication failed: Invalid username or password";

/// A login that goes on.
#[derive(Debug)]
pub struct Exchange {
    mechanism: Mechanism,
    state: State,
}

#[derive(Debug)]
enum State {
    Begun,
    Scram(Box<ScramServer>),
    /// The token was refused; the client has yet to say that it read so.
    TokenRefused,
    Over,
}

impl Exchange {
    /// A login by `mechanism`.
    pub fn new(mechanism: Mechanism) -> Self {
        Self { mechanism, state: State::Begun }
    }

    /// How the client logs in.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Whether the next message takes milliseconds: a password is hashed thousands of times.
    pub fn is_slow(&self) -> bool {
        self.mechanism == Mechanism::Plain
    }

    /// Judges the client's next message. `now_ms` is the time of day.
    pub fn step(&mut self, message: &[u8], credentials: &Credentials, now_ms: i64) -> Step {
        match (std::mem::replace(&mut self.state, State::Over), self.mechanism) {
            (State::Begun, Mechanism::Plain) => plain(message, credentials),
            (State::Begun, Mechanism::ScramSha256) => self.scram(Hash::Sha256, message, credentials),
            (State::Begun, Mechanism::ScramSha512) => self.scram(Hash::Sha512, message, credentials),
            (State::Begun, Mechanism::OauthBearer) => self.token(message, credentials, now_ms),
            (State::Scram(server), _) => finish(&server, message),
            (State::TokenRefused, _) => {
                let sentence = (message == [SEPARATOR]).then(|| INVALID_TOKEN.to_owned());
                Step::Failed(Failure { sentence, cause: None })
            }
            (State::Over, _) => Failure::silent("it goes on after its last message"),
        }
    }

    fn scram(&mut self, hash: Hash, message: &[u8], credentials: &Credentials) -> Step {
        let first = match ClientFirst::parse(message) {
            Ok(first) => first,
            Err(why) => return Failure::silent(format!("its first message is not understood: {why}")),
        };
        let name = shown(&first.user);
        if !first.authorization_id.is_empty() && first.authorization_id != first.user {
            let other = shown(&first.authorization_id);
            return Failure::saying(OTHER_IDENTITY, format!("{name} wants to act as {other}"));
        }
        let Some(nonce) = new_nonce() else { return Failure::silent("the system gives no random bytes") };
        let (credential, known) = credentials.users.scram(hash, &first.user);
        let server = ScramServer::new(hash, first, credential, known, &nonce);
        let challenge = server.challenge();
        self.state = State::Scram(Box::new(server));
        Step::Challenge(challenge)
    }

    fn token(&mut self, message: &[u8], credentials: &Credentials, now_ms: i64) -> Step {
        let message = match TokenMessage::parse(message) {
            Ok(message) => message,
            Err(why) => return Failure::silent(format!("its message is not understood: {why}")),
        };
        let Some(validator) = &credentials.tokens else {
            return self
                .refuse_token("no keys are known to check tokens with (sasl.oauthbearer.jwks.endpoint.url)");
        };
        let token = match validator.validate(message.token.reveal(), now_ms) {
            Ok(token) => token,
            Err(why) => return self.refuse_token(why.to_string()),
        };
        if !message.authorization_id.is_empty() && message.authorization_id != token.subject {
            let (other, name) = (&message.authorization_id, &token.subject);
            let sentence = format!(
                "Authentication failed: Client requested an authorization id ({other}) that is different from the token's principal name \
                 ({name})"
            );
            return Failure::saying(sentence, format!("{} wants to act as {}", shown(name), shown(other)));
        }
        let lifetime_ms = Some(token.expires_ms.saturating_sub(now_ms).max(0));
        Step::Done { principal: Principal::user(token.subject), bytes: Vec::new(), lifetime_ms }
    }

    fn refuse_token(&mut self, cause: impl Into<String>) -> Step {
        self.state = State::TokenRefused;
        Step::Refused { bytes: INVALID_TOKEN.into(), cause: cause.into() }
    }
}

fn plain(message: &[u8], credentials: &Credentials) -> Step {
    let message = match PlainMessage::parse(message) {
        Ok(message) => message,
        Err(why) => return Failure::saying(why.to_string(), why.to_string()),
    };
    let PlainMessage { authorization_id, user, password } = message;
    let name = shown(&user);
    if !credentials.users.is_password(&user, &password) {
        return Failure::saying(WRONG_PASSWORD, format!("{name} is no user, or its password is wrong"));
    }
    if !authorization_id.is_empty() && authorization_id != user {
        return Failure::saying(
            OTHER_IDENTITY,
            format!("{name} wants to act as {}", shown(&authorization_id)),
        );
    }
    Step::Done { principal: Principal::user(user), bytes: Vec::new(), lifetime_ms: None }
}

fn finish(server: &ScramServer, message: &[u8]) -> Step {
    match server.finish(message) {
        Ok(bytes) => Step::Done { principal: Principal::user(server.user()), bytes, lifetime_ms: None },
        Err(why) => Failure::silent(format!("{}: {why}", shown(server.user()))),
    }
}

#[cfg(test)]
mod tests;
