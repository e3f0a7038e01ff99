//! SASL: how a client proves who it is, as state machines for both sides. No socket, no thread; the time of day is handed in.
//!
//! | module | what it owns |
//! |---|---|
//! | [`mechanism`] | the mechanisms' names |
//! | [`client`] | a client's side of a login |
//! | [`server`] | a broker's side, and how it ends |
//! | [`credentials`] | what a broker knows: SCRAM users, and how it judges tokens |
//! | [`plain`] | the message of PLAIN (RFC 4616) |
//! | [`scram`] | SCRAM (RFC 5802, 7677): keys, messages, both sides |
//! | [`oauthbearer`] | the messages of OAUTHBEARER (RFC 7628) |
//! | [`jwt`] | whether a token is valid (RFC 7519), by the keys of a JWKS (RFC 7517) |
//! | [`shown`] | names and sentences of strangers, in the log and in errors |
//!
//! Hostile bytes are refused with an error and never panic; what is kept of a message is not larger than the message. Secrets are compared
//! in constant time. A name that no user has costs a broker what a wrong password costs, and is answered by the same sentence.
pub mod client;
pub mod credentials;
pub mod jwt;
pub mod mechanism;
pub mod oauthbearer;
pub mod plain;
pub mod scram;
pub mod server;
pub mod shown;

pub use client::Login;
pub use credentials::Credentials;
pub use mechanism::Mechanism;
pub use server::{Exchange, Failure, Step};

/// Why a login cannot go on, as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    /// The user, password or token cannot be used with this mechanism.
    #[error("cannot log in by {0}: {1}")]
    Unusable(Mechanism, &'static str),
    /// The broker's message is not one of the mechanism.
    #[error("cannot log in by {0}: the broker's message is not understood: {1}")]
    Malformed(Mechanism, &'static str),
    /// The broker's nonce is not ours continued: an old message, or one of another login.
    #[error("cannot log in by {0}: the nonce in the broker's message is not of this login")]
    Nonce(Mechanism),
    /// The password would be hashed too few times, which gives it away, or so often that it takes too long.
    #[error(
        "cannot log in by {mechanism}: the broker asks for {iterations} iterations, not for {min} to {max}"
    )]
    Iterations {
        /// How the client logs in.
        mechanism: Mechanism,
        /// What the broker asks for.
        iterations: u64,
        /// The fewest that are safe.
        min: u32,
        /// The most that are computed.
        max: u32,
    },
    /// The broker does not know the password itself.
    #[error(
        "cannot log in by {0}: the broker has not proved that it knows the user's keys; is it the right one?"
    )]
    ServerSignature(Mechanism),
    /// The broker says no; escaped, and without the secret.
    #[error("cannot log in by {0}: the broker refuses: {1}")]
    Refused(Mechanism, String),
    /// The broker speaks although the login is over.
    #[error("cannot log in by {0}: the broker sent another message after the last one")]
    Over(Mechanism),
    /// No random bytes.
    #[error("cannot log in: the system gives no random bytes")]
    Random,
}
