//! By which mechanism a client logs in, and as whom: its settings, checked.
use std::sync::Arc;

use crate::error::{ClientError, Result, kind};
use pylog_security::sasl::scram::Hash;
use pylog_security::sasl::{Login, Mechanism, SaslError};
use pylog_settings::Secret;
use pylog_settings::client_security::Settings;

use super::jaas::Entry;
use super::tokens::{self, TokenSettings, TokenSource};

const CHOICES: &str = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER";
const NO_KERBEROS: &str = "GSSAPI (Kerberos) is not spoken by this client; use a listener of the brokers with SCRAM-SHA-512 or OAUTHBEARER, or one of SSL with a client's certificate";
const NO_MSK_CLASS: &str = "MSK's IAM login runs as a Java class only; use sasl.mechanism=OAUTHBEARER with a Python function that signs tokens (aws-msk-iam-sasl-signer-python) in sasl.oauthbearer.token.provider";

/// Mechanism and credentials. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct LoginSettings {
    mechanism: Mechanism,
    credentials: Credentials,
}

#[derive(Debug, Clone)]
enum Credentials {
    Password { user: String, password: Secret },
    Token { settings: TokenSettings, extensions: Vec<(String, String)>, source: Option<Arc<dyn TokenSource>> },
}

impl LoginSettings {
    /// Those of a client whose `security.protocol` has SASL.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the setting.
    pub fn new(settings: &Settings) -> Result<Self> {
        let given = settings.sasl_mechanism.trim();
        let mechanism = mechanism(given)?;
        let text = settings.sasl_jaas_config.reveal();
        let jaas = (!text.trim().is_empty()).then(|| Entry::read(text)).transpose();
        let jaas = jaas.map_err(|refused| ClientError::invalid(format!("sasl.jaas.config {refused}")))?;
        if let Some(entry) = &jaas {
            check_module(entry, mechanism)?;
        }
        let credentials = match mechanism {
            Mechanism::OauthBearer => Credentials::Token {
                settings: tokens::settings(settings, jaas.as_ref())?,
                extensions: tokens::extensions(settings, jaas.as_ref())?,
                source: None,
            },
            _ => password(settings, jaas.as_ref(), mechanism)?,
        };
        Ok(Self { mechanism, credentials })
    }

    /// How the client logs in.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// As whom, for messages.
    pub fn who(&self) -> String {
        match &self.credentials {
            Credentials::Password { user, .. } => format!("as user {user:?}"),
            Credentials::Token { .. } => "with its token".to_owned(),
        }
    }

    pub(super) fn take_tokens_from(&mut self, make: impl FnOnce(&TokenSettings) -> Arc<dyn TokenSource>) {
        if let Credentials::Token { settings, source, .. } = &mut self.credentials {
            *source = Some(make(settings));
        }
    }

    /// A new login; for OAUTHBEARER with a token that is got now.
    ///
    /// # Errors
    /// Those of the source of tokens; `INVALID_ARGUMENT` for credentials that the mechanism cannot carry.
    pub fn begin(&self) -> Result<Login> {
        let unusable = |error: SaslError| ClientError::invalid(error.to_string());
        match &self.credentials {
            Credentials::Password { user, password } => {
                Login::with_password(self.mechanism, user, password.clone()).map_err(unusable)
            }
            Credentials::Token { extensions, source, .. } => {
                let source = source.as_ref().ok_or_else(|| {
                    ClientError::fatal(kind::INTERNAL, "this client was made without a source of tokens")
                })?;
                let token = source.token()?;
                let extensions = extensions.iter().cloned().chain(token.extensions).collect();
                Login::with_token(token.value, extensions).map_err(unusable)
            }
        }
    }
}

fn mechanism(given: &str) -> Result<Mechanism> {
    let why = match given.to_ascii_uppercase().as_str() {
        "" => "is missing (Kafka's own default, GSSAPI, is not spoken here)".to_owned(),
        "GSSAPI" => return Err(ClientError::invalid(NO_KERBEROS)),
        "AWS_MSK_IAM" => return Err(ClientError::invalid(NO_MSK_CLASS)),
        upper => match upper.parse() {
            Ok(mechanism) => return Ok(mechanism),
            Err(_) => format!("is {given:?}"),
        },
    };
    Err(ClientError::invalid(format!("sasl.mechanism {why}; give {CHOICES}")))
}

