//! `TypedRead`, `encode` and `protobuf_fields` of `_native.pyi`: what a typed read gives, and keys and values of a typed write.
use std::sync::Arc;

use arrow_schema::Schema;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrow::{NativeBatch, import_batch, import_schema};
use super::conditions::{KeyTest, condition};
use super::error::{Failure, kind};
use super::ffi::enter;
use pylog_columnar::Column;
use pylog_typed::avro::Avro;
use pylog_typed::avro::schema::Schema as AvroSchema;
use pylog_typed::format::Format;
use pylog_typed::protobuf::{Prefix, Protobuf, descriptor};
use pylog_typed::writers::WriterSchema;
use pylog_typed::{Mode, Source, Test, TypedPlan, encoder};

/// A schema's text, and the texts of those that it refers to.
type SchemaTexts = (String, Vec<String>);

/// Type and text of a registered schema; the names and texts of those that it refers to.
type RegisteredSchema = (String, String, Vec<(String, String)>);

/// A `FileDescriptorSet`, the name of a message in it, and whether an id that is not looked up stands before it.
type Message = (Vec<u8>, String, bool);

/// The number of a column, spans (first, last) of which one must hold its number, and whether null is wanted, too.
type NumberTest = (usize, Vec<(i64, i64)>, bool);

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct TypedRead(pub Arc<TypedPlan>);

#[pymethods]
impl TypedRead {
    #[new]
    #[pyo3(signature = (schema, sources, *, key=None, value=None, mode="PERMISSIVE", key_schema=None, value_schema=None,
        registered=false, keeps_bad=false, key_message=None, value_message=None, numbers=Vec::new(), texts=Vec::new()))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        schema: &Bound<'_, PyAny>,
        sources: Vec<String>,
        key: Option<&str>,
        value: Option<&str>,
        mode: &str,
        key_schema: Option<SchemaTexts>,
        value_schema: Option<SchemaTexts>,
        registered: bool,
        keeps_bad: bool,
        key_message: Option<Message>,
        value_message: Option<Message>,
        numbers: Vec<NumberTest>,
        texts: Vec<(usize, KeyTest)>,
    ) -> PyResult<Self> {
        let schema: Schema = import_schema(schema)?;
        let sources = sources.iter().map(|name| source(name)).collect::<Result<Vec<_>, _>>()?;
        if sources.len() != schema.fields().len() {
            return Err(unknown("number of sources", &sources.len().to_string()).into());
        }
        let mode = Mode::from_name(mode).ok_or_else(|| unknown("mode", mode))?;
        let key = format(key, key_schema, registered, key_message)?;
        let value = format(value, value_schema, registered, value_message)?;
        let plan = TypedPlan::new(Arc::new(schema), sources, key, value, mode);
        let numbers = numbers.into_iter().map(|(at, spans, null)| Ok((at, Test::Number { spans, null })));
        let texts = texts.into_iter().map(|(at, test)| Ok((at, Test::Bytes(condition(test)?))));
        let tests = numbers.chain(texts).collect::<Result<Vec<_>, Failure>>()?;
        let plan = plan.and_then(|plan| plan.with_conditions(tests));
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

    fn missing_writers(&self) -> Vec<u32> {
        self.0.writers().missing()
    }

    #[pyo3(signature = (schema_id, schema))]
    fn add_writer(&self, schema_id: u32, schema: Option<RegisteredSchema>) {
        let schema =
            schema.map(|(schema_type, text, references)| WriterSchema { schema_type, text, references });
        self.0.writers().add(schema_id, schema);
    }
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (batch, *, key=None, value=None, key_schema=None, value_schema=None, key_id=None, value_id=None,
    key_message=None, value_message=None))]
#[allow(clippy::too_many_arguments)]
pub fn encode(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    key: Option<&str>,
    value: Option<&str>,
    key_schema: Option<SchemaTexts>,
    value_schema: Option<SchemaTexts>,
    key_id: Option<u32>,
    value_id: Option<u32>,
    key_message: Option<Message>,
    value_message: Option<Message>,
) -> PyResult<NativeBatch> {
    let batch = import_batch(batch)?;
    let mut key = format(key, key_schema, false, key_message)?;
    let mut value = format(value, value_schema, false, value_message)?;
    for (format, given) in [(&mut key, key_id), (&mut value, value_id)] {
        match format {
            Some(Format::Avro(avro)) => avro.id = given,
            Some(Format::Protobuf(protobuf)) if given.is_some() => {
                protobuf.prefix = Prefix::Registered(given)
            }
            _ => {}
        }
    }
    let encoded = enter(py, || {
        let encoded = encoder::encode(&batch, key.as_ref(), value.as_ref());
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

fn format(
    name: Option<&str>,
    schema: Option<SchemaTexts>,
    registered: bool,
    message: Option<Message>,
) -> Result<Option<Format>, Failure> {
    let Some(name) = name else { return Ok(None) };
    if let Some(message) = message.filter(|_| name == "protobuf") {
        let mut protobuf = protobuf(&message)?;
        if registered {
            protobuf.prefix = Prefix::Registered(None);
        }
        return Ok(Some(Format::Protobuf(protobuf)));
    }
    if name != "avro" {
        return Format::from_name(name).map(Some).ok_or_else(|| unknown("format", name));
    }
    let schema = schema.map(|texts| avro_schema(&texts)).transpose()?;
    if schema.is_none() && !registered {
        return Err(unknown("schema for the format", name));
    }
    Ok(Some(Format::Avro(Avro { schema, registered, id: None })))
}

fn protobuf((set, name, has_id): &Message) -> Result<Protobuf, Failure> {
    let prefix = if *has_id { Prefix::Given } else { Prefix::None };
    Protobuf::new(set, name, prefix).map_err(|why| Failure::new(kind::INVALID_ARGUMENT, why))
}

/// See `_native.pyi`.
#[pyfunction]
pub fn protobuf_fields(descriptors: Vec<u8>, name: String) -> PyResult<String> {
    let found = protobuf(&(descriptors, name, false))?;
    let ddl = descriptor::ddl(&found.message);
    Ok(ddl.map_err(|why| Failure::new(kind::INVALID_ARGUMENT, why))?)
}

/// See `_native.pyi`.
#[pyfunction]
pub fn protobuf_file(
    py: Python<'_>,
    descriptors: Vec<u8>,
    name: String,
) -> PyResult<(Bound<'_, PyBytes>, Vec<String>)> {
    let found = protobuf(&(descriptors, name, false))?;
    let file = found.message.parent_file();
    let imports = file.dependencies().map(|imported| imported.name().to_owned()).collect();
    Ok((PyBytes::new(py, &file.encode_to_vec()), imports))
}

fn avro_schema((text, referred): &SchemaTexts) -> Result<Arc<AvroSchema>, Failure> {
    let schema = AvroSchema::parse(text, referred.iter().map(String::as_str));
    schema.map(Arc::new).map_err(|error| Failure::new(kind::INVALID_ARGUMENT, format!("the schema {error}")))
}

fn unknown(what: &str, name: &str) -> Failure {
    Failure::new(kind::INVALID_ARGUMENT, format!("a typed read has no {what} {name:?}"))
}
