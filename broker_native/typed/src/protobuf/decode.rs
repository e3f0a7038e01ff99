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

/// Messages that came in parts: the place of the field, and its parts since another of its `oneof` took its place.
type Parts<'a> = Vec<(usize, Vec<&'a [u8]>)>;

/// Why a message is read anew, keeping the parts of its messages.
enum Stop {
    /// A message came twice.
    Twice,
    Damaged(Damage),
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
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
    let left = room.left;
    match fields(plan, children, row, bytes, room, is_root, None) {
        Ok(()) => Ok(()),
        Err(Stop::Damaged(damage)) => Err(damage),
        Err(Stop::Twice) => {
            for child in 0..plan.absent.len() {
                if let Some(column) = children.child(child) {
                    column.truncate(row);
                }
            }
            room.left = left;
            let again = fields(plan, children, row, bytes, room, is_root, Some(Vec::new()));
            again.map_err(|stop| match stop {
                Stop::Damaged(damage) => damage,
                Stop::Twice => broken(),
            })
        }
    }
}

fn fields<'a>(
    plan: &mut Message,
    children: &mut impl Children,
    row: usize,
    bytes: &'a [u8],
    room: &mut Room,
    is_root: bool,
    mut parts: Option<Parts<'a>>,
) -> Result<(), Stop> {
    plan.begin();
    let mut wire = Wire(bytes);
    while !wire.is_empty() {
        let (number, layout) = wire.tag()?;
        let Some(place) = plan.find(number) else {
            wire.skip(number, layout)?;
            continue;
        };
        let Some(field) = plan.field(place) else { return Err(broken().into()) };
        let Some(column) = field.child.and_then(|child| children.child(child)) else {
            wire.skip(number, layout)?;
            ends_others(field, children, row);
            forget(&mut parts, plan, place);
            continue;
        };
        let taken =
            one(field, column, row, &mut wire, layout, room, parts.as_mut().map(|parts| (place, parts)))?;
        match taken {
            Taken::Whole => {}
            Taken::OtherSymbol if is_root => return Err(unknown_symbol().into()),
            Taken::OtherLayout if is_root => {
                return Err(Damage::whole("has a field of another type than its message says").into());
            }
            Taken::OtherSymbol => continue,
            Taken::OtherLayout => {
                wire.skip(number, layout)?;
                continue;
            }
        }
        ends_others(field, children, row);
        forget(&mut parts, plan, place);
    }
    for (place, parts) in parts.into_iter().flatten() {
        let Some(Wanted { child: Some(child), read: Read::Message(held), .. }) = plan.field(place) else {
            continue;
        };
        if let Some(column) = children.child(*child) {
            held_message(held, column, &parts.concat(), room)?;
        }
    }
    absent(plan, children, row, room)?;
    Ok(())
}

/// A field of a `oneof` takes the place of the others.
#[inline]
fn ends_others(field: &Wanted, children: &mut impl Children, row: usize) {
    for other in &field.instead_of {
        if let Some(column) = children.child(*other) {
            column.truncate(row);
        }
    }
}

/// Drops the parts of messages whose place the field took.
fn forget(parts: &mut Option<Parts<'_>>, plan: &mut Message, place: usize) {
    let Some(parts) = parts else { return };
    let gone = plan.field(place).map_or_else(Vec::new, |field| field.instead_of.clone());
    parts.retain(|(kept, _)| {
        let child = plan.field(*kept).and_then(|field| field.child);
        !child.is_some_and(|child| gone.contains(&child))
    });
}

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Whole,
    /// It is laid out in another way, and stands there still.
    OtherLayout,
    /// A number that its enum, of proto2, does not have: as good as no field, but not in the message itself.
    OtherSymbol,
}

/// Reads one field.
#[inline]
fn one<'a>(
    field: &mut Wanted,
    column: &mut Column,
    row: usize,
    wire: &mut Wire<'a>,
    layout: Layout,
    room: &mut Room,
    parts: Option<(usize, &mut Parts<'a>)>,
) -> Result<Taken, Stop> {
    match &mut field.read {
        Read::One { item, implicit } if layout == Layout::of(item) => {
            return Ok(one_item(item, *implicit, wire, column, row)?);
        }
        Read::Message(held) if layout == Layout::Bytes => {
            let bytes = wire.bytes()?;
            match parts {
                Some((place, parts)) => match parts.iter_mut().find(|(known, _)| *known == place) {
                    Some((_, parts)) => parts.push(bytes),
                    None => parts.push((place, vec![bytes])),
                },
                None if column.len() > row => return Err(Stop::Twice),
                None => held_message(held, column, bytes, room)?,
            }
        }
        Read::Messages(held) if layout == Layout::Bytes => {
            let Values::List(_, items) = &mut column.values else { return Ok(Taken::OtherLayout) };
            room.take(items)?;
            held_message(held, items, wire.bytes()?, room)?;
        }
        Read::Items(item) => {
            let Values::List(_, items) = &mut column.values else { return Ok(Taken::OtherLayout) };
            return Ok(many_items(item, wire, layout, items, room)?);
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
