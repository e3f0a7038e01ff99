//! Whether a token (JWT, RFC 7519) is valid: signed by one of the keys of a JWKS (RFC 7517), meant for us, and of this time.
//!
//! As Kafka's `BrokerJwtValidator`: `exp`, `iat` and the subject must be there; the issuer and the audience are checked when they are set,
//! and a token that names an audience is refused where none is set, as it is meant for somebody. Only signatures by public keys are
//! accepted: what a token says of its algorithm is compared with what its key is for, so that neither `none` nor an HMAC made with the text
//! of a public key gets through. Besides, a token from the future (`nbf`, `iat`) is refused. Clocks may differ by
//! `sasl.oauthbearer.clock.skew.seconds`.
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::shown::shown;

/// Longest token.
pub const TOKEN_MAX_BYTES: usize = /* 64 KiB */ 64 << 10;
/// Largest JWKS.
pub const JWKS_MAX_BYTES: usize = /* 1 MiB */ 1 << 20;
/// Most keys of a JWKS.
pub const JWKS_MAX_KEYS: usize = 256;

/// What a token must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRules {
    /// It must be meant for one of them; none: it must not say for whom.
    pub audiences: Vec<String>,
    /// Who must have made it, where that is set.
    pub issuer: Option<String>,
    /// How far clocks may differ.
    pub clock_skew_seconds: u32,
    /// Which claim names the user.
    pub sub_claim_name: String,
    /// Which claim names what it may do; only its form is checked.
    pub scope_claim_name: String,
}

impl Default for TokenRules {
    fn default() -> Self {
        let (sub_claim_name, scope_claim_name) = ("sub".into(), "scope".into());
        Self { audiences: Vec::new(), issuer: None, clock_skew_seconds: 30, sub_claim_name, scope_claim_name }
    }
}

/// A valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Whose it is.
    pub subject: String,
    /// When it ends, as a time of day.
    pub expires_ms: i64,
}

/// Why a text is no JWKS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// Too large, or not JSON with a list `keys`.
    #[error("this is no JWKS: {0}")]
    NoJwks(String),
    /// No key that signatures can be checked with.
    #[error(
        "this JWKS has no key for signatures: an RSA key, one of the curve P-256 or P-384, or an Ed25519 key"
    )]
    NoKey,
}

/// Why a token is refused; for the log. Names are escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a signed JWT.
    #[error("the token is no signed JWT: {0}")]
    Malformed(&'static str),
    /// `none`, an HMAC, or something else.
    #[error("the token's algorithm (alg) {} is not accepted: use RS256, PS256, ES256 or their longer forms, or EdDSA", shown(.0))]
    Algorithm(String),
    /// The JWKS may be old.
    #[error("the token's key (kid) {} is not one of the JWKS, or is not for its algorithm", shown(.0))]
    UnknownKey(String),
    /// Several could be meant.
    #[error("the token names no key (kid), and the JWKS does not have just one for its algorithm")]
    NoKey,
    /// Somebody else made it, or changed it.
    #[error("the token's signature is wrong")]
    Signature,
    /// A claim that must be there.
    #[error("the token has no claim {0}, or not in the form that it should have")]
    Claim(String),
    /// Too old.
    #[error("the token has expired")]
    Expired,
    /// From the future.
    #[error("the token is not valid yet (nbf or iat), by more than sasl.oauthbearer.clock.skew.seconds")]
    TooEarly,
    /// Somebody else's.
    #[error("the token's issuer is not sasl.oauthbearer.expected.issuer")]
    Issuer,
    /// Meant for somebody else.
    #[error("the token's audience is not in sasl.oauthbearer.expected.audience")]
    Audience,
}

/// Judges tokens. `Debug` shows no key, although they are public.
pub struct TokenValidator {
    keys: Vec<Key>,
    rules: TokenRules,
    /// Whether a token named a key that is not among them.
    missed: AtomicBool,
}

struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl std::fmt::Debug for TokenValidator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenValidator").field("keys", &self.keys.len()).field("rules", &self.rules).finish()
    }
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

impl TokenValidator {
    /// By the keys in `jwks`; keys that are not for signatures, or of another kind, are passed over.
    ///
    /// # Errors
    /// [`JwksError`].
    pub fn new(jwks: &str, rules: TokenRules) -> Result<Self, JwksError> {
        if jwks.len() > JWKS_MAX_BYTES {
            return Err(JwksError::NoJwks(format!("it has more than {JWKS_MAX_BYTES} bytes")));
        }
        let read: Jwks = serde_json::from_str(jwks).map_err(|error| JwksError::NoJwks(error.to_string()))?;
        if read.keys.len() > JWKS_MAX_KEYS {
            return Err(JwksError::NoJwks(format!("it has more than {JWKS_MAX_KEYS} keys")));
        }
        let keys: Vec<Key> = read.keys.into_iter().filter_map(usable).collect();
        if keys.is_empty() {
            return Err(JwksError::NoKey);
        }
        Ok(Self { keys, rules, missed: AtomicBool::new(false) })
    }

