//! What a failed TLS handshake means, in a sentence that says which setting to look at.
use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use crate::error::{ClientError, kind};

/// The error of a handshake with `broker` that ended in `error`. Certificates and versions do not change by trying again: final.
pub fn of_handshake(broker: &str, error: &io::Error) -> ClientError {
    if let Some(error) = inside(error) {
        return of_tls(broker, error);
    }
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::retriable(
            kind::TIMED_OUT,
            format!(
                "broker {broker} did not answer the TLS handshake within socket.connection.setup.timeout.ms; {PLAINTEXT_THERE}"
            ),
        ),
        // A broker that stops does the same.
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ClientError::retriable(
            kind::UNREACHABLE,
            format!("broker {broker} closed the connection during the TLS handshake; {PLAINTEXT_THERE}"),
        ),
        _ => ClientError::retriable(
            kind::UNREACHABLE,
            format!("the TLS handshake with broker {broker} failed: {error}"),
        ),
    }
}

/// The error that TLS itself gave in the middle of a connection: how a broker of TLS 1.3 refuses a client's certificate.
pub fn of_connection(broker: &str, error: &io::Error) -> Option<ClientError> {
    match inside(error)? {
        error @ Error::AlertReceived(_) => Some(of_tls(broker, error)),
        error => Some(ClientError::retriable(
            kind::UNREACHABLE,
            format!("the TLS connection to broker {broker} broke: {error}"),
        )),
    }
}

/// Whether a length prefix is the beginning of a TLS alert: what a TLS listener says to bytes that are not TLS.
pub fn is_alert(prefix: [u8; 4]) -> bool {
    matches!(prefix, [0x15, 3, 0..=4, 0])
}

/// The error of a plaintext connection to a TLS listener.
pub fn tls_there(broker: &str) -> ClientError {
    ClientError::fatal(
        kind::TLS,
        format!("broker {broker} speaks TLS there; set security.protocol to SSL or SASL_SSL"),
    )
}

const PLAINTEXT_THERE: &str = "if that is a listener without TLS, set security.protocol to PLAINTEXT or SASL_PLAINTEXT";

fn inside(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn of_tls(broker: &str, error: &Error) -> ClientError {
    let fatal = |message: String| ClientError::fatal(kind::TLS, message);
    match error {
        Error::InvalidCertificate(certificate) => fatal(of_certificate(broker, certificate)),
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion)
        | Error::InvalidMessage(InvalidMessage::MessageTooLarge | InvalidMessage::InvalidEmptyPayload) => {
            fatal(format!("broker {broker} does not answer in TLS; {PLAINTEXT_THERE}"))
        }
        Error::AlertReceived(alert) => fatal(of_alert(broker, *alert)),
        other => fatal(format!("the TLS handshake with broker {broker} failed: {other}")),
    }
}

fn of_certificate(broker: &str, error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => format!(
            "the certificate of broker {broker} is signed by nobody who is trusted; give the certificate of who signed it in ssl.truststore.location (or ssl.ca.location)"
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the certificate of broker {broker} is not for that host name ({error}); use a name that it has, or set ssl.endpoint.identification.algorithm to nothing if names need not fit"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of broker {broker} has expired ({error}); the broker needs a new one")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => format!(
            "the certificate of broker {broker} is not valid yet ({error}); is the clock of this machine right?"
        ),
        other => format!("the certificate of broker {broker} is refused: {other}"),
    }
}

fn of_alert(broker: &str, alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired => format!(
            "broker {broker} demands a certificate of the client; give it in ssl.keystore.location (or ssl.certificate.location and ssl.key.location)"
        ),
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied
        | Alert::DecryptError => format!(
            "broker {broker} refuses this client's certificate, or the lack of one ({alert:?}); look at ssl.keystore.location (or ssl.certificate.location)"
        ),
        Alert::ProtocolVersion => format!(
            "broker {broker} speaks none of the client's versions of TLS; look at ssl.enabled.protocols"
        ),
        Alert::HandshakeFailure | Alert::InsufficientSecurity => format!(
            "broker {broker} and this client have no cipher suite in common, or it demands a certificate of the client ({alert:?}); look at ssl.cipher.suites and ssl.keystore.location"
        ),
        other => format!("broker {broker} ended TLS: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: Error) -> ClientError {
        of_handshake("b:1", &io::Error::new(ErrorKind::InvalidData, error))
    }

    #[test]
    fn each_failure_names_the_setting_to_look_at_and_is_final() {
        for (error, setting) in [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "ssl.truststore.location"),
            (Error::InvalidCertificate(CertificateError::NotValidForName), "ssl.endpoint.identification.algorithm"),
            (Error::InvalidCertificate(CertificateError::Expired), "expired"),
            (Error::InvalidCertificate(CertificateError::NotValidYet), "clock"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "security.protocol"),
            (Error::AlertReceived(AlertDescription::CertificateRequired), "ssl.keystore.location"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "ssl.keystore.location"),
            (Error::AlertReceived(AlertDescription::ProtocolVersion), "ssl.enabled.protocols"),
            (Error::AlertReceived(AlertDescription::HandshakeFailure), "ssl.cipher.suites"),
        ] {
            let error = of(error);
            assert!(error.message.contains(setting), "{}", error.message);
            assert!(error.message.contains("b:1") && !error.retriable && error.kind == kind::TLS);
        }
    }

    #[test]
    fn a_broker_that_hangs_up_may_come_back() {
        let error = of_handshake("b:1", &ErrorKind::UnexpectedEof.into());
        assert!(error.retriable && error.message.contains("security.protocol"), "{}", error.message);
    }

    #[test]
    fn an_alert_is_known_by_its_first_bytes_and_a_length_of_kafka_is_none() {
        assert!(is_alert([0x15, 3, 3, 0]));
        assert!(!is_alert([0, 0, 0, 0x15]));
    }
}
