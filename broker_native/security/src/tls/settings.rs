//! The `ssl.*` settings as texts, under Kafka's names, and what rustls makes of TLS versions and cipher suites.
//!
//! A version or cipher suite that rustls does not have is left out while another one of the list remains: the lists of Java jobs often name
//! `TLSv1.1` or suites with CBC, and fewer of them is only stricter. Where none remains, that is an error.
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;

use super::error::TlsError;
use crate::secret::Secret;

/// Kafka's TLS settings, and two files of librdkafka's. All of them may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// `ssl.protocol`: `TLSv1.2` excludes 1.3.
    pub protocol: Option<String>,
    /// `ssl.enabled.protocols`; empty for both 1.2 and 1.3.
    pub enabled_protocols: Vec<String>,
    /// `ssl.cipher.suites`, by their names in Java or in OpenSSL; empty for all.
    pub cipher_suites: Vec<String>,
    /// `ssl.endpoint.identification.algorithm`: `https` where left out; empty for no check of the host's name.
    pub endpoint_identification_algorithm: Option<String>,
    /// `ssl.keystore.type`: looked at in the bytes where left out.
    pub keystore_type: Option<String>,
    /// `ssl.keystore.location`.
    pub keystore_location: Option<String>,
    /// `ssl.keystore.password`.
    pub keystore_password: Option<Secret>,
    /// `ssl.key.password`: of the private key, where it has one of its own.
    pub key_password: Option<Secret>,
    /// `ssl.keystore.certificate.chain`, and librdkafka's `ssl.certificate.pem`: text.
    pub keystore_certificate_chain: Option<String>,
    /// `ssl.keystore.key`, and librdkafka's `ssl.key.pem`: text.
    pub keystore_key: Option<Secret>,
    /// librdkafka's `ssl.certificate.location`: a PEM file with certificates.
    pub certificate_location: Option<String>,
    /// librdkafka's `ssl.key.location`: a PEM file with the private key.
    pub key_location: Option<String>,
    /// `ssl.truststore.type`: looked at in the bytes where left out.
    pub truststore_type: Option<String>,
    /// `ssl.truststore.location`, and librdkafka's `ssl.ca.location`.
    pub truststore_location: Option<String>,
    /// `ssl.truststore.password`.
    pub truststore_password: Option<Secret>,
    /// `ssl.truststore.certificates`, and librdkafka's `ssl.ca.pem`: text.
    pub truststore_certificates: Option<String>,
}

/// `ssl.client.auth`: whether a broker asks its clients for certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// It does not.
    #[default]
    None,
    /// It does, and serves who has none as `User:ANONYMOUS`.
    Requested,
    /// It does, and refuses who has none.
    Required,
}

impl FromStr for ClientAuth {
    type Err = TlsError;

    fn from_str(text: &str) -> Result<Self, TlsError> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "requested" => Ok(Self::Requested),
            "required" => Ok(Self::Required),
            _ => Err(TlsError::Settings(format!(
                "ssl.client.auth is {text:?}: use none, requested or required"
            ))),
        }
    }
}

const OLD_VERSIONS: [&str; 5] = ["SSLv2Hello", "SSLv2", "SSLv3", "TLSv1", "TLSv1.1"];

impl TlsSettings {
    /// By which the same settings are known again, without keeping the secrets that are in them: SHA-256 of all.
    pub fn fingerprint(&self) -> [u8; 32] {
        // All fields by their names: one that is new is not forgotten here.
        let Self {
            protocol,
            enabled_protocols,
            cipher_suites,
            endpoint_identification_algorithm,
            keystore_type,
            keystore_location,
            keystore_password,
            key_password,
            keystore_certificate_chain,
            keystore_key,
            certificate_location,
            key_location,
            truststore_type,
            truststore_location,
            truststore_password,
            truststore_certificates,
        } = self;
        let mut context = Context::new(&SHA256);
        let mut take = |text: &str| {
            context.update(&text.len().to_be_bytes());
            context.update(text.as_bytes());
        };
        for list in [enabled_protocols, cipher_suites] {
            take(&list.len().to_string());
            list.iter().for_each(|word| take(word));
        }
        let texts = [
            protocol,
            endpoint_identification_algorithm,
            keystore_type,
            keystore_location,
            keystore_certificate_chain,
            certificate_location,
            key_location,
            truststore_type,
            truststore_location,
            truststore_certificates,
        ];
        let secrets = [keystore_password, key_password, keystore_key, truststore_password];
        let secrets = secrets.into_iter().map(|secret| secret.as_ref().map(Secret::reveal));
        for text in texts.into_iter().map(Option::as_deref).chain(secrets) {
            take(if text.is_some() { "given" } else { "" });
            take(text.unwrap_or_default());
        }
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(context.finish().as_ref());
        fingerprint
    }

