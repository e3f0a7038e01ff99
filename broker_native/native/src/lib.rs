//! The module `pylog_spark._native`: the only crate that sees Python. One way in (`ffi::enter`), one translation of errors (`error`), one
//! file per Python class.
//!
//! Nothing here starts a thread, a runtime or a socket when it is loaded: Spark's Python daemon forks.
pub mod archives;
pub mod arrow;
pub mod broker;
pub mod client;
mod conditions;
pub mod directory;
pub mod error;
pub mod ffi;
pub mod log;
pub mod mirror;
pub mod plan;
pub mod protobuf;
pub mod raw;
pub mod reader;
pub mod settings;
pub mod stored;
pub mod throwaway;
pub mod tokens;
pub mod typed;
pub mod writer;

use pyo3::prelude::*;

/// The Python module `pylog_spark._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("NativeError", module.py().get_type::<error::NativeError>())?;
    module.add_class::<archives::BrokerArchives>()?;
    module.add_class::<broker::NativeBroker>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<directory::LogDirectory>()?;
    module.add_class::<mirror::Mirror>()?;
    module.add_function(wrap_pyfunction!(protobuf::compile_protobuf, module)?)?;
    module.add_function(wrap_pyfunction!(protobuf::pattern_matches, module)?)?;
    module.add_class::<raw::RawConnection>()?;
    module.add_class::<reader::PyRangeReader>()?;
    module.add_class::<typed::TypedRead>()?;
    module.add_function(wrap_pyfunction!(typed::encode, module)?)?;
    module.add_function(wrap_pyfunction!(typed::protobuf_fields, module)?)?;
    module.add_function(wrap_pyfunction!(typed::protobuf_file, module)?)?;
    module.add_class::<writer::RecordWriter>()?;
    module.add_function(wrap_pyfunction!(client::murmur2, module)?)?;
    module.add_function(wrap_pyfunction!(stored::survey_batches, module)?)?;
    module.add_function(wrap_pyfunction!(stored::first_record_at, module)?)?;
    module.add_function(wrap_pyfunction!(stored::advance, module)?)?;
    module.add_class::<settings::SettingRow>()?;
    module.add_function(wrap_pyfunction!(settings::settings, module)?)?;
    module.add_function(wrap_pyfunction!(settings::nearest, module)?)?;
    module.add_function(wrap_pyfunction!(throwaway::throwaway_certificates, module)?)?;
    module.add_function(wrap_pyfunction!(log::open_log, module)?)?;
    module.add_function(wrap_pyfunction!(log::set_log_levels, module)?)?;
    module.add_function(wrap_pyfunction!(log::flush_log, module)?)?;
    module.add_function(wrap_pyfunction!(log::close_log, module)?)?;
    module.add_function(wrap_pyfunction!(log::log_loggers, module)?)?;
    Ok(())
}
