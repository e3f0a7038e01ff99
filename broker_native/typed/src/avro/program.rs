//! What to do with each part of a datum: a writer's schema resolved to a reader's, and that to the wanted columns.
//!
//! Avro's rules of resolution come first (fields by name or alias, defaults, numbers that widen, unions branch by branch), then those by which
//! Spark makes its types of Avro's. A part that no column wants is passed over. What cannot be resolved is an error of the records
//! that have it, as in Avro: [`Op::Never`].
use std::sync::Arc;

use arrow_schema::{DataType, Fields, TimeUnit};

use super::defaults;
use super::schema::{Field, Id, Kind, Logical, Name, Schema};

/// How to read a value into a column.
#[derive(Debug)]
pub enum Op {
    /// A null.
    Null,
    /// A truth value.
    Bool,
    /// A number, written so.
    Number(Wire),
    /// A number that becomes a single float before it becomes a double.
    Single(Wire),
    /// Milliseconds, of which the column has microseconds.
    Millis(Wire),
    /// A text or bytes.
    Bytes,
    /// So many bytes.
    Fixed(usize),
    /// A decimal's bytes, so many or as many as they say, and the digits that it may have.
    Decimal(Option<usize>, u8),
    /// The texts of symbols; none for those that the reader does not know.
    Enum(Vec<Option<String>>),
    /// A list, and how many bytes an item has at least.
    List(Box<Self>, usize),
    /// A map with keys of type string.
    Map(Box<Self>),
    /// A struct.
    Record(Vec<Step>, Vec<(usize, Filler)>),
    /// One of them, by number.
    Union(Vec<Self>),
    /// A struct of which only the field of this number has a value.
    Member(usize, Box<Self>),
    /// Whatever it is, it is only looked at.
    Judge(Id),
    /// Cannot be read, for this reason.
    Never(Arc<str>),
}

/// Numbers as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// `int`.
    Int,
    /// `long`.
    Long,
    /// `float`.
    Float,
    /// `double`.
    Double,
}

/// What to do with the next field of a writer's record.
#[derive(Debug)]
pub enum Step {
    /// No column wants it.
    Skip(Id),
    /// It is the struct's field of this number.
    Read(usize, Op),
}

/// What a field has that the writer did not know.
#[derive(Debug)]
pub enum Filler {
    /// Null.
    Null,
    /// A default of the reader's schema, as a datum of it.
    Default(Box<[u8]>, Op, Arc<Schema>),
}

/// A writer's schema on the way to a reader's.
#[derive(Debug)]
pub struct Resolver<'a> {
    /// What wrote the datum.
    pub writer: &'a Arc<Schema>,
    /// What it is to be read as.
    pub reader: &'a Arc<Schema>,
    /// Whether the columns are the reader's schema: those that the writer did not know are null then, and numbers widen to the columns'
    /// types. Both schemas are the writer's.
    pub by_columns: bool,
}

type Outcome = Result<Op, String>;

