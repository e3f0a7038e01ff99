//! Where tokens of OAUTHBEARER come from: whoever runs the client gives a [`TokenSource`].
use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::error::{ClientError, Result};
use pylog_settings::Secret;
use pylog_settings::client_security::Settings;

use super::jaas::Entry;

/// What a [`TokenSource`] reads: values by the names of their settings, and options of `sasl.jaas.config` for unsecured tokens by
/// theirs.
pub type TokenSettings = BTreeMap<String, Secret>;

/// A token, and what is sent with it (KIP-342).
#[derive(Debug, Clone)]
pub struct Token {
    /// The token as it is sent.
    pub value: Secret,
    /// Names and values beside those of the settings.
    pub extensions: Vec<(String, String)>,
}

/// Gives tokens. It is asked for each login by the thread that logs in, which waits for it, before a connection is opened.
pub trait TokenSource: Debug + Send + Sync {
    /// A token that is valid now.
    ///
    /// # Errors
    /// Why there is none; `TOKEN_UNAVAILABLE`, `retriable`, where there may be one later.
    fn token(&self) -> Result<Token>;
}

const ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";
const CLIENT_ID: &str = "sasl.oauthbearer.client.credentials.client.id";
const CLIENT_SECRET: &str = "sasl.oauthbearer.client.credentials.client.secret";
const SCOPE: &str = "sasl.oauthbearer.scope";
const PROVIDER: &str = "sasl.oauthbearer.token.provider";
/// How the names of options begin that make a token which nobody signs: of Kafka's own tests.
const UNSECURED: &str = "unsecuredLogin";
const EXTENSION: &str = "extension_";
const CA_FILE: &str = "https.ca.location";
const KAFKAS_HANDLER: &str = "OAuthBearerLoginCallbackHandler";

/// The settings for tokens, those of `jaas` where the client's own are not given.
///
/// # Errors
/// `INVALID_ARGUMENT` when they do not say where tokens come from.
pub fn settings(settings: &Settings, jaas: Option<&Entry>) -> Result<TokenSettings> {
    let handler = settings.sasl_login_callback_handler_class.trim();
    if !handler.is_empty() && handler.rsplit(['.', '$']).next() != Some(KAFKAS_HANDLER) {
        return Err(ClientError::invalid(format!(
            "sasl.login.callback.handler.class {handler:?} is a Java class, which cannot run here; give a Python function that gives tokens in {PROVIDER}"
        )));
    }
    let own =
        |value: &str, option: &str| match (value.is_empty(), jaas.and_then(|entry| entry.option(option))) {
            (true, Some(secret)) => secret.clone(),
            _ => Secret::new(value),
        };
    let mut found: TokenSettings = [
        (ENDPOINT, Secret::new(settings.sasl_oauthbearer_token_endpoint_url.trim())),
        (CLIENT_ID, own(&settings.sasl_oauthbearer_client_id, "clientId")),
        (CLIENT_SECRET, own(settings.sasl_oauthbearer_client_secret.reveal(), "clientSecret")),
        (SCOPE, own(&settings.sasl_oauthbearer_scope, "scope")),
        (PROVIDER, Secret::new(settings.sasl_oauthbearer_token_provider.trim())),
        ("sasl.oauthbearer.token.provider.config", settings.sasl_oauthbearer_token_provider_config.clone()),
        (CA_FILE, trusted_by_server(settings.https_ca_location.trim(), jaas)?),
        (
            "sasl.oauthbearer.header.urlencode",
            Secret::new(settings.sasl_oauthbearer_header_urlencode.to_string()),
        ),
        ("sasl.login.connect.timeout.ms", Secret::new(settings.sasl_login_connect_timeout_ms.to_string())),
        ("sasl.login.read.timeout.ms", Secret::new(settings.sasl_login_read_timeout_ms.to_string())),
        ("sasl.login.retry.backoff.ms", Secret::new(settings.sasl_login_retry_backoff_ms.to_string())),
        (
            "sasl.login.retry.backoff.max.ms",
            Secret::new(settings.sasl_login_retry_backoff_max_ms.to_string()),
        ),
        (
            "sasl.login.refresh.window.factor",
            Secret::new(settings.sasl_login_refresh_window_factor.to_string()),
        ),
        (
            "sasl.login.refresh.buffer.seconds",
            Secret::new(settings.sasl_login_refresh_buffer_seconds.to_string()),
        ),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let unsecured = jaas.into_iter().flat_map(|entry| &entry.options);
    let unsecured = unsecured.filter(|(name, _)| name.starts_with(UNSECURED));
    found.extend(unsecured.map(|(name, value)| (name.clone(), value.clone())));
    check(&found)?;
    Ok(found)
}

/// Why the server of tokens at `url` is not asked; `None`: it is. The rest of the URL is Python's to check (`pylog_spark/login/endpoint.py`).
fn why_not_asked(url: &str) -> Option<&'static str> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host =
        authority.rsplit_once(':').filter(|_| !authority.ends_with(']')).map_or(authority, |(host, _)| host);
    let is_here = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    match scheme {
        "https" | "http" if authority.contains('@') => Some(
            "has a user or a password in it, which is not used and would be shown; give client id and secret by their settings",
        ),
        "https" => None,
        "http" if is_here => None,
        "http" => Some(
            "must begin with https://: the client's secret is sent there; http:// is for a server on the same machine",
        ),
        _ => Some("must begin with https:// or file:"),
    }
}

