//! Protobuf schemas for the schema registry and for typed reads: read from their text or descriptor, with all that they import; and patterns
//! of JSON Schemas.
use std::collections::HashMap;

use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FileDescriptor, ReflectMessage};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use regex::RegexBuilder;

use super::error::{Failure, kind};
use super::ffi::enter;
use pylog_typed::protobuf::compile::{Compiled, Source, compile};

/// What a pattern may come to when it is compiled.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A file that was read: its encoded descriptor, and the same as JSON.
type Read = (Vec<u8>, String);

/// A file, as bytes, and with all that it imports.
struct Described {
    descriptor: Vec<u8>,
    /// First that of the file, then those of all imports.
    json: Vec<String>,
    set: Vec<u8>,
}

/// The descriptor of a file, as JSON first that and then those of all that it imports, all of them as a set, and whether the file was a text.
type CompiledFile<'py> = (Bound<'py, PyBytes>, Vec<String>, Bound<'py, PyBytes>, bool);

/// See `_native.pyi`.
#[pyfunction]
pub fn compile_protobuf<'py>(
    py: Python<'py>,
    name: String,
    files: HashMap<String, String>,
) -> PyResult<CompiledFile<'py>> {
    let is_text = files.get(&name).is_some_and(|text| matches!(Source::registered(text), Source::Text(_)));
    let Described { descriptor, json, set } = enter(py, || {
        compiled(&name, &files).map_err(|sentence| Failure::new(kind::INVALID_ARGUMENT, sentence))
    })?;
    Ok((PyBytes::new(py, &descriptor), json, PyBytes::new(py, &set), is_text))
}

fn compiled(name: &str, files: &HashMap<String, String>) -> Result<Described, String> {
    let files = files.iter().map(|(name, text)| (name.clone(), Source::registered(text)));
    let Compiled { file, pool } = compile(name, files.collect())?;
    let (descriptor, first) = described(&pool, &file)?;
    let mut json = vec![first];
    for imported in pool.files().filter(|imported| imported.name() != name) {
        json.push(described(&pool, &imported)?.1);
    }
    Ok(Described { descriptor, json, set: pool.encode_to_vec() })
}

fn described(pool: &DescriptorPool, file: &FileDescriptor) -> Result<Read, String> {
    // With descriptor.proto among its imports the pool knows the options that the schema defines itself.
    let kind = pool.get_message_by_name("google.protobuf.FileDescriptorProto");
    let kind = kind.unwrap_or_else(|| file.file_descriptor_proto().descriptor());
    let mut message =
        DynamicMessage::decode(kind, file.encode_to_vec().as_slice()).map_err(|error| error.to_string())?;
    message.clear_field_by_name("source_code_info");
    let json = serde_json::to_string(&message).map_err(|error| error.to_string())?;
    Ok((message.encode_to_vec(), json))
}

/// See `_native.pyi`.
#[pyfunction]
pub fn pattern_matches(py: Python<'_>, pattern: String, text: String) -> PyResult<Option<bool>> {
    // Of this library each match takes time in proportion to the text, whatever the pattern.
    enter(py, || {
        let compiled = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build();
        Ok::<_, Failure>(compiled.ok().map(|compiled| compiled.is_match(&text)))
    })
}
