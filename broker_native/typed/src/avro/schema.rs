//! An Avro schema, read from its JSON: types in a list, in which they name each other by number, so that a type may hold itself.
//!
//! Of the crates for Avro, apache-avro reads schemas, but forgets what decoding needs: whether a `uuid` is a text or 16 bytes, and the name
//! of a `fixed` with a logical type.
use std::collections::HashMap;

use serde_json::{Map, Value};

/// How deep types may be nested in a schema; its JSON at most 128 deep.
pub const DEPTH_MAX: usize = 100;

/// The number of a type.
pub type Id = usize;

/// A schema.
#[derive(Debug, Default)]
pub struct Schema {
    types: Vec<Type>,
    least: Vec<usize>,
    /// The type of a datum.
    pub root: Id,
}

/// A type.
#[derive(Debug)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// What it stands for.
    pub logical: Option<Logical>,
}

/// Avro's types.
#[derive(Debug)]
pub enum Kind {
    /// `null`.
    Null,
    /// `boolean`.
    Boolean,
    /// `int`.
    Int,
    /// `long`.
    Long,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `bytes`.
    Bytes,
    /// `string`.
    String,
    /// `fixed`.
    Fixed(Name, usize),
    /// `enum`: its symbols, and the number of the default.
    Enum(Name, Vec<String>, Option<usize>),
    /// `array`.
    Array(Id),
    /// `map`.
    Map(Id),
    /// A union.
    Union(Vec<Id>),
    /// `record`.
    Record(Name, Vec<Field>),
}

/// A full name, and other ones.
#[derive(Debug, Default)]
pub struct Name {
    full: String,
    aliases: Vec<String>,
}

impl Name {
    /// Whether a type of this name is what a writer calls `other`: by the last part of the name, or by an alias.
    pub fn takes(&self, other: &Self) -> bool {
        last_part(&self.full) == last_part(&other.full) || self.aliases.contains(&other.full)
    }

    /// Whether both have the same full name.
    pub fn is(&self, other: &Self) -> bool {
        self.full == other.full || self.aliases.contains(&other.full)
    }
}

/// A field of a record.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// Its type.
    pub kind: Id,
    /// What it has where a writer does not know it.
    pub default: Option<Value>,
}

/// The logical types that Spark knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logical {
    /// `decimal(precision, scale)`.
    Decimal(u8, i8),
    /// `date`.
    Date,
    /// `timestamp-millis`.
    Millis,
    /// `timestamp-micros`.
    Micros,
    /// `local-timestamp-millis`.
    LocalMillis,
    /// `local-timestamp-micros`.
    LocalMicros,
    /// Another of a `long`, which stands for no time that Spark knows.
    Other,
}

/// Why a text is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is no Avro schema: {0}")]
pub struct SchemaError(pub String);

impl Schema {
    /// Reads a schema. Those of `referred` define names that it may use; each stands behind those that it uses itself.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn parse<'a>(text: &str, referred: impl IntoIterator<Item = &'a str>) -> Result<Self, SchemaError> {
        let mut reader = Reader::default();
        for each in referred {
            reader.read(&document(each)?, "", 0)?;
        }
        let root = reader.read(&document(text)?, "", 0)?;
        let least = least_bytes(&reader.types);
        Ok(Self { types: reader.types, least, root })
    }

    /// The type of this number.
    #[inline]
    pub fn get(&self, id: Id) -> &Type {
        static NULL: Type = Type { kind: Kind::Null, logical: None };
        self.types.get(id).unwrap_or(&NULL)
    }

    /// How many bytes a datum of a type has at least; of a type with 0 it never has any.
    #[inline]
    pub fn least_bytes(&self, id: Id) -> usize {
        self.least.get(id).copied().unwrap_or(0)
    }
}

