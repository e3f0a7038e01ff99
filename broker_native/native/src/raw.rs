//! `RawConnection` of `_native.pyi`: any request to a broker, for tests and tools.
use std::collections::HashMap;

use parking_lot::Mutex;
use pyo3::prelude::*;

use super::client::settings;
use super::error::Failure;
use super::ffi::enter;
use pylog_client::error::{ClientError, Owner, Result, kind};
use pylog_client::net::raw;

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct RawConnection {
    connection: Mutex<Option<raw::RawConnection>>,
    owner: Owner,
}

impl RawConnection {
    /// Runs `work` on the connection, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut raw::RawConnection) -> Result<T> + Send,
    ) -> PyResult<T> {
        enter(py, || {
            self.owner.check("raw connection")?;
            let mut connection = self.connection.lock();
            let closed = || ClientError::fatal(kind::CLOSED, "this connection is closed; make a new one");
            work(connection.as_mut().ok_or_else(closed)?)
        })
    }
}

#[pymethods]
impl RawConnection {
    #[new]
    #[pyo3(signature = (host, port, timeout_ms=30_000, config=None))]
    fn new(
        py: Python<'_>,
        host: &str,
        port: u16,
        timeout_ms: u32,
        config: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        let mut config = config.unwrap_or_default();
        config.extend([
            ("bootstrap.servers".to_owned(), format!("{host}:{port}")),
            ("request.timeout.ms".to_owned(), timeout_ms.to_string()),
        ]);
        let settings = settings(&config)?;
        let connection =
            enter(py, || raw::RawConnection::open(host, port, &settings).map_err(Failure::from))?;
        Ok(Self { connection: Mutex::new(Some(connection)), owner: Owner::current() })
    }

    #[pyo3(signature = (api_name, version, request_json="{}", client_id="raw"))]
    fn call(
        &self,
        py: Python<'_>,
        api_name: &str,
        version: i16,
        request_json: &str,
        client_id: &str,
    ) -> PyResult<String> {
        self.with(py, |connection| {
            connection.send(api_name, version, request_json, client_id, true)?;
            connection.receive()
        })
    }

    #[pyo3(signature = (api_name, version, request_json="{}", client_id="raw", *, answered=true))]
    fn send(
        &self,
        py: Python<'_>,
        api_name: &str,
        version: i16,
        request_json: &str,
        client_id: &str,
        answered: bool,
    ) -> PyResult<()> {
        self.with(py, |connection| connection.send(api_name, version, request_json, client_id, answered))
    }

    fn receive(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, raw::RawConnection::receive)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        enter(py, || -> Result<()> {
            *self.connection.lock() = None;
            Ok(())
        })
    }
}
