//! What a failed TLS handshake means: whether another attempt may do better, and which setting to look at.
use std::io::{self, ErrorKind};

use rustls::Error;

use crate::error::{ClientError, kind};
use pylog_security::tls::handshake::{Side, failed};

const PLAINTEXT_THERE: &str =
    "if that is a listener without TLS, set security.protocol to PLAINTEXT or SASL_PLAINTEXT";

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
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            ClientError::retriable(
                kind::UNREACHABLE,
                format!("broker {broker} closed the connection during the TLS handshake; {PLAINTEXT_THERE}"),
            )
        }
        _ => ClientError::retriable(
            kind::UNREACHABLE,
            format!("the TLS handshake with broker {broker} failed: {error}"),
        ),
    }
}

/// The error that TLS itself gave in the middle of a connection. In TLS 1.3 a broker refuses a client's certificate so, instead of its
/// first answer: final. Where it has answered, it took the client, and the same alert is as good as a lost connection.
pub fn of_connection(broker: &str, error: &io::Error, has_answered: bool) -> Option<ClientError> {
    match inside(error)? {
        error @ Error::AlertReceived(_) if !has_answered => Some(of_tls(broker, error)),
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

fn inside(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn of_tls(broker: &str, error: &Error) -> ClientError {
    ClientError::fatal(kind::TLS, failed(&format!("broker {broker}"), Side::Client, error).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, CertificateError, InvalidMessage};

    fn of(error: Error) -> ClientError {
        of_handshake("b:1", &io::Error::new(ErrorKind::InvalidData, error))
    }

    #[test]
    fn each_failure_names_the_setting_to_look_at_and_is_final() {
        for (error, setting) in [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "ssl.truststore.location"),
            (
                Error::InvalidCertificate(CertificateError::NotValidForName),
                "ssl.endpoint.identification.algorithm",
            ),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "security.protocol"),
            (Error::AlertReceived(AlertDescription::CertificateRequired), "ssl.keystore.location"),
            (Error::AlertReceived(AlertDescription::ProtocolVersion), "ssl.enabled.protocols"),
        ] {
            let error = of(error);
            assert!(error.message.contains(setting), "{}", error.message);
            assert!(error.message.contains("b:1") && !error.retriable && error.kind == kind::TLS);
            assert!(error.is_distrust());
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
