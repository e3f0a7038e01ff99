//! PEM: certificates and private keys between `-----BEGIN ...-----` and `-----END ...-----`.
//!
//! As Kafka reads it: any white space between the base64, so that a whole file may stand in one line of a properties file; text around the
//! sections, other sections and attributes of `openssl pkcs12` are passed over. Keys are PKCS#8, encrypted or not, PKCS#1 or SEC1.
//! Keys that OpenSSL encrypted in its old way (`Proc-Type: 4,ENCRYPTED`) are not read: their password is hashed with one round of MD5.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::contents::{Contents, KeyEntry, Protected, bounded};
use super::error::StoreError;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// Whether there is a section in `bytes`.
pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    find(bytes, BEGIN).is_some()
}

/// The keys and certificates of `bytes`. Certificates are not attached to keys: which belong together is up to who reads.
pub(crate) fn read(bytes: &[u8]) -> Result<Contents, StoreError> {
    let mut contents = Contents { is_pem: true, ..Contents::default() };
    let mut rest = bytes;
    while let Some(at) = find(rest, BEGIN) {
        let (label, after) = cut(&rest[at + BEGIN.len()..], DASHES)?;
        let (body, after) = cut(after, END)?;
        let (end, after) = cut(after, DASHES)?;
        if label != end {
            return Err(StoreError::damaged("a section ends with another name than it begins with"));
        }
        rest = after;
        match label {
            b"CERTIFICATE" | b"X509 CERTIFICATE" => {
                contents.certificates.push(CertificateDer::from(decoded(body)?.to_vec()))
            }
            b"PRIVATE KEY" => contents.keys.push(plain(PrivateKeyDer::Pkcs8(taken(decoded(body)?).into()))),
            b"RSA PRIVATE KEY" => {
                contents.keys.push(plain(PrivateKeyDer::Pkcs1(taken(decoded(body)?).into())));
            }
            b"EC PRIVATE KEY" => {
                contents.keys.push(plain(PrivateKeyDer::Sec1(taken(decoded(body)?).into())));
            }
            b"ENCRYPTED PRIVATE KEY" => contents.keys.push(key(Protected::Pkcs8(decoded(body)?))),
            b"TRUSTED CERTIFICATE" => {
                return Err(StoreError::Unsupported(
                    "has a TRUSTED CERTIFICATE, which is OpenSSL's own: write it anew with openssl x509"
                        .into(),
                ));
            }
            _ => {}
        }
        bounded(contents.keys.len() + contents.certificates.len(), 0)?;
    }
    Ok(contents)
}

fn plain(der: PrivateKeyDer<'static>) -> KeyEntry {
    key(Protected::Plain(Zeroizing::new(der)))
}

fn key(protected: Protected) -> KeyEntry {
    KeyEntry { protected, chain: Vec::new() }
}

/// The bytes themselves, not a copy: for who wipes them.
fn taken(mut bytes: Zeroizing<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *bytes)
}

/// What is before `mark`, and what is behind it.
fn cut<'a>(bytes: &'a [u8], mark: &[u8]) -> Result<(&'a [u8], &'a [u8]), StoreError> {
    let at = find(bytes, mark).ok_or_else(|| StoreError::damaged("a section begins and does not end"))?;
    Ok((&bytes[..at], &bytes[at + mark.len()..]))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The bytes of a section: its base64 without white space, behind lines such as `Proc-Type: ...`.
fn decoded(body: &[u8]) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let mut text = Zeroizing::new(Vec::with_capacity(body.len()));
    for line in body.split(|&byte| byte == b'\n' || byte == b'\r') {
        if line.contains(&b':') {
            if line.starts_with(b"Proc-Type") && find(line, b"ENCRYPTED").is_some() {
                let what = "has a key that OpenSSL encrypted in its old way: write it anew with openssl pkcs8 -topk8";
                return Err(StoreError::Unsupported(what.into()));
            }
            continue;
        }
        text.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
    }
    let decoded =
        STANDARD.decode(text.as_slice()).map_err(|_| StoreError::damaged("a section is not base64"))?;
    Ok(Zeroizing::new(decoded))
}
