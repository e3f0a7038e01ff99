//! The tables of settings, as Python sees them.
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::client::to_python;
use super::error::Failure;
use pylog_client::error::ClientError;
use pylog_settings::{Row, Valid, tables};

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen, get_all)]
#[derive(Debug)]
pub struct SettingRow {
    name: &'static str,
    kind: &'static str,
    default: Py<PyAny>,
    doc: String,
    importance: &'static str,
    low: Option<i64>,
    high: Option<i64>,
    words: Py<PyTuple>,
    why: &'static str,
    form: &'static str,
    dynamic: bool,
    per_listener: bool,
    field: Option<&'static str>,
    synonyms: Py<PyTuple>,
    aliases: Py<PyTuple>,
}

impl SettingRow {
    fn new(py: Python<'_>, row: Row) -> PyResult<Self> {
        let synonyms = row.synonyms().into_iter().map(|synonym| (synonym.name, synonym.factor));
        let synonyms = PyTuple::new(py, synonyms.collect::<Vec<_>>())?.unbind();
        let Row { setting, default, doc } = row;
        let (low, high) = match setting.valid {
            Valid::Range { low, high } => (low, high),
            _ => (None, None),
        };
        let (words, why): (&[&str], _) = match setting.valid {
            Valid::OneOf { words, why } => (words, why),
            _ => (&[], ""),
        };
        let form = if let Valid::Form(form) = setting.valid { form } else { "" };
        Ok(Self {
            name: setting.name,
            kind: setting.kind.name(),
            default: to_python(py, &default)?.unbind(),
            doc,
            importance: setting.importance.name(),
            low,
            high,
            words: PyTuple::new(py, words)?.unbind(),
            why,
            form,
            dynamic: setting.dynamic,
            per_listener: setting.per_listener,
            field: setting.field,
            synonyms,
            aliases: PyTuple::new(py, setting.aliases)?.unbind(),
        })
    }
}

/// The table of settings of an `owner`: "client", "broker", "topic" or "group".
#[pyfunction]
pub fn settings<'py>(py: Python<'py>, owner: &str) -> PyResult<Bound<'py, PyTuple>> {
    let rows = match owner {
        "client" => tables::client(),
        "broker" => tables::broker(),
        "topic" => tables::topic(),
        "group" => tables::group(),
        _ => Err(Failure::from(ClientError::invalid(format!("there are no settings of a {owner}"))))?,
    };
    let rows: Vec<SettingRow> =
        rows.into_iter().map(|row| SettingRow::new(py, row)).collect::<PyResult<_>>()?;
    PyTuple::new(py, rows)
}

/// The name of `known` that is written most like `name`.
#[pyfunction]
pub fn nearest(name: &str, known: Vec<String>) -> Option<String> {
    pylog_settings::nearest::nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
}
