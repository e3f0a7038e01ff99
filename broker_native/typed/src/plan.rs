//! What a typed read gives: its columns, each with where it comes from; the formats; what becomes of damaged records.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::{DataType, Field, Fields, SchemaRef};
use pylog_columnar::Column as RecordColumn;

use crate::bad::{self, BadRecords};
use crate::column::{Column, UnknownType};
use crate::conditions::{Condition, Test, Unconditional};
use crate::format::{Format, Reader};
use crate::source::Source;
use crate::writers::Writers;

/// What becomes of a record whose key or value does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is given, with nulls where it does not parse.
    #[default]
    Permissive,
    /// It is left out.
    DropMalformed,
    /// It is an error.
    FailFast,
}

impl Mode {
    /// The mode of this name, in capitals.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "PERMISSIVE" => Self::Permissive,
            "DROPMALFORMED" => Self::DropMalformed,
            "FAILFAST" => Self::FailFast,
            _ => return None,
        })
    }
}

/// A plan that contradicts itself.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A type.
    #[error(transparent)]
    Type(#[from] UnknownType),
    /// A column whose type is not that of its source.
    #[error("column {0} does not have the type of what it is to show")]
    Misfit(String),
    /// A condition on a column that has none.
    #[error(transparent)]
    Unconditional(#[from] Unconditional),
    /// A schema of a format that the columns do not fit.
    #[error("the {0} {1}")]
    Schema(&'static str, String),
}

/// A key or value while it is decoded.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) column: Column,
    pub(crate) reader: Reader,
}

/// What a typed read gives.
#[derive(Debug, Clone)]
pub struct TypedPlan {
    pub(crate) schema: SchemaRef,
    pub(crate) sources: Vec<Source>,
    pub(crate) key: Option<Format>,
    pub(crate) value: Option<Format>,
    pub(crate) mode: Mode,
    /// Records that decoders of this plan have left out.
    pub(crate) left_out: Arc<AtomicU64>,
    /// Where records that do not parse are kept, if they are.
    pub(crate) bad: Option<Arc<BadRecords>>,
    /// What must be true of a row.
    pub(crate) conditions: Vec<Condition>,
    /// The schemas with which records were written.
    pub(crate) writers: Writers,
    /// The columns to ask `columnar` for.
    raw: Vec<RecordColumn>,
}

impl TypedPlan {
    /// A plan for columns of `schema`, each with its source. The nullability of a column is not looked at.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(
        schema: SchemaRef,
        sources: Vec<Source>,
        key: Option<Format>,
        value: Option<Format>,
        mode: Mode,
    ) -> Result<Self, PlanError> {
        let mut raw = Vec::new();
        let mut need = |column: RecordColumn| {
            if !raw.contains(&column) {
                raw.push(column);
            }
        };
        for (field, source) in schema.fields().iter().zip(&sources) {
            let fits = match source {
                Source::Record(column) => column.data_type() == *field.data_type(),
                Source::Key => key.as_ref().is_some_and(|format| format.fits(field)),
                Source::Value => value.as_ref().is_some_and(|format| format.fits(field)),
                Source::Field => value.as_ref().is_some_and(Format::has_fields),
                Source::Corrupt => *field.data_type() == DataType::Utf8,
            };
            if !fits {
                return Err(PlanError::Misfit(field.name().clone()));
            }
            match source {
                Source::Record(column) => need(*column),
                Source::Key => need(RecordColumn::Key),
                Source::Value | Source::Field => need(RecordColumn::Value),
                Source::Corrupt => {
                    if key.is_some() {
                        need(RecordColumn::Key);
                    }
                    if value.is_some() {
                        need(RecordColumn::Value);
                    }
                }
            }
        }
        if mode == Mode::FailFast {
            // The error names it.
            need(RecordColumn::Offset);
        }
        let plan = Self {
            schema,
            sources,
            key,
            value,
            mode,
            left_out: Arc::default(),
            bad: None,
            conditions: Vec::new(),
            writers: Writers::default(),
            raw,
        };
        plan.parts()?;
        Ok(plan)
    }

    /// The same plan, whose decoders also keep the records that do not parse.
    #[must_use]
    pub fn keeping_bad(mut self) -> Self {
        self.raw
            .extend(bad::RAW.iter().filter(|column| !self.raw.contains(column)).copied().collect::<Vec<_>>());
        self.bad = Some(Arc::default());
        self
    }

    /// The same plan, of rows of which this is true, too: each test with the number of its column.
    ///
    /// # Errors
    /// [`PlanError::Unconditional`].
    pub fn with_conditions(
        mut self,
        tests: impl IntoIterator<Item = (usize, Test)>,
    ) -> Result<Self, PlanError> {
        for (column, test) in tests {
            self.conditions.push(Condition::new(&self.sources, column, test)?);
        }
        Ok(self)
    }

    /// The records that do not parse which decoders of this plan have kept since the last call.
    pub fn take_bad(&self) -> Vec<arrow_array::RecordBatch> {
        self.bad.as_ref().map_or_else(Vec::new, |bad| bad.take())
    }

    /// The columns of `columnar` that a decoder needs, in this order.
    pub fn raw(&self) -> &[RecordColumn] {
        &self.raw
    }

    /// Records that were left out because they are damaged, by all decoders of this plan.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The schemas with which records were written.
    pub fn writers(&self) -> &Writers {
        &self.writers
    }

    /// The schema of what a decoder gives.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// What reads the keys and the values; `None` for what is not decoded. With a corrupt column, or where damaged records are kept,
    /// both are decoded, because that says whether they are damaged.
    pub(crate) fn parts(&self) -> Result<(Option<Part>, Option<Part>), PlanError> {
        let judged = self.sources.contains(&Source::Corrupt) || self.bad.is_some();
        let fields: Fields = self.of(Source::Field).collect();
        let whole = match self.of(Source::Value).next() {
            None if !fields.is_empty() => Some(Arc::new(Field::new("value", DataType::Struct(fields), true))),
            named => named,
        };
        let part = |what: &'static str, named: Option<Arc<Field>>, format: &Option<Format>| {
            let Some(format) = format else { return Ok(None) };
            let field = match &named {
                Some(field) => field.clone(),
                None if judged => Arc::new(Field::new("", format.least_type(), true)),
                None => return Ok(None),
            };
            let column = Column::new(&field)?;
            let reader = Reader::new(format, &field, named.is_none(), &self.writers);
            let reader = reader.map_err(|why| PlanError::Schema(what, why))?;
            Ok::<_, PlanError>(Some(Part { column, reader }))
        };
        Ok((part("key", self.of(Source::Key).next(), &self.key)?, part("value", whole, &self.value)?))
    }

    fn of(&self, wanted: Source) -> impl Iterator<Item = Arc<Field>> {
        let columns = self.schema.fields().iter().zip(&self.sources);
        columns.filter(move |(_, source)| **source == wanted).map(|(field, _)| field.clone())
    }
}
