//! JKS, Java's key stores until Java 8.
//!
//! The format, as OpenJDK's `sun.security.provider.JavaKeyStore` and `KeyProtector` describe it (big endian, texts as `DataOutput.writeUTF`):
//!
//! ```text
//! 0xfeedfeed, version 1 or 2, number of entries, the entries, SHA-1 of (password, "Mighty Aphrodite", everything before)
//! entry   1, alias, time, length and EncryptedPrivateKeyInfo, number and certificates of the chain
//!       | 2, alias, time, certificate
//! certificate   (version 2: type, which is "X.509"), length and DER
//! ```
//!
//! A key is protected by an XOR with SHA-1(password, the 20 bytes before), which begins with a salt of 20 bytes, and SHA-1(password, key) follows
//! it. Passwords are UTF-16 in big endian. That is weak, and only opening is here.
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY as SHA1};
use rustls::pki_types::CertificateDer;
use zeroize::Zeroizing;

use super::contents::{Contents, KeyEntry, Protected, bounded};
use super::der::{Elements, OCTET_STRING, OID};
use super::error::StoreError;

const MAGIC: &[u8] = &[0xfe, 0xed, 0xfe, 0xed];
const WHITENER: &[u8] = b"Mighty Aphrodite";
/// 1.3.6.1.4.1.42.2.17.1.1
const KEY_PROTECTOR: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x2a, 0x02, 0x11, 0x01, 0x01];
const DIGEST: usize = 20;

/// Whether `bytes` begin as such a store does.
pub(crate) fn is_jks(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads a store; with a password also whether it is whole.
pub(crate) fn read(bytes: &[u8], password: Option<&str>) -> Result<Contents, StoreError> {
    let cut = bytes.len().checked_sub(DIGEST).ok_or_else(short)?;
    let (content, digest) = bytes.split_at(cut);
    if let Some(password) = password {
        let expected = sha1(&[&utf16(password), WHITENER, content]);
        verify_slices_are_equal(&expected, digest).map_err(|_| StoreError::PasswordWrong)?;
    }
    let mut input = Input(content);
    if input.take(4)? != MAGIC {
        return Err(StoreError::damaged("it does not begin as a JKS store does"));
    }
    let version = input.number()?;
    if !(1..=2).contains(&version) {
        return Err(StoreError::damaged(format!("it is of version {version}, and there are 1 and 2")));
    }
    let (mut contents, mut chained) = (Contents::default(), 0);
    for _ in 0..input.number()? {
        let kind = input.number()?;
        input.text()?;
        input.take(8)?;
        match kind {
            1 => {
                let length = input.number()?;
                let protected = Protected::Jks(Zeroizing::new(input.take(length)?.to_vec()));
                let mut chain = Vec::new();
                for _ in 0..input.number()? {
                    chain.push(Arc::new(input.certificate(version)?));
                    chained += 1;
                    bounded(0, chained)?;
                }
                contents.keys.push(KeyEntry { protected, chain });
            }
            2 => contents.certificates.push(input.certificate(version)?),
            _ => {
                return Err(StoreError::damaged(format!(
                    "it has an entry of the kind {kind}, and there are 1 and 2"
                )));
            }
        }
        bounded(contents.keys.len() + contents.certificates.len(), chained)?;
    }
    Ok(contents)
}

/// Opens a key that Sun's protector closed: PKCS#8.
pub(crate) fn open_key(bytes: &[u8], password: &str) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let mut info = Elements::new(bytes).sequence()?;
    if info.sequence()?.expect(OID)? != KEY_PROTECTOR {
        return Err(StoreError::Unsupported("has a key that is not protected in the way of JKS".into()));
    }
    let closed = info.expect(OCTET_STRING)?;
    let (salt, rest) = closed.split_at_checked(DIGEST).ok_or_else(short)?;
    let (closed, check) = rest.split_at_checked(rest.len().saturating_sub(DIGEST)).ok_or_else(short)?;
    let password = utf16(password);
    let mut key = Zeroizing::new(Vec::with_capacity(closed.len()));
    let mut pad = sha1(&[&password, salt]);
    for block in closed.chunks(DIGEST) {
        key.extend(block.iter().zip(&pad).map(|(byte, pad)| byte ^ pad));
        pad = sha1(&[&password, &pad]);
    }
    verify_slices_are_equal(&sha1(&[&password, &key]), check).map_err(|_| StoreError::PasswordWrong)?;
    Ok(key)
}

fn short() -> StoreError {
    StoreError::damaged("it ends too early")
}

fn utf16(text: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

fn sha1(parts: &[&[u8]]) -> [u8; DIGEST] {
    let mut context = Context::new(&SHA1);
    parts.iter().for_each(|part| context.update(part));
    let mut digest = [0; DIGEST];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, StoreError> {
        Ok(self.take(4)?.iter().fold(0, |number, &byte| (number << 8) | usize::from(byte)))
    }

    fn text(&mut self) -> Result<&'a [u8], StoreError> {
        let length = self.take(2)?.iter().fold(0, |number, &byte| (number << 8) | usize::from(byte));
        self.take(length)
    }

    fn certificate(&mut self, version: usize) -> Result<CertificateDer<'static>, StoreError> {
        if version == 2 && self.text()? != b"X.509" {
            return Err(StoreError::Unsupported("has a certificate that is not X.509".into()));
        }
        let length = self.number()?;
        Ok(CertificateDer::from(self.take(length)?.to_vec()))
    }
}
