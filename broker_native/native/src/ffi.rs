//! The one boundary between Python and the native crates: releases the GIL, catches panics, translates errors.
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use super::error::Failure;

/// Runs `work` without the GIL; a panic inside becomes `NativeError("INTERNAL", ...)`.
///
/// # Errors
/// What `work` returned, as `NativeError`.
pub fn enter<T, E, F>(py: Python<'_>, work: F) -> PyResult<T>
where
    F: FnOnce() -> Result<T, E> + Send,
    T: Send,
    E: Into<Failure> + Send,
{
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.into().into()),
        Err(payload) => Err(Failure::from_panic(payload.as_ref()).into()),
    }
}
