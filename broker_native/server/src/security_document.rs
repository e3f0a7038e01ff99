//! What Python hands down about security: users, ACLs and quotas at once, as JSON (`NativeBroker.apply_security` in `_native.pyi`). Pure.
//!
//! It is read as a whole before any of it is applied. What is unknown, missing or cannot be used is refused, with all the rest: a name that
//! is misspelt would otherwise stand for no users, or no ACLs.
use serde::Deserialize;

use crate::quotas::table::EntityQuotas;
use pylog_security::acl::AclBinding;
use pylog_security::sasl::credentials::{DECOY_KEY_BYTES, DecoyKey, Stored, Unusable};
use pylog_security::sasl::scram::{Credential, Hash};

/// Why a document is refused.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not the JSON that it should be.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A user's credential.
    #[error(transparent)]
    Credential(#[from] Unusable),
    /// The key of made-up credentials.
    #[error("decoy_key must have {} hexadecimal digits", 2 * DECOY_KEY_BYTES)]
    DecoyKey,
}

/// All that is known about security but the keys of tokens.
#[derive(Debug)]
pub struct SecurityDocument {
    /// Who logs in with a password: name, hash, credential.
    pub users: Vec<(String, Hash, Credential)>,
    /// Who may do what.
    pub acls: Vec<AclBinding>,
    /// Who may use how much.
    pub quotas: Vec<EntityQuotas>,
    /// What made-up credentials are made of, the same on all brokers; `None` before the first user.
    pub decoy_key: Option<DecoyKey>,
}

/// The JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    scram: Vec<Stored>,
    acls: Vec<AclBinding>,
    quotas: Vec<EntityQuotas>,
    #[serde(deserialize_with = "Option::deserialize")]
    decoy_key: Option<String>,
}

impl SecurityDocument {
    /// Reads it.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn read(json: &str) -> Result<Self, DocumentError> {
        let Document { scram, acls, quotas, decoy_key } = serde_json::from_str(json)?;
        let users = scram.into_iter().map(Stored::read).collect::<Result<_, _>>()?;
        let read = |text: String| decoy_key_of(&text).ok_or(DocumentError::DecoyKey);
        Ok(Self { users, acls, quotas, decoy_key: decoy_key.map(read).transpose()? })
    }
}

/// The bytes of hexadecimal digits.
fn decoy_key_of(text: &str) -> Option<DecoyKey> {
    let mut bytes = [0; DECOY_KEY_BYTES];
    if text.len() != 2 * DECOY_KEY_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(DecoyKey::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn whole() -> Value {
        // 32 zero bytes.
        let key = format!("{}=", "A".repeat(43));
        let scram = json!({
            "user": "alice", "mechanism": "SCRAM-SHA-256", "salt": "c2FsdA==", "stored_key": key, "server_key": key,
            "iterations": 4_096,
        });
        let acl = json!({
            "resource_type": "TOPIC", "resource_name": "t", "pattern_type": "LITERAL", "principal": "User:alice", "host": "*",
            "operation": "READ", "permission": "ALLOW",
        });
        let quota = json!({"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1}});
        json!({"scram": [scram], "acls": [acl], "quotas": [quota], "decoy_key": "0f".repeat(32)})
    }

    #[test]
    fn all_of_it_is_read() {
        let read = SecurityDocument::read(&whole().to_string()).unwrap();
        assert_eq!((read.users.len(), read.acls.len(), read.quotas.len()), (1, 1, 1));
        assert!(read.decoy_key.is_some());
        let empty = json!({"scram": [], "acls": [], "quotas": [], "decoy_key": null});
        assert!(SecurityDocument::read(&empty.to_string()).unwrap().decoy_key.is_none());
    }

    #[test]
    fn a_name_that_is_missing_or_unknown_is_refused_by_name_wherever_it_stands() {
        for part in ["", "/scram/0", "/acls/0", "/quotas/0"] {
            let names: Vec<String> =
                whole().pointer(part).unwrap().as_object().unwrap().keys().cloned().collect();
            for name in names {
                let mut lacking = whole();
                let at = lacking.pointer_mut(part).unwrap().as_object_mut().unwrap();
                let value = at.remove(&name).unwrap();
                let refused = SecurityDocument::read(&lacking.to_string()).unwrap_err().to_string();
                assert!(refused.contains(&format!("missing field `{name}`")), "{part}/{name}: {refused}");
                let mut misspelt = whole();
                let at = misspelt.pointer_mut(part).unwrap().as_object_mut().unwrap();
                at.insert(format!("{name}x"), value);
                let refused = SecurityDocument::read(&misspelt.to_string()).unwrap_err().to_string();
                assert!(refused.contains(&format!("unknown field `{name}x`")), "{part}/{name}: {refused}");
            }
        }
    }

    #[test]
    fn a_key_of_decoys_is_64_digits() {
        for key in ["", "0f", &"0g".repeat(32), &"+f".repeat(32), &"0f".repeat(33), &"é".repeat(32)] {
            let mut document = whole();
            document["decoy_key"] = key.into();
            let refused = SecurityDocument::read(&document.to_string()).unwrap_err();
            assert!(matches!(refused, DocumentError::DecoyKey), "{key}: {refused}");
        }
    }
}
