//! Opens what is encrypted with a password: PKCS#8 keys (RFC 5958) and the parts of PKCS#12 stores (RFC 7292).
//!
//! | scheme | key from the password | cipher |
//! |---|---|---|
//! | PBES2 (RFC 8018) | PBKDF2 with HMAC-SHA-1, -256, -384, -512 | AES-128, -192, -256, triple DES; CBC |
//! | PKCS#12's own (RFC 7292, appendix B) | SHA-1 | triple DES, RC2-128, RC2-40; CBC |
//!
//! Triple DES and RC2 are broken as protection of a file; old stores have them, and opening a file that its owner trusts is all that they
//! are used for. The rounds of hashing are paid from a [`Budget`], so that a hostile store cannot ask for hours.
use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::{digest, iv, pbkdf2};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherDecrypt, BlockModeDecrypt, KeyInit, KeyIvInit};
use zeroize::Zeroizing;

use super::der::{self, Elements, INTEGER, OCTET_STRING, OID, SEQUENCE};
use super::error::StoreError;

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
/// The digests of PBKDF2, but for their last number.
const HMAC_WITH: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02];
const AES_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01];
const DES_EDE3_CBC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x03, 0x07];
/// PKCS#12's own schemes, but for their last number.
const PKCS12_PBE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01];

/// Rounds of hashing that a store's passwords may take, in all: keytool and OpenSSL write some thousands, and this is a few seconds.
pub const MAX_ITERATIONS: u64 = 5_000_000;

/// How many rounds of hashing may still be spent on a store.
pub(crate) struct Budget(u64);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(MAX_ITERATIONS)
    }

    #[cfg(test)]
    pub(crate) fn of(rounds: u64) -> Self {
        Self(rounds)
    }

    /// Takes `rounds` for each of `blocks`.
    pub(crate) fn spend(&mut self, rounds: u64, blocks: usize) -> Result<(), StoreError> {
        let left = rounds.checked_mul(blocks as u64).and_then(|work| self.0.checked_sub(work));
        self.0 = left.ok_or(StoreError::TooMuchWork("its password is hashed too many times"))?;
        Ok(())
    }
}

/// A password in the two forms that the schemes hash.
pub(crate) struct Password {
    utf8: Zeroizing<Vec<u8>>,
    /// UTF-16, big endian, with a zero at its end; nothing where there is no password at all.
    utf16: Zeroizing<Vec<u8>>,
}

impl Password {
    pub(crate) fn new(text: &str) -> Self {
        let utf16 = text.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect();
        Self { utf8: Zeroizing::new(text.into()), utf16: Zeroizing::new(utf16) }
    }

    /// What some programs write who were given an empty password.
    pub(crate) fn none() -> Self {
        Self { utf8: Zeroizing::default(), utf16: Zeroizing::default() }
    }
}

/// The PKCS#8 key in `bytes`, an `EncryptedPrivateKeyInfo`.
pub(crate) fn open_pkcs8(
    bytes: &[u8],
    password: &str,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let mut info = Elements::new(bytes).sequence()?;
    let algorithm = info.sequence()?;
    let key = decrypt(algorithm, info.expect(OCTET_STRING)?, &Password::new(password), budget)?;
    // A wrong password leaves a right padding once in 256 times.
    match Elements::new(&key).next() {
        Ok(element) if element.tag == SEQUENCE && element.whole.len() == key.len() => Ok(key),
        _ => Err(StoreError::PasswordWrong),
    }
}

/// Decrypts `data` by `algorithm`, the inside of an `AlgorithmIdentifier`.
pub(crate) fn decrypt(
    mut algorithm: Elements<'_>,
    data: &[u8],
    password: &Password,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let oid = algorithm.expect(OID)?;
    match oid {
        PBES2 => pbes2(algorithm.sequence()?, data, password, budget),
        [scheme @ .., number @ (3 | 5 | 6)] if scheme == PKCS12_PBE => {
            pkcs12_pbe(*number, algorithm.sequence()?, data, password, budget)
        }
        _ => Err(unsupported("encryption", oid)),
    }
}

