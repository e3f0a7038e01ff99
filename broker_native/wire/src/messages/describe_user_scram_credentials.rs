//! DescribeUserScramCredentials (50): who can log in by SCRAM, without the credentials.
use crate::schema::messages;

messages! {
    /// Which users.
    DescribeUserScramCredentialsRequest of DescribeUserScramCredentials {
        /// Null or empty: all.
        users: Option<Vec<UserName>> [0+],
    }

    /// One user.
    UserName {
        name: String [0+],
    }

    /// The users that were asked for.
    DescribeUserScramCredentialsResponse of DescribeUserScramCredentials {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        results: Vec<DescribeUserScramCredentialsResult> [0+],
    }

    /// One user.
    DescribeUserScramCredentialsResult {
        user: String [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        credential_infos: Vec<CredentialInfo> [0+],
    }

    /// What a user can log in by.
    CredentialInfo {
        /// 1: SCRAM-SHA-256; 2: SCRAM-SHA-512.
        mechanism: i8 [0+],
        iterations: i32 [0+],
    }
}
