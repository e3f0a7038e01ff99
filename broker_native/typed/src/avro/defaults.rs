//! A default of a schema, which is JSON, as a datum.
use serde_json::Value;

use super::schema::{Field, Id, Kind, Schema};

/// Most values of one default: records that hold each other's defaults may have endless ones.
pub const VALUES_MAX: usize = 100_000;

/// The datum of a default; `None` when it is no value of the type.
pub fn datum(schema: &Schema, id: Id, value: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut left = VALUES_MAX;
    add(schema, id, value, &mut out, &mut left)?;
    Some(out)
}

fn add(schema: &Schema, id: Id, value: &Value, out: &mut Vec<u8>, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    match &schema.get(id).kind {
        Kind::Null => value.as_null()?,
        Kind::Boolean => out.push(u8::from(value.as_bool()?)),
        Kind::Int => long(out, i64::from(i32::try_from(value.as_i64()?).ok()?)),
        Kind::Long => long(out, value.as_i64()?),
        Kind::Float => out.extend((float(value)? as f32).to_le_bytes()),
        Kind::Double => out.extend(float(value)?.to_le_bytes()),
        Kind::String => bytes(out, value.as_str()?.as_bytes()),
        Kind::Bytes => bytes(out, &latin(value)?),
        Kind::Fixed(_, size) => {
            let found = latin(value)?;
            (found.len() == *size).then_some(())?;
            out.extend(found);
        }
        Kind::Enum(_, symbols, _) => {
            let name = value.as_str()?;
            long(out, i64::try_from(symbols.iter().position(|symbol| symbol == name)?).ok()?);
        }
        Kind::Array(item) => {
            let items = value.as_array()?;
            if !items.is_empty() {
                long(out, i64::try_from(items.len()).ok()?);
            }
            for each in items {
                add(schema, *item, each, out, left)?;
            }
            out.push(0);
        }
        Kind::Map(of) => {
            let members = value.as_object()?;
            if !members.is_empty() {
                long(out, i64::try_from(members.len()).ok()?);
            }
            for (name, each) in members {
                bytes(out, name.as_bytes());
                add(schema, *of, each, out, left)?;
            }
            out.push(0);
        }
        Kind::Union(branches) => branch(schema, branches, value, out, left)?,
        Kind::Record(_, fields) => record(schema, fields, value, out, left)?,
    }
    Some(())
}

fn branch(
    schema: &Schema,
    branches: &[Id],
    value: &Value,
    out: &mut Vec<u8>,
    left: &mut usize,
) -> Option<()> {
    let start = out.len();
    for (number, branch) in branches.iter().enumerate() {
        long(out, i64::try_from(number).ok()?);
        if add(schema, *branch, value, out, left).is_some() {
            return Some(());
        }
        out.truncate(start);
    }
    None
}

fn record(
    schema: &Schema,
    fields: &[Field],
    value: &Value,
    out: &mut Vec<u8>,
    left: &mut usize,
) -> Option<()> {
    let members = value.as_object()?;
    for field in fields {
        let value = members.get(&field.name).or(field.default.as_ref())?;
        add(schema, field.kind, value, out, left)?;
    }
    Some(())
}

fn float(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        _ => value.as_f64(),
    }
}

/// Bytes stand in JSON as the characters with their numbers.
fn latin(value: &Value) -> Option<Vec<u8>> {
    value.as_str()?.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect()
}

/// `bytes` or a `string` as a datum has it.
pub fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    long(out, i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    out.extend_from_slice(bytes);
}

/// A `long` or `int` as a datum has it.
pub fn long(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        out.push((zigzag as u8 & 0x7f) | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}
