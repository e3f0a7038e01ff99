//! A message -> a row of a column.
use super::plan::{Absent, Held, Item, Message, Number, Read, Symbols, Wanted};
use super::wire::{Layout, Wire, broken};
use crate::column::{Column, Room, Values};
use crate::damage::Damage;

/// The columns that the fields of a message fill.
pub trait Children {
    /// The child of this number.
    fn child(&mut self, number: usize) -> Option<&mut Column>;
}

impl Children for Vec<Column> {
    #[inline]
    fn child(&mut self, number: usize) -> Option<&mut Column> {
        self.get_mut(number)
    }
}

/// The keys and the values of a map.
struct Pair<'a>(&'a mut Column, &'a mut Column);

impl Children for Pair<'_> {
    #[inline]
    fn child(&mut self, number: usize) -> Option<&mut Column> {
        match number {
            0 => Some(self.0),
            1 => Some(self.1),
            _ => None,
        }
    }
}

/// A message that is read when all of its parts are known: those of one field are parts of one message.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// The place of its field.
    place: usize,
    /// How many came before.
    number: usize,
    bytes: &'a [u8],
}

/// Adds a row to each of `children`, which have `row` rows.
///
/// # Errors
/// What is wrong; the children may have more rows then.
pub fn message(
    plan: &mut Message,
    children: &mut impl Children,
    row: usize,
    bytes: &[u8],
    room: &mut Room,
    is_root: bool,
) -> Result<(), Damage> {
    plan.begin();
    let mut wire = Wire(bytes);
    let mut parts: Vec<Part<'_>> = Vec::new();
    // For each child, how many parts had come when another field of its `oneof` took its place; empty while none did.
    let mut since = Vec::new();
    while !wire.is_empty() {
        let (number, layout) = wire.tag()?;
        let Some(place) = plan.find(number) else {
            wire.skip(number, layout)?;
            continue;
        };
        let Some(field) = plan.field(place) else { return Err(broken()) };
        let taken = match field.child.and_then(|child| children.child(child)) {
            Some(column) => one(field, column, row, &mut wire, layout, room)?,
            None => {
                wire.skip(number, layout)?;
                Taken::Whole
            }
        };
        match taken {
            Taken::Whole => {}
            Taken::OtherSymbol if is_root => return Err(unknown_symbol()),
            Taken::OtherLayout if is_root => {
                return Err(Damage::whole("has a field of another type than its message says"));
            }
            Taken::OtherSymbol => continue,
            Taken::OtherLayout => {
                wire.skip(number, layout)?;
                continue;
            }
            Taken::Message => parts.push(Part { place, number: parts.len(), bytes: wire.bytes()? }),
        }
        // A field of a `oneof` takes the place of the others.
        for other in &field.instead_of {
            if let Some(column) = children.child(*other) {
                column.truncate(row);
            }
            since.resize(since.len().max(other + 1), 0);
            since[*other] = parts.len();
        }
    }
    parts.sort_by_key(|part| part.place);
    for parts in parts.chunk_by(|part, next| part.place == next.place) {
        let field = parts.first().and_then(|part| plan.field(part.place));
        let Some(Wanted { child: Some(child), read: Read::Message(held), .. }) = field else { continue };
        let Some(column) = children.child(*child) else { continue };
        let from = since.get(*child).copied().unwrap_or_default();
        match parts.get(parts.partition_point(|part| part.number < from)..).unwrap_or_default() {
            [] => {}
            [whole] => held_message(held, column, whole.bytes, room)?,
            parts => {
                let parts: Vec<_> = parts.iter().map(|part| part.bytes).collect();
                held_message(held, column, &parts.concat(), room)?;
            }
        }
    }
    absent(plan, children, row, room)
}

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Whole,
    /// It is a message, which stands there still.
    Message,
    /// It is laid out in another way, and stands there still.
    OtherLayout,
    /// A number that its enum, of proto2, does not have: as good as no field, but not in the message itself.
    OtherSymbol,
}

