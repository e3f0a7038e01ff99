//! Arrow data across the boundary, by the PyCapsules of the Arrow C data interface: nothing is copied.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>
use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::error::{Failure, kind};

/// Names that the interface prescribes.
const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
const STREAM: &CStr = c"arrow_array_stream";

/// One record batch for Python: `pyarrow.record_batch()` takes it.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct NativeBatch(pub RecordBatch);

#[pymethods]
impl NativeBatch {
    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The pair of capsules (schema, array).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A producer may ignore the request; its consumer then casts.
        drop(requested_schema);
        let data = StructArray::from(self.0.clone()).into_data();
        let (array, schema) = to_ffi(&data).map_err(cannot_export)?;
        Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// A capsule with a stream of batches.
///
/// # Errors
/// When Python has no memory left.
pub fn export_stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// Takes the record batch of an object with `__arrow_c_array__`.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is no such object, or its data are no struct.
pub fn import_batch(source: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let Ok(method) = source.getattr("__arrow_c_array__") else {
        let kind_of = source.get_type().name()?;
        let message =
            format!("write takes an Arrow record batch (an object with __arrow_c_array__), not {kind_of}");
        return Err(Failure::new(kind::INVALID_ARGUMENT, message).into());
    };
    let capsules = method.call0()?;
    let capsules = capsules.cast::<PyTuple>()?;
    let schema = capsules.get_item(0)?.cast_into::<PyCapsule>()?;
    let array = capsules.get_item(1)?.cast_into::<PyCapsule>()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: the capsules have the names that promise these structs, and live to the end of this function. `from_raw`
    // moves the array out and leaves it marked as released, as a consumer has to; the schema is only read.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let mut data = data.map_err(cannot_import)?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        let message = format!("write takes a record batch, not an array of {}", data.data_type());
        return Err(Failure::new(kind::INVALID_ARGUMENT, message).into());
    }
    // Buffers that came through IPC need not be aligned as Rust demands.
    data.align_buffers();
    Ok(RecordBatch::from(StructArray::from(data)))
}

/// Takes the schema of an object with `__arrow_c_schema__`.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is no such object, or no schema of columns.
pub fn import_schema(source: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule = source.getattr("__arrow_c_schema__")?.call0()?.cast_into::<PyCapsule>()?;
    let schema = capsule.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    // SAFETY: the capsule has the name that promises this struct, and lives to the end of this function; it is only read.
    Schema::try_from(unsafe { schema.as_ref() }).map_err(cannot_import)
}

fn cannot_import(error: ArrowError) -> PyErr {
    Failure::new(kind::INVALID_ARGUMENT, format!("these Arrow data cannot be imported: {error}")).into()
}

fn cannot_export(error: ArrowError) -> PyErr {
    Failure::new(kind::INTERNAL, format!("an Arrow batch cannot be exported: {error}; please report this"))
        .into()
}
