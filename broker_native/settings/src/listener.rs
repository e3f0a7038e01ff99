//! Settings that each listener of a broker may have of its own, as `listener.name.<name>.<setting>`; without one, the broker's counts.
use crate::declare::settings;
use crate::sasl;
use crate::secret::Secret;

settings! {
    /// Settings of one listener. An empty text counts as not given.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        // TLS.
        /// Whether clients must show a certificate: required, requested (a certificate that is shown must be trusted) or
        /// none.
        "ssl.client.auth" STRING ssl_client_auth: String = "none".to_owned(),
            one_of(&["none", "requested", "required"], ""), per_listener();
        /// Cipher suites that may be used, by the names of Java and the IANA. Empty: all that are safe.
        "ssl.cipher.suites" STRING ssl_cipher_suites: String = String::new(), per_listener();
        /// Versions of TLS that may be used, separated by commas: TLSv1.2 and TLSv1.3.
        "ssl.enabled.protocols" STRING ssl_enabled_protocols: String = "TLSv1.2,TLSv1.3".to_owned(), per_listener();
        /// How long a client's TLS handshake may take. Then its connection is closed. Only pylog has this setting.
        "ssl.handshake.timeout.ms" INT ssl_handshake_timeout_ms: u64 = /* 10 s */ 10_000, at_least(1), per_listener();
        /// Most TLS handshakes that are in progress at the same time. When there are more, the oldest one of the client
        /// address that has the most is ended. Only pylog has this setting.
        "ssl.handshake.max.connections" INT ssl_handshake_max_connections: usize = 1_000, at_least(1), per_listener();
        /// Password of the private key, where it has one of its own.
        "ssl.key.password" PASSWORD ssl_key_password: Secret = Secret::default(), per_listener();
        /// The broker's certificate, followed by the CA certificates that signed it, as PEM text.
        "ssl.keystore.certificate.chain" PASSWORD ssl_keystore_certificate_chain: Secret = Secret::default(),
            per_listener();
        /// The broker's private key as PEM text (PKCS#8).
        "ssl.keystore.key" PASSWORD ssl_keystore_key: Secret = Secret::default(), per_listener();
        /// File of the broker's private key and certificate. When it is replaced, new connections use what is in it
        /// within a second or two.
        "ssl.keystore.location" STRING ssl_keystore_location: String = String::new(), high(), per_listener();
        /// Password of `ssl.keystore.location`.
        "ssl.keystore.password" PASSWORD ssl_keystore_password: Secret = Secret::default(), high(), per_listener();
        /// Format of `ssl.keystore.location`. Not set: it is known by its first bytes.
        "ssl.keystore.type" STRING ssl_keystore_type: Option<String> = None, one_of(&["JKS", "PKCS12", "PEM"], ""),
            per_listener();
        /// Rules that turn the subject of a client's certificate into the name of its principal, separated by commas; the
        /// first rule whose pattern matches the whole subject counts. RULE:pattern/replacement/ with L or U after it for
        /// lower or upper case, or DEFAULT for the subject as it is.
        "ssl.principal.mapping.rules" STRING ssl_principal_mapping_rules: String = "DEFAULT".to_owned(), per_listener();
        /// CA certificates that must have signed the clients' certificates, as PEM text.
        "ssl.truststore.certificates" PASSWORD ssl_truststore_certificates: Secret = Secret::default(), per_listener();
        /// File of CA certificates that must have signed the clients' certificates. It is read again when it is replaced.
        "ssl.truststore.location" STRING ssl_truststore_location: String = String::new(), high(), per_listener();
        /// Password of `ssl.truststore.location`.
        "ssl.truststore.password" PASSWORD ssl_truststore_password: Secret = Secret::default(), high(), per_listener();
        /// Format of `ssl.truststore.location`. Not set: it is known by its first bytes.
        "ssl.truststore.type" STRING ssl_truststore_type: Option<String> = None, one_of(&["JKS", "PKCS12", "PEM"], ""),
            per_listener();
    }
    parts {
        /// Settings of logins.
        sasl: sasl::listener::Settings;
    }
}
