//! The one door between Python and the native rooms: releases the GIL, catches panics, translates errors.
//!
//! Spark's Python daemon forks a worker per task; sockets and threads do not survive that. Every object that holds
//! some keeps an [`Owner`] and asks it first.
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use super::error::{Failure, kind};

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

/// The process that made an object.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    pid: u32,
}

impl Owner {
    /// The calling process.
    pub fn here() -> Self {
        Self { pid: std::process::id() }
    }

    /// Refuses in a forked child.
    ///
    /// # Errors
    /// `FORKED`, naming `what`.
    pub fn check(self, what: &str) -> Result<(), Failure> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        Err(Failure::new(
            kind::FORKED,
            format!(
                "this {what} belongs to process {} and cannot be used after a fork; make a new one",
                self.pid
            ),
        ))
    }
}