/// Refuses a login module of another mechanism.
fn check_module(entry: &Entry, mechanism: Mechanism) -> Result<()> {
    let module = entry.module();
    let fits = match module {
        "PlainLoginModule" => mechanism == Mechanism::Plain,
        "ScramLoginModule" => Hash::of(mechanism).is_some(),
        "OAuthBearerLoginModule" => mechanism == Mechanism::OauthBearer,
        "Krb5LoginModule" => return Err(ClientError::invalid(NO_KERBEROS)),
        "IAMLoginModule" => return Err(ClientError::invalid(NO_MSK_CLASS)),
        _ => {
            return Err(ClientError::invalid(
                "sasl.jaas.config names a Java class that cannot run here; PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule of Kafka are understood",
            ));
        }
    };
    if !fits {
        return Err(ClientError::invalid(format!(
            "sasl.jaas.config names {module}, which does not go with sasl.mechanism={mechanism}"
        )));
    }
    if entry.option("tokenauth").is_some_and(|value| value.reveal().eq_ignore_ascii_case("true")) {
        return Err(ClientError::invalid(
            "tokenauth in sasl.jaas.config is a login by a delegation token, which this client does not speak; give a user and a password",
        ));
    }
    Ok(())
}

fn password(settings: &Settings, jaas: Option<&Entry>, mechanism: Mechanism) -> Result<Credentials> {
    let both = |given: bool, name: &str| match given
        && jaas.is_some_and(|entry| entry.option("username").is_some())
    {
        true => Err(ClientError::invalid(format!(
            "sasl.jaas.config and {name} both say who logs in; leave one out"
        ))),
        false => Ok(()),
    };
    both(!settings.sasl_username.is_empty(), "sasl.username")?;
    both(!settings.sasl_password.is_empty(), "sasl.password")?;
    let of_jaas = |name: &str| jaas.and_then(|entry| entry.option(name)).cloned();
    let user =
        of_jaas("username").map_or_else(|| settings.sasl_username.clone(), |user| user.reveal().to_owned());
    let password = of_jaas("password").unwrap_or_else(|| settings.sasl_password.clone());
    if user.is_empty() || password.is_empty() {
        return Err(ClientError::invalid(format!(
            "sasl.mechanism={mechanism} needs a user and a password; give sasl.username and sasl.password, or both in sasl.jaas.config"
        )));
    }
    Ok(Credentials::Password { user, password })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_settings::client_security::Settings;

    fn given(values: &[(&str, &str)]) -> Result<LoginSettings> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        LoginSettings::new(&Settings::default().read_over(values).unwrap())
    }

    fn refused(values: &[(&str, &str)]) -> String {
        let error = given(values).unwrap_err();
        assert_eq!(error.kind, "INVALID_ARGUMENT");
        error.message
    }

    const SCRAM: &str = "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\" password=\"swordfish\";";

    #[test]
    fn a_user_is_found_under_javas_names_and_librdkafkas() {
        for values in [
            &[("sasl.mechanism", "SCRAM-SHA-512"), ("sasl.jaas.config", SCRAM)][..],
            &[("sasl.mechanism", "PLAIN"), ("sasl.username", "alice"), ("sasl.password", "swordfish")],
            &[("sasl.mechanism", "plain"), ("sasl.username", "alice"), ("sasl.password", "swordfish")],
        ] {
            let login = given(values).unwrap();
            assert_eq!(login.who(), "as user \"alice\"");
            assert!(!format!("{login:?}").contains("swordfish"));
            login.begin().unwrap();
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_what_to_do_and_without_secrets() {
        for (values, part) in [
            (&[][..], "give PLAIN"),
            (&[("sasl.mechanism", "GSSAPI")], "SCRAM-SHA-512 or OAUTHBEARER"),
            (&[("sasl.mechanism", "gssapi")], "GSSAPI (Kerberos) is not spoken by this client"),
            (&[("sasl.mechanism", "AWS_MSK_IAM")], "sasl.oauthbearer.token.provider"),
            (&[("sasl.mechanism", "aws_msk_iam")], "sasl.oauthbearer.token.provider"),
            (&[("sasl.mechanism", "DIGEST-MD5")], "DIGEST-MD5"),
            (&[("sasl.mechanism", "PLAIN")], "sasl.username"),
            (&[("sasl.mechanism", "PLAIN"), ("sasl.username", "alice")], "sasl.password"),
            (&[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", SCRAM)], "ScramLoginModule"),
            (
                &[
                    ("sasl.mechanism", "SCRAM-SHA-256"),
                    ("sasl.jaas.config", SCRAM),
                    ("sasl.password", "swordfish"),
                ],
                "leave one out",
            ),
            (&[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", "swordfish")], "sasl.jaas.config must say"),
            (
                &[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", "com.sun.Krb5LoginModule required;")],
                "Kerberos",
            ),
            (&[("sasl.mechanism", "PLAIN"), ("sasl.jaas.config", "x.Other required;")], "PlainLoginModule"),
            (
                &[
                    ("sasl.mechanism", "SCRAM-SHA-256"),
                    ("sasl.jaas.config", "ScramLoginModule required tokenauth=true;"),
                ],
                "delegation token",
            ),
            (&[("sasl.mechanism", "OAUTHBEARER")], "sasl.oauthbearer.token.endpoint.url"),
            (
                &[("sasl.mechanism", "OAUTHBEARER"), ("sasl.oauthbearer.token.endpoint.url", "https://a/b")],
                "client.secret",
            ),
            (
                &[("sasl.mechanism", "OAUTHBEARER"), ("sasl.oauthbearer.token.endpoint.url", "ftp://a/b")],
                "must begin with https://",
            ),
            (
                &[("sasl.mechanism", "OAUTHBEARER"), ("sasl.oauthbearer.token.provider", "function")],
                "module:function",
            ),
            (
                &[("sasl.mechanism", "OAUTHBEARER"), ("sasl.login.callback.handler.class", "a.b.Handler")],
                "Java class",
            ),
        ] {
            let message = refused(values);
            assert!(message.contains(part) && !message.contains("swordfish"), "{message}");
        }
    }

    #[test]
    fn a_secret_is_sent_by_https_or_to_this_machine_and_no_url_with_a_password_is_shown() {
        let with = |url: &str| {
            given(&[
                ("sasl.mechanism", "OAUTHBEARER"),
                ("sasl.oauthbearer.token.endpoint.url", url),
                ("sasl.oauthbearer.client.credentials.client.id", "me"),
                ("sasl.oauthbearer.client.credentials.client.secret", "swordfish"),
            ])
        };
        for url in
            ["https://a:1/b", "http://localhost/b", "http://127.0.0.1:80?a", "http://[::1]:80/", "file:/a"]
        {
            with(url).unwrap();
        }
        for (url, part) in [
            ("http://a/b", "must begin with https://"),
            ("http://localhost.a/b", "must begin with https://"),
            ("http://[::2]/", "must begin with https://"),
            ("https://planted:planted@a/", "has a user or a password"),
        ] {
            let message = with(url).unwrap_err().message;
            assert!(message.contains(part) && !message.contains("planted"), "{message}");
        }
    }

    #[test]
    fn what_jaas_says_about_tls_at_the_server_of_tokens_is_used_or_refused() {
        let with = |options: &str| {
            let jaas = format!("OAuthBearerLoginModule required clientId='me' clientSecret='s' {options};");
            given(&[
                ("sasl.mechanism", "OAUTHBEARER"),
                ("sasl.oauthbearer.token.endpoint.url", "https://a/b"),
                ("sasl.jaas.config", &jaas),
            ])
        };
        let used = with("ssl.truststore.type='PEM' ssl.truststore.location='/ca.pem'").unwrap();
        let Credentials::Token { settings, .. } = used.credentials else { panic!("no token") };
        assert_eq!(settings.get("https.ca.location").map(Secret::reveal), Some("/ca.pem"));
        for options in
            ["ssl.truststore.location='/ca.jks'", "ssl.truststore.type='PEM' ssl.keystore.location='/k'"]
        {
            let message = with(options).unwrap_err().message;
            assert!(
                message.contains("https.ca.location") && message.contains("which is not used here"),
                "{message}"
            );
        }
    }

    #[test]
    fn client_credentials_are_found_in_jaas_and_in_settings_of_their_own() {
        let url = ("sasl.oauthbearer.token.endpoint.url", "https://a/b");
        let jaas = "OAuthBearerLoginModule required clientId='me' clientSecret='swordfish' scope='s' extension_logicalCluster='lkc';";
        let kafkas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler";
        for values in [
            &[
                ("sasl.mechanism", "OAUTHBEARER"),
                url,
                ("sasl.jaas.config", jaas),
                ("sasl.login.callback.handler.class", kafkas),
            ][..],
            &[
                ("sasl.mechanism", "OAUTHBEARER"),
                url,
                ("sasl.oauthbearer.client.credentials.client.id", "me"),
                ("sasl.oauthbearer.client.credentials.client.secret", "swordfish"),
                ("sasl.oauthbearer.scope", "s"),
                ("sasl.oauthbearer.extensions", "logicalCluster=lkc"),
            ],
        ] {
            let Credentials::Token { settings, extensions, .. } = given(values).unwrap().credentials else {
                panic!("no token")
            };
            for (name, value) in [("client.id", "me"), ("client.secret", "swordfish")] {
                let name = format!("sasl.oauthbearer.client.credentials.{name}");
                assert_eq!(settings.get(&name).map(Secret::reveal), Some(value));
            }
            assert_eq!(settings.get("sasl.oauthbearer.scope").map(Secret::reveal), Some("s"));
            assert_eq!(extensions, [("logicalCluster".to_owned(), "lkc".to_owned())]);
            assert!(!format!("{settings:?}").contains("swordfish"));
        }
    }
}
