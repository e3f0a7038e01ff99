//! One record of JSON -> one row of a struct, as Spark's `from_json` does it, and back as `to_json`.
//!
//! | file | what it does |
//! |---|---|
//! | here | objects, arrays, maps; what is kept of a record with a value that does not fit |
//! | `bad` | why a value was not taken |
//! | `scalar` | a number, text or truth value |
//! | `text` | a column of texts gets what is no text |
//! | [`write`] | the other way: a row of a struct -> JSON, as `to_json` |
//! | `quotes` | single quotes, as Jackson lets them pass |
//!
//! A value that does not fit its column damages the record and leaves null there; the other columns keep theirs. A value in a list or map
//! that does not fit makes null of all of that list or map; what is no JSON makes null of the whole record.
mod bad;
mod quotes;
mod scalar;
mod text;
pub mod write;

use arrow_schema::{DataType, Field};
use jiter::{Jiter, Peek};

use self::bad::Bad;
use crate::column::{Column, Kind, Room, Values};
use crate::damage::Damage;

/// What was wrong with parts of a value that was taken.
type Taken = Result<Option<Damage>, Bad>;

/// Whether JSON can be a column of this type.
///
/// # Errors
/// Why not, in a sentence.
pub fn check(column: &Field) -> Result<(), String> {
    match column.data_type() {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => match parts.as_ref() {
                [key, value] if *key.data_type() == DataType::Utf8 => check(value),
                _ => Err(format!(
                    "cannot be read so: the keys of an object are texts, and those of {} are not",
                    column.name()
                )),
            },
            _ => Ok(()),
        },
        DataType::List(item) => check(item),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check(field)),
        DataType::Duration(_) => {
            Err(format!("cannot be read so: JSON has no durations, as {} is", column.name()))
        }
        _ => Ok(()),
    }
}

/// Adds one row to `root`, which is a struct; what is wrong with the record, if anything is.
pub fn read(root: &mut Column, bytes: &[u8], room: &mut Room) -> Option<Damage> {
    let row = root.len();
    let outcome = match record(root, bytes, room) {
        Err(Bad::Broken) => {
            root.truncate(row);
            again(root, bytes, room)
        }
        other => other,
    };
    outcome.unwrap_or_else(|bad| {
        root.truncate(row);
        let Values::Struct(_, fields) = &mut root.values else { return None };
        fields.iter_mut().for_each(Column::push_null);
        root.added();
        Some(match bad {
            Bad::Misfit(damage) => damage,
            Bad::Broken => Damage::whole("is no JSON"),
        })
    })
}

/// What is no JSON may be such to Jackson, to which Spark gives repaired UTF-8 and lets it take single quotes.
fn again(root: &mut Column, bytes: &[u8], room: &mut Room) -> Taken {
    let repaired = String::from_utf8_lossy(bytes);
    if let Some(rewritten) = quotes::doubled(repaired.as_bytes()) {
        return record(root, &rewritten, room);
    }
    match repaired {
        std::borrow::Cow::Borrowed(_) => Err(Bad::Broken),
        std::borrow::Cow::Owned(text) => record(root, text.as_bytes(), room),
    }
}

fn record(root: &mut Column, bytes: &[u8], room: &mut Room) -> Taken {
    let bytes = bytes.trim_ascii_start();
    if bytes.is_empty() {
        root.push_null();
        return Ok(None);
    }
    let mut json = Jiter::new(bytes).with_allow_inf_nan();
    match json.peek()? {
        Peek::Object => object(&mut json, root, room, true),
        other => {
            json.known_skip(other)?;
            Err(Damage::whole("is no JSON object").into())
        }
    }
}

