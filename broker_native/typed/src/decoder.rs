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
use crate::plan::{Mode, Part, PlanError, TypedPlan};
use crate::source::Source;

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
    wants_corrupt: bool,
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
        let wants_corrupt = plan.sources.contains(&Source::Corrupt);
        Ok(Self { plan, key, value, corrupt, wants_corrupt })
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
        let mut room = Room::default();
        let mut malformed = 0;
        let mut left_out = Vec::new();
        let mut bad = Vec::new();
        for row in 0..raw.num_rows() {
            let stays = row - left_out.len();
            let found = self.read_row(at(keys.as_ref(), row), at(values.as_ref(), row), &mut room);
            if self.plan.bad.is_some()
                && let Some((part, damage)) = &found
            {
                bad.push((row, format!("the {part} {damage}")));
            }
            let is_left_out = match (self.plan.mode, found) {
                (Mode::FailFast, Some((part, damage))) => {
                    let offsets = self.raw(raw, RecordColumn::Offset);
                    let offset = offsets.map_or(-1, |offsets| offsets.as_primitive::<Int64Type>().value(row));
                    return Err(BadRecord::Damaged { part, offset, damage });
                }
                (Mode::DropMalformed, Some(_)) => {
                    malformed += 1;
                    true
                }
                _ => !self.takes(stays),
            };
            if is_left_out {
                self.forget(stays);
                left_out.push(row);
            }
        }
        if let Some(kept) = &self.plan.bad {
            kept.keep(|column| self.raw(raw, column), &bad)?;
        }
        if left_out.is_empty() {
            return Ok(Kept::All);
        }
        self.plan.left_out.fetch_add(malformed, Ordering::Relaxed);
        let mut left_out = left_out.into_iter().peekable();
        let kept = (0..raw.num_rows()).filter(|row| left_out.next_if_eq(row).is_none());
        Ok(Kept::Rows(kept.collect()))
    }

    /// Adds a row; which part of the record is damaged, if one is, and how.
    #[inline]
    fn read_row(
        &mut self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        room: &mut Room,
    ) -> Option<(&'static str, Damage)> {
        let of_key = read(self.key.as_mut(), key, room);
        let of_value = read(self.value.as_mut(), value, room);
        let found = match (of_value, of_key) {
            (Some(damage), _) => Some(("value", value, damage)),
            (None, damage) => damage.map(|damage| ("key", key, damage)),
        };
        if self.wants_corrupt {
            let text = found.as_ref().map(|(_, bytes, _)| String::from_utf8_lossy(bytes.unwrap_or_default()));
            if text.is_none_or(|text| self.corrupt.push_bytes(text.as_bytes()).is_err()) {
                self.corrupt.push_null();
            }
        }
        found.map(|(part, _, damage)| (part, damage))
    }

    /// Whether all conditions are true of row number `row` of what was decoded.
    #[inline]
    fn takes(&self, row: usize) -> bool {
        let (key, value) =
            (self.key.as_ref().map(|part| &part.column), self.value.as_ref().map(|part| &part.column));
        self.plan.conditions.iter().all(|condition| condition.takes(row, key, value, &self.corrupt))
    }

    /// Forgets the rows from number `stays` on.
    fn forget(&mut self, stays: usize) {
        for part in [self.key.as_mut(), self.value.as_mut()].into_iter().flatten() {
            part.column.truncate(stays);
        }
        self.corrupt.truncate(stays);
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
