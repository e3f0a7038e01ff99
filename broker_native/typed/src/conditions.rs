//! Conditions of a query on decoded columns: a row for which one of them is not true is forgotten before it becomes Arrow.
//!
//! They mean what Spark means by them: numbers in Spark's order, in which -0.0 equals 0.0 and NaN equals NaN and is above all others; texts
//! byte by byte, unsigned. All must hold.
use pylog_columnar::KeyCondition;

use crate::column::{Column, Values};
use crate::source::Source;

/// What is true of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The [`number`] lies in one of these spans (first, last), both included, which ascend; or it is null, and nulls are wanted.
    Number {
        /// The spans.
        spans: Vec<(i64, i64)>,
        /// Whether nulls are wanted.
        null: bool,
    },
    /// A text or bytes, as of a key.
    Bytes(KeyCondition),
}

/// A condition on a column for which nothing is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("column number {0} has no conditions")]
pub struct Unconditional(pub usize);

/// Where a value is that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Value,
    Field(usize),
    Corrupt,
}

/// A condition on a decoded column.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    place: Place,
    test: Test,
}

impl Condition {
    /// A condition on the column with this number.
    ///
    /// # Errors
    /// [`Unconditional`].
    pub(crate) fn new(sources: &[Source], column: usize, test: Test) -> Result<Self, Unconditional> {
        let before = sources.get(..column).unwrap_or_default();
        let place = match sources.get(column) {
            Some(Source::Key) => Place::Key,
            Some(Source::Value) => Place::Value,
            Some(Source::Field) => {
                Place::Field(before.iter().filter(|source| **source == Source::Field).count())
            }
            Some(Source::Corrupt) => Place::Corrupt,
            Some(Source::Record(_)) | None => return Err(Unconditional(column)),
        };
        Ok(Self { place, test })
    }

    /// Whether it is true of row number `row`.
    #[inline]
    pub(crate) fn takes(
        &self,
        row: usize,
        key: Option<&Column>,
        value: Option<&Column>,
        corrupt: &Column,
    ) -> bool {
        let column = match self.place {
            Place::Key => key,
            Place::Value => value,
            Place::Field(field) => value.and_then(|whole| match &whole.values {
                Values::Struct(_, fields) => fields.get(field),
                _ => None,
            }),
            Place::Corrupt => Some(corrupt),
        };
        column.is_some_and(|column| self.test.takes(column, row))
    }
}

impl Test {
    fn takes(&self, column: &Column, row: usize) -> bool {
        let is_null = !column.is_valid(row);
        match self {
            Self::Number { null, .. } if is_null => *null,
            Self::Number { spans, .. } => number(column, row).is_some_and(|number| holds(spans, number)),
            Self::Bytes(condition) => condition.takes(column.bytes(row).filter(|_| !is_null)),
        }
    }
}

/// What stands for a number, a boolean, a date (days) or a time (microseconds), so that these have Spark's order.
fn number(column: &Column, row: usize) -> Option<i64> {
    Some(match &column.values {
        Values::Bool(values) => i64::from(*values.get(row)?),
        Values::I8(values) => i64::from(*values.get(row)?),
        Values::I16(values) => i64::from(*values.get(row)?),
        Values::I32(values) => i64::from(*values.get(row)?),
        Values::I64(values) => *values.get(row)?,
        Values::F32(values) => order(f64::from(*values.get(row)?)),
        Values::F64(values) => order(*values.get(row)?),
        _ => return None,
    })
}

/// The place of a number among all, as Spark orders them.
fn order(number: f64) -> i64 {
    let number = if number.is_nan() { f64::NAN.abs() } else { number + 0.0 };
    let bits = i64::from_ne_bytes(number.to_bits().to_ne_bytes());
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

fn holds(spans: &[(i64, i64)], number: i64) -> bool {
    let after = spans.partition_point(|(first, _)| *first <= number);
    after > 0 && spans.get(after - 1).is_some_and(|(_, last)| number <= *last)
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn numbers_stand_in_sparks_order() {
        let ascending = [
            f64::NEG_INFINITY,
            -2.5,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        let places: Vec<i64> = ascending.iter().map(|number| order(*number)).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
        assert_eq!(order(-0.0), order(0.0));
        assert_eq!(order(-f64::NAN), order(f64::NAN));
    }
}
