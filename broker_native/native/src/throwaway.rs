//! Throw-away certificates, for tests and for brokers that tests start.
use pyo3::prelude::*;

use super::error::{Failure, kind};
use super::ffi::enter;
use pylog_security::tls::TlsError;
use pylog_security::tls::throwaway::{Authority, Usage, Wanted};

/// Common name, hosts, usage, first and last second in which it is valid.
type Asked = (String, Vec<String>, String, i64, i64);

/// See `_native.pyi`.
#[pyfunction]
pub fn throwaway_certificates(
    py: Python<'_>,
    authority: String,
    asked: Vec<Asked>,
) -> PyResult<(String, Vec<(String, String)>)> {
    enter(py, || {
        made(&authority, asked).map_err(|error| Failure::new(kind::INVALID_ARGUMENT, error.to_string()))
    })
}

fn made(authority: &str, asked: Vec<Asked>) -> Result<(String, Vec<(String, String)>), TlsError> {
    let not_before = asked.iter().map(|asked| asked.3).min().unwrap_or_default();
    let not_after = asked.iter().map(|asked| asked.4).max().unwrap_or_default();
    let authority = Authority::new(authority, not_before, not_after)?;
    let mut issued = Vec::new();
    for (common_name, hosts, usage, not_before, not_after) in asked {
        let usage = match usage.as_str() {
            "server" => Usage::Server,
            "client" => Usage::Client,
            "both" => Usage::Both,
            other => {
                return Err(TlsError::Settings(format!(
                    "{other:?} is no usage: write server, client or both"
                )));
            }
        };
        let one = authority.issue(&Wanted { common_name, hosts, not_before, not_after, usage })?;
        issued.push((one.certificate, one.key.reveal().to_owned()));
    }
    Ok((authority.certificate().to_owned(), issued))
}
