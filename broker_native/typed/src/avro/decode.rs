//! A datum -> one row of a column, by an [`Op`].
use super::cursor::{Cursor, broken};
use super::program::{Filler, Op, Step, Wire};
use super::schema::Schema;
use crate::column::{Column, Room, Values};
use crate::damage::Damage;

/// Most items without bytes of one list: nothing else bounds them but the room of a batch, which others need, too.
pub const EMPTY_ITEMS_MAX: usize = 65_536;

type Outcome = Result<(), Damage>;

/// Adds the next value of a datum to `column`.
pub fn read(
    op: &Op,
    schema: &Schema,
    datum: &mut Cursor<'_>,
    column: &mut Column,
    room: &mut Room,
) -> Outcome {
    match op {
        Op::Null => column.push_null(),
        Op::Bool => {
            let value = datum.boolean()?;
            let Values::Bool(values) = &mut column.values else { return Err(broken()) };
            values.push(value);
            column.added();
        }
        Op::Number(wire) => number(*wire, datum, column)?,
        Op::Single(wire) => {
            let value = double(*wire, datum)? as f32;
            let Values::F64(values) = &mut column.values else { return Err(broken()) };
            values.push(f64::from(value));
            column.added();
        }
        Op::Millis(wire) => {
            let millis = whole(*wire, datum)?;
            let micros = millis.checked_mul(1000);
            let micros = micros.ok_or_else(|| Damage::whole("has a time that no TIMESTAMP has"))?;
            let Values::I64(values) = &mut column.values else { return Err(broken()) };
            values.push(micros);
            column.added();
        }
        Op::Bytes => text(datum.bytes()?, column)?,
        Op::Fixed(size) => column.push_bytes(datum.take(*size)?)?,
        Op::Decimal(size, digits) => {
            let bytes = match size {
                Some(size) => datum.take(*size)?,
                None => datum.bytes()?,
            };
            let value = decimal(bytes, *digits)?;
            let Values::I128(values) = &mut column.values else { return Err(broken()) };
            values.push(value);
            column.added();
        }
        Op::Enum(symbols) => {
            let symbol = symbols.get(datum.index()?).ok_or_else(broken)?.as_ref();
            let symbol = symbol
                .ok_or_else(|| Damage::whole("has a symbol of an enum that its reader does not know"))?;
            column.push_bytes(symbol.as_bytes())?;
        }
        Op::List(item, least) => list(item, *least, schema, datum, column, room)?,
        Op::Map(value) => map(value, schema, datum, column, room)?,
        Op::Record(steps, missing) => record(steps, missing, schema, datum, column, room)?,
        Op::Union(branches) => {
            let branch = branches.get(datum.index()?).ok_or_else(broken)?;
            read(branch, schema, datum, column, room)?;
        }
        Op::Member(at, op) => member(*at, op, schema, datum, column, room)?,
        Op::Judge(id) => {
            datum.skip(schema, *id, 0)?;
            if let Values::Struct(_, fields) = &mut column.values {
                fields.iter_mut().for_each(Column::push_null);
            }
            column.added();
        }
        Op::Never(why) => return Err(Damage { what: why.to_string().into(), field: None }),
    }
    Ok(())
}

fn member(
    at: usize,
    op: &Op,
    schema: &Schema,
    datum: &mut Cursor<'_>,
    column: &mut Column,
    room: &mut Room,
) -> Outcome {
    let Values::Struct(_, fields) = &mut column.values else { return Err(broken()) };
    for (index, field) in fields.iter_mut().enumerate() {
        match index == at {
            true => read(op, schema, datum, field, room)?,
            false => field.push_null(),
        }
    }
    column.added();
    Ok(())
}

fn record(
    steps: &[Step],
    missing: &[(usize, Filler)],
    schema: &Schema,
    datum: &mut Cursor<'_>,
    column: &mut Column,
    room: &mut Room,
) -> Outcome {
    let Values::Struct(_, fields) = &mut column.values else { return Err(broken()) };
    for step in steps {
        match step {
            Step::Skip(id) => datum.skip(schema, *id, 0)?,
            Step::Read(at, op) => read(op, schema, datum, fields.get_mut(*at).ok_or_else(broken)?, room)?,
        }
    }
    for (at, filler) in missing {
        let field = fields.get_mut(*at).ok_or_else(broken)?;
        match filler {
            Filler::Null => field.push_null(),
            Filler::Default(bytes, op, reader) => read(op, reader, &mut Cursor(bytes), field, room)?,
        }
    }
    column.added();
    Ok(())
}