    /// Whether the name in the server's certificate is to be the host's.
    pub fn checks_host_name(&self) -> Result<bool, TlsError> {
        match self.endpoint_identification_algorithm.as_deref() {
            None => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("https") => Ok(true),
            // librdkafka says `none` where Kafka has nothing.
            Some(text) if text.is_empty() || text.eq_ignore_ascii_case("none") => Ok(false),
            Some(text) => Err(TlsError::Settings(format!(
                "ssl.endpoint.identification.algorithm is {text:?}: use https, or leave it empty for no check of the host's name"
            ))),
        }
    }

    /// The TLS versions that may be spoken.
    pub(crate) fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        let old = |name: &str| OLD_VERSIONS.contains(&name);
        let highest = self.protocol.as_deref().unwrap_or("TLSv1.3");
        if !["TLS", "TLSv1.2", "TLSv1.3"].contains(&highest) {
            let what = if old(highest) { "is not secure" } else { "is no version of TLS" };
            return Err(TlsError::Settings(format!(
                "ssl.protocol is {highest:?}, which {what}: use TLSv1.2 or TLSv1.3"
            )));
        }
        let names = || self.enabled_protocols.iter().map(String::as_str);
        if let Some(name) = names().find(|name| !["TLSv1.2", "TLSv1.3"].contains(name) && !old(name)) {
            return Err(TlsError::Settings(format!(
                "{name:?} in ssl.enabled.protocols is no version of TLS: use TLSv1.2 and TLSv1.3"
            )));
        }
        let wanted = |name| self.enabled_protocols.is_empty() || names().any(|given| given == name);
        let mut versions = Vec::new();
        if wanted("TLSv1.3") && highest != "TLSv1.2" {
            versions.push(&rustls::version::TLS13);
        }
        if wanted("TLSv1.2") {
            versions.push(&rustls::version::TLS12);
        }
        if versions.is_empty() {
            let given = names().collect::<Vec<_>>().join(",");
            return Err(TlsError::Settings(format!(
                "ssl.enabled.protocols={given} with ssl.protocol={highest} leaves no version of TLS: use TLSv1.2 and TLSv1.3"
            )));
        }
        Ok(versions)
    }

    /// rustls' cryptography with the cipher suites that may be used, each of which is of one of `versions`.
    pub(crate) fn provider(
        &self,
        versions: &[&SupportedProtocolVersion],
    ) -> Result<Arc<CryptoProvider>, TlsError> {
        let mut provider = default_provider();
        if self.cipher_suites.is_empty() {
            return Ok(Arc::new(provider));
        }
        let all: Vec<_> = provider.cipher_suites.iter().map(|suite| suite_name(suite.suite())).collect();
        let wanted =
            |name: &str| self.cipher_suites.iter().any(|given| given == name || openssl_name(name) == *given);
        provider.cipher_suites.retain(|suite| wanted(&suite_name(suite.suite())));
        // rustls demands a suite for each version that is spoken.
        let missing = versions
            .iter()
            .any(|version| !provider.cipher_suites.iter().any(|suite| suite.version() == *version));
        if provider.cipher_suites.is_empty() || (missing && versions.len() == 1) {
            return Err(TlsError::Settings(format!(
                "ssl.cipher.suites has none that can be used with the enabled versions of TLS: there are {}",
                all.join(", ")
            )));
        }
        Ok(Arc::new(provider))
    }

    /// Both of the above: versions that have a cipher suite, and the suites.
    pub(crate) fn cryptography(
        &self,
    ) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), TlsError> {
        let mut versions = self.versions()?;
        let provider = self.provider(&versions)?;
        versions.retain(|version| provider.cipher_suites.iter().any(|suite| suite.version() == *version));
        Ok((provider, versions))
    }
}

/// The name of a suite as Java has it: rustls writes those of TLS 1.3 in its own way.
fn suite_name(suite: rustls::CipherSuite) -> String {
    format!("{suite:?}").replacen("TLS13_", "TLS_", 1)
}

