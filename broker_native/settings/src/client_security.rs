//! Settings with which a client reaches brokers that demand TLS or a login. Names are Kafka's; where librdkafka has another one for
//! the same thing, that is known as well.
//!
//! A text that is empty counts as not given in settings of logins. In those of TLS, and in `security.protocol`, it means what it means in Kafka:
//! a list that is empty is that of all; an empty `ssl.endpoint.identification.algorithm` is no check; an empty password is a password.
//! Everything else is refused: a trust store whose path is missing by mistake does not make the client trust others.
use crate::declare::settings;
use crate::secret::Secret;

settings! {
    /// What a client needs beside addresses; how these go together is checked by who uses them.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        /// How brokers are spoken to: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT (a login without encryption) or SASL_SSL (a
        /// login over TLS).
        "security.protocol" STRING security_protocol: String = "PLAINTEXT".to_owned(),
            one_of(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], "");
        /// Newest version of TLS that may be spoken: TLSv1.3 or TLSv1.2.
        "ssl.protocol" STRING ssl_protocol: String = "TLSv1.3".to_owned();
        /// Versions of TLS that may be spoken. Older ones than TLSv1.2 are not safe and never spoken.
        "ssl.enabled.protocols" LIST ssl_enabled_protocols: String = "TLSv1.2,TLSv1.3".to_owned();
        /// Cipher suites that may be used, by their names in Java or OpenSSL; all that are safe when none is given.
        "ssl.cipher.suites" LIST ssl_cipher_suites: String = String::new();
        /// `https` compares a broker's host name with its certificate; empty (or `none`, librdkafka's word) does not.
        "ssl.endpoint.identification.algorithm" STRING ssl_endpoint_identification_algorithm: String = "https".to_owned();
        /// librdkafka's name for whether brokers' certificates are checked. They always are: false is refused.
        "enable.ssl.certificate.verification" BOOLEAN enable_ssl_certificate_verification: bool = true;
        /// File of the certificates that are trusted. Without one, and without the other settings for it, the operating system's are.
        "ssl.truststore.location" STRING ssl_truststore_location: String = String::new();
        /// Format of `ssl.truststore.location`: JKS, PKCS12 or PEM. Known by the file's first bytes when it is not given.
        "ssl.truststore.type" STRING ssl_truststore_type: String = String::new(), one_of(&["JKS", "PKCS12", "PEM"], "");
        /// Password of `ssl.truststore.location`.
        "ssl.truststore.password" PASSWORD ssl_truststore_password: Secret = Secret::default();
        /// The trusted certificates themselves, as PEM text.
        "ssl.truststore.certificates" PASSWORD ssl_truststore_certificates: Secret = Secret::default();
        /// librdkafka's name for a PEM file of the certificates that are trusted.
        "ssl.ca.location" STRING ssl_ca_location: String = String::new();
        /// librdkafka's name for the trusted certificates themselves, as PEM text.
        "ssl.ca.pem" PASSWORD ssl_ca_pem: Secret = Secret::default();
        /// File of the client's own private key and certificate, with which it answers brokers that ask for one.
        "ssl.keystore.location" STRING ssl_keystore_location: String = String::new();
        /// Format of `ssl.keystore.location`: JKS, PKCS12 or PEM. Known by the file's first bytes when it is not given.
        "ssl.keystore.type" STRING ssl_keystore_type: String = String::new(), one_of(&["JKS", "PKCS12", "PEM"], "");
        /// Password of `ssl.keystore.location`.
        "ssl.keystore.password" PASSWORD ssl_keystore_password: Secret = Secret::default();
        /// The client's private key itself, as PEM text (PKCS#8).
        "ssl.keystore.key" PASSWORD ssl_keystore_key: Secret = Secret::default();
        /// The client's certificate and those that signed it, as PEM text.
        "ssl.keystore.certificate.chain" PASSWORD ssl_keystore_certificate_chain: Secret = Secret::default();
        /// Password of the private key, where it has one of its own.
        "ssl.key.password" PASSWORD ssl_key_password: Secret = Secret::default();
        /// librdkafka's name for a PEM file of the client's certificate.
        "ssl.certificate.location" STRING ssl_certificate_location: String = String::new();
        /// librdkafka's name for the client's certificate itself, as PEM text.
        "ssl.certificate.pem" PASSWORD ssl_certificate_pem: Secret = Secret::default();
        /// librdkafka's name for a PEM file of the client's private key.
        "ssl.key.location" STRING ssl_key_location: String = String::new();
        /// librdkafka's name for the client's private key itself, as PEM text.
        "ssl.key.pem" PASSWORD ssl_key_pem: Secret = Secret::default();
        /// How the client logs in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Needed with SASL_PLAINTEXT and SASL_SSL.
        "sasl.mechanism" STRING sasl_mechanism: String = String::new(), aliases(&["sasl.mechanisms"]);
        /// The login as Java clients write it: a login module and its options, such as `username` and `password`.
        "sasl.jaas.config" PASSWORD sasl_jaas_config: Secret = Secret::default();
        /// User of PLAIN and SCRAM (librdkafka's name; Java's is within `sasl.jaas.config`).
        "sasl.username" STRING sasl_username: String = String::new();
        /// Password of PLAIN and SCRAM (librdkafka's name; Java's is within `sasl.jaas.config`).
        "sasl.password" PASSWORD sasl_password: Secret = Secret::default();
        /// Where a token of OAUTHBEARER is got: a URL (https; http only for a server on the same machine) that is asked for client credentials, or `file:`
        /// and the path of a file with a token, which is read for each login.
        "sasl.oauthbearer.token.endpoint.url" STRING sasl_oauthbearer_token_endpoint_url: String = String::new();
        /// librdkafka's word for where tokens come from. It changes nothing here: sasl.oauthbearer.token.endpoint.url or sasl.oauthbearer.token.provider says it.
        "sasl.oauthbearer.method" STRING sasl_oauthbearer_method: String = "default".to_owned(), one_of(&["default", "oidc"], "");
        /// Client id at `sasl.oauthbearer.token.endpoint.url`.
        "sasl.oauthbearer.client.credentials.client.id" STRING sasl_oauthbearer_client_id: String = String::new(),
            aliases(&["sasl.oauthbearer.client.id"]);
        /// Client secret at `sasl.oauthbearer.token.endpoint.url`.
        "sasl.oauthbearer.client.credentials.client.secret" PASSWORD sasl_oauthbearer_client_secret: Secret = Secret::default(),
            aliases(&["sasl.oauthbearer.client.secret"]);
        /// Scope that is asked for at `sasl.oauthbearer.token.endpoint.url`.
        "sasl.oauthbearer.scope" STRING sasl_oauthbearer_scope: String = String::new();
        /// librdkafka's name for a PEM file of the certificates that are trusted at `sasl.oauthbearer.token.endpoint.url`, instead of
        /// those of the operating system.
        "https.ca.location" STRING https_ca_location: String = String::new();
        /// Whether client id and secret are URL-encoded in the header of the request for a token, as RFC 6749 wants it.
        "sasl.oauthbearer.header.urlencode" BOOLEAN sasl_oauthbearer_header_urlencode: bool = false;
        /// SASL extensions sent with a token: `name=value`, separated by commas.
        "sasl.oauthbearer.extensions" STRING sasl_oauthbearer_extensions: String = String::new();
        /// A Python function that gives tokens, as `module:function`. It is called with the text of `sasl.oauthbearer.token.provider.config` and
        /// gives a token and its end in seconds since 1970, as `oauth_cb` of confluent-kafka does. The module must be importable
        /// wherever a client is: on the driver and on the executors.
        "sasl.oauthbearer.token.provider" STRING sasl_oauthbearer_token_provider: String = String::new();
        /// What `sasl.oauthbearer.token.provider` is called with.
        "sasl.oauthbearer.token.provider.config" PASSWORD sasl_oauthbearer_token_provider_config: Secret = Secret::default();
        /// Java's class for getting tokens. Kafka's own OAuthBearerLoginCallbackHandler means sasl.oauthbearer.token.endpoint.url; others cannot
        /// run here and are refused.
        "sasl.login.callback.handler.class" STRING sasl_login_callback_handler_class: String = String::new();
        /// How long connecting to a server of tokens may take.
        "sasl.login.connect.timeout.ms" INT sasl_login_connect_timeout_ms: i64 = 10_000, at_least(1);
        /// How long a server of tokens may take to answer.
        "sasl.login.read.timeout.ms" INT sasl_login_read_timeout_ms: i64 = 10_000, at_least(1);
        /// First pause before a server of tokens is asked again; it doubles.
        "sasl.login.retry.backoff.ms" LONG sasl_login_retry_backoff_ms: i64 = 100, at_least(0);
        /// How long a server of tokens is asked again before that is an error.
        "sasl.login.retry.backoff.max.ms" LONG sasl_login_retry_backoff_max_ms: i64 = 10_000, at_least(0);
        /// Part of a token's life after which a new one is got for the next login.
        "sasl.login.refresh.window.factor" DOUBLE sasl_login_refresh_window_factor: f64 = 0.8, between(0, 1);
        /// How long before its end a token is replaced at the latest, where its life is long enough.
        "sasl.login.refresh.buffer.seconds" INT sasl_login_refresh_buffer_seconds: i64 = 300, between(0, 3_600);
    }
}
