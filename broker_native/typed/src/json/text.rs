//! A column of texts: a text as it is; a number, object or array as JSON without blanks, in the way of Jackson's generator, which writes
//! numbers with a fraction as Java does (`1e3` is `1000.0`).
use std::fmt::{Debug, UpperExp};

use jiter::{Jiter, Peek};

use super::bad::Bad;
use crate::column::Column;

/// Objects and arrays that may be in each other in a text; Jackson takes as many.
const MAX_DEPTH: usize = 1000;

/// Adds the next value, which is not null, to a column of texts.
pub(super) fn push(json: &mut Jiter<'_>, peek: Peek, column: &mut Column) -> Result<(), Bad> {
    if peek == Peek::String {
        return Ok(column.push_bytes(json.known_str()?.as_bytes())?);
    }
    let mut out = Vec::new();
    write(json, peek, &mut out, 0)?;
    Ok(column.push_bytes(&out)?)
}

fn write(json: &mut Jiter<'_>, peek: Peek, out: &mut Vec<u8>, depth: usize) -> Result<(), Bad> {
    if depth > MAX_DEPTH {
        return Err(Bad::Broken);
    }
    match peek {
        Peek::Null => {
            json.known_null()?;
            out.extend_from_slice(b"null");
        }
        Peek::True | Peek::False => {
            let word: &[u8] = if json.known_bool(peek)? { b"true" } else { b"false" };
            out.extend_from_slice(word);
        }
        Peek::String => copied(json.known_str()?, out),
        Peek::Array => {
            out.push(b'[');
            let mut next = json.known_array()?;
            while let Some(item) = next {
                write(json, item, out, depth + 1)?;
                next = json.array_step()?;
                if next.is_some() {
                    out.push(b',');
                }
            }
            out.push(b']');
        }
        Peek::Object => {
            out.push(b'{');
            let mut has_more = member(json.known_object()?, out);
            while has_more {
                let value = json.peek()?;
                write(json, value, out, depth + 1)?;
                let next = json.next_key()?;
                if next.is_some() {
                    out.push(b',');
                }
                has_more = member(next, out);
            }
            out.push(b'}');
        }
        _ => number(json.known_number_bytes(peek)?, out),
    }
    Ok(())
}

fn member(name: Option<&str>, out: &mut Vec<u8>) -> bool {
    if let Some(name) = name {
        copied(name, out);
        out.push(b':');
    }
    name.is_some()
}

/// A text inside another one: Jackson's generator of UTF-8, by which Spark copies it, writes both halves of a surrogate pair as escapes.
fn copied(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut units = [0; 2];
    for part in text.split_inclusive(|letter| letter > '\u{FFFF}') {
        let last = part.chars().next_back().filter(|letter| *letter > '\u{FFFF}');
        escaped(part.trim_end_matches(|letter| Some(letter) == last), out);
        for unit in last.map_or(&[][..], |letter| letter.encode_utf16(&mut units)) {
            out.extend_from_slice(format!("\\u{unit:04X}").as_bytes());
        }
    }
    out.push(b'"');
}

/// A text in quotes.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escaped(text, out);
    out.push(b'"');
}

fn escaped(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..32 => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

fn number(text: &[u8], out: &mut Vec<u8>) {
    let text = std::str::from_utf8(text).unwrap_or_default();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        // Java has no integer -0.
        out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
        return;
    }
    let value: f64 = text.parse().unwrap_or(f64::NAN);
    if value.is_finite() {
        out.extend_from_slice(as_java(value).as_bytes());
    } else {
        quoted(word(value), out);
    }
}

/// Java's word for a number that is not finite.
pub(super) fn word(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// A finite number as Java's `toString` writes it: with a fraction, and with an exponent below 0.001 and from ten million on.
pub(super) fn as_java<T: Copy + Into<f64> + Debug + UpperExp>(value: T) -> String {
    let size: f64 = value.into().abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}
