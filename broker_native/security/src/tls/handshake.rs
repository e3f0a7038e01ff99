//! One sentence for each way in which a handshake fails: what was wrong, and what to do.
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

use super::certificate::date;
use super::error::TlsError;

/// Which side this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It connects.
    Client,
    /// It is connected to.
    Broker,
}

/// What rustls says about the handshake with `peer`, as a sentence.
pub fn failed(peer: &str, side: Side, error: &Error) -> TlsError {
    TlsError::Handshake { peer: peer.to_owned(), why: why(side, error) }
}

/// The same where `error` is what reading or writing of a connection gave: rustls' error lies in it, or the peer hung up.
pub fn failed_io(peer: &str, side: Side, error: &std::io::Error) -> TlsError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(inner) => failed(peer, side, inner),
        None => TlsError::Handshake { peer: peer.to_owned(), why: format!("{error}") },
    }
}

fn why(side: Side, error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::NoCertificatesPresented => "it showed no certificate, and ssl.client.auth is required".into(),
        Error::AlertReceived(alert) => received(side, *alert),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => not_tls(side),
        Error::PeerIncompatible(incompatible) => self::incompatible(side, incompatible),
        Error::DecryptError => "a message did not decrypt: it was changed on its way".into(),
        _ => error.to_string(),
    }
}

fn not_tls(side: Side) -> String {
    match side {
        Side::Client => "it does not speak TLS on this port: check the port and security.protocol",
        Side::Broker => {
            "it does not speak TLS, as this listener demands: set its security.protocol to SSL or SASL_SSL"
        }
    }
    .into()
}

fn incompatible(side: Side, error: &PeerIncompatible) -> String {
    use PeerIncompatible as P;
    match error {
        P::ServerDoesNotSupportTls12Or13 => "it speaks neither TLS 1.2 nor 1.3".into(),
        // A client of TLS 1.2 does not say which versions it supports.
        P::ServerTlsVersionIsDisabledByOurConfig
        | P::SupportedVersionsExtensionRequired
        | P::Tls12NotOffered
        | P::Tls12NotOfferedOrEnabled => {
            "the two sides have no version of TLS in common: see ssl.enabled.protocols".into()
        }
        P::SignatureAlgorithmsExtensionRequired => "it speaks a TLS of before 1.2, which is not secure".into(),
        P::NoCipherSuitesInCommon => "the two sides have no cipher suite in common: see ssl.cipher.suites".into(),
        P::NoSignatureSchemesInCommon | P::NoCertificateRequestSignatureSchemesInCommon => {
            "the two sides have no kind of signature in common: the certificate's key is of a kind that one of them does not take".into()
        }
        P::NoKxGroupsInCommon | P::NamedGroupsExtensionRequired => "the two sides have no way of key exchange in common".into(),
        _ => format!("{}: {error:?}", if side == Side::Client { "the broker's TLS is too old" } else { "the client's TLS is too old" }),
    }
}

/// What the other side said.
fn received(side: Side, alert: AlertDescription) -> String {
    use AlertDescription as A;
    let (own, trust) = match side {
        Side::Client => {
            ("the certificate of this client (ssl.keystore.location)", "the broker's trust store")
        }
        Side::Broker => ("this broker's certificate", "the client's trust store (ssl.truststore.location)"),
    };
    match alert {
        A::CertificateExpired => format!("it says that {own} has expired, or is not valid yet"),
        A::UnknownCA => format!("it does not trust {own}: the authority that issued it is not in {trust}"),
        A::CertificateRequired => "it demands a certificate: set ssl.keystore.location".into(),
        A::BadCertificate | A::UnsupportedCertificate | A::CertificateUnknown | A::CertificateRevoked | A::AccessDenied => {
            format!("it refused {own} ({alert:?})")
        }
        A::HandshakeFailure if side == Side::Client => {
            "it refused (HandshakeFailure): it has no cipher suite in common with this client, or demands a certificate \
             (ssl.keystore.location)"
                .into()
        }
        A::ProtocolVersion => "it speaks no version of TLS that is enabled here: see ssl.enabled.protocols".into(),
        A::UnrecognisedName => "it does not know itself by this host name".into(),
        _ => format!("it refused ({alert:?})"),
    }
}

/// What is wrong with the other side's certificate.
pub(crate) fn certificate(error: &CertificateError) -> String {
    use CertificateError as C;
    match error {
        C::ExpiredContext { not_after, .. } => format!("its certificate expired on {}", date(not_after.as_secs() as i64)),
        C::Expired => "its certificate has expired".into(),
        C::NotValidYetContext { not_before, .. } => {
            format!("its certificate is not valid before {}", date(not_before.as_secs() as i64))
        }
        C::NotValidYet => "its certificate is not valid yet".into(),
        C::UnknownIssuer => {
            "its certificate is not trusted: put the certificate of the authority that issued it into ssl.truststore.location".into()
        }
        C::NotValidForNameContext { expected, presented } => name_differs(&expected.to_str(), presented),
        C::NotValidForName => name_differs("this host", &[]),
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
            "its certificate is not for this use (extended key usage): a broker's needs serverAuth, a client's clientAuth".into()
        }
        C::BadSignature => "its certificate was not signed by what it names as its issuer".into(),
        C::BadEncoding => "its certificate cannot be read".into(),
        C::UnhandledCriticalExtension => "its certificate demands something that is not known here (a critical extension)".into(),
        C::Revoked => "its certificate was revoked".into(),
        C::Other(other) => {
            let text = format!("{other:?}");
            if text.contains("CaUsedAsEndEntity") {
                "its certificate is that of a CA: put this certificate itself into ssl.truststore.location, or give it one of its own".into()
            } else if text.contains("UnsupportedCertVersion") {
                "its certificate is of X.509 version 1 or 2: issue it anew as version 3 (openssl x509 -req with -extfile)".into()
            } else {
                format!("its certificate cannot be used ({other})")
            }
        }
        _ => format!("its certificate cannot be used ({error})"),
    }
}

fn name_differs(host: &str, presented: &[String]) -> String {
    let has = if presented.is_empty() {
        "no subject alternative name, and the common name does not count".to_owned()
    } else {
        format!("only for {}", presented.join(", "))
    };
    format!(
        "its certificate is not for {host}, {has}: connect by a name that it has, or issue it anew, \
         or turn the check off with an empty ssl.endpoint.identification.algorithm"
    )
}
