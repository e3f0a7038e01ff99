//! The PyO3 boundary: one door in (`door`), one translation of errors (`error`), one file per Python class.
pub mod door;
pub mod error;

use pyo3::prelude::*;

/// The Python module `pylog_spark._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("NativeError", module.py().get_type::<error::NativeError>())?;
    Ok(())
}