/// Adds the next value to `column`.
fn value(json: &mut Jiter<'_>, peek: Peek, column: &mut Column, room: &mut Room) -> Taken {
    if peek == Peek::Null {
        json.known_null()?;
        column.push_null();
        return Ok(None);
    }
    match (column.kind, peek) {
        (Kind::Struct, Peek::Object) => object(json, column, room, false),
        (Kind::List, Peek::Array) => list(json, column, room),
        (Kind::Map, Peek::Object) => map(json, column, room),
        (Kind::Struct | Kind::List | Kind::Map, other) => {
            json.known_skip(other)?;
            Err(Damage::whole("has a part that does not fit its column's type").into())
        }
        (Kind::Null, other) => {
            json.known_skip(other)?;
            column.push_null();
            Ok(None)
        }
        (Kind::Text, other) => text::push(json, other, column).map(|()| None),
        (_, other) => scalar::push(json, other, column).map(|()| None),
    }
}

fn object(json: &mut Jiter<'_>, column: &mut Column, room: &mut Room, is_root: bool) -> Taken {
    let row = column.len();
    let Values::Struct(names, fields) = &mut column.values else { return Err(Bad::Broken) };
    let (mut damage, mut guess) = (None, 0);
    let mut found = json.known_object()?.map(|name| names.find(name.as_bytes(), &mut guess));
    while let Some(index) = found {
        let peek = json.peek()?;
        match index.and_then(|index| fields.get_mut(index)) {
            None => json.known_skip(peek)?,
            Some(field) => {
                // Of a name that comes twice the last value counts.
                if field.len() > row {
                    field.truncate(row);
                }
                let wrong = match value(json, peek, field, room) {
                    Ok(wrong) => wrong,
                    Err(Bad::Misfit(wrong)) => {
                        field.truncate(row);
                        Some(wrong)
                    }
                    Err(Bad::Broken) => return Err(Bad::Broken),
                };
                if damage.is_none() {
                    damage = wrong;
                    if let (true, Some(damage), Some(index)) = (is_root, &mut damage, index) {
                        damage.field = Some(names.name(index));
                    }
                }
            }
        }
        found = json.next_key()?.map(|name| names.find(name.as_bytes(), &mut guess));
    }
    for field in fields.iter_mut().filter(|field| field.len() == row) {
        field.push_null();
    }
    column.added();
    Ok(damage)
}

fn list(json: &mut Jiter<'_>, column: &mut Column, room: &mut Room) -> Taken {
    let Values::List(_, items) = &mut column.values else { return Err(Bad::Broken) };
    let mut damage = None;
    let mut next = json.known_array()?;
    while let Some(peek) = next {
        let taken = match room.take(items) {
            Ok(()) => value(json, peek, items, room),
            Err(full) => {
                json.known_skip(peek)?;
                Err(full.into())
            }
        };
        next = json.array_step()?;
        match taken {
            Ok(wrong) => damage = damage.or(wrong),
            Err(bad) => {
                while let Some(peek) = next {
                    json.known_skip(peek)?;
                    next = json.array_step()?;
                }
                return Err(bad);
            }
        }
    }
    column.end_items()?;
    Ok(damage)
}

fn map(json: &mut Jiter<'_>, column: &mut Column, room: &mut Room) -> Taken {
    let Values::Map(_, keys, values) = &mut column.values else { return Err(Bad::Broken) };
    let mut damage = None;
    let mut misfit = None;
    let mut named = json.known_object()?.map(|name| keys.push_bytes(name.as_bytes()));
    while let Some(key) = named {
        let peek = json.peek()?;
        let taken = match key.and_then(|()| room.take(values)) {
            Ok(()) if misfit.is_none() => value(json, peek, values, room),
            Ok(()) => json.known_skip(peek).map(|()| None).map_err(Bad::from),
            Err(full) => {
                json.known_skip(peek)?;
                Err(full.into())
            }
        };
        match taken {
            Ok(wrong) => damage = damage.or(wrong),
            Err(Bad::Misfit(wrong)) => misfit = misfit.or(Some(wrong)),
            Err(Bad::Broken) => return Err(Bad::Broken),
        }
        named = json.next_key()?.map(|name| keys.push_bytes(name.as_bytes()));
    }
    if let Some(wrong) = misfit {
        return Err(wrong.into());
    }
    column.end_items()?;
    Ok(damage)
}

#[cfg(test)]
mod tests;