impl Resolver<'_> {
    /// What to do with a datum of which `wanted` is asked; with `judged`, nothing is, but whether it is whole.
    pub fn root(&self, wanted: &DataType, judged: bool) -> Op {
        let root = self.writer.root;
        if judged {
            return Op::Judge(root);
        }
        let mut op = self.op(root, self.reader.root, wanted).unwrap_or_else(|why| Op::Never(why.into()));
        if let Op::Record(steps, _) = &mut op {
            // Nobody asks how the datum goes on.
            while matches!(steps.last(), Some(Step::Skip(_))) {
                steps.pop();
            }
        }
        op
    }

    fn op(&self, writer: Id, reader: Id, wanted: &DataType) -> Outcome {
        if let Kind::Union(branches) = &self.writer.get(writer).kind {
            let of = |(index, branch): (usize, &Id)| {
                let reader = self.reader_of_branch(index, *branch, reader);
                let op = reader.and_then(|(reader, union)| self.in_union(*branch, reader, union, wanted));
                op.unwrap_or_else(|why| Op::Never(why.into()))
            };
            let ops: Vec<Op> = branches.iter().enumerate().map(of).collect();
            return Ok(Op::Union(ops));
        }
        match &self.reader.get(reader).kind {
            Kind::Union(branches) => {
                let found = self.branch_for(writer, branches);
                let found =
                    found.ok_or_else(|| self.differ(writer, "the reader's union has no such branch"))?;
                self.in_union(writer, found, Some(branches), wanted)
            }
            _ => self.plain(writer, reader, wanted),
        }
    }

    /// The reader's type for a branch of a writer's union, and the reader's union, if it is one.
    fn reader_of_branch(&self, index: usize, branch: Id, reader: Id) -> Result<(Id, Option<&[Id]>), String> {
        match &self.reader.get(reader).kind {
            // Each column takes any of the writer's branches.
            Kind::Union(branches) if self.by_columns => {
                let same = branches.get(index).ok_or("a union that is not its own")?;
                Ok((*same, Some(branches)))
            }
            Kind::Union(branches) => {
                let found = self.branch_for(branch, branches);
                found
                    .map(|found| (found, Some(&branches[..])))
                    .ok_or_else(|| self.differ(branch, "the reader's union has no such branch"))
            }
            _ => Ok((reader, None)),
        }
    }

    /// The branch of a reader's union that takes a writer's type: the first of the same type and name, else the first that it widens to.
    fn branch_for(&self, writer: Id, branches: &[Id]) -> Option<Id> {
        let kind = &self.writer.get(writer).kind;
        let fits = |how: fn(&Kind, &Kind) -> bool| {
            branches.iter().copied().find(|branch| how(kind, &self.reader.get(*branch).kind))
        };
        fits(is_same).or_else(|| fits(is_alike)).or_else(|| fits(widens))
    }

    /// A type that may be a branch of a reader's union: Spark has a type of its own for some unions.
    fn in_union(&self, writer: Id, reader: Id, union: Option<&[Id]>, wanted: &DataType) -> Outcome {
        let is_null = |id: &Id| matches!(self.reader.get(*id).kind, Kind::Null);
        let Some(union) = union.filter(|_| !is_null(&reader)) else {
            return self.plain(writer, reader, wanted);
        };
        let others: Vec<Id> = union.iter().copied().filter(|id| !is_null(id)).collect();
        let all = |one: fn(&Kind) -> bool| others.iter().all(|id| one(&self.reader.get(*id).kind));
        let is_whole = *wanted == DataType::Int64 && all(|kind| matches!(kind, Kind::Int | Kind::Long));
        let is_double =
            *wanted == DataType::Float64 && all(|kind| matches!(kind, Kind::Float | Kind::Double));
        let members = match wanted {
            DataType::Struct(fields) if others.len() > 1 && !is_whole && !is_double => members(fields),
            _ => return self.plain(writer, reader, wanted),
        };
        let Some(members) = members else { return self.plain(writer, reader, wanted) };
        let number = others.iter().position(|id| *id == reader).ok_or("a branch that is none")?;
        match members.iter().position(|member| *member == number) {
            Some(at) => match wanted {
                DataType::Struct(fields) => {
                    let field = fields.get(at).ok_or("a field that is none")?;
                    let op = self.plain(writer, reader, field.data_type())?;
                    Ok(Op::Member(at, Box::new(op)))
                }
                _ => Err("a field that is none".to_owned()),
            },
            // All its fields are null, but the struct is there.
            None => Ok(Op::Judge(writer)),
        }
    }

    fn plain(&self, writer: Id, reader: Id, wanted: &DataType) -> Outcome {
        use Kind::{Array, Boolean, Bytes, Double, Enum, Fixed, Float, Int, Long, Map, Null, Record, String};
        let (written, read) = (self.writer.get(writer), self.reader.get(reader));
        let misfit = || Err(self.differ(writer, &format!("{} is wanted", spark_name(wanted))));
        match (&written.kind, &read.kind) {
            (Null, Null) => Ok(Op::Null),
            (Boolean, Boolean) => {
                if *wanted == DataType::Boolean {
                    Ok(Op::Bool)
                } else {
                    misfit()
                }
            }
            (Int | Long | Float | Double, Int | Long | Float | Double) => {
                self.number(&written.kind, &read.kind, read.logical, wanted).map_or_else(misfit, Ok)
            }
            (Bytes | String, Bytes | String) => match (read.logical, wanted) {
                (Some(Logical::Decimal(precision, scale)), DataType::Decimal128(digits, places)) => {
                    if precision <= *digits && scale == *places {
                        Ok(Op::Decimal(None, precision))
                    } else {
                        misfit()
                    }
                }
                (_, DataType::Utf8 | DataType::Binary) => Ok(Op::Bytes),
                _ => misfit(),
            },
            (Fixed(theirs, size), Fixed(ours, wanted_size)) if size != wanted_size || !ours.takes(theirs) => {
                Err(self.differ(writer, "the reader's schema has another fixed"))
            }
            (Fixed(_, size), Fixed(..)) => match (read.logical, wanted) {
                (Some(Logical::Decimal(precision, scale)), DataType::Decimal128(digits, places))
                    if precision <= *digits && scale == *places =>
                {
                    Ok(Op::Decimal(Some(*size), precision))
                }
                (_, DataType::Binary) => Ok(Op::Fixed(*size)),
                _ => misfit(),
            },
            (Enum(theirs, ..), Enum(ours, ..)) if !ours.takes(theirs) => {
                Err(self.differ(writer, "the reader's schema has another enum"))
            }
            (Enum(_, symbols, _), Enum(_, known, default)) => match wanted {
                DataType::Utf8 => Ok(Op::Enum(texts(symbols, known, *default))),
                _ => misfit(),
            },
            (Array(theirs), Array(ours)) => match wanted {
                DataType::List(item) => {
                    let op = self.op(*theirs, *ours, item.data_type())?;
                    Ok(Op::List(Box::new(op), self.writer.least_bytes(*theirs)))
                }
                _ => misfit(),
            },
            (Map(theirs), Map(ours)) => match map_value(wanted) {
                Some(value) => Ok(Op::Map(Box::new(self.op(*theirs, *ours, value)?))),
                None => misfit(),
            },
            (Record(_, theirs), Record(_, ours)) => match wanted {
                DataType::Struct(fields) => self.record(theirs, ours, fields),
                _ => misfit(),
            },
            _ => Err(self.differ(writer, &format!("the reader's schema has {}", word(&read.kind)))),
        }
    }

    fn number(&self, written: &Kind, read: &Kind, logical: Option<Logical>, wanted: &DataType) -> Option<Op> {
        let (wire, via) = (wire(written)?, wire(read)?);
        if wire as u8 > via as u8 {
            return None;
        }
        let micros = TimeUnit::Microsecond;
        let is_float = matches!(via, Wire::Float | Wire::Double);
        match wanted {
            DataType::Int8 | DataType::Int16 if via == Wire::Int => Some(Op::Number(wire)),
            DataType::Int32 if via == Wire::Int => Some(Op::Number(wire)),
            DataType::Date32 if via == Wire::Int => Some(Op::Number(wire)),
            DataType::Int64 if !is_float => Some(Op::Number(wire)),
            DataType::Float32 if via == Wire::Float || (self.by_columns && !is_float) => {
                Some(Op::Number(wire))
            }
            DataType::Float64 if via == Wire::Float && wire != Wire::Float => Some(Op::Single(wire)),
            DataType::Float64 => Some(Op::Number(wire)),
            DataType::Timestamp(unit, zone) if *unit == micros && via == Wire::Long => {
                match (logical, zone.is_some()) {
                    (None, _) | (Some(Logical::Millis), true) | (Some(Logical::LocalMillis), false) => {
                        Some(Op::Millis(wire))
                    }
                    (Some(Logical::Micros), true) | (Some(Logical::LocalMicros), false) => {
                        Some(Op::Number(wire))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn record(&self, theirs: &[Field], ours: &[Field], wanted: &Fields) -> Outcome {
        let mut steps: Vec<Step> = theirs.iter().map(|field| Step::Skip(field.kind)).collect();
        let mut missing = Vec::new();
        for (at, column) in wanted.iter().enumerate() {
            let Some(field) = ours.iter().find(|field| field.name == *column.name()) else {
                if self.by_columns {
                    missing.push((at, Filler::Null));
                    continue;
                }
                return Err(format!("is read as a schema that has no field {}", column.name()));
            };
            let known = theirs
                .iter()
                .position(|each| each.name == field.name)
                .or_else(|| theirs.iter().position(|each| field.aliases.contains(&each.name)));
            let step = known.and_then(|known| Some((steps.get_mut(known)?, theirs.get(known)?)));
            match step {
                Some((step @ Step::Skip(_), written)) => {
                    let op = self.op(written.kind, field.kind, column.data_type());
                    *step = Step::Read(at, op.map_err(|why| format!("{why} (field {})", field.name))?);
                }
                _ => missing.push((at, self.default(field, column.data_type())?)),
            }
        }
        Ok(Op::Record(steps, missing))
    }

    fn default(&self, field: &Field, wanted: &DataType) -> Result<Filler, String> {
        let none = || format!("was written without the field {}, which has no default", field.name);
        let default = field.default.as_ref().ok_or_else(none)?;
        let datum = defaults::datum(self.reader, field.kind, default);
        let datum = datum
            .ok_or_else(|| format!("has a default of the field {} that is none of its type", field.name))?;
        let reader = Resolver { writer: self.reader, reader: self.reader, by_columns: false };
        Ok(Filler::Default(datum.into(), reader.op(field.kind, field.kind, wanted)?, self.reader.clone()))
    }

    fn differ(&self, writer: Id, what: &str) -> String {
        format!("has {} where {what}", word(&self.writer.get(writer).kind))
    }
}

/// The texts of a writer's symbols, as a reader knows them.
fn texts(symbols: &[String], known: &[String], default: Option<usize>) -> Vec<Option<String>> {
    let default = default.and_then(|default| known.get(default));
    let text = |symbol: &String| if known.contains(symbol) { Some(symbol.clone()) } else { default.cloned() };
    symbols.iter().map(text).collect()
}

/// Whether a type has another one's name and kind.
fn is_same(writer: &Kind, reader: &Kind) -> bool {
    same_kind(writer, reader, |theirs, ours| ours.is(theirs))
}

/// The same, with names that may stand in other namespaces; records are told apart by nothing.
fn is_alike(writer: &Kind, reader: &Kind) -> bool {
    matches!((writer, reader), (Kind::Record(..), Kind::Record(..)))
        || same_kind(writer, reader, |theirs, ours| ours.takes(theirs))
}

fn same_kind(writer: &Kind, reader: &Kind, names: fn(&Name, &Name) -> bool) -> bool {
    match (writer, reader) {
        (Kind::Fixed(theirs, _), Kind::Fixed(ours, _))
        | (Kind::Enum(theirs, ..), Kind::Enum(ours, ..))
        | (Kind::Record(theirs, _), Kind::Record(ours, _)) => names(theirs, ours),
        _ => std::mem::discriminant(writer) == std::mem::discriminant(reader),
    }
}

fn widens(writer: &Kind, reader: &Kind) -> bool {
    match (wire(writer), wire(reader)) {
        (Some(writer), Some(reader)) => (writer as u8) < reader as u8,
        _ => matches!((writer, reader), (Kind::String, Kind::Bytes) | (Kind::Bytes, Kind::String)),
    }
}

fn wire(kind: &Kind) -> Option<Wire> {
    Some(match kind {
        Kind::Int => Wire::Int,
        Kind::Long => Wire::Long,
        Kind::Float => Wire::Float,
        Kind::Double => Wire::Double,
        _ => return None,
    })
}

/// The numbers of branches in the names of fields `member0`, `member1`...
fn members(fields: &Fields) -> Option<Vec<usize>> {
    let number = |name: &str| name.strip_prefix("member").and_then(|number| number.parse().ok());
    fields.iter().map(|field| number(field.name())).collect()
}

fn map_value(wanted: &DataType) -> Option<&DataType> {
    match wanted {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => parts.get(1).map(|value| value.data_type()),
            _ => None,
        },
        _ => None,
    }
}

/// Spark's name of a type.
pub(super) fn spark_name(wanted: &DataType) -> String {
    match wanted {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 => "STRING".to_owned(),
        DataType::Binary => "BINARY".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP_NTZ".to_owned(),
        DataType::List(_) => "ARRAY".to_owned(),
        DataType::Map(..) => "MAP".to_owned(),
        DataType::Struct(_) => "STRUCT".to_owned(),
        other => other.to_string(),
    }
}

/// What an Avro type is called in a sentence.
pub(super) fn word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null => "a null",
        Kind::Boolean => "a boolean",
        Kind::Int => "an int",
        Kind::Long => "a long",
        Kind::Float => "a float",
        Kind::Double => "a double",
        Kind::Bytes => "bytes",
        Kind::String => "a string",
        Kind::Fixed(..) => "a fixed",
        Kind::Enum(..) => "an enum",
        Kind::Array(_) => "an array",
        Kind::Map(_) => "a map",
        Kind::Union(_) => "a union",
        Kind::Record(..) => "a record",
    }
}
