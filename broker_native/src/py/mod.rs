//! The PyO3 boundary: one door in, one translation of errors.
use pyo3::prelude::*;

/// The Python module `pylog_spark._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
