//! Rows of a column -> datums of a schema, as Spark's `to_avro` writes them.
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, MapArray, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, TimeUnit};

use super::defaults::{bytes, long};
use super::schema::{Field, Id, Kind, Logical, Schema};

/// A column, ready to be written row by row.
pub struct Writer<'a> {
    array: &'a dyn Array,
    /// Where it is in the frame, for errors.
    path: String,
    /// The numbers of the union's branches for a null and for a value; none without a union.
    null: Option<usize>,
    branch: Option<usize>,
    values: Values<'a>,
}

enum Values<'a> {
    Null,
    Bool(&'a BooleanArray),
    Whole(Whole<'a>),
    Float(&'a Float32Array),
    Double(Double<'a>),
    Text(Text<'a>),
    Enum(Text<'a>, &'a [String]),
    Fixed(Text<'a>, usize),
    /// Decimals, in so many bytes or as few as they need.
    Decimal(&'a Decimal128Array, Option<usize>),
    List(&'a ListArray, Box<Writer<'a>>),
    Map(&'a MapArray, Text<'a>, Box<Writer<'a>>),
    Record(Vec<Part<'a>>),
    /// Of these columns the one that has a value is written as its branch.
    Members(Vec<(usize, Writer<'a>)>),
}

/// A field of a record.
enum Part<'a> {
    /// From a column.
    Column(Writer<'a>),
    /// Null, which is this branch of its union.
    Null(usize),
}

impl Part<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Column(writer) => writer.write(row, out),
            Self::Null(branch) => {
                index(out, *branch);
                Ok(())
            }
        }
    }
}

enum Whole<'a> {
    Byte(&'a Int8Array),
    Short(&'a Int16Array),
    Int(&'a Int32Array),
    Date(&'a Date32Array),
    Long(&'a Int64Array),
    Micros(&'a TimestampMicrosecondArray),
    Millis(&'a TimestampMicrosecondArray),
}

enum Double<'a> {
    Wide(&'a Float64Array),
    Float(&'a Float32Array),
    Int(&'a Int32Array),
}

enum Text<'a> {
    Utf8(&'a StringArray),
    WideUtf8(&'a LargeStringArray),
    Binary(&'a BinaryArray),
    WideBinary(&'a LargeBinaryArray),
}

impl<'a> Text<'a> {
    fn new(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 => Self::Utf8(array.as_string()),
            DataType::LargeUtf8 => Self::WideUtf8(array.as_string()),
            DataType::Binary => Self::Binary(array.as_binary()),
            DataType::LargeBinary => Self::WideBinary(array.as_binary()),
            _ => return None,
        })
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Utf8(_) | Self::WideUtf8(_))
    }

    fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Utf8(array) => array.value(row).as_bytes(),
            Self::WideUtf8(array) => array.value(row).as_bytes(),
            Self::Binary(array) => array.value(row),
            Self::WideBinary(array) => array.value(row),
        }
    }
}

impl<'a> Writer<'a> {
    /// A writer of `array` as the type `id`; `path` names it in errors.
    ///
    /// # Errors
    /// Why the column cannot be written so.
    pub fn new(schema: &'a Schema, id: Id, array: &'a dyn Array, path: &str) -> Result<Self, String> {
        let Kind::Union(branches) = &schema.get(id).kind else {
            let values = values(schema, id, array, path)?;
            return Ok(Self { array, path: path.to_owned(), null: None, branch: None, values });
        };
        let null = branches.iter().position(|branch| matches!(schema.get(*branch).kind, Kind::Null));
        let mut why = None;
        if *array.data_type() == DataType::Null && null.is_some() {
            return Ok(Self { array, path: path.to_owned(), null, branch: null, values: Values::Null });
        }
        for (number, branch) in branches.iter().enumerate().filter(|(number, _)| Some(*number) != null) {
            match values(schema, *branch, array, path) {
                Ok(values) => {
                    return Ok(Self { array, path: path.to_owned(), null, branch: Some(number), values });
                }
                Err(error) => why = why.or(Some(error)),
            }
        }
        if let Some(members) = members(schema, branches, null, array, path) {
            return Ok(Self {
                array,
                path: path.to_owned(),
                null,
                branch: None,
                values: Values::Members(members?),
            });
        }
        Err(why.unwrap_or_else(|| misfit(schema, id, array, path)))
    }

    /// Appends the value of a row.
    ///
    /// # Errors
    /// What of it the schema does not have.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        if self.array.is_null(row) && !matches!(self.values, Values::Null) {
            let null = self
                .null
                .ok_or_else(|| format!("{} is null, which its Avro type does not allow", self.path))?;
            index(out, null);
            return Ok(());
        }
        if let Some(branch) = self.branch {
            index(out, branch);
        }
        match &self.values {
            Values::Null => {}
            Values::Bool(array) => out.push(u8::from(array.value(row))),
            Values::Whole(array) => long(out, whole(array, row)),
            Values::Float(array) => out.extend(array.value(row).to_le_bytes()),
            Values::Double(array) => out.extend(double(array, row).to_le_bytes()),
            Values::Text(array) => bytes(out, array.get(row)),
            Values::Enum(array, symbols) => {
                let symbol = symbols.iter().position(|symbol| symbol.as_bytes() == array.get(row));
                index(
                    out,
                    symbol
                        .ok_or_else(|| format!("{} has a text that is no symbol of its enum", self.path))?,
                );
            }
            Values::Fixed(array, size) => {
                let value = array.get(row);
                if value.len() != *size {
                    return Err(format!(
                        "{} has {} bytes where its fixed type has {size}",
                        self.path,
                        value.len()
                    ));
                }
                out.extend_from_slice(value);
            }
            Values::Decimal(array, size) => decimal(array.value(row), *size, out)
                .ok_or_else(|| format!("{} has a decimal that does not fit its fixed type", self.path))?,
            Values::List(array, items) => {
                blocks(array.value_offsets(), row, out, |item, out| items.write(item, out))?;
            }
            Values::Map(array, keys, values) => blocks(array.value_offsets(), row, out, |entry, out| {
                bytes(out, keys.get(entry));
                values.write(entry, out)
            })?,
            Values::Record(parts) => parts.iter().try_for_each(|part| part.write(row, out))?,
            Values::Members(members) => match members.iter().find(|(_, member)| member.array.is_valid(row)) {
                Some((branch, member)) => {
                    index(out, *branch);
                    member.write(row, out)?;
                }
                None => {
                    index(out, self.null.ok_or_else(|| format!("no member of {} has a value", self.path))?)
                }
            },
        }
        Ok(())
    }
}

fn values<'a>(schema: &'a Schema, id: Id, array: &'a dyn Array, path: &str) -> Result<Values<'a>, String> {
    let kind = schema.get(id);
    let wrong = || misfit(schema, id, array, path);
    let micros = |zone: bool| match (kind.logical, zone) {
        (None, _) | (Some(Logical::Millis), true) | (Some(Logical::LocalMillis), false) => {
            Some(Whole::Millis(array.as_primitive::<TimestampMicrosecondType>()))
        }
        (Some(Logical::Micros), true) | (Some(Logical::LocalMicros), false) => {
            Some(Whole::Micros(array.as_primitive::<TimestampMicrosecondType>()))
        }
        _ => None,
    };
    Ok(match (&kind.kind, array.data_type()) {
        (Kind::Null, DataType::Null) => Values::Null,
        (Kind::Boolean, DataType::Boolean) => Values::Bool(array.as_boolean()),
        (Kind::Int | Kind::Long, DataType::Int8) => {
            Values::Whole(Whole::Byte(array.as_primitive::<Int8Type>()))
        }
        (Kind::Int | Kind::Long, DataType::Int16) => {
            Values::Whole(Whole::Short(array.as_primitive::<Int16Type>()))
        }
        (Kind::Int | Kind::Long, DataType::Int32) => {
            Values::Whole(Whole::Int(array.as_primitive::<Int32Type>()))
        }
        (Kind::Int, DataType::Date32) => Values::Whole(Whole::Date(array.as_primitive::<Date32Type>())),
        (Kind::Long, DataType::Int64) => Values::Whole(Whole::Long(array.as_primitive::<Int64Type>())),
        (Kind::Long, DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            Values::Whole(micros(zone.is_some()).ok_or_else(wrong)?)
        }
        (Kind::Float, DataType::Float32) => Values::Float(array.as_primitive::<Float32Type>()),
        (Kind::Double, DataType::Float64) => {
            Values::Double(Double::Wide(array.as_primitive::<Float64Type>()))
        }
        (Kind::Double, DataType::Float32) => {
            Values::Double(Double::Float(array.as_primitive::<Float32Type>()))
        }
        (Kind::Double, DataType::Int32) => Values::Double(Double::Int(array.as_primitive::<Int32Type>())),
        (Kind::Bytes | Kind::Fixed(..), DataType::Decimal128(digits, places)) => {
            let Some(Logical::Decimal(precision, scale)) = kind.logical else { return Err(wrong()) };
            if *digits > precision || *places != scale {
                return Err(wrong());
            }
            let size = if let Kind::Fixed(_, size) = &kind.kind { Some(*size) } else { None };
            Values::Decimal(array.as_primitive::<Decimal128Type>(), size)
        }
        (Kind::String | Kind::Bytes | Kind::Fixed(..) | Kind::Enum(..), _) => {
            let text = Text::new(array).ok_or_else(wrong)?;
            match (&kind.kind, text.is_text()) {
                (Kind::String, true) | (Kind::Bytes, false) => Values::Text(text),
                (Kind::Enum(_, symbols, _), true) => Values::Enum(text, symbols),
                (Kind::Fixed(_, size), false) => Values::Fixed(text, *size),
                _ => return Err(wrong()),
            }
        }
        (Kind::Array(items), DataType::List(_)) => {
            let list = array.as_list::<i32>();
            Values::List(list, Box::new(Writer::new(schema, *items, list.values().as_ref(), path)?))
        }
        (Kind::Map(of), DataType::Map(..)) => {
            let map = array.as_map();
            let keys = Text::new(map.keys().as_ref()).filter(Text::is_text).ok_or_else(wrong)?;
            Values::Map(map, keys, Box::new(Writer::new(schema, *of, map.values().as_ref(), path)?))
        }
        (Kind::Record(_, fields), DataType::Struct(_)) => {
            Values::Record(record(schema, fields, array, path)?)
        }
        _ => return Err(wrong()),
    })
}

fn record<'a>(
    schema: &'a Schema,
    fields: &'a [Field],
    array: &'a dyn Array,
    path: &str,
) -> Result<Vec<Part<'a>>, String> {
    let columns = array.as_struct();
    for name in columns.column_names() {
        if !fields.iter().any(|field| field.name == name) {
            return Err(format!("{} is no field of the Avro schema", below(path, name)));
        }
    }
    let part = |field: &'a Field| {
        let path = below(path, &field.name);
        if let Some(column) = columns.column_by_name(&field.name) {
            return Writer::new(schema, field.kind, column.as_ref(), &path).map(Part::Column);
        }
        let null = match &schema.get(field.kind).kind {
            Kind::Union(branches) => {
                branches.iter().position(|branch| matches!(schema.get(*branch).kind, Kind::Null))
            }
            _ => None,
        };
        null.map(Part::Null).ok_or_else(|| format!("{path} is a field of the Avro schema that no column has"))
    };
    fields.iter().map(part).collect()
}

/// Columns `member0`, `member1`... of a union's branches, as reads give them; `None` when they are none.
fn members<'a>(
    schema: &'a Schema,
    branches: &[Id],
    null: Option<usize>,
    array: &'a dyn Array,
    path: &str,
) -> Option<Result<Vec<(usize, Writer<'a>)>, String>> {
    let columns = array.as_struct_opt()?;
    let others: Vec<(usize, Id)> =
        branches.iter().copied().enumerate().filter(|(number, _)| Some(*number) != null).collect();
    let is_them = columns.num_columns() == others.len()
        && columns.column_names().iter().enumerate().all(|(number, name)| *name == format!("member{number}"));
    is_them.then(|| {
        let member = |((number, branch), column): (&(usize, Id), &'a arrow_array::ArrayRef)| {
            Writer::new(schema, *branch, column.as_ref(), path).map(|writer| (*number, writer))
        };
        others.iter().zip(columns.columns()).map(member).collect()
    })
}

fn misfit(schema: &Schema, id: Id, array: &dyn Array, path: &str) -> String {
    let (found, wanted) =
        (super::program::spark_name(array.data_type()), super::program::word(&schema.get(id).kind));
    format!("{path} is {found}, of which its Avro type, {wanted}, cannot be made")
}

fn below(path: &str, name: &str) -> String {
    if path == "key" || path == "value" { format!("the column {name}") } else { format!("{path}.{name}") }
}

fn index(out: &mut Vec<u8>, number: usize) {
    long(out, i64::try_from(number).unwrap_or(i64::MAX));
}

/// The items of a row of a list or map: how many, each, and the end.
fn blocks(
    offsets: &[i32],
    row: usize,
    out: &mut Vec<u8>,
    write: impl Fn(usize, &mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let ends = offsets.get(row).zip(offsets.get(row + 1));
    let (start, end) = ends.map_or((0, 0), |(start, end)| (*start as usize, *end as usize));
    if end > start {
        index(out, end - start);
    }
    for item in start..end {
        write(item, out)?;
    }
    out.push(0);
    Ok(())
}

fn whole(array: &Whole<'_>, row: usize) -> i64 {
    match array {
        Whole::Byte(array) => i64::from(array.value(row)),
        Whole::Short(array) => i64::from(array.value(row)),
        Whole::Int(array) => i64::from(array.value(row)),
        Whole::Date(array) => i64::from(array.value(row)),
        Whole::Long(array) => array.value(row),
        Whole::Micros(array) => array.value(row),
        Whole::Millis(array) => array.value(row).div_euclid(1000),
    }
}

fn double(array: &Double<'_>, row: usize) -> f64 {
    match array {
        Double::Wide(array) => array.value(row),
        Double::Float(array) => f64::from(array.value(row)),
        Double::Int(array) => f64::from(array.value(row)),
    }
}

/// Big-endian, two's complement; `None` when it does not fit.
fn decimal(value: i128, size: Option<usize>, out: &mut Vec<u8>) -> Option<()> {
    let wide = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    // A first byte that the sign of the second tells as well is not needed.
    let spare = wide
        .windows(2)
        .take_while(|pair| matches!(pair, [first, second] if *first == sign && (second ^ sign) & 0x80 == 0));
    let needed = wide.get(spare.count()..)?;
    match size {
        None => bytes(out, needed),
        Some(size) => {
            out.resize(out.len() + size.checked_sub(needed.len())?, sign);
            out.extend_from_slice(needed);
        }
    }
    Some(())
}
