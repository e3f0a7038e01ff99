//! What is read of a certificate for lines of the log, sentences and principals.
use std::fmt;

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use super::name;

/// Whose a certificate is, and when it is valid; times in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The distinguished name, as Java writes it.
    pub subject: String,
    /// The same of who issued it.
    pub issuer: String,
    /// The hosts that it is for: names, and addresses.
    pub hosts: Vec<String>,
    /// The first second in which it is valid.
    pub not_before: i64,
    /// The last one.
    pub not_after: i64,
}

impl Summary {
    /// Reads `certificate`; the error says what is wrong with it.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed = parse(certificate)?;
        let subject = name::rfc2253(parsed.subject().as_raw()).ok_or("its subject cannot be read")?;
        let issuer = name::rfc2253(parsed.issuer().as_raw()).ok_or("its issuer cannot be read")?;
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names.map(|extension| extension.value.general_names.iter());
        let hosts = names.into_iter().flatten().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        });
        let validity = parsed.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Ok(Self { subject, issuer, hosts: hosts.collect(), not_before, not_after })
    }

    /// Why it cannot be used at `now`, in seconds since 1970, if it cannot.
    pub fn invalid_at(&self, now: i64) -> Option<String> {
        if now > self.not_after {
            Some(format!("The certificate of {} expired on {}", self.subject, date(self.not_after)))
        } else if now < self.not_before {
            Some(format!("The certificate of {} is not valid before {}", self.subject, date(self.not_before)))
        } else {
            None
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, issuer, hosts, not_before, not_after } = self;
        write!(f, "{subject}, issued by {issuer}, for {}", if hosts.is_empty() { "no host" } else { "" })?;
        write!(f, "{}, valid from {} to {}", hosts.join(", "), date(*not_before), date(*not_after))
    }
}

/// The issuer's and the subject's names, as they stand in the certificate.
pub(crate) fn names(certificate: &CertificateDer<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let parsed = parse(certificate).ok()?;
    Some((parsed.issuer().as_raw().to_vec(), parsed.subject().as_raw().to_vec()))
}

pub(crate) fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    match X509Certificate::from_der(certificate) {
        Ok(([], parsed)) => Ok(parsed),
        Ok(_) => Err("there are bytes behind it".into()),
        Err(_) => Err("it is no X.509 certificate".into()),
    }
}

/// A day and time in UTC, of seconds since 1970.
pub(crate) fn date(seconds: i64) -> String {
    match ASN1Time::from_timestamp(seconds) {
        Ok(time) => {
            let time = time.to_datetime();
            let (year, month, day) = time.to_calendar_date();
            let (hour, minute, second) = time.to_hms();
            format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC", u8::from(month))
        }
        Err(_) => format!("the second {seconds}"),
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
        _ => None,
    }
}