/// Reads one field.
#[inline]
fn one(
    field: &mut Wanted,
    column: &mut Column,
    row: usize,
    wire: &mut Wire<'_>,
    layout: Layout,
    room: &mut Room,
) -> Result<Taken, Damage> {
    match &mut field.read {
        Read::One { item, implicit } if layout == Layout::of(item) => {
            return one_item(item, *implicit, wire, column, row);
        }
        Read::Message(_) if layout == Layout::Bytes => return Ok(Taken::Message),
        Read::Messages(held) if layout == Layout::Bytes => {
            let Values::List(_, items) = &mut column.values else { return Ok(Taken::OtherLayout) };
            room.take(items)?;
            held_message(held, items, wire.bytes()?, room)?;
        }
        Read::Items(item) => {
            let Values::List(_, items) = &mut column.values else { return Ok(Taken::OtherLayout) };
            return many_items(item, wire, layout, items, room);
        }
        Read::Map(entry) if layout == Layout::Bytes => {
            let Values::Map(_, keys, values) = &mut column.values else { return Ok(Taken::OtherLayout) };
            room.take(values)?;
            let row = keys.len();
            message(entry, &mut Pair(keys, values), row, wire.bytes()?, room, false)?;
        }
        _ => return Ok(Taken::OtherLayout),
    }
    Ok(Taken::Whole)
}

/// The value of a field; of one that comes twice the last counts.
#[inline]
fn one_item(
    item: &Item,
    implicit: bool,
    wire: &mut Wire<'_>,
    column: &mut Column,
    row: usize,
) -> Result<Taken, Damage> {
    if let Item::Symbol(symbols) = item {
        let number = wire.varint()? as i32;
        if !symbols.has(number) {
            return Ok(Taken::OtherSymbol);
        }
        set(column, row);
        if !(implicit && number == symbols.first) {
            symbol(symbols, number, column)?;
        }
    } else {
        set(column, row);
        value(item, wire, column, implicit)?;
    }
    Ok(Taken::Whole)
}

/// One value of a list, or several that are packed.
#[inline]
fn many_items(
    item: &Item,
    wire: &mut Wire<'_>,
    layout: Layout,
    items: &mut Column,
    room: &mut Room,
) -> Result<Taken, Damage> {
    if layout == Layout::of(item) {
        return list_item(item, wire, items, room);
    }
    if layout != Layout::Bytes {
        return Ok(Taken::OtherLayout);
    }
    let (mut packed, mut taken) = (Wire(wire.bytes()?), Taken::Whole);
    while !packed.is_empty() {
        if list_item(item, &mut packed, items, room)? == Taken::OtherSymbol {
            taken = Taken::OtherSymbol;
        }
    }
    Ok(taken)
}

#[inline]
fn list_item(item: &Item, wire: &mut Wire<'_>, items: &mut Column, room: &mut Room) -> Result<Taken, Damage> {
    if let Item::Symbol(symbols) = item {
        let number = wire.varint()? as i32;
        if !symbols.has(number) {
            return Ok(Taken::OtherSymbol);
        }
        room.take(items)?;
        symbol(symbols, number, items)?;
    } else {
        room.take(items)?;
        value(item, wire, items, false)?;
    }
    Ok(Taken::Whole)
}

fn unknown_symbol() -> Damage {
    Damage::whole("has a number that its enum does not have")
}

/// Of a field that comes twice the last value counts.
#[inline]
fn set(column: &mut Column, row: usize) {
    if column.len() > row {
        column.truncate(row);
    }
}

/// Adds a value to a column; with `implicit` none that is the default.
#[inline]
fn value(item: &Item, wire: &mut Wire<'_>, column: &mut Column, implicit: bool) -> Result<(), Damage> {
    match item {
        Item::Number(number) => {
            let bits = match number {
                Number::Float | Number::Fixed32 | Number::Sfixed32 => {
                    u64::from(u32::from_le_bytes(wire.array()?))
                }
                Number::Double | Number::Fixed64 => u64::from_le_bytes(wire.array()?),
                Number::Bool => u64::from(wire.varint()? != 0),
                Number::Int32 | Number::Uint32 => u64::from(wire.varint()? as u32),
                Number::Int64 => wire.varint()?,
                Number::Sint32 => {
                    let zigzag = wire.varint()? as u32;
                    u64::from((zigzag >> 1) ^ (zigzag & 1).wrapping_neg())
                }
                Number::Sint64 => {
                    let zigzag = wire.varint()?;
                    (zigzag >> 1) ^ (zigzag & 1).wrapping_neg()
                }
            };
            if !(implicit && bits == 0) {
                push_bits(*number, bits, column);
            }
        }
        Item::Text { strict } => {
            let bytes = wire.bytes()?;
            match std::str::from_utf8(bytes) {
                Ok("") if implicit => {}
                Ok(_) => column.push_bytes(bytes)?,
                Err(_) if *strict => return Err(Damage::whole("has a text that is no UTF-8")),
                Err(_) => column.push_bytes(String::from_utf8_lossy(bytes).as_bytes())?,
            }
        }
        Item::Bytes => {
            let bytes = wire.bytes()?;
            if !(implicit && bytes.is_empty()) {
                column.push_bytes(bytes)?;
            }
        }
        Item::Symbol(symbols) => symbol(symbols, wire.varint()? as i32, column)?,
    }
    Ok(())
}

