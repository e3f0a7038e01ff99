//! A number, truth value, date, timestamp or bytes of JSON. Integers must be written as such; texts are no numbers, but for decimals and the
//! words of floats that JSON has no number for.
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jiter::{Jiter, Peek};

use super::bad::Bad;
use crate::column::{Column, Kind, Values};
use crate::damage::Damage;
use crate::{decimal, time};

/// Padding is needed; the bits that it leaves over may be anything.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Adds the next value, which is not null, to a column that is no list, map, struct, text or void.
pub(super) fn push(json: &mut Jiter<'_>, peek: Peek, column: &mut Column) -> Result<(), Bad> {
    match peek {
        Peek::True | Peek::False => {
            let value = json.known_bool(peek)?;
            let Values::Bool(values) = &mut column.values else { return Err(misfit()) };
            values.push(value);
            column.added();
            Ok(())
        }
        Peek::String => of_text(json.known_str()?.as_bytes(), column),
        Peek::Array | Peek::Object => {
            json.known_skip(peek)?;
            Err(misfit())
        }
        _ => of_number(json.known_number_bytes(peek)?, column),
    }
}

fn misfit() -> Bad {
    Damage::whole("has a part that does not fit its column's type").into()
}

/// `number` is as JSON writes them, or `NaN`, `Infinity`, `-Infinity`.
fn of_number(number: &[u8], column: &mut Column) -> Result<(), Bad> {
    match (column.kind, &mut column.values) {
        (Kind::Byte, Values::I8(values)) => {
            // Jackson takes bytes without sign, too.
            let value = integer(number).filter(|value| (-128..=255).contains(value)).ok_or_else(misfit)?;
            values.push(value as i8);
        }
        (Kind::Short, Values::I16(values)) => values.push(fitting(number)?),
        (Kind::Int, Values::I32(values)) => values.push(fitting(number)?),
        (Kind::Long, Values::I64(values)) => values.push(fitting(number)?),
        (Kind::Float, Values::F32(values)) => values.push(float(number)?),
        (Kind::Double, Values::F64(values)) => values.push(float(number)?),
        (Kind::Decimal(precision, scale), Values::I128(values)) => {
            values.push(decimal::parse(number, precision, scale).ok_or_else(misfit)?);
        }
        // Seconds; Java's multiplication goes round.
        (Kind::Timestamp, Values::I64(values)) => {
            values.push(integer(number).ok_or_else(misfit)?.wrapping_mul(1_000_000));
        }
        _ => return Err(misfit()),
    }
    column.added();
    Ok(())
}

fn of_text(text: &[u8], column: &mut Column) -> Result<(), Bad> {
    match (column.kind, &mut column.values) {
        (Kind::Float, Values::F32(values)) => values.push(word(text)? as f32),
        (Kind::Double, Values::F64(values)) => values.push(word(text)?),
        (Kind::Decimal(precision, scale), Values::I128(values)) => {
            // Commas group digits, as in English.
            let plain: Vec<u8> = text.iter().copied().filter(|byte| *byte != b',').collect();
            values.push(decimal::parse(&plain, precision, scale).ok_or_else(misfit)?);
        }
        (Kind::Date, Values::I32(values)) => {
            let days = time::date(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok());
            values.push(days.ok_or_else(misfit)?);
        }
        (Kind::Timestamp, Values::I64(values)) => {
            values.push(time::timestamp(text, true).ok_or_else(misfit)?);
        }
        (Kind::TimestampNtz, Values::I64(values)) => {
            values.push(time::timestamp(text, false).ok_or_else(misfit)?);
        }
        (Kind::Binary, Values::Bytes(..)) => {
            let bytes = from_base64(text).ok_or_else(misfit)?;
            return Ok(column.push_bytes(&bytes)?);
        }
        _ => return Err(misfit()),
    }
    column.added();
    Ok(())
}

/// An integer of 64 bits, written as one.
#[inline]
fn integer(number: &[u8]) -> Option<i64> {
    let (negative, digits) = match number {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut value: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        let digit = i64::from(byte - b'0');
        value = value.checked_mul(10)?;
        value = if negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
    }
    Some(value)
}

fn fitting<T: TryFrom<i64>>(number: &[u8]) -> Result<T, Bad> {
    integer(number).and_then(|value| T::try_from(value).ok()).ok_or_else(misfit)
}

/// Rust reads the numbers of JSON, `NaN` and `Infinity` as they are meant; but Java has no integer -0.
fn float<T: std::str::FromStr>(number: &[u8]) -> Result<T, Bad> {
    let number = if number == b"-0" { b"0" } else { number };
    std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).ok_or_else(misfit)
}

fn word(text: &[u8]) -> Result<f64, Bad> {
    match text {
        b"NaN" => Ok(f64::NAN),
        b"+INF" | b"+Infinity" | b"Infinity" => Ok(f64::INFINITY),
        b"-INF" | b"-Infinity" => Ok(f64::NEG_INFINITY),
        _ => Err(misfit()),
    }
}

/// Groups of four may have blanks between them.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    if let Ok(bytes) = BASE64.decode(text) {
        return Some(bytes);
    }
    let mut groups = Vec::with_capacity(text.len());
    for byte in text {
        if *byte > b' ' || groups.len() % 4 != 0 {
            groups.push(*byte);
        }
    }
    BASE64.decode(groups).ok()
}
