//! SCRAM's four messages, as RFC 5802 (section 7) writes them.
//!
//! ```text
//! client first  n,[a=ID],n=USER,r=NONCE[,EXTENSIONS]      the part behind the second comma is "bare"
//! server first  r=NONCE+MORE,s=SALT,i=ITERATIONS[,EXTENSIONS]
//! client final  c=BASE64 OF "n,[a=ID],",r=NONCE+MORE[,EXTENSIONS],p=PROOF
//! server final  v=SIGNATURE[,EXTENSIONS]  or  e=ERROR
//! ```
//! In names a comma is written `=2C` and an equals sign `=3D`. Extensions are ignored, but for two: `m=`, which by the RFC ends the login of
//! who does not understand it, and Kafka's `tokenauth=true`: there are no delegation tokens. As in Kafka's brokers there is no channel
//! binding, so the flag in front is `n`.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Why a message is none of SCRAM.
pub type Malformed = &'static str;

/// The client's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFirst {
    /// `n,[a=ID],`, as it was written.
    pub gs2_header: String,
    /// As whom it wants to act; empty: as the user.
    pub authorization_id: String,
    /// Who it says it is.
    pub user: String,
    /// The client's nonce.
    pub nonce: String,
    /// What is proved: all behind the header, as it was written.
    pub bare: String,
}

impl ClientFirst {
    /// A message of `user`, a name that is not empty and has no NUL.
    pub fn new(user: &str, nonce: &str) -> Self {
        let bare = format!("n={},r={nonce}", escaped(user));
        let (user, nonce) = (user.to_owned(), nonce.to_owned());
        Self { gs2_header: "n,,".into(), authorization_id: String::new(), user, nonce, bare }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        format!("{}{}", self.gs2_header, self.bare).into_bytes()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = text(bytes)?;
        let rest = text.strip_prefix("n,").ok_or("it asks for channel binding, or is no first message")?;
        let (identity, bare) = rest.split_once(',').ok_or("it has no header")?;
        let authorization_id = match identity.strip_prefix("a=") {
            Some(name) => unescaped(name)?,
            None if identity.is_empty() => String::new(),
            None => return Err("its header is not understood"),
        };
        let gs2_header = text.strip_suffix(bare).unwrap_or_default().to_owned();
        let mut attributes = bare.split(',');
        let user = unescaped(attribute(attributes.next(), "n=")?)?;
        let nonce = nonce(attribute(attributes.next(), "r=")?)?;
        for extension in attributes {
            let (name, value) = checked_extension(extension)?;
            if name.eq_ignore_ascii_case("tokenauth") && !value.eq_ignore_ascii_case("false") {
                return Err("it asks to log in by a delegation token (tokenauth), which this broker does not have");
            }
        }
        Ok(Self { gs2_header, authorization_id, user, nonce, bare: bare.to_owned() })
    }
}

/// The broker's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFirst {
    /// The client's nonce and the broker's behind it.
    pub nonce: String,
    /// The user's.
    pub salt: Vec<u8>,
    /// The user's; as it was written, so possibly absurd.
    pub iterations: u64,
    /// What is proved: the message as it was written.
    pub text: String,
}

impl ServerFirst {
    /// A message.
    pub fn new(nonce: String, salt: &[u8], iterations: u32) -> Self {
        let text = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        Self { nonce, salt: salt.to_vec(), iterations: iterations.into(), text }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = text(bytes)?;
        let mut attributes = text.split(',');
        let nonce = nonce(attribute(attributes.next(), "r=")?)?;
        let salt = decoded(attribute(attributes.next(), "s=")?)?;
        let digits = attribute(attributes.next(), "i=")?;
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err("its iterations are no number");
        }
        let iterations = digits.parse().unwrap_or(u64::MAX);
        attributes.try_for_each(|extension| checked_extension(extension).map(drop))?;
        Ok(Self { nonce, salt, iterations, text: text.to_owned() })
    }
}

/// The client's last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFinal {
    /// The header of its first message, once more.
    pub gs2_header: Vec<u8>,
    /// Both nonces.
    pub nonce: String,
    /// That it knows the password.
    pub proof: Vec<u8>,
    /// What is proved: the message without the proof, as it was written.
    pub without_proof: String,
}

impl ClientFinal {
    /// A message whose proof is missing.
    pub fn new(gs2_header: &str, nonce: &str) -> Self {
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(gs2_header));
        let gs2_header = gs2_header.as_bytes().to_vec();
        Self { gs2_header, nonce: nonce.to_owned(), proof: Vec::new(), without_proof }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        format!("{},p={}", self.without_proof, STANDARD.encode(&self.proof)).into_bytes()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = text(bytes)?;
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or("it has no proof")?;
        let mut attributes = without_proof.split(',');
        let gs2_header = decoded(attribute(attributes.next(), "c=")?)?;
        let nonce = nonce(attribute(attributes.next(), "r=")?)?;
        attributes.try_for_each(|extension| checked_extension(extension).map(drop))?;
        let (proof, without_proof) = (decoded(proof)?, without_proof.to_owned());
        Ok(Self { gs2_header, nonce, proof, without_proof })
    }
}

/// The broker's last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerFinal {
    /// That it knows the user's keys.
    Signature(Vec<u8>),
    /// Why not.
    Error(String),
}

impl ServerFinal {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Signature(signature) => format!("v={}", STANDARD.encode(signature)).into_bytes(),
            Self::Error(error) => format!("e={error}").into_bytes(),
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = text(bytes)?;
        let mut attributes = text.split(',');
        let first = attributes.next().unwrap_or_default();
        attributes.try_for_each(|extension| checked_extension(extension).map(drop))?;
        match (first.strip_prefix("v="), first.strip_prefix("e=")) {
            (Some(signature), _) => Ok(Self::Signature(decoded(signature)?)),
            (_, Some(error)) if !error.is_empty() => Ok(Self::Error(error.to_owned())),
            _ => Err("it has neither a signature nor an error"),
        }
    }
}

/// What both sides sign.
pub fn auth_message(first_bare: &str, server_first: &str, final_without_proof: &str) -> String {
    format!("{first_bare},{server_first},{final_without_proof}")
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    if text.contains('\0') {
        return Err("it has a NUL");
    }
    Ok(text)
}

fn attribute<'a>(attribute: Option<&'a str>, name: &str) -> Result<&'a str, Malformed> {
    let attribute = attribute.ok_or("an attribute is missing")?;
    attribute.strip_prefix(name).ok_or("an attribute is missing, or not in its place")
}

fn checked_extension(extension: &str) -> Result<(&str, &str), Malformed> {
    let (name, value) = extension.split_once('=').ok_or("an extension has no value")?;
    if name == "m" {
        return Err("it demands an extension that is not known");
    }
    if name.is_empty() || value.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Err("an extension is not understood");
    }
    Ok((name, value))
}

fn nonce(text: &str) -> Result<String, Malformed> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("its nonce is not printable");
    }
    Ok(text.to_owned())
}

fn decoded(text: &str) -> Result<Vec<u8>, Malformed> {
    STANDARD.decode(text).map_err(|_| "an attribute is not base64")
}

fn escaped(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

pub(crate) fn unescaped(name: &str) -> Result<String, Malformed> {
    let mut parts = name.split('=');
    let mut read = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (sign, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            _ => return Err("a name has an equals sign that is not written =3D"),
        };
        read.push(sign);
        read.push_str(rest);
    }
    if read.is_empty() {
        return Err("a name is empty");
    }
    Ok(read)
}
