//! Protobuf schemas for the schema registry: read from their text or descriptor, with all that they import; and patterns of JSON Schemas.
//!
//! What is read comes from strangers. The compiler limits how deep messages are nested and reads no files: imports are those that are given,
//! and Google's own (`google/protobuf/*.proto`).
use std::collections::HashMap;

use prost_reflect::{DescriptorPool, DynamicMessage, FileDescriptor, ReflectMessage};
use protox::file::{File, FileResolver, GoogleFileResolver};
use protox::prost::Message;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use regex::RegexBuilder;

use super::error::{Failure, kind};
use super::ffi::enter;

/// What a pattern may come to when it is compiled.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A file: its text, or its encoded `FileDescriptorProto`.
#[derive(Debug, FromPyObject)]
pub enum Source {
    /// As in a `.proto` file.
    Text(String),
    /// As compilers hand it on.
    Descriptor(Vec<u8>),
}

/// The files that are there.
struct Given(HashMap<String, Source>);

impl FileResolver for Given {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.get(name) {
            Some(Source::Text(text)) => File::from_source(name, text),
            Some(Source::Descriptor(bytes)) => named(name, bytes),
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// A descriptor under the name by which others import it, whatever name it was compiled under.
fn named(name: &str, bytes: &[u8]) -> Result<File, protox::Error> {
    let file = File::decode_file_descriptor_proto(bytes).map_err(protox::Error::new)?;
    let mut proto = file.file_descriptor_proto().clone();
    proto.name = Some(name.to_owned());
    Ok(File::from_file_descriptor_proto(proto))
}

/// A file that was read: its encoded descriptor, and the same as JSON.
type Read = (Vec<u8>, String);

/// See `_native.pyi`.
#[pyfunction]
pub fn compile_protobuf<'py>(
    py: Python<'py>,
    name: String,
    files: HashMap<String, Source>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let (descriptor, json) = enter(py, || {
        compiled(&name, files).map_err(|sentence| Failure::new(kind::INVALID_ARGUMENT, sentence))
    })?;
    Ok((PyBytes::new(py, &descriptor), json))
}

/// The descriptor of a file, and as JSON first that and then those of all that it imports.
fn compiled(name: &str, files: HashMap<String, Source>) -> Result<(Vec<u8>, Vec<String>), String> {
    let mut compiler = protox::Compiler::with_file_resolver(Given(files));
    compiler.open_file(name).map_err(|error| error.to_string())?;
    let pool = compiler.descriptor_pool();
    let file = pool.get_file_by_name(name).ok_or_else(|| format!("{name} is not there"))?;
    let (descriptor, json) = described(&pool, &file)?;
    let mut all = vec![json];
    for imported in pool.files().filter(|imported| imported.name() != name) {
        all.push(described(&pool, &imported)?.1);
    }
    Ok((descriptor, all))
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