fn unsupported(what: &str, oid: &[u8]) -> StoreError {
    let oid = der::dotted(oid);
    StoreError::Unsupported(format!(
        "has the {what} {oid}, which is not read: write it anew with a present keytool or OpenSSL"
    ))
}

fn pbes2(
    mut parameters: Elements<'_>,
    data: &[u8],
    password: &Password,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let mut derivation = parameters.sequence()?;
    let mut cipher = parameters.sequence()?;
    let (oid, iv) = (cipher.expect(OID)?, cipher.expect(OCTET_STRING)?);
    let aes = |algorithm: &'static Algorithm, length, budget: &mut Budget, derivation: &mut Elements<'_>| {
        aes_cbc(algorithm, &pbkdf2_key(derivation, password, length, budget)?, iv, data)
    };
    match oid {
        [aes_cbc @ .., 2] if aes_cbc == AES_CBC => aes(&AES_128, 16, budget, &mut derivation),
        [aes_cbc @ .., 22] if aes_cbc == AES_CBC => aes(&AES_192, 24, budget, &mut derivation),
        [aes_cbc @ .., 42] if aes_cbc == AES_CBC => aes(&AES_256, 32, budget, &mut derivation),
        DES_EDE3_CBC => {
            old_cbc::<des::TdesEde3>(&pbkdf2_key(&mut derivation, password, 24, budget)?, iv, data)
        }
        _ => Err(unsupported("cipher", oid)),
    }
}

/// The key that PBKDF2 makes; `derivation` is the inside of its `AlgorithmIdentifier`.
pub(crate) fn pbkdf2_key(
    derivation: &mut Elements<'_>,
    password: &Password,
    length: usize,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let oid = derivation.expect(OID)?;
    if oid != PBKDF2 {
        return Err(unsupported("key derivation", oid));
    }
    let mut parameters = derivation.sequence()?;
    let salt = parameters.expect(OCTET_STRING)?;
    let rounds = parameters.number()?;
    if let Some(given) = parameters.optional(INTEGER)?
        && der::number(given)? != length as u64
    {
        return Err(StoreError::damaged("its key has another length than its cipher takes"));
    }
    let (algorithm, output) = match parameters.optional(SEQUENCE)? {
        None => (pbkdf2::PBKDF2_HMAC_SHA1, 20),
        Some(prf) => match Elements::new(prf).expect(OID)? {
            [hmac @ .., 7] if hmac == HMAC_WITH => (pbkdf2::PBKDF2_HMAC_SHA1, 20),
            [hmac @ .., 9] if hmac == HMAC_WITH => (pbkdf2::PBKDF2_HMAC_SHA256, 32),
            [hmac @ .., 10] if hmac == HMAC_WITH => (pbkdf2::PBKDF2_HMAC_SHA384, 48),
            [hmac @ .., 11] if hmac == HMAC_WITH => (pbkdf2::PBKDF2_HMAC_SHA512, 64),
            other => return Err(unsupported("digest", other)),
        },
    };
    budget.spend(rounds, length.div_ceil(output))?;
    let rounds = u32::try_from(rounds).ok().and_then(NonZeroU32::new);
    let rounds = rounds.ok_or_else(|| StoreError::damaged("its password is hashed 0 times"))?;
    let mut key = Zeroizing::new(vec![0; length]);
    pbkdf2::derive(algorithm, rounds, salt, &password.utf8, &mut key);
    Ok(key)
}

fn aes_cbc(
    algorithm: &'static Algorithm,
    key: &[u8],
    iv: &[u8],
    data: &[u8],
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let iv = iv::FixedLength::<16>::try_from(iv)
        .map_err(|_| StoreError::damaged("its cipher's IV has a wrong length"))?;
    let key = UnboundCipherKey::new(algorithm, key).and_then(PaddedBlockDecryptingKey::cbc_pkcs7);
    let key = key.map_err(|_| StoreError::damaged("its cipher's key has a wrong length"))?;
    let mut data = Zeroizing::new(data.to_vec());
    let plain =
        key.decrypt(&mut data, DecryptionContext::Iv128(iv)).map_err(|_| StoreError::PasswordWrong)?;
    Ok(Zeroizing::new(plain.to_vec()))
}

