//! Raw Arrow batches of `columnar` -> typed ones.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, Field};
use pylog_columnar::Column as RecordColumn;

use crate::column::{Column, Room, Values};
use crate::damage::Damage;
use crate::plan::{Mode, Part, PlanError, Source, TypedPlan};

/// Why a batch cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum BadRecord {
    /// A record does not parse, with [`Mode::FailFast`].
    #[error("the {part} of the record at offset {offset} {damage}")]
    Damaged {
        /// "key" or "value".
        part: &'static str,
        /// Its offset.
        offset: i64,
        /// What is wrong.
        damage: Damage,
    },
    /// Records were written with schemas of which nothing is known yet: [`crate::writers::Writers::missing`]. Nothing of the batch is lost.
    #[error("records were written with schemas that were not looked up")]
    UnknownWriters,
    /// Arrow refused a column: a bug.
    #[error("cannot build Arrow columns: {0}")]
    Arrow(#[from] ArrowError),
}

/// Decodes the batches of one reader.
#[derive(Debug)]
pub struct TypedDecoder {
    plan: Arc<TypedPlan>,
    key: Option<Part>,
    value: Option<Part>,
    corrupt: Column,
}

/// Rows that stay.
enum Kept {
    All,
    Rows(Vec<usize>),
}

impl TypedDecoder {
    /// A decoder of what the columns [`TypedPlan::raw`] give.
    ///
    /// # Errors
    /// None that [`TypedPlan::new`] did not give.
    pub fn new(plan: Arc<TypedPlan>) -> Result<Self, PlanError> {
        let (key, value) = plan.parts()?;
        let corrupt = Column::new(&Field::new("corrupt", arrow_schema::DataType::Utf8, true))?;
        Ok(Self { plan, key, value, corrupt })
    }

    /// Whether damaged records are kept, so that a batch without rows has something to give, too.
    pub fn keeps_bad(&self) -> bool {
        self.plan.bad.is_some()
    }