/// The PEM file of the certificates that are trusted at the server of tokens: `given`, or what Java's clients have in `jaas`
/// (`JaasOptionsUtils` of Kafka).
///
/// # Errors
/// `INVALID_ARGUMENT` for other TLS settings there, which would silently not be used.
fn trusted_by_server(given: &str, jaas: Option<&Entry>) -> Result<Secret> {
    const STORE: [&str; 2] = ["ssl.truststore.location", "ssl.truststore.type"];
    let of_jaas = |name: &str| jaas.and_then(|entry| entry.option(name));
    let is_pem = of_jaas(STORE[1]).is_some_and(|text| text.reveal().eq_ignore_ascii_case("PEM"));
    let mut names = jaas.into_iter().flat_map(|entry| entry.options.keys());
    let other = names.find(|name| name.starts_with("ssl.") && !(is_pem && STORE.contains(&name.as_str())));
    match (other, of_jaas(STORE[0])) {
        (Some(name), _) => Err(ClientError::invalid(format!(
            "sasl.jaas.config has {name} for the server of tokens, which is not used here; name a PEM file of the certificates that are trusted there in {CA_FILE}"
        ))),
        (None, Some(file)) if given.is_empty() => Ok(file.clone()),
        (None, _) => Ok(Secret::new(given)),
    }
}

fn check(found: &TokenSettings) -> Result<()> {
    let has = |name: &str| found.contains_key(name);
    match (has(PROVIDER), has(ENDPOINT)) {
        (true, true) => Err(ClientError::invalid(format!(
            "{PROVIDER} and {ENDPOINT} both say where tokens come from; leave one out"
        ))),
        (true, false) => {
            let name = found.get(PROVIDER).map(Secret::reveal).unwrap_or_default();
            let is_named = name.split_once(':').is_some_and(|(module, function)| {
                !module.is_empty() && !function.is_empty() && !function.contains(':')
            });
            is_named.then_some(()).ok_or_else(|| {
                ClientError::invalid(format!("{PROVIDER} must be module:function, not {name:?}"))
            })
        }
        (false, true) => {
            let url = found.get(ENDPOINT).map(Secret::reveal).unwrap_or_default();
            let is_file = url.starts_with("file:");
            if let Some(why) = why_not_asked(url).filter(|_| !is_file) {
                return Err(ClientError::invalid(format!("{ENDPOINT} {why}")));
            }
            if !is_file && (!has(CLIENT_ID) || !has(CLIENT_SECRET)) {
                return Err(ClientError::invalid(format!(
                    "{ENDPOINT} is asked with a client id and a client secret; give them in {CLIENT_ID} and {CLIENT_SECRET}, or as clientId and clientSecret in sasl.jaas.config"
                )));
            }
            Ok(())
        }
        (false, false) if found.keys().any(|name| name.starts_with(UNSECURED)) => Ok(()),
        (false, false) => Err(ClientError::invalid(format!(
            "sasl.mechanism=OAUTHBEARER needs to know where tokens come from; give {ENDPOINT} (a server of tokens, or file: and a path) or {PROVIDER} (a Python function)"
        ))),
    }
}

/// What is sent with every token, from the setting and from `jaas`.
///
/// # Errors
/// `INVALID_ARGUMENT` for what is not `name=value`.
pub fn extensions(settings: &Settings, jaas: Option<&Entry>) -> Result<Vec<(String, String)>> {
    let listed =
        settings.sasl_oauthbearer_extensions.split(',').map(str::trim).filter(|text| !text.is_empty());
    let mut found: Vec<(String, String)> = listed
        .map(|text| {
            let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
            pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| {
                ClientError::invalid("sasl.oauthbearer.extensions must be name=value, separated by commas")
            })
        })
        .collect::<Result<_>>()?;
    for (name, value) in jaas.into_iter().flat_map(|entry| &entry.options) {
        let name = name
            .strip_prefix(EXTENSION)
            .or_else(|| name.strip_prefix("unsecuredLoginExtension_").filter(|name| !name.is_empty()));
        if let Some(name) = name {
            found.push((name.to_owned(), value.reveal().to_owned()));
        }
    }
    Ok(found)
}
