//! Users that log in by SCRAM: who there is, credentials set and removed (KIP-554).
//!
//! No password comes here: Python salts it first, and what is sent is the salted one.
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{change, error_name, refuse_saying, said};
use crate::error::{ClientError, Result};
use crate::metadata::cluster::Cluster;
use pylog_wire::messages::alter_user_scram_credentials::{
    AlterUserScramCredentialsResult, ScramCredentialDeletion, ScramCredentialUpsertion,
};
use pylog_wire::messages::describe_user_scram_credentials::{
    CredentialInfo, DescribeUserScramCredentialsResult, UserName,
};
use pylog_wire::messages::{AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest};

/// Kafka's numbers of the mechanisms.
const MECHANISMS: [(i8, &str); 2] = [(1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")];

/// Credentials to remove and to set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// User and mechanism.
    pub deletions: Vec<(String, String)>,
    /// What is set.
    pub upsertions: Vec<Upsertion>,
}

/// A credential to set. Not `Debug`: it lets its owner log in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upsertion {
    /// The user.
    pub user: String,
    /// By its name.
    pub mechanism: String,
    /// How often the password was hashed.
    pub iterations: i32,
    /// Hexadecimal.
    #[serde(deserialize_with = "hidden")]
    pub salt: Bytes,
    /// Hexadecimal.
    #[serde(deserialize_with = "hidden")]
    pub salted_password: Bytes,
}

/// Reads hexadecimal text. No error has anything of it.
fn hidden<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Bytes, D::Error> {
    let wrong = || D::Error::custom("a secret is not hexadecimal");
    let text = String::deserialize(from).map_err(|_| wrong())?;
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    pairs.map(byte).collect::<Option<Vec<u8>>>().map(Bytes::from).ok_or_else(wrong)
}

/// The users `names`, or all when there are none: {name, credentials: [{mechanism, iterations}], error, message}.
///
/// # Errors
/// Those of the connection and of the whole request.
pub fn describe(cluster: &mut Cluster, names: &[String]) -> Result<Vec<Value>> {
    let what = "describe SCRAM users";
    let users = names.iter().map(|name| UserName { name: name.clone() }).collect();
    let request = DescribeUserScramCredentialsRequest { users: Some(users) };
    let answer = cluster.retrying(what, |cluster| cluster.call_any(&request))?;
    refuse_saying(answer.error_code, answer.error_message.as_deref(), what)?;
    let mut found: Vec<&DescribeUserScramCredentialsResult> = answer.results.iter().collect();
    found.sort_by(|one, other| one.user.cmp(&other.user));
    Ok(found.into_iter().map(user_json).collect())
}

fn user_json(user: &DescribeUserScramCredentialsResult) -> Value {
    let credential = |info: &CredentialInfo| {
        let mechanism = MECHANISMS.iter().find(|(number, _)| *number == info.mechanism);
        let mechanism = mechanism.map_or_else(|| info.mechanism.to_string(), |(_, name)| (*name).to_owned());
        json!({"mechanism": mechanism, "iterations": info.iterations})
    };
    json!({
        "name": user.user,
        "credentials": user.credential_infos.iter().map(credential).collect::<Vec<_>>(),
        "error": error_name(user.error_code),
        "message": said(user.error_code, user.error_message.as_deref()),
    })
}

/// Removes and sets credentials: for each user {name, error, message}.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown mechanism, those of the connection.
pub fn alter(cluster: &mut Cluster, changes: &Changes) -> Result<Vec<Value>> {
    let deletion = |(name, by): &(String, String)| {
        Ok(ScramCredentialDeletion { name: name.clone(), mechanism: mechanism(by)? })
    };
    let upsertion = |upsertion: &Upsertion| {
        Ok(ScramCredentialUpsertion {
            name: upsertion.user.clone(),
            mechanism: mechanism(&upsertion.mechanism)?,
            iterations: upsertion.iterations,
            salt: upsertion.salt.clone(),
            salted_password: upsertion.salted_password.clone(),
        })
    };
    let request = AlterUserScramCredentialsRequest {
        deletions: changes.deletions.iter().map(deletion).collect::<Result<_>>()?,
        upsertions: changes.upsertions.iter().map(upsertion).collect::<Result<_>>()?,
    };
    let answer = change(cluster, "alter SCRAM users", &request)?;
    let result = |result: &AlterUserScramCredentialsResult| {
        json!({
            "name": result.user,
            "error": error_name(result.error_code),
            "message": said(result.error_code, result.error_message.as_deref()),
        })
    };
    Ok(answer.results.iter().map(result).collect())
}

fn mechanism(name: &str) -> Result<i8> {
    let found = MECHANISMS.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
    found.ok_or_else(|| {
        ClientError::invalid(format!("the mechanism {name:?} must be SCRAM-SHA-256 or SCRAM-SHA-512"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_cannot_be_read_is_not_in_the_error() {
        for secret in ["\"swordfish\"", "\"abc\"", "[\"swordfish\"]", "5150", "\"é0\""] {
            let json = format!(
                r#"{{"deletions": [], "upsertions": [{{"user": "a", "mechanism": "SCRAM-SHA-256", "iterations": 4096,
                    "salt": "00", "salted_password": {secret}}}]}}"#
            );
            let error = serde_json::from_str::<Changes>(&json).err().unwrap().to_string();
            assert!(error.contains("a secret is not hexadecimal"), "{error}");
            assert!(!error.contains("swordfish") && !error.contains("5150"), "{error}");
        }
        let read =
            r#"{"user": "a", "mechanism": "m", "iterations": 1, "salt": "00fF", "salted_password": ""}"#;
        assert_eq!(&serde_json::from_str::<Upsertion>(read).ok().unwrap().salt[..], [0, 255]);
    }
}
