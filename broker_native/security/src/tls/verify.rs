//! Whether a peer's certificate is trusted: rustls' own verification of chains, and two habits of Java's clients beside it.
//!
//! - A certificate that stands in the trust store itself is trusted, also when it is a root's (`openssl req -x509` makes such ones):
//!   then only its dates, its usage and its name are looked at.
//! - Without a check of the host's name the chain is verified all the same.
//!
//! A host is compared with the subject alternative names only, never with the common name. There are no lists of revoked certificates.
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, ExtendedKeyPurpose, SignatureScheme,
};

use super::certificate;
use super::error::TlsError;
use super::material::Trust;

/// What a client demands of a broker's certificate.
#[derive(Debug)]
pub struct Server {
    trust: Trust,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Server {
    /// One that trusts `trust`, and looks at the host's name or does not.
    pub fn new(trust: Trust, checks_name: bool, provider: &CryptoProvider) -> Self {
        Self { trust, checks_name, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Server {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        if self.trust.has(end_entity) {
            trusted_itself(end_entity, &ExtendedKeyPurpose::ServerAuth, now)?;
        } else {
            let roots = self.trust.roots();
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        if self.checks_name {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// What a broker demands of a client's certificate.
#[derive(Debug)]
pub struct Client {
    trust: Trust,
    chains: Arc<dyn ClientCertVerifier>,
}

impl Client {
    /// One that trusts `trust`; `mandatory` refuses clients without a certificate.
    pub fn new(trust: Trust, mandatory: bool, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let builder = WebPkiClientVerifier::builder_with_provider(trust.roots().clone(), provider.clone());
        let builder = if mandatory { builder } else { builder.allow_unauthenticated() };
        let chains = builder.build().map_err(|error| TlsError::Settings(error.to_string()))?;
        Ok(Self { trust, chains })
    }
}

impl ClientCertVerifier for Client {
    fn offer_client_auth(&self) -> bool {
        self.chains.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chains.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.trust.has(end_entity) {
            ParsedCertificate::try_from(end_entity)?;
            trusted_itself(end_entity, &ExtendedKeyPurpose::ClientAuth, now)?;
            return Ok(ClientCertVerified::assertion());
        }
        self.chains.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// The dates and the usage of a certificate that needs no issuer.
fn trusted_itself(
    certificate: &CertificateDer<'_>,
    purpose: &ExtendedKeyPurpose,
    now: UnixTime,
) -> Result<(), Error> {
    let parsed = certificate::parse(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let (not_before, not_after) =
        (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
    let time =
        |seconds: i64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds.max(0) as u64));
    if now > time(not_after) {
        return Err(CertificateError::ExpiredContext { time: now, not_after: time(not_after) }.into());
    }
    if now < time(not_before) {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: time(not_before) }.into());
    }
    let usage = parsed.extended_key_usage().map_err(|_| CertificateError::BadEncoding)?;
    let fits = usage.is_none_or(|usage| {
        let usage = usage.value;
        usage.any
            || if *purpose == ExtendedKeyPurpose::ServerAuth { usage.server_auth } else { usage.client_auth }
    });
    if !fits {
        return Err(CertificateError::InvalidPurposeContext {
            required: purpose.clone(),
            presented: Vec::new(),
        }
        .into());
    }
    Ok(())
}