    /// What `token` says, if it is valid at the time of day `now_ms`.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn validate(&self, token: &str, now_ms: i64) -> Result<Token, TokenError> {
        self.judge(&self.verified(token)?, now_ms)
    }

    /// Whether a token has named a key that is not known since this was last asked: the JWKS may have a new one by now.
    pub fn has_missed(&self) -> bool {
        self.missed.swap(false, Ordering::Relaxed)
    }

    /// The claims of a token whose signature is right.
    fn verified(&self, token: &str) -> Result<Map<String, Value>, TokenError> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(TokenError::Malformed("it is too long"));
        }
        let parts = "it does not consist of three parts";
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed(parts))?;
        let (header, claims) = message.split_once('.').ok_or(TokenError::Malformed(parts))?;
        if claims.contains('.') {
            return Err(TokenError::Malformed(parts));
        }
        let header: Header = decoded(header, "its header is not understood")?;
        if header.crit.is_some() {
            return Err(TokenError::Malformed("its header demands what is not known (crit)"));
        }
        let algorithm = accepted(&header.alg).ok_or(TokenError::Algorithm(header.alg))?;
        let key = self.key(header.kid, algorithm)?;
        let right = crypto::verify(signature, message.as_bytes(), key, algorithm);
        match right {
            Ok(true) => decoded(claims, "its claims are not understood"),
            Ok(false) | Err(_) => Err(TokenError::Signature),
        }
    }

    fn key(&self, id: Option<String>, algorithm: Algorithm) -> Result<&DecodingKey, TokenError> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithms.contains(&algorithm));
        match id {
            Some(id) => {
                let found = fitting.find(|key| key.id.as_ref() == Some(&id));
                if found.is_none() {
                    self.missed.store(true, Ordering::Relaxed);
                }
                found.map(|key| &key.key).ok_or(TokenError::UnknownKey(id))
            }
            None => match (fitting.next(), fitting.next()) {
                (Some(only), None) => Ok(&only.key),
                _ => Err(TokenError::NoKey),
            },
        }
    }

    fn judge(&self, claims: &Map<String, Value>, now_ms: i64) -> Result<Token, TokenError> {
        let rules = &self.rules;
        let skew_ms = i64::from(rules.clock_skew_seconds) * 1_000;
        let expires_ms = time_ms(claims, "exp")?.ok_or_else(|| TokenError::Claim("exp".into()))?;
        let issued_ms = time_ms(claims, "iat")?.ok_or_else(|| TokenError::Claim("iat".into()))?;
        if expires_ms.saturating_add(skew_ms) <= now_ms {
            return Err(TokenError::Expired);
        }
        let begins_ms = time_ms(claims, "nbf")?.map_or(issued_ms, |begins| begins.max(issued_ms));
        if begins_ms > now_ms.saturating_add(skew_ms) {
            return Err(TokenError::TooEarly);
        }
        if rules
            .issuer
            .as_deref()
            .is_some_and(|issuer| claims.get("iss").and_then(Value::as_str) != Some(issuer))
        {
            return Err(TokenError::Issuer);
        }
        if !is_meant(claims.get("aud"), &rules.audiences) {
            return Err(TokenError::Audience);
        }
        if !is_scope(claims.get(&rules.scope_claim_name)) {
            return Err(TokenError::Claim(rules.scope_claim_name.clone()));
        }
        let subject = claims.get(&rules.sub_claim_name).and_then(Value::as_str).map(str::trim);
        let subject = subject.filter(|subject| !subject.is_empty());
        let subject = subject.ok_or_else(|| TokenError::Claim(rules.sub_claim_name.clone()))?.to_owned();
        Ok(Token { subject, expires_ms })
    }
}

fn decoded<T: serde::de::DeserializeOwned>(part: &str, why: &'static str) -> Result<T, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed(why))?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed(why))
}

/// The algorithm of that name, if it is one by public keys.
fn accepted(name: &str) -> Option<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let known = [RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA];
    known.into_iter().find(|algorithm| format!("{algorithm:?}") == name)
}

/// A key that signatures can be checked with.
fn usable(key: Value) -> Option<Key> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let named = key.get("alg").and_then(Value::as_str).map(str::to_owned);
    let key: Jwk = serde_json::from_value(key).ok()?;
    let mut algorithms = match &key.algorithm {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(curve) if curve.curve == EllipticCurve::Ed25519 => vec![EdDSA],
        _ => return None,
    };
    if let Some(named) = named {
        algorithms.retain(|algorithm| format!("{algorithm:?}") == named);
    }
    let for_signatures = match (&key.common.public_key_use, &key.common.key_operations) {
        (Some(PublicKeyUse::Signature) | None, None) => true,
        (Some(PublicKeyUse::Signature) | None, Some(operations)) => {
            operations.contains(&KeyOperations::Verify)
        }
        (Some(_), _) => false,
    };
    let decoding = DecodingKey::from_jwk(&key).ok()?;
    let usable = for_signatures && !algorithms.is_empty();
    usable.then_some(Key { id: key.common.key_id, algorithms, key: decoding })
}

/// Latest time that is understood, in seconds: the end of the year 9999.
const TIME_MAX_SECONDS: f64 = 253_402_300_799.0;

/// A time of day in seconds, possibly with a fraction.
fn time_ms(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=TIME_MAX_SECONDS).contains(seconds));
    let seconds = seconds.ok_or_else(|| TokenError::Claim(name.into()))?;
    Ok(Some((seconds * 1_000.0) as i64))
}

/// Whether a token for `audience` is for one of `ours`.
fn is_meant(audience: Option<&Value>, ours: &[String]) -> bool {
    let is_ours = |name: &Value| name.as_str().is_some_and(|name| ours.iter().any(|our| our == name));
    match audience {
        None => ours.is_empty(),
        Some(Value::Array(names)) => names.iter().any(is_ours),
        Some(name) => is_ours(name),
    }
}

/// Nothing, a text, or a list of texts without repetition.
fn is_scope(scope: Option<&Value>) -> bool {
    let is_text = |name: &Value| name.as_str().is_some_and(|name| !name.trim().is_empty());
    match scope {
        None | Some(Value::Null) => true,
        Some(Value::Array(names)) => {
            let distinct: std::collections::HashSet<_> =
                names.iter().filter_map(Value::as_str).map(str::trim).collect();
            names.iter().all(is_text) && distinct.len() == names.len()
        }
        Some(name) => is_text(name),
    }
}

#[cfg(test)]
mod tests;
