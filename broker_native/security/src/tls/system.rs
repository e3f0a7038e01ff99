//! The root certificates that the operating system trusts.
//!
//! | system | where they are |
//! |---|---|
//! | macOS | the file of `SSL_CERT_FILE`, or `/etc/ssl/cert.pem`, which Apple ships; what a user trusts by the keychain is not there |
//! | others | where `rustls-native-certs` looks: `SSL_CERT_FILE`, `SSL_CERT_DIR`, the places of distributions |
use rustls::pki_types::CertificateDer;

/// The certificates that can be read, and why others cannot.
#[cfg(not(target_os = "macos"))]
pub fn roots() -> (Vec<CertificateDer<'static>>, Option<String>) {
    let found = rustls_native_certs::load_native_certs();
    (found.certs, found.errors.first().map(ToString::to_string))
}

/// The certificates that can be read, and why others cannot.
#[cfg(target_os = "macos")]
pub fn roots() -> (Vec<CertificateDer<'static>>, Option<String>) {
    let named = std::env::var_os("SSL_CERT_FILE").map(std::path::PathBuf::from);
    of_file(&named.unwrap_or_else(|| "/etc/ssl/cert.pem".into()))
}

#[cfg(any(test, target_os = "macos"))]
fn of_file(path: &std::path::Path) -> (Vec<CertificateDer<'static>>, Option<String>) {
    use rustls::pki_types::pem::PemObject;

    let mut errors = None;
    let mut found = Vec::new();
    match CertificateDer::pem_file_iter(path) {
        Ok(read) => {
            for certificate in read {
                match certificate {
                    Ok(certificate) => found.push(certificate),
                    Err(error) => errors = Some(format!("{}: {error}", path.display())),
                }
            }
        }
        Err(error) => errors = Some(format!("{}: {error}", path.display())),
    }
    (found, errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_roots_gives_each_of_them_and_why_others_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cert.pem");
        let root = rcgen::generate_simple_self_signed(["root".to_owned()]).unwrap().cert;
        std::fs::write(&path, format!("# a comment\n{0}{0}", root.pem())).unwrap();
        assert_eq!(of_file(&path), (vec![root.der().clone(); 2], None));
        let (none, error) = of_file(&folder.path().join("none.pem"));
        assert!(none.is_empty() && error.unwrap().contains("none.pem: "));
    }
}
