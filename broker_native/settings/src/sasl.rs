//! Settings of brokers about logins by SASL.
use crate::declare::settings;

settings! {
    /// Settings of one broker.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        /// How long a broker waits before it answers a failed login and closes the connection.
        "connection.failed.authentication.delay.ms" INT connection_failed_authentication_delay_ms: u64 = 100,
            at_least(0), low();
        /// How long a client may take from the start of its connection to the end of its login. Then the connection is
        /// closed. Only pylog has this setting.
        "sasl.login.deadline.ms" INT sasl_login_deadline_ms: u64 = /* 30 s */ 30_000, at_least(1);
        /// How far the clocks of the broker and of the token's issuer may differ.
        "sasl.oauthbearer.clock.skew.seconds" INT sasl_oauthbearer_clock_skew_seconds: u32 = 30,
            between(0, 86_400), low();
        /// The expected audiences: a token must name one of them (its claim `aud`). Empty: a token with an audience is
        /// refused.
        "sasl.oauthbearer.expected.audience" LIST sasl_oauthbearer_expected_audience: String = String::new(), low();
        /// The required issuer of a token (its claim `iss`). Not set: any issuer whose key is in the JWKS.
        "sasl.oauthbearer.expected.issuer" STRING sasl_oauthbearer_expected_issuer: Option<String> = None, low();
        /// The claim of a token that says what it may be used for. Only its form is checked.
        "sasl.oauthbearer.scope.claim.name" STRING sasl_oauthbearer_scope_claim_name: String = "scope".to_owned(),
            low();
        /// The claim of a token that names the user.
        "sasl.oauthbearer.sub.claim.name" STRING sasl_oauthbearer_sub_claim_name: String = "sub".to_owned(), low();
        /// Largest request in bytes before a client has logged in. Kafka's default is 524288.
        "sasl.server.max.receive.size" INT sasl_server_max_receive_size: usize = /* 64 KiB */ 64 << 10,
            between(1_024, 65_536);
    }
    without_field {
        /// The keys (JWKS) that the signatures of tokens are checked with: an https:// URL, or a file as file:///PATH.
        /// Not set: no token is valid.
        "sasl.oauthbearer.jwks.endpoint.url" STRING = None::<&str>;
        /// How often the JWKS is read again.
        "sasl.oauthbearer.jwks.endpoint.refresh.ms" LONG = /* 1 hour */ 3_600_000, at_least(1_000), low();
        /// First pause after an attempt to read the JWKS failed; it doubles up to
        /// sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms.
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" LONG = 100, at_least(1), low();
        /// Longest pause between attempts to read the JWKS.
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" LONG = /* 10 s */ 10_000, at_least(1), low();
    }
}

/// Settings of one listener.
pub mod listener {
    use crate::declare::settings;

    settings! {
        /// Settings of the logins at one listener.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            /// How long a login lasts at most. Clients log in again before that, over the same connection (KIP-368); a
            /// connection without a new login is closed at its next request. 0: no limit but the end of the client's
            /// token.
            "connections.max.reauth.ms" LONG connections_max_reauth_ms: i64 = 0, at_least(0), per_listener();
            /// The mechanisms by which clients may log in: SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and PLAIN. PLAIN is
            /// offered only where TLS protects it (SASL_SSL); it uses the passwords of SCRAM's users.
            "sasl.enabled.mechanisms" LIST sasl_enabled_mechanisms: String = "SCRAM-SHA-256,SCRAM-SHA-512".to_owned(),
                one_of(&["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "PLAIN"], "Kerberos (GSSAPI) is not supported"),
                per_listener();
            /// Most connections whose clients have not logged in yet; each may hold a request of
            /// sasl.server.max.receive.size bytes. When there are more, the oldest one of the client address that has the
            /// most is closed. Only pylog has this setting.
            "sasl.login.max.connections" INT sasl_login_max_connections: usize = 1_000, at_least(1), per_listener();
        }
    }
}
