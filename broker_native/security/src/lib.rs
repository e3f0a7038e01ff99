//! Who a peer is, what is encrypted, and who may do what.
//!
//! | module | what it owns |
//! |---|---|
//! | [`principal`] | who a peer is |
//! | [`protocol`] | the security protocol of a listener or client |
//! | [`secret`] | a text that is never shown |
//! | [`tls`] | certificates, keys and trusted roots, from PEM, JKS or PKCS12; rustls configurations of clients and brokers |
//! | [`sasl`] | the mechanisms, both sides, as state machines |
//! | [`acl`] | Kafka's ACLs: patterns, and what they allow |
//!
//! Nothing here opens a socket or starts a thread; the time of day is handed in, but for rustls, which reads it when it judges a certificate.
pub mod acl;
pub mod principal;
pub mod protocol;
pub mod sasl;
pub mod tls;

pub use pylog_settings::secret;