fn old_cbc<C: KeyInit + BlockCipherDecrypt>(
    key: &[u8],
    iv: &[u8],
    data: &[u8],
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let cipher = Decryptor::<C>::new_from_slices(key, iv)
        .map_err(|_| StoreError::damaged("its cipher's IV has a wrong length"))?;
    let plain = cipher.decrypt_padded_vec::<Pkcs7>(data).map_err(|_| StoreError::PasswordWrong)?;
    Ok(Zeroizing::new(plain))
}

fn pkcs12_pbe(
    number: u8,
    mut parameters: Elements<'_>,
    data: &[u8],
    password: &Password,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let (salt, rounds) = (parameters.expect(OCTET_STRING)?, parameters.number()?);
    let mut derived =
        |purpose, length| pkcs12_key(&Hash::SHA1, purpose, password, salt, rounds, length, budget);
    let iv = derived(Purpose::Iv, 8)?;
    match number {
        3 => old_cbc::<des::TdesEde3>(&derived(Purpose::Key, 24)?, &iv, data),
        5 => old_cbc::<rc2::Rc2>(&derived(Purpose::Key, 16)?, &iv, data),
        _ => old_cbc::<rc2::Rc2>(&derived(Purpose::Key, 5)?, &iv, data),
    }
}

/// A digest, how many bytes it takes at once and how many it gives.
pub(crate) struct Hash {
    pub(crate) algorithm: &'static digest::Algorithm,
    pub(crate) block: usize,
    pub(crate) output: usize,
}

impl Hash {
    pub(crate) const SHA1: Self =
        Self { algorithm: &digest::SHA1_FOR_LEGACY_USE_ONLY, block: 64, output: 20 };
    pub(crate) const SHA256: Self = Self { algorithm: &digest::SHA256, block: 64, output: 32 };
    pub(crate) const SHA384: Self = Self { algorithm: &digest::SHA384, block: 128, output: 48 };
    pub(crate) const SHA512: Self = Self { algorithm: &digest::SHA512, block: 128, output: 64 };
}

/// What a derived key is for (RFC 7292, B.3).
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Key = 1,
    Iv = 2,
    Mac = 3,
}

/// PKCS#12's own key derivation (RFC 7292, B.2), in its names: D, I of salt and password, A, B.
pub(crate) fn pkcs12_key(
    hash: &Hash,
    purpose: Purpose,
    password: &Password,
    salt: &[u8],
    rounds: u64,
    length: usize,
    budget: &mut Budget,
) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    budget.spend(rounds.max(1), length.div_ceil(hash.output))?;
    let filled = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().copied().cycle().take(bytes.len().div_ceil(hash.block) * hash.block).collect()
    };
    let d = vec![purpose as u8; hash.block];
    let mut i = Zeroizing::new(filled(salt));
    i.extend(Zeroizing::new(filled(&password.utf16)).iter());
    let mut key = Zeroizing::new(Vec::with_capacity(length + hash.output));
    while key.len() < length {
        let mut context = digest::Context::new(hash.algorithm);
        context.update(&d);
        context.update(&i);
        let mut a = context.finish();
        for _ in 1..rounds {
            a = digest::digest(hash.algorithm, a.as_ref());
        }
        let b: Vec<u8> = a.as_ref().iter().copied().cycle().take(hash.block).collect();
        for block in i.chunks_mut(hash.block) {
            add_one_more(block, &b);
        }
        key.extend_from_slice(a.as_ref());
    }
    key.truncate(length);
    Ok(key)
}

/// `block = block + b + 1`, as numbers of their length in big endian.
fn add_one_more(block: &mut [u8], b: &[u8]) {
    let mut carry = 1_u16;
    for (byte, other) in block.iter_mut().zip(b).rev() {
        carry += u16::from(*byte) + u16::from(*other);
        *byte = carry as u8;
        carry >>= 8;
    }
}
