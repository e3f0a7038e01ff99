//! What the broker knows about security, as Python hands it down: users, and the keys of who makes tokens. Any thread.
//!
//! A [`SecurityState`] never changes: a change puts a new one in its place, and a request that has begun keeps what it has. Python applies
//! the first one before the broker listens, and another one after every change (`NativeBroker.apply_security`); the keys, which have a
//! source of their own, by `NativeBroker.apply_jwks`.
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::security_document::DocumentError;
use pylog_security::sasl::credentials::{Credentials, DecoyKey, Users};
use pylog_security::sasl::jwt::{JwksError, TokenRules, TokenValidator};
use pylog_security::sasl::scram::{Credential, CredentialError, Hash};
use pylog_settings::sasl::Settings;

/// Shortest time between two readings of the keys for an unknown one.
pub const MISSED_MIN_MS: i64 = 10_000;

/// Why a state is not applied; the one before stays.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// Users, ACLs and quotas.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The keys for tokens.
    #[error("the keys that tokens are checked with cannot be used: {0}")]
    Jwks(#[from] JwksError),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] CredentialError),
}

/// What is known.
#[derive(Debug)]
pub struct SecurityState {
    /// Who may log in.
    pub credentials: Credentials,
}

/// The state, and how it is changed.
#[derive(Debug)]
pub struct Security {
    now: RwLock<Arc<SecurityState>>,
    /// Held while a new state is made of the one before.
    changing: Mutex<()>,
    rules: TokenRules,
    decoy_key: DecoyKey,
    /// When keys were last missed, by the steady clock.
    missed_ms: Mutex<Option<i64>>,
}

impl Security {
    /// Nobody can log in yet.
    ///
    /// # Errors
    /// [`SecurityError::Random`].
    pub fn new(settings: &Settings) -> Result<Self, SecurityError> {
        let decoy_key = DecoyKey::random()?;
        let credentials = Credentials::of_users([], decoy_key.clone());
        let now = RwLock::new(Arc::new(SecurityState { credentials }));
        let rules = token_rules(settings);
        Ok(Self { now, changing: Mutex::default(), rules, decoy_key, missed_ms: Mutex::default() })
    }

    /// What is known now.
    pub fn now(&self) -> Arc<SecurityState> {
        Arc::clone(&self.now.read())
    }

    /// Whether the keys are to be read again, because a token named one that is not known; at most every [`MISSED_MIN_MS`], so that
    /// nobody has a server of keys asked in a hurry. `now_ms` is the steady clock.
    pub fn wants_keys(&self, now_ms: i64) -> bool {
        if !self.now().credentials.tokens.as_ref().is_some_and(|tokens| tokens.has_missed()) {
            return false;
        }
        let mut missed_ms = self.missed_ms.lock();
        let is_due = missed_ms.is_none_or(|last| now_ms - last >= MISSED_MIN_MS);
        if is_due {
            *missed_ms = Some(now_ms);
        }
        is_due
    }

    /// Replaces the users (name, hash, credential). Without a `decoy_key` names of nobody get what this broker makes up alone.
    pub fn apply(
        &self,
        users: impl IntoIterator<Item = (String, Hash, Credential)>,
        decoy_key: Option<DecoyKey>,
    ) {
        let users = Arc::new(Users::new(users, decoy_key.unwrap_or_else(|| self.decoy_key.clone())));
        self.change(|before| SecurityState {
            credentials: Credentials { users, tokens: before.credentials.tokens.clone() },
        });
    }

    /// Replaces the keys that tokens are checked with.
    ///
    /// # Errors
    /// [`SecurityError`]; nothing has changed then.
    pub fn apply_jwks(&self, jwks: &str) -> Result<(), SecurityError> {
        let tokens = Some(Arc::new(TokenValidator::new(jwks, self.rules.clone())?));
        self.change(|before| SecurityState {
            credentials: Credentials { users: Arc::clone(&before.credentials.users), tokens },
        });
        Ok(())
    }

    fn change(&self, next: impl FnOnce(&SecurityState) -> SecurityState) {
        let _changing = self.changing.lock();
        let before = self.now();
        let next = Arc::new(next(&before));
        *self.now.write() = next;
    }
}

fn token_rules(settings: &Settings) -> TokenRules {
    let words = settings.sasl_oauthbearer_expected_audience.split(',').map(str::trim);
    TokenRules {
        audiences: words.filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        issuer: settings.sasl_oauthbearer_expected_issuer.clone(),
        clock_skew_seconds: settings.sasl_oauthbearer_clock_skew_seconds,
        sub_claim_name: settings.sasl_oauthbearer_sub_claim_name.clone(),
        scope_claim_name: settings.sasl_oauthbearer_scope_claim_name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_security::sasl::credentials::DECOY_KEY_BYTES;
    use pylog_security::sasl::scram::derive;
    use pylog_security::secret::Secret;
    use serde_json::json;

    fn security() -> Security {
        Security::new(&Settings::default()).unwrap()
    }

    fn user(name: &str) -> [(String, Hash, Credential); 1] {
        let credential = derive(Hash::Sha256, &Secret::new("x"), b"salt", 4_096).unwrap();
        [(name.to_owned(), Hash::Sha256, credential)]
    }

    #[test]
    fn who_had_the_state_before_keeps_it() {
        let security = security();
        security.apply(user("alice"), None);
        let kept = security.now();
        assert!(security.apply_jwks("{}").is_err());
        let knows = |name: &str| security.now().credentials.users.scram(Hash::Sha256, name).1;
        assert!(knows("alice") && !knows("bob"));
        security.apply(user("bob"), None);
        assert!(!knows("alice") && knows("bob"));
        assert!(kept.credentials.users.scram(Hash::Sha256, "alice").1);
    }

    #[test]
    fn keys_stay_when_users_change_and_users_when_keys_do() {
        let security = security();
        security.apply(user("alice"), None);
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        security.apply_jwks(&json!({"keys": [jwk]}).to_string()).unwrap();
        assert!(security.now().credentials.users.scram(Hash::Sha256, "alice").1);
        security.apply(user("bob"), None);
        assert!(security.now().credentials.tokens.is_some());
    }

    #[test]
    fn an_unknown_key_has_the_keys_read_again_but_not_in_a_hurry() {
        let security = security();
        assert!(!security.wants_keys(0));
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        security.apply_jwks(&json!({"keys": [jwk]}).to_string()).unwrap();
        let miss = || {
            // {"alg":"EdDSA","kid":"b"}
            let token = "eyJhbGciOiJFZERTQSIsImtpZCI6ImIifQ.e30.AAAA";
            let state = security.now();
            state.credentials.tokens.as_ref().unwrap().validate(token, 0).unwrap_err();
        };
        miss();
        assert!(security.wants_keys(0) && !security.wants_keys(0));
        miss();
        assert!(!security.wants_keys(MISSED_MIN_MS - 1));
        miss();
        assert!(security.wants_keys(MISSED_MIN_MS));
    }

    #[test]
    fn made_up_credentials_are_the_same_on_all_brokers_that_have_the_same_key() {
        let (one, other) = (security(), security());
        let made_up = |security: &Security| security.now().credentials.users.scram(Hash::Sha512, "mallory").0;
        assert_ne!(made_up(&one), made_up(&other));
        one.apply([], Some(DecoyKey::new([15; DECOY_KEY_BYTES])));
        other.apply([], Some(DecoyKey::new([15; DECOY_KEY_BYTES])));
        assert_eq!(made_up(&one), made_up(&other));
    }
}
