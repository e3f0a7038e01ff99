//! Protobuf schemas as registries have them: the text of a `.proto` file or its descriptor, with all that it imports.
//!
//! What is read comes from strangers. The compiler limits how deep messages are nested and reads no files: imports are those that are given,
//! and Google's own (`google/protobuf/*.proto`).
use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DescriptorPool, FileDescriptor};
use protox::file::{File, FileResolver, GoogleFileResolver};

/// A file: its text, or its encoded `FileDescriptorProto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// As in a `.proto` file.
    Text(String),
    /// As compilers hand it on.
    Descriptor(Vec<u8>),
}

impl Source {
    /// What a registry has: a text, or a descriptor in Base64, as some serializers register it.
    pub fn registered(schema: &str) -> Self {
        let letters: String = schema.split_ascii_whitespace().collect();
        match STANDARD.decode(&letters) {
            Ok(descriptor) if !letters.is_empty() => Self::Descriptor(descriptor),
            _ => Self::Text(schema.to_owned()),
        }
    }
}

/// A file that was compiled, and all that it imports.
#[derive(Debug)]
pub struct Compiled {
    /// The file.
    pub file: FileDescriptor,
    /// That file and its imports.
    pub pool: DescriptorPool,
}

/// The file `name`; `files` are it and what it may import, by the names that they are imported by.
///
/// # Errors
/// What is wrong with one of them, in the compiler's words.
pub fn compile(name: &str, files: HashMap<String, Source>) -> Result<Compiled, String> {
    let mut compiler = protox::Compiler::with_file_resolver(Given(files));
    compiler.open_file(name).map_err(|error| error.to_string())?;
    let pool = compiler.descriptor_pool();
    let file = pool.get_file_by_name(name).ok_or_else(|| format!("{name} is not there"))?;
    Ok(Compiled { file, pool })
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