    /// The typed rows of a raw batch.
    ///
    /// # Errors
    /// [`BadRecord`]; the decoder is of no more use then.
    pub fn decode(&mut self, raw: &RecordBatch) -> Result<RecordBatch, BadRecord> {
        let kept = self.read_rows(raw)?;
        let rows = match &kept {
            Kept::All => raw.num_rows(),
            Kept::Rows(rows) => rows.len(),
        };
        let key = self.key.as_mut().map(|part| part.column.finish()).transpose()?;
        let (value, fields) = self.finish_value()?;
        let corrupt = self.corrupt.finish()?;
        let mut fields = fields.into_iter();
        let mut arrays = Vec::with_capacity(self.plan.sources.len());
        let missing = || ArrowError::InvalidArgumentError("a column that was not decoded".to_owned());
        for source in &self.plan.sources {
            arrays.push(match source {
                Source::Record(column) => chosen(self.raw(raw, *column).ok_or_else(missing)?, &kept)?,
                Source::Key => key.clone().ok_or_else(missing)?,
                Source::Value => value.clone().ok_or_else(missing)?,
                Source::Field => fields.next().ok_or_else(missing)?,
                Source::Corrupt => corrupt.clone(),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.plan.schema(), arrays, &options)?)
    }

    fn raw<'a>(&self, raw: &'a RecordBatch, column: RecordColumn) -> Option<&'a ArrayRef> {
        let at = self.plan.raw().iter().position(|known| *known == column)?;
        raw.columns().get(at)
    }

    fn bytes<'a>(&self, raw: &'a RecordBatch, column: RecordColumn) -> Option<&'a BinaryArray> {
        self.raw(raw, column).map(|array| array.as_binary())
    }

    /// The column of the value, or those of its fields.
    fn finish_value(&mut self) -> Result<(Option<ArrayRef>, Vec<ArrayRef>), ArrowError> {
        let Some(Part { column, .. }) = &mut self.value else { return Ok((None, Vec::new())) };
        let is_whole = self.plan.sources.contains(&Source::Value);
        match &mut column.values {
            Values::Struct(_, fields) if !is_whole => {
                let arrays = fields.iter_mut().map(Column::finish).collect::<Result<_, _>>()?;
                column.truncate(0);
                Ok((None, arrays))
            }
            _ => Ok((Some(column.finish()?), Vec::new())),
        }
    }

    /// Looks for the schemas of all that was written with one, so that whoever asks a registry asks once.
    fn prepare(&mut self, raw: &RecordBatch) -> Result<(), BadRecord> {
        let keys = self.bytes(raw, RecordColumn::Key).cloned();
        let values = self.bytes(raw, RecordColumn::Value).cloned();
        let mut is_ready = true;
        for (part, bytes) in [(&mut self.key, keys), (&mut self.value, values)] {
            let (Some(part), Some(bytes)) = (part, bytes) else { continue };
            if part.reader.has_writers() {
                for row in 0..bytes.len() {
                    is_ready &= part.reader.prepare(at(Some(&bytes), row));
                }
            }
        }
        if is_ready { Ok(()) } else { Err(BadRecord::UnknownWriters) }
    }

    fn read_rows(&mut self, raw: &RecordBatch) -> Result<Kept, BadRecord> {
        self.prepare(raw)?;
        let keys = self.bytes(raw, RecordColumn::Key).cloned();
        let values = self.bytes(raw, RecordColumn::Value).cloned();
        let wants_corrupt = self.plan.sources.contains(&Source::Corrupt);
        let mut room = Room::default();
        let mut left_out = Vec::new();
        let mut kept = Vec::new();
        for row in 0..raw.num_rows() {
            let (key, value) = (at(keys.as_ref(), row), at(values.as_ref(), row));
            let of_key = read(self.key.as_mut(), key, &mut room);
            let of_value = read(self.value.as_mut(), value, &mut room);
            if wants_corrupt && of_key.is_none() && of_value.is_none() {
                self.corrupt.push_null();
            }
            let (part, bytes, damage) = match (of_value, of_key) {
                (Some(damage), _) => ("value", value, damage),
                (None, Some(damage)) => ("key", key, damage),
                (None, None) => continue,
            };
            if self.plan.bad.is_some() {
                kept.push((row, format!("the {part} {damage}")));
            }
            match self.plan.mode {
                Mode::Permissive => {
                    if wants_corrupt {
                        let text = String::from_utf8_lossy(bytes.unwrap_or_default());
                        if self.corrupt.push_bytes(text.as_bytes()).is_err() {
                            self.corrupt.push_null();
                        }
                    }
                }
                Mode::DropMalformed => {
                    let stays = row - left_out.len();
                    for part in [self.key.as_mut(), self.value.as_mut()].into_iter().flatten() {
                        part.column.truncate(stays);
                    }
                    left_out.push(row);
                }
                Mode::FailFast => {
                    let offsets = self.raw(raw, RecordColumn::Offset);
                    let offset = offsets.map_or(-1, |offsets| offsets.as_primitive::<Int64Type>().value(row));
                    return Err(BadRecord::Damaged { part, offset, damage });
                }
            }
        }
        if let Some(bad) = &self.plan.bad {
            bad.keep(|column| self.raw(raw, column), &kept)?;
        }
        if left_out.is_empty() {
            return Ok(Kept::All);
        }
        self.plan.left_out.fetch_add(left_out.len() as u64, Ordering::Relaxed);
        let mut left_out = left_out.into_iter().peekable();
        let kept = (0..raw.num_rows()).filter(|row| left_out.next_if_eq(row).is_none());
        Ok(Kept::Rows(kept.collect()))
    }
}

/// Adds a row, where it is decoded.
#[inline]
fn read(part: Option<&mut Part>, bytes: Option<&[u8]>, room: &mut Room) -> Option<Damage> {
    let Part { column, reader } = part?;
    reader.read(column, bytes, room)
}

#[inline]
fn at(array: Option<&BinaryArray>, row: usize) -> Option<&[u8]> {
    array.filter(|array| array.is_valid(row)).map(|array| array.value(row))
}

/// The rows of `array` that stay.
fn chosen(array: &ArrayRef, kept: &Kept) -> Result<ArrayRef, ArrowError> {
    let Kept::Rows(rows) = kept else { return Ok(array.clone()) };
    let data = array.to_data();
    let mut out = MutableArrayData::new(vec![&data], false, rows.len());
    for run in rows.chunk_by(|row, next| row + 1 == *next) {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            out.try_extend(0, *first, last + 1)?;
        }
    }
    Ok(make_array(out.freeze()))
}