fn list(
    item: &Op,
    least: usize,
    schema: &Schema,
    datum: &mut Cursor<'_>,
    column: &mut Column,
    room: &mut Room,
) -> Outcome {
    let Values::List(_, items) = &mut column.values else { return Err(broken()) };
    let mut empty = EMPTY_ITEMS_MAX;
    loop {
        let (count, _) = datum.block()?;
        if count == 0 {
            break;
        }
        match datum.0.len().checked_div(least) {
            Some(most) if count > most => return Err(broken()),
            Some(_) => {}
            None => {
                let left = empty.checked_sub(count);
                empty =
                    left.ok_or_else(|| Damage::whole("has a list of more empty items than one may have"))?;
            }
        }
        room.take_many(items, count)?;
        for _ in 0..count {
            read(item, schema, datum, items, room)?;
        }
    }
    column.end_items()
}

fn map(value: &Op, schema: &Schema, datum: &mut Cursor<'_>, column: &mut Column, room: &mut Room) -> Outcome {
    let Values::Map(_, keys, values) = &mut column.values else { return Err(broken()) };
    loop {
        let (count, _) = datum.block()?;
        if count == 0 {
            break;
        }
        // Each has a key, of a byte at least.
        if count > datum.0.len() {
            return Err(broken());
        }
        room.take_many(values, count)?;
        for _ in 0..count {
            text(datum.bytes()?, keys)?;
            read(value, schema, datum, values, room)?;
        }
    }
    column.end_items()
}

#[inline]
fn text(bytes: &[u8], column: &mut Column) -> Outcome {
    match column.kind {
        crate::column::Kind::Text => column.push_bytes(String::from_utf8_lossy(bytes).as_bytes()),
        _ => column.push_bytes(bytes),
    }
}

#[inline]
fn whole(wire: Wire, datum: &mut Cursor<'_>) -> Result<i64, Damage> {
    match wire {
        Wire::Int => datum.int().map(i64::from),
        Wire::Long => datum.long(),
        Wire::Float | Wire::Double => Err(broken()),
    }
}

#[inline]
fn double(wire: Wire, datum: &mut Cursor<'_>) -> Result<f64, Damage> {
    Ok(match wire {
        Wire::Int => f64::from(datum.int()?),
        Wire::Long => datum.long()? as f64,
        Wire::Float => f64::from(f32::from_le_bytes(datum.array()?)),
        Wire::Double => f64::from_le_bytes(datum.array()?),
    })
}

#[inline]
fn number(wire: Wire, datum: &mut Cursor<'_>, column: &mut Column) -> Outcome {
    let too_large = || Damage::whole("has a number that its column's type does not have");
    match &mut column.values {
        Values::I64(values) => values.push(whole(wire, datum)?),
        Values::I32(values) => values.push(i32::try_from(whole(wire, datum)?).map_err(|_| too_large())?),
        Values::F64(values) => values.push(double(wire, datum)?),
        Values::F32(values) => values.push(match wire {
            Wire::Int => datum.int()? as f32,
            Wire::Long => datum.long()? as f32,
            _ => f32::from_le_bytes(datum.array()?),
        }),
        Values::I16(values) => values.push(i16::try_from(whole(wire, datum)?).map_err(|_| too_large())?),
        Values::I8(values) => values.push(i8::try_from(whole(wire, datum)?).map_err(|_| too_large())?),
        _ => return Err(broken()),
    }
    column.added();
    Ok(())
}

/// Digits of decimals that Spark keeps in a `long`.
const LONG_DIGITS: u8 = 18;

/// A decimal without its point: big-endian, two's complement.
fn decimal(bytes: &[u8], digits: u8) -> Result<i128, Damage> {
    let first = bytes.first().ok_or_else(broken)?;
    let sign = if first & 0x80 == 0 { 0u8 } else { 0xff };
    let mut wide = [sign; 16];
    let kept = bytes.len().min(16);
    let (cut, tail) = bytes.split_at(bytes.len() - kept);
    if let Some(place) = wide.get_mut(16 - kept..) {
        place.copy_from_slice(tail);
    }
    let value = i128::from_be_bytes(wide);
    let too_large = || Damage::whole("has a decimal with more digits than its type");
    // Spark takes of those the lowest 64 bits, whatever stands before them.
    let value = if digits <= LONG_DIGITS {
        i128::from(value as i64)
    } else if cut.iter().all(|byte| *byte == sign) && (value < 0) == (sign != 0) {
        value
    } else {
        return Err(too_large());
    };
    if value.unsigned_abs() < 10u128.pow(u32::from(digits)) { Ok(value) } else { Err(too_large()) }
}
