//! TLS: what certificates, keys and trusted roots are read from, and the rustls configurations of clients and brokers.
//!
//! | module | what it owns |
//! |---|---|
//! | [`settings`] | the `ssl.*` settings as texts, and what rustls makes of versions and cipher suites |
//! | [`material`] | [`Identity`](material::Identity) (certificates and a private key), [`Trust`](material::Trust) (roots) |
//! | [`files`] | bounded reading; whether files have changed since they were read |
//! | `pem`, `jks`, `pkcs12` | the three kinds of stores, read by [`store`] into `contents` |
//! | `pbe`, `der` | what opens encrypted keys and stores; the few bytes of ASN.1 that this takes |
//! | [`verify`] | whether a peer's chain is trusted, and whether it has the host's name |
//! | [`client`], [`server`] | the rustls configurations |
//! | [`handshake`] | one sentence for each way in which a handshake fails |
//! | [`name`], [`principal`] | distinguished names as Java writes them, `ssl.principal.mapping.rules` |
//! | `system` | what the operating system trusts |
//! | [`throwaway`] | certificates for tests |
//!
//! The provider of rustls' cryptography is handed to each configuration; none is installed for the process. Bytes of a store are hostile:
//! nothing allocates more than the store has bytes, and the work that a password takes has a limit (`pbe::MAX_ITERATIONS`).
pub mod certificate;
pub mod client;
mod contents;
mod der;
pub mod error;
pub mod files;
pub mod handshake;
mod jks;
pub mod material;
pub mod name;
mod pbe;
mod pem;
mod pkcs12;
pub mod principal;
pub mod server;
pub mod settings;
pub mod store;
mod system;
pub mod throwaway;
pub mod verify;

#[cfg(test)]
mod tests;

pub use error::TlsError;
pub use settings::TlsSettings;