/// [`Schema::least_bytes`] of each type. Once for each: a few records that hold the next one twice would have endless parts.
fn least_bytes(types: &[Type]) -> Vec<usize> {
    fn of(types: &[Type], id: Id, found: &mut [Option<usize>]) -> usize {
        if let Some(Some(known)) = found.get(id) {
            return *known;
        }
        // What a record that holds itself would add.
        if let Some(place) = found.get_mut(id) {
            *place = Some(0);
        }
        let least = match types.get(id).map(|each| &each.kind) {
            None | Some(Kind::Null) => 0,
            Some(Kind::Float) => 4,
            Some(Kind::Double) => 8,
            Some(Kind::Fixed(_, size)) => *size,
            Some(Kind::Record(_, fields)) => {
                fields.iter().fold(0usize, |sum, field| sum.saturating_add(of(types, field.kind, found)))
            }
            Some(_) => 1,
        };
        if let Some(place) = found.get_mut(id) {
            *place = Some(least);
        }
        least
    }
    let mut found = vec![None; types.len()];
    (0..types.len()).map(|id| of(types, id, &mut found)).collect()
}

fn document(text: &str) -> Result<Value, SchemaError> {
    serde_json::from_str(text).map_err(|error| SchemaError(error.to_string()))
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn wrong<T>(what: impl Into<String>) -> Result<T, SchemaError> {
    Err(SchemaError(what.into()))
}

/// Reads types; names stay known from one schema to the next.
#[derive(Default)]
struct Reader {
    types: Vec<Type>,
    names: HashMap<String, Id>,
}

impl Reader {
    fn add(&mut self, kind: Kind, logical: Option<Logical>) -> Id {
        self.types.push(Type { kind, logical });
        self.types.len() - 1
    }

    fn read(&mut self, given: &Value, space: &str, depth: usize) -> Result<Id, SchemaError> {
        if depth > DEPTH_MAX {
            return wrong(format!("it is nested deeper than {DEPTH_MAX} types"));
        }
        match given {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) => {
                let branches = branches.iter().map(|each| self.read(each, space, depth + 1));
                let branches = branches.collect::<Result<Vec<_>, _>>()?;
                let is_union =
                    |id: &Id| matches!(self.types.get(*id).map(|each| &each.kind), Some(Kind::Union(_)));
                if branches.iter().any(is_union) {
                    return wrong("a union holds another one");
                }
                Ok(self.add(Kind::Union(branches), None))
            }
            Value::Object(object) => match object.get("type") {
                Some(Value::String(kind)) => self.object(object, kind, space, depth),
                Some(inner) => self.read(inner, space, depth + 1),
                None => wrong("a type has no attribute type"),
            },
            _ => wrong("a type is a name, a list or an object"),
        }
    }

    fn named(&mut self, name: &str, space: &str) -> Result<Id, SchemaError> {
        if let Some(kind) = primitive(name) {
            return Ok(self.add(kind, None));
        }
        let full = full_name(name, space);
        let found = self.names.get(&full).or_else(|| self.names.get(name));
        found.copied().ok_or_else(|| SchemaError(format!("the type {name} is not defined")))
    }

    fn object(
        &mut self,
        given: &Map<String, Value>,
        kind: &str,
        space: &str,
        depth: usize,
    ) -> Result<Id, SchemaError> {
        let part = |name: &str| {
            given
                .get(name)
                .ok_or_else(|| SchemaError(format!("a type of kind {kind} has no attribute {name}")))
        };
        match kind {
            "array" => {
                let items = self.read(part("items")?, space, depth + 1)?;
                Ok(self.add(Kind::Array(items), None))
            }
            "map" => {
                let values = self.read(part("values")?, space, depth + 1)?;
                Ok(self.add(Kind::Map(values), None))
            }
            "record" | "error" | "enum" | "fixed" => self.definition(given, kind, space, depth),
            _ => match primitive(kind) {
                Some(found) => {
                    let logical = logical(&found, given);
                    Ok(self.add(found, logical))
                }
                None => self.named(kind, space),
            },
        }
    }

    fn definition(
        &mut self,
        given: &Map<String, Value>,
        kind: &str,
        space: &str,
        depth: usize,
    ) -> Result<Id, SchemaError> {
        let Some(Value::String(name)) = given.get("name") else {
            return wrong(format!("a type of kind {kind} has no name"));
        };
        let space = given.get("namespace").and_then(Value::as_str).unwrap_or(space);
        let full = full_name(name, space);
        let space = full.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
        let aliases = texts(given.get("aliases")).iter().map(|alias| full_name(alias, &space)).collect();
        let id = self.add(Kind::Null, None);
        if self.names.insert(full.clone(), id).is_some() {
            return wrong(format!("the type {full} is defined twice"));
        }
        let name = Name { full, aliases };
        let made = match kind {
            "fixed" => {
                let size =
                    given.get("size").and_then(Value::as_u64).and_then(|size| i32::try_from(size).ok());
                let Some(size) = size else { return wrong(format!("the fixed {} has no size", name.full)) };
                Kind::Fixed(name, size.unsigned_abs() as usize)
            }
            "enum" => {
                let symbols = texts(given.get("symbols"));
                let default = given.get("default").and_then(Value::as_str);
                let default = default.and_then(|default| symbols.iter().position(|symbol| symbol == default));
                Kind::Enum(name, symbols, default)
            }
            _ => {
                let Some(Value::Array(fields)) = given.get("fields") else {
                    return wrong(format!("the record {} has no fields", name.full));
                };
                let fields =
                    fields.iter().map(|field| self.field(field, &space, depth)).collect::<Result<_, _>>()?;
                Kind::Record(name, fields)
            }
        };
        let logical = logical(&made, given);
        if let Some(place) = self.types.get_mut(id) {
            *place = Type { kind: made, logical };
        }
        Ok(id)
    }

    fn field(&mut self, given: &Value, space: &str, depth: usize) -> Result<Field, SchemaError> {
        let (Some(Value::String(name)), Some(kind)) = (given.get("name"), given.get("type")) else {
            return wrong("a field has no name or no type");
        };
        Ok(Field {
            name: name.clone(),
            aliases: texts(given.get("aliases")),
            kind: self.read(kind, space, depth + 1)?,
            default: given.get("default").cloned(),
        })
    }
}

fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

fn full_name(name: &str, space: &str) -> String {
    match name.strip_prefix('.') {
        Some(name) => name.to_owned(),
        None if name.contains('.') || space.is_empty() => name.to_owned(),
        None => format!("{space}.{name}"),
    }
}

fn texts(given: Option<&Value>) -> Vec<String> {
    let items = given.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The logical type; one that does not fit its type does not count.
fn logical(kind: &Kind, given: &Map<String, Value>) -> Option<Logical> {
    let name = given.get("logicalType").and_then(Value::as_str)?;
    match (kind, name) {
        (Kind::Int, "date") => Some(Logical::Date),
        (Kind::Long, "timestamp-millis") => Some(Logical::Millis),
        (Kind::Long, "timestamp-micros") => Some(Logical::Micros),
        (Kind::Long, "local-timestamp-millis") => Some(Logical::LocalMillis),
        (Kind::Long, "local-timestamp-micros") => Some(Logical::LocalMicros),
        (Kind::Long, "timestamp-nanos" | "local-timestamp-nanos" | "time-micros") => Some(Logical::Other),
        (Kind::Bytes | Kind::Fixed(..), "decimal") => decimal(kind, given),
        _ => None,
    }
}

fn decimal(kind: &Kind, given: &Map<String, Value>) -> Option<Logical> {
    let number = |name| given.get(name).map_or(Some(0), Value::as_u64);
    let (precision, scale) = (number("precision")?, number("scale")?);
    let room = match kind {
        // Digits that fit a number of so many bytes.
        Kind::Fixed(_, size) => (*size as f64 * 8.0 - 1.0) * std::f64::consts::LOG10_2,
        _ => f64::INFINITY,
    };
    let fits = precision > 0 && precision <= 38 && scale <= precision && precision as f64 <= room.floor();
    fits.then(|| Some(Logical::Decimal(u8::try_from(precision).ok()?, i8::try_from(scale).ok()?)))?
}
