//! Tokens of OAUTHBEARER, which Python gets (`pylog_spark.login`): the native client asks for one at each login.
use std::collections::HashMap;

use pyo3::prelude::*;

use pylog_client::error::{ClientError, Result, kind};
use pylog_client::security::tokens::{Token, TokenSettings, TokenSource};
use pylog_settings::Secret;

/// The module with the function `token`.
const MODULE: &str = "pylog_spark.login.tokens";
/// Kafka's name for a login that failed.
const FAILED: &str = "SASL_AUTHENTICATION_FAILED";

/// Asks `pylog_spark.login`. Nothing is imported before the first login.
#[derive(Debug)]
pub struct PythonTokens(TokenSettings);

impl PythonTokens {
    /// Of a client with these settings.
    pub fn new(settings: &TokenSettings) -> Self {
        Self(settings.clone())
    }

    fn ask(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, String)>)> {
        let settings: HashMap<&str, &str> =
            self.0.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        py.import(MODULE)?.getattr("token")?.call1((settings,))?.extract()
    }
}

impl TokenSource for PythonTokens {
    fn token(&self) -> Result<Token> {
        // At the interpreter's end no thread may enter it any more.
        let asked = Python::try_attach(|py| self.ask(py).map_err(|error| failed(py, &error)));
        let ended = || ClientError::fatal(kind::CLOSED, "there is no token for a login: Python is ending");
        let (value, extensions) = asked.ok_or_else(ended)??;
        Ok(Token { value: Secret::new(value), extensions })
    }
}

/// The error of a `TokenError`. Of another exception only its class is said: its text may hold a secret.
fn failed(py: Python<'_>, error: &PyErr) -> ClientError {
    let raised = error.value(py);
    let said = raised.getattr("sentence").and_then(|sentence| sentence.extract::<String>());
    let retriable = raised.getattr("retriable").and_then(|value| value.extract::<bool>());
    match (said, retriable) {
        (Ok(sentence), Ok(true)) => ClientError::retriable(kind::TOKEN, sentence),
        (Ok(sentence), _) => ClientError::fatal(FAILED, sentence),
        _ => {
            let class =
                raised.get_type().name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
            ClientError::fatal(FAILED, format!("there is no token for a login: {class} was raised"))
        }
    }
}
