//! The messages of OAUTHBEARER (RFC 7628), as Kafka's clients write them.
//!
//! ```text
//! client  n,[a=ID],^A auth=Bearer TOKEN ^A [NAME=VALUE ^A]... ^A      (without the blanks; ^A is the byte 1)
//! broker  nothing, or {"status":"invalid_token"}
//! client  ^A, when it has read the latter
//! ```
use crate::secret::Secret;

/// What parts are separated by; alone, what a client says to an error.
pub const SEPARATOR: u8 = 1;
/// What a broker says of a token that it does not take, as Kafka's.
pub const INVALID_TOKEN: &str = r#"{"status":"invalid_token"}"#;

/// What is wrong with a message.
pub type Malformed = &'static str;

/// What a client says.
#[derive(Debug, Clone)]
pub struct TokenMessage {
    /// As whom it wants to act; empty: as the token's subject.
    pub authorization_id: String,
    /// The token.
    pub token: Secret,
    /// What else it says (KIP-342), in its order.
    pub extensions: Vec<(String, String)>,
}

impl TokenMessage {
    /// A message.
    ///
    /// # Errors
    /// A token or an extension that cannot be written.
    pub fn new(token: Secret, extensions: Vec<(String, String)>) -> Result<Self, Malformed> {
        if !is_token(token.reveal()) {
            return Err("the token is empty, or has bytes that no token has");
        }
        if !extensions.iter().all(|(name, value)| is_name(name) && is_value(value)) {
            return Err("an extension's name is not of letters, or its value is empty or not printable");
        }
        if extensions.iter().any(|(name, _)| name == "auth") {
            return Err("no extension may be called auth");
        }
        Ok(Self { authorization_id: String::new(), token, extensions })
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("n,,\u{1}auth=Bearer {}", self.token.reveal());
        for (name, value) in &self.extensions {
            text.push_str(&format!("\u{1}{name}={value}"));
        }
        text.push_str("\u{1}\u{1}");
        text.into_bytes()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
        let rest = text.strip_prefix("n,").ok_or("it asks for channel binding, or is no first message")?;
        let (identity, rest) = rest.split_once(',').ok_or("it has no header")?;
        let authorization_id = match identity.strip_prefix("a=") {
            Some(name) => unescaped(name)?,
            None if identity.is_empty() => String::new(),
            None => return Err("its header is not understood"),
        };
        let pairs = rest.strip_prefix('\u{1}').ok_or("it has no separator behind its header")?;
        let pairs = pairs.strip_suffix("\u{1}\u{1}").ok_or("it does not end with two separators")?;
        let (mut token, mut extensions) = (None, Vec::new());
        for pair in pairs.split('\u{1}') {
            let (name, value) = pair.split_once('=').ok_or("a pair has no value")?;
            if !is_name(name) || !is_value(value) {
                return Err("a pair is not understood");
            }
            match name {
                "auth" if token.is_some() => return Err("it has two tokens"),
                "auth" => token = Some(bearer(value)?),
                _ => extensions.push((name.to_owned(), value.to_owned())),
            }
        }
        let token = token.ok_or("it has no token")?;
        Ok(Self { authorization_id, token, extensions })
    }
}

fn bearer(value: &str) -> Result<Secret, Malformed> {
    let (scheme, token) = value.split_once(' ').ok_or("its token is not understood")?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err("its token is no bearer token");
    }
    let token = token.trim_start_matches(' ');
    if !is_token(token) {
        return Err("its token is empty, or has bytes that no token has");
    }
    Ok(Secret::new(token))
}

/// RFC 6750, section 2.1.
fn is_token(token: &str) -> bool {
    let body = token.trim_end_matches('=');
    !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_value(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic() || b" \t\r\n".contains(&byte))
}

fn unescaped(name: &str) -> Result<String, Malformed> {
    super::scram::messages::unescaped(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_as_java_writes_it_is_read() {
        let message =
            b"n,a=bob=2Cjr,\x01auth=bearer  eyJ.a-_b.c=\x01logicalCluster=lkc-1\x01pool=a b\x01\x01";
        let read = TokenMessage::parse(message).unwrap();
        assert_eq!(read.authorization_id, "bob,jr");
        assert_eq!(read.token.reveal(), "eyJ.a-_b.c=");
        let extensions = [("logicalCluster", "lkc-1"), ("pool", "a b")];
        assert_eq!(read.extensions, extensions.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(!format!("{read:?}").contains("eyJ"));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for message in [
            &b""[..],
            b"\x01",
            b"p=tls-unique,,\x01auth=Bearer x\x01\x01",
            b"n,,auth=Bearer x\x01\x01",
            b"n,,\x01auth=Bearer x\x01",
            b"n,,\x01auth=Basic x\x01\x01",
            b"n,,\x01auth=Bearer \x01\x01",
            b"n,,\x01auth=Bearer x y\x01\x01",
            b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
            b"n,,\x01host=x\x01\x01",
            b"n,,\x01\x01",
            b"n,,\x01auth=Bearer x\x01na1me=x\x01\x01",
            b"n,,\x01auth=Bearer x\x01name=\x01\x01",
            b"n,a=,\x01auth=Bearer x\x01\x01",
            b"n,,\x01auth=Bearer \xff\x01\x01",
        ] {
            assert!(TokenMessage::parse(message).is_err(), "{:?}", String::from_utf8_lossy(message));
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_it_is_sent() {
        let extension = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert!(TokenMessage::new(Secret::new("a\u{1}b"), Vec::new()).is_err());
        assert!(TokenMessage::new(Secret::new(""), Vec::new()).is_err());
        for (name, value) in [("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "x\u{1}")] {
            assert!(TokenMessage::new(Secret::new("t"), extension(name, value)).is_err(), "{name}={value:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            token in "[-._~+/a-zA-Z0-9]{1,40}={0,2}",
            extensions in proptest::collection::vec(("[b-zB-Z]{1,8}", "[ -~]{1,12}"), 0..4),
        ) {
            let message = TokenMessage::new(Secret::new(token.clone()), extensions.clone()).unwrap();
            let read = TokenMessage::parse(&message.encode()).unwrap();
            prop_assert_eq!(read.token.reveal(), token);
            prop_assert_eq!(read.extensions, extensions);
        }

        #[test]
        fn random_bytes_of_oauthbearer_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let parsed = TokenMessage::parse(&bytes);
            prop_assert!(parsed.is_err() || bytes.ends_with(&[SEPARATOR, SEPARATOR]));
        }
    }
}
