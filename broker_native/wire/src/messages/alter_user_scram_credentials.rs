//! AlterUserScramCredentials (51): SCRAM credentials are set or removed.
use bytes::Bytes;

use super::hex;
use crate::schema::messages;

messages! {
    /// The changes.
    AlterUserScramCredentialsRequest of AlterUserScramCredentials {
        deletions: Vec<ScramCredentialDeletion> [0+],
        upsertions: Vec<ScramCredentialUpsertion> [0+],
    }

    /// A credential to remove.
    ScramCredentialDeletion {
        name: String [0+],
        /// 1: SCRAM-SHA-256; 2: SCRAM-SHA-512.
        mechanism: i8 [0+],
    }

    /// A credential to set.
    ScramCredentialUpsertion {
        name: String [0+],
        /// As in a deletion.
        mechanism: i8 [0+],
        iterations: i32 [0+],
        #[serde(with = "hex::never_null")]
        salt: Bytes [0+],
        #[serde(with = "hex::never_null")]
        salted_password: Bytes [0+],
    }

    /// What became of each user's changes.
    AlterUserScramCredentialsResponse of AlterUserScramCredentials {
        throttle_time_ms: i32 [0+],
        results: Vec<AlterUserScramCredentialsResult> [0+],
    }

    /// What became of one user's.
    AlterUserScramCredentialsResult {
        user: String [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
