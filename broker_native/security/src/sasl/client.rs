//! A client's side of a login, for any mechanism.
//!
//! ```text
//! let mut message = login.step(b"")?;
//! loop { send(message); let challenge = receive(); message = login.step(&challenge)?; if login.is_done() { break } }
//! ```
use super::SaslError;
use super::mechanism::Mechanism;
use super::oauthbearer::{SEPARATOR, TokenMessage};
use super::plain::PlainMessage;
use super::scram::Hash;
use super::scram::client::ScramClient;
use super::shown::said;
use crate::secret::Secret;

/// A login. `Debug` shows no secret.
#[derive(Debug)]
pub struct Login {
    mechanism: Mechanism,
    /// The password or token: a broker that gets it may say it back.
    secret: Secret,
    state: State,
}

#[derive(Debug)]
enum State {
    Plain(PlainMessage),
    Scram(ScramClient),
    ScramBegun(ScramClient),
    Token(TokenMessage),
    /// The one message was sent; SCRAM: two of three were.
    Sent,
    /// The token was refused; the broker still says so itself.
    Refused(String),
    Done,
}

impl Login {
    /// With a password: PLAIN or SCRAM.
    ///
    /// # Errors
    /// [`SaslError::Unusable`]: another mechanism, or a user or password that it cannot carry.
    pub fn with_password(mechanism: Mechanism, user: &str, password: Secret) -> Result<Self, SaslError> {
        let unusable = |why| Err(SaslError::Unusable(mechanism, why));
        if user.is_empty() || password.reveal().is_empty() {
            return unusable("the user name or the password is empty");
        }
        let secret = password.clone();
        let state = match mechanism {
            Mechanism::Plain if user.contains('\0') || password.reveal().contains('\0') => {
                return unusable("the user name or the password has a NUL");
            }
            Mechanism::Plain => {
                let (authorization_id, user) = (String::new(), user.to_owned());
                State::Plain(PlainMessage { authorization_id, user, password })
            }
            Mechanism::ScramSha256 => State::Scram(ScramClient::new(Hash::Sha256, user, password)?),
            Mechanism::ScramSha512 => State::Scram(ScramClient::new(Hash::Sha512, user, password)?),
            Mechanism::OauthBearer => return unusable("it takes a token, not a password"),
        };
        Ok(Self { mechanism, secret, state })
    }

    /// With a token: OAUTHBEARER. `extensions` are sent with it (KIP-342).
    ///
    /// # Errors
    /// [`SaslError::Unusable`]: what cannot be written.
    pub fn with_token(token: Secret, extensions: Vec<(String, String)>) -> Result<Self, SaslError> {
        let mechanism = Mechanism::OauthBearer;
        let message = TokenMessage::new(token.clone(), extensions);
        let message = message.map_err(|why| SaslError::Unusable(mechanism, why))?;
        Ok(Self { mechanism, secret: token, state: State::Token(message) })
    }

    /// How the client logs in.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Whether the broker has said all that it must, and proved what it must.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// What the broker says beside the mechanism's messages, for an error: escaped, not long, and without this login's secret.
    pub fn said(&self, text: &str) -> String {
        said(text, &self.secret)
    }

    /// What is sent next: first for an empty challenge, then for each of the broker's. Empty, and of no use, once it is done. SCRAM hashes
    /// the password for a while.
    ///
    /// # Errors
    /// [`SaslError`]; the login is over then.
    pub fn step(&mut self, challenge: &[u8]) -> Result<Vec<u8>, SaslError> {
        let mechanism = self.mechanism;
        let (message, next) = match std::mem::replace(&mut self.state, State::Refused(String::new())) {
            State::Plain(message) => (message.encode(), State::Sent),
            State::Token(message) => (message.encode(), State::Sent),
            State::Scram(client) => (client.first(), State::ScramBegun(client)),
            State::ScramBegun(mut client) => {
                let message = client.step(challenge)?;
                match message.is_empty() {
                    true => (message, State::Done),
                    false => (message, State::ScramBegun(client)),
                }
            }
            State::Sent if challenge.is_empty() => (Vec::new(), State::Done),
            State::Sent if mechanism == Mechanism::OauthBearer => {
                let why = self.said(&String::from_utf8_lossy(challenge));
                (vec![SEPARATOR], State::Refused(why))
            }
            State::Sent => return Err(SaslError::Malformed(mechanism, "it should be empty")),
            State::Refused(why) => return Err(SaslError::Refused(mechanism, why)),
            State::Done => return Err(SaslError::Over(mechanism)),
        };
        self.state = next;
        Ok(message)
    }
}

#[cfg(test)]
mod tests;
