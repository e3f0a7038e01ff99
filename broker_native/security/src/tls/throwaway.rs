//! Certificates for tests and for brokers that tests start: a CA of one's own, and what it issues. Nobody else trusts them.
//!
//! Keys are ECDSA P-256, which take no time to make; everything is PEM. Dates are handed in, so that a test can have one that has expired.
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use time::OffsetDateTime;

use super::error::TlsError;
use crate::secret::Secret;

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// A broker's: `serverAuth`.
    Server,
    /// A client's: `clientAuth`.
    Client,
    /// Both, as a broker has it that connects to others.
    Both,
    /// It does not say, so it is for anything.
    Any,
}

/// A certificate that is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its common name, the only part of its distinguished name.
    pub common_name: String,
    /// Names of hosts and addresses.
    pub hosts: Vec<String>,
    /// The first second in which it is valid, since 1970.
    pub not_before: i64,
    /// The last one.
    pub not_after: i64,
    /// What it is for.
    pub usage: Usage,
}

/// A certificate and its private key, both PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The key: PKCS#8, not encrypted.
    pub key: Secret,
}

/// A CA of one's own. Whoever trusts its certificate trusts what it issues.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// A new one, with a new key.
    pub fn new(common_name: &str, not_before: i64, not_after: i64) -> Result<Self, TlsError> {
        let mut parameters = parameters(common_name, not_before, not_after)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = key()?;
        let certificate = parameters.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { issuer: Issuer::new(parameters, key), certificate })
    }

    /// Its certificate, PEM: what goes into trust stores.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Issues a certificate, with a new key.
    pub fn issue(&self, wanted: &Wanted) -> Result<Issued, TlsError> {
        let key = key()?;
        let certificate = leaf(wanted)?.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(issued(&certificate, &key))
    }
}

/// A certificate that nobody but itself issued.
pub fn self_signed(wanted: &Wanted) -> Result<Issued, TlsError> {
    let key = key()?;
    let certificate = leaf(wanted)?.self_signed(&key).map_err(failed)?;
    Ok(issued(&certificate, &key))
}

fn issued(certificate: &Certificate, key: &KeyPair) -> Issued {
    Issued { certificate: certificate.pem(), key: Secret::new(key.serialize_pem()) }
}

fn leaf(wanted: &Wanted) -> Result<CertificateParams, TlsError> {
    let mut parameters = parameters(&wanted.common_name, wanted.not_before, wanted.not_after)?;
    let names = CertificateParams::new(wanted.hosts.clone()).map_err(failed)?;
    parameters.subject_alt_names = names.subject_alt_names;
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.use_authority_key_identifier_extension = true;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = match wanted.usage {
        Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
        Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        Usage::Both => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        Usage::Any => Vec::new(),
    };
    Ok(parameters)
}

fn parameters(common_name: &str, not_before: i64, not_after: i64) -> Result<CertificateParams, TlsError> {
    let time = |seconds| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|_| TlsError::Settings(format!("A certificate cannot be valid at the second {seconds}")))
    };
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.not_before = time(not_before)?;
    parameters.not_after = time(not_after)?;
    let mut serial = [0; 16];
    aws_lc_rs::rand::fill(&mut serial)
        .map_err(|_| TlsError::Settings("The system gives no random numbers".into()))?;
    // Positive, and never shorter.
    serial[0] = (serial[0] & 0x3f) | 0x40;
    parameters.serial_number = Some(SerialNumber::from_slice(&serial));
    Ok(parameters)
}

fn key() -> Result<KeyPair, TlsError> {
    KeyPair::generate().map_err(failed)
}

fn failed(error: rcgen::Error) -> TlsError {
    TlsError::Settings(format!("A throw-away certificate cannot be made: {error}"))
}