#[inline]
fn push_bits(number: Number, bits: u64, column: &mut Column) {
    match &mut column.values {
        Values::Bool(values) => values.push(bits != 0),
        Values::I32(values) => values.push(bits as u32 as i32),
        Values::I64(values) => values.push(bits as i64),
        Values::F32(values) => values.push(f32::from_bits(bits as u32)),
        Values::F64(values) => values.push(f64::from_bits(bits)),
        Values::I128(values) => values.push(bits.into()),
        // The plan has seen to it.
        _ => debug_assert!(false, "{number:?} does not fit its column"),
    }
    column.added();
}

fn symbol(symbols: &Symbols, number: i32, column: &mut Column) -> Result<(), Damage> {
    if let Values::I32(values) = &mut column.values {
        values.push(number);
        column.added();
        return Ok(());
    }
    match (symbols.names.get(&number), &symbols.unknown) {
        (Some(name), _) => column.push_bytes(name.as_bytes()),
        (None, Some(unknown)) => column.push_bytes(format!("{unknown}{number}").as_bytes()),
        (None, None) => Err(unknown_symbol()),
    }
}

/// Adds the value that a message is to a column.
fn held_message(held: &mut Held, column: &mut Column, bytes: &[u8], room: &mut Room) -> Result<(), Damage> {
    match held {
        Held::Struct(plan) => {
            let row = column.len();
            let Values::Struct(_, children) = &mut column.values else { return Err(broken()) };
            message(plan, children, row, bytes, room, false)?;
            column.added();
        }
        Held::Time => {
            let micros = micros(bytes)?;
            if let Values::I64(values) = &mut column.values {
                values.push(micros);
                column.added();
            }
        }
        Held::Wrapped(wrapped) => {
            let row = column.len();
            let mut wire = Wire(bytes);
            while !wire.is_empty() {
                let (number, layout) = wire.tag()?;
                if number == 1 && layout == Layout::of(&wrapped.item) {
                    set(column, row);
                    value(&wrapped.item, &mut wire, column, false)?;
                } else {
                    wire.skip(number, layout)?;
                }
            }
            if column.len() == row {
                fill(&wrapped.absent, None, column, room)?;
            }
        }
    }
    Ok(())
}

/// `seconds` and `nanos` as Spark adds them up.
fn micros(bytes: &[u8]) -> Result<i64, Damage> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut wire = Wire(bytes);
    while !wire.is_empty() {
        match wire.tag()? {
            (1, Layout::Varint) => seconds = wire.varint()? as i64,
            (2, Layout::Varint) => nanos = wire.varint()? as i32,
            (number, layout) => wire.skip(number, layout)?,
        }
    }
    let micros = seconds.wrapping_mul(1000).checked_mul(1000);
    let micros = micros.ok_or_else(|| Damage::whole("has a time beyond what a timestamp can hold"))?;
    Ok(micros.wrapping_add(i64::from(nanos / 1000)))
}

/// Fills the children that the message had no field for, and ends lists and maps.
#[inline]
fn absent(
    plan: &mut Message,
    children: &mut impl Children,
    row: usize,
    room: &mut Room,
) -> Result<(), Damage> {
    for child in 0..plan.absent.len() {
        let Some(column) = children.child(child) else { continue };
        match &plan.absent[child] {
            Absent::Items => column.end_items()?,
            _ if column.len() > row => {}
            Absent::Null => column.push_null(),
            Absent::Empty => {
                let field = plan.fields.iter_mut().find(|field| field.child == Some(child));
                let held = field.and_then(|field| match &mut field.read {
                    Read::Message(held) => Some(held),
                    _ => None,
                });
                if let Some(held) = held {
                    held_message(held, column, &[], room)?;
                }
            }
            other => {
                let other = other.clone();
                let field = plan.fields.iter().find(|field| field.child == Some(child));
                fill(&other, field.map(|field| &field.read), column, room)?;
            }
        }
    }
    Ok(())
}

fn fill(absent: &Absent, read: Option<&Read>, column: &mut Column, _room: &mut Room) -> Result<(), Damage> {
    match (absent, read) {
        (Absent::Number(bits), Some(Read::One { item: Item::Symbol(symbols), .. })) => {
            symbol(symbols, *bits as u32 as i32, column)?;
        }
        (Absent::Number(bits), _) => push_bits(Number::Int64, *bits, column),
        (Absent::Bytes(bytes), _) => column.push_bytes(bytes)?,
        _ => column.push_null(),
    }
    Ok(())
}
