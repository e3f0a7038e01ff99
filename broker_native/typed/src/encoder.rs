//! Typed columns -> keys and values of records.
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::column::UnknownType;
use crate::format::Format;
use crate::writers::MAGIC;
use crate::{avro, json, plain, protobuf};

/// Why a batch cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A type that no format has.
    #[error(transparent)]
    Type(#[from] UnknownType),
    /// A column that its format does not fit.
    #[error("the {part} has the type {found}, which its format does not write")]
    Misfit {
        /// "key" or "value".
        part: &'static str,
        /// Arrow's type.
        found: DataType,
    },
    /// A column or a value that a schema does not have.
    #[error("the {part} cannot be written: {why}")]
    Schema {
        /// "key" or "value".
        part: &'static str,
        /// In words.
        why: String,
    },
    /// More than Arrow's offsets reach.
    #[error(
        "the keys or values of one Arrow batch are larger than 2 GiB; lower spark.sql.execution.arrow.maxRecordsPerBatch"
    )]
    TooLarge,
    /// Arrow refused a column: a bug.
    #[error("cannot build Arrow columns: {0}")]
    Arrow(#[from] ArrowError),
}

/// The batch with its columns `key` and `value` in their formats; the others stay.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(
    batch: &RecordBatch,
    key: Option<&Format>,
    value: Option<&Format>,
) -> Result<RecordBatch, EncodeError> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let format = match field.name().as_str() {
            "key" => key.map(|format| ("key", format)),
            "value" => value.map(|format| ("value", format)),
            _ => None,
        };
        match format {
            None => {
                fields.push(field.clone());
                columns.push(column.clone());
            }
            Some((part, format)) => {
                fields.push(Arc::new(Field::new(part, DataType::Binary, true)));
                columns.push(Arc::new(bytes(part, format, column)?) as ArrayRef);
            }
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Appends what a row, which is not null, has.
type RowWriter<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), String> + 'a>;

fn bytes(part: &'static str, format: &Format, column: &ArrayRef) -> Result<BinaryArray, EncodeError> {
    let misfit = || EncodeError::Misfit { part, found: column.data_type().clone() };
    let writer: RowWriter<'_> = match format {
        Format::Json if matches!(column.data_type(), DataType::Struct(_)) => {
            let writer = json::write::Writer::new(part, column.as_ref())?;
            Box::new(move |row, out| {
                writer.write(row, out);
                Ok(())
            })
        }
        Format::Json => return Err(misfit()),
        Format::Avro(avro) => {
            let schema = avro.schema.as_ref().ok_or_else(misfit)?;
            let writer = avro::write::Writer::new(schema, schema.root, column.as_ref(), part);
            let writer = writer.map_err(|why| EncodeError::Schema { part, why })?;
            let id = avro.id;
            Box::new(move |row, out| {
                if let Some(id) = id {
                    out.push(MAGIC);
                    out.extend(id.to_be_bytes());
                }
                writer.write(row, out)
            })
        }
        Format::Protobuf(message) => {
            let rows = column.as_struct_opt().ok_or_else(misfit)?;
            let writer = protobuf::encode::Writer::new(message, rows);
            let writer = writer.map_err(|why| EncodeError::Schema { part, why })?;
            Box::new(move |row, out| writer.write(row, out))
        }
        Format::Plain(format) => {
            let writer = plain::Writer::new(*format, column.as_ref()).ok_or_else(misfit)?;
            Box::new(move |row, out| {
                writer.write(row, out);
                Ok(())
            })
        }
    };
    let mut out = BinaryBuilder::with_capacity(column.len(), 0);
    let mut record = Vec::new();
    let mut room = i32::MAX as usize;
    for row in 0..column.len() {
        if column.is_null(row) {
            out.append_null();
            continue;
        }
        record.clear();
        writer(row, &mut record).map_err(|why| EncodeError::Schema { part, why })?;
        room = room.checked_sub(record.len()).ok_or(EncodeError::TooLarge)?;
        out.append_value(&record);
    }
    Ok(out.finish())
}