/// OpenSSL's name of a suite: `ECDHE-RSA-AES128-GCM-SHA256` for `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`; of TLS 1.3 the same.
fn openssl_name(name: &str) -> String {
    let Some((exchange, cipher)) = name.trim_start_matches("TLS_").split_once("_WITH_") else {
        return name.to_owned();
    };
    let cipher = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305");
    format!("{exchange}_{cipher}").replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    fn settings(protocols: &[&str], suites: &[&str]) -> TlsSettings {
        TlsSettings {
            enabled_protocols: texts(protocols),
            cipher_suites: texts(suites),
            ..TlsSettings::default()
        }
    }

    fn versions(settings: &TlsSettings) -> Vec<String> {
        settings.cryptography().unwrap().1.iter().map(|version| format!("{:?}", version.version)).collect()
    }

    #[test]
    fn both_versions_are_spoken_unless_the_settings_say_less() {
        assert_eq!(versions(&TlsSettings::default()), ["TLSv1_3", "TLSv1_2"]);
        assert_eq!(versions(&settings(&["TLSv1.2", "TLSv1.1", "TLSv1"], &[])), ["TLSv1_2"]);
        let twelve =
            TlsSettings { protocol: Some("TLSv1.2".into()), ..settings(&["TLSv1.2", "TLSv1.3"], &[]) };
        assert_eq!(versions(&twelve), ["TLSv1_2"]);
    }

    #[test]
    fn versions_that_are_not_secure_or_that_there_are_not_are_refused_with_a_sentence() {
        for (settings, part) in [
            (settings(&["TLSv1.1"], &[]), "leaves no version"),
            (settings(&["TLSv1.4", "TLSv1.3"], &[]), "\"TLSv1.4\" in ssl.enabled.protocols is no version"),
            (TlsSettings { protocol: Some("TLSv1".into()), ..TlsSettings::default() }, "is not secure"),
            (TlsSettings { protocol: Some("QUIC".into()), ..TlsSettings::default() }, "is no version"),
        ] {
            let error = settings.cryptography().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn cipher_suites_are_chosen_by_their_names_in_java_and_in_openssl() {
        for (name, expected) in [
            ("TLS_AES_128_GCM_SHA256", "TLS13_AES_128_GCM_SHA256"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
            ("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
        ] {
            let (provider, versions) =
                settings(&[], &[name, "TLS_RSA_WITH_AES_128_CBC_SHA"]).cryptography().unwrap();
            let suites: Vec<_> =
                provider.cipher_suites.iter().map(|suite| format!("{:?}", suite.suite())).collect();
            assert_eq!(suites, [expected]);
            assert_eq!(versions.len(), 1);
        }
    }

    #[test]
    fn cipher_suites_of_which_none_can_be_used_are_refused_with_those_that_there_are() {
        for settings in [
            settings(&[], &["TLS_RSA_WITH_AES_128_CBC_SHA"]),
            settings(&["TLSv1.2"], &["TLS_AES_128_GCM_SHA256"]),
        ] {
            let error = settings.cryptography().unwrap_err().to_string();
            assert!(error.contains("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"), "{error}");
        }
    }

    #[test]
    fn the_host_name_is_checked_unless_that_is_turned_off() {
        let of = |text: Option<&str>| TlsSettings {
            endpoint_identification_algorithm: text.map(str::to_owned),
            ..TlsSettings::default()
        };
        assert_eq!(of(None).checks_host_name(), Ok(true));
        assert_eq!(of(Some("HTTPS")).checks_host_name(), Ok(true));
        assert_eq!(of(Some("")).checks_host_name(), Ok(false));
        assert!(of(Some("LDAPS")).checks_host_name().is_err());
    }

    #[test]
    fn other_settings_have_another_fingerprint() {
        let (text, secret) = (|text: &str| Some(text.to_owned()), |text| Some(Secret::new(text)));
        let all = [
            TlsSettings::default(),
            settings(&["TLSv1.2"], &[]),
            settings(&[], &["TLSv1.2"]),
            settings(&["TLSv1.2", "TLSv1.3"], &[]),
            settings(&["TLSv1.2"], &["TLSv1.3"]),
            settings(&["TLSv1.2TLSv1.3"], &[]),
            TlsSettings { keystore_location: text("a"), ..TlsSettings::default() },
            TlsSettings { truststore_location: text("a"), ..TlsSettings::default() },
            TlsSettings { keystore_password: secret("a"), ..TlsSettings::default() },
            TlsSettings { keystore_password: secret(""), ..TlsSettings::default() },
            TlsSettings { key_password: secret("a"), ..TlsSettings::default() },
            TlsSettings { keystore_key: secret("a"), ..TlsSettings::default() },
            TlsSettings { truststore_password: secret("a"), ..TlsSettings::default() },
        ];
        for (at, these) in all.iter().enumerate() {
            assert_eq!(these.fingerprint(), these.clone().fingerprint());
            let same = all.iter().filter(|other| other.fingerprint() == these.fingerprint());
            assert_eq!(same.count(), 1, "number {at}");
        }
    }

    #[test]
    fn no_secret_is_in_the_debug_text() {
        let secret = |text| Some(Secret::new(text));
        let settings = TlsSettings {
            keystore_password: secret("swordfish1"),
            key_password: secret("swordfish2"),
            keystore_key: secret("swordfish3"),
            truststore_password: secret("swordfish4"),
            ..TlsSettings::default()
        };
        assert!(!format!("{settings:?}").contains("swordfish"));
    }
}
