//! `TypedRead` and `encode` of `_native.pyi`: what a typed read gives, and keys and values of a typed write.
use std::sync::Arc;

use arrow_schema::Schema;
use pyo3::prelude::*;

use super::arrow::{NativeBatch, import_batch, import_schema};
use super::error::{Failure, kind};
use super::ffi::enter;
use pylog_columnar::Column;
use pylog_typed::format::Format;
use pylog_typed::{Mode, Source, TypedPlan, encoder};

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct TypedRead(pub Arc<TypedPlan>);

#[pymethods]
impl TypedRead {
    #[new]
    #[pyo3(signature = (schema, sources, *, key=None, value=None, mode="PERMISSIVE", keeps_bad=false))]
    fn new(
        schema: &Bound<'_, PyAny>,
        sources: Vec<String>,
        key: Option<&str>,
        value: Option<&str>,
        mode: &str,
        keeps_bad: bool,
    ) -> PyResult<Self> {
        let schema: Schema = import_schema(schema)?;
        let sources = sources.iter().map(|name| source(name)).collect::<Result<Vec<_>, _>>()?;
        if sources.len() != schema.fields().len() {
            return Err(unknown("number of sources", &sources.len().to_string()).into());
        }
        let mode = Mode::from_name(mode).ok_or_else(|| unknown("mode", mode))?;
        let plan = TypedPlan::new(Arc::new(schema), sources, format(key)?, format(value)?, mode);
        let plan = plan.map_err(|error| Failure::new(kind::INVALID_ARGUMENT, error.to_string()))?;
        Ok(Self(Arc::new(if keeps_bad { plan.keeping_bad() } else { plan })))
    }

    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    fn take_bad(&self) -> Vec<NativeBatch> {
        self.0.take_bad().into_iter().map(NativeBatch).collect()
    }
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (batch, *, key=None, value=None))]
pub fn encode(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    key: Option<&str>,
    value: Option<&str>,
) -> PyResult<NativeBatch> {
    let (batch, key, value) = (import_batch(batch)?, format(key)?, format(value)?);
    let encoded = enter(py, || {
        let encoded = encoder::encode(&batch, key, value);
        encoded.map_err(|error| Failure::new(kind::INVALID_ARGUMENT, error.to_string()))
    })?;
    Ok(NativeBatch(encoded))
}

/// `key`, `value`, `field`, `corrupt`, or `record:` and the name of a column.
fn source(name: &str) -> Result<Source, Failure> {
    match name {
        "key" => Ok(Source::Key),
        "value" => Ok(Source::Value),
        "field" => Ok(Source::Field),
        "corrupt" => Ok(Source::Corrupt),
        _ => {
            let column = name.strip_prefix("record:").and_then(|name| Column::from_name(name).ok());
            column.map(Source::Record).ok_or_else(|| unknown("source", name))
        }
    }
}

fn format(name: Option<&str>) -> Result<Option<Format>, Failure> {
    name.map(|name| Format::from_name(name).ok_or_else(|| unknown("format", name))).transpose()
}

fn unknown(what: &str, name: &str) -> Failure {
    Failure::new(kind::INVALID_ARGUMENT, format!("a typed read has no {what} {name:?}"))
}
