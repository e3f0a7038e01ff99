//! A message's descriptor and the columns that are wanted of it -> what to do with each of its fields.
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, Value};

use super::descriptor::is_seconds_and_nanos;
use super::wire::Layout;

/// What is read of a message.
#[derive(Debug)]
pub struct Message {
    pub(super) fields: Vec<Wanted>,
    /// Number of a field below its length -> one more than its place in `fields`.
    places: Vec<u16>,
    /// For each child of the column: what it gets when the message does not have the field.
    pub(super) absent: Vec<Absent>,
    /// Where the next field is looked for first.
    next: usize,
}

/// A field that is read, or whose presence ends that of another one.
#[derive(Debug)]
pub struct Wanted {
    number: u32,
    /// The child of the column that it fills, if it does.
    pub(super) child: Option<usize>,
    /// Children whose fields it takes the place of: others of its `oneof`.
    pub(super) instead_of: Vec<usize>,
    pub(super) read: Read,
}

/// How a field is read.
#[derive(Debug)]
pub enum Read {
    /// It is passed over.
    Nothing,
    /// One value. With `implicit` the default is as good as none.
    One { item: Item, implicit: bool },
    /// One message: what comes twice is one message, too.
    Message(Held),
    /// A list of values, packed or not.
    Items(Item),
    /// A list of messages.
    Messages(Held),
    /// A map; its entry.
    Map(Box<Message>),
}

/// A value that is not a message.
#[derive(Debug)]
pub enum Item {
    /// A number or truth value.
    Number(Number),
    /// A text; whether it must be UTF-8.
    Text { strict: bool },
    /// Bytes.
    Bytes,
    /// An enum.
    Symbol(Symbols),
}

/// How the bits of a number are read and what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// `bool`.
    Bool,
    /// `int32`, and `uint32` as its bits.
    Int32,
    /// `uint32`.
    Uint32,
    /// `sint32`.
    Sint32,
    /// `fixed32` and `sfixed32`.
    Sfixed32,
    /// `fixed32`.
    Fixed32,
    /// `int64`, and `uint64`, which a decimal shows without a sign.
    Int64,
    /// `sint64`.
    Sint64,
    /// `fixed64` and `sfixed64`.
    Fixed64,
    /// `float`.
    Float,
    /// `double`.
    Double,
}

/// The names of an enum's numbers.
#[derive(Debug)]
pub struct Symbols {
    pub(super) names: std::collections::HashMap<i32, Box<str>>,
    /// What the names of unknown numbers begin with; `None`: an unknown number is as good as no value (proto2).
    pub(super) unknown: Option<String>,
    /// The number that stands for none.
    pub(super) first: i32,
}

impl Symbols {
    /// Whether a number is one of its own.
    #[inline]
    pub(super) fn has(&self, number: i32) -> bool {
        self.unknown.is_some() || self.names.contains_key(&number)
    }
}

/// A message that one value of a column is made of.
#[derive(Debug)]
pub enum Held {
    /// A struct.
    Struct(Box<Message>),
    /// `google.protobuf.Timestamp` or `Duration` as microseconds.
    Time,
    /// A message whose only field is the value, such as `google.protobuf.Int64Value`.
    Wrapped(Box<Wrapped>),
}

/// The field `value` of a wrapper.
#[derive(Debug)]
pub struct Wrapped {
    pub(super) item: Item,
    pub(super) absent: Absent,
}

/// What a child of a column gets when its field is absent.
#[derive(Debug, Clone)]
pub enum Absent {
    /// Null.
    Null,
    /// The end of its items, none perhaps.
    Items,
    /// Bits of a number.
    Number(u64),
    /// A text or bytes.
    Bytes(Vec<u8>),
    /// What a message without fields is.
    Empty,
}

impl Layout {
    /// How a value is laid out.
    pub(super) fn of(item: &Item) -> Self {
        match item {
            Item::Text { .. } | Item::Bytes => Self::Bytes,
            Item::Symbol(_) => Self::Varint,
            Item::Number(number) => match number {
                Number::Sfixed32 | Number::Fixed32 | Number::Float => Self::Fixed32,
                Number::Fixed64 | Number::Double => Self::Fixed64,
                _ => Self::Varint,
            },
        }
    }
}

impl Message {
    /// A plan that reads the columns `wanted`, by their names, of messages of this descriptor.
    ///
    /// # Errors
    /// In a sentence: a column that the message does not have, or whose type does not show its field.
    pub fn new(descriptor: &MessageDescriptor, wanted: &Fields) -> Result<Self, String> {
        let mut message = Self { fields: Vec::new(), places: Vec::new(), absent: Vec::new(), next: 0 };
        for (child, column) in wanted.iter().enumerate() {
            let field = descriptor.get_field_by_name(column.name()).ok_or_else(|| {
                format!("the message {} has no field {}", descriptor.full_name(), column.name())
            })?;
            let (read, absent) = of_field(&field, column)?;
            message.absent.push(absent);
            message.add(field.number(), Some(child), read);
        }
        for (child, column) in wanted.iter().enumerate() {
            let oneof =
                descriptor.get_field_by_name(column.name()).and_then(|field| field.containing_oneof());
            let others = oneof.iter().flat_map(|oneof| oneof.fields());
            for other in others.filter(|other| other.name() != column.name()) {
                message.add(other.number(), None, Read::Nothing).instead_of.push(child);
            }
        }
        message.fix_places();
        Ok(message)
    }

    fn add(&mut self, number: u32, child: Option<usize>, read: Read) -> &mut Wanted {
        let at = self.fields.iter().position(|field| field.number == number).unwrap_or_else(|| {
            self.fields.push(Wanted { number, child, instead_of: Vec::new(), read });
            self.fields.len() - 1
        });
        &mut self.fields[at]
    }

    fn fix_places(&mut self) {
        self.fields.sort_by_key(|field| field.number);
        for (place, field) in self.fields.iter().enumerate().filter(|(_, field)| field.number < 1024) {
            let number = field.number as usize;
            if self.places.len() <= number {
                self.places.resize(number + 1, 0);
            }
            self.places[number] = u16::try_from(place + 1).unwrap_or(0);
        }
    }

    /// The field of this number, if anything is to be done with it.
    #[inline]
    pub(super) fn find(&mut self, number: u32) -> Option<usize> {
        if self.fields.get(self.next).is_some_and(|field| field.number == number) {
            self.next += 1;
            return Some(self.next - 1);
        }
        let found = match self.places.get(number as usize) {
            Some(0) => None,
            Some(place) => Some(usize::from(*place) - 1),
            None if number < 1024 => None,
            None => self.fields.binary_search_by_key(&number, |field| field.number).ok(),
        };
        self.next = found.map_or(self.next, |found| found + 1);
        found
    }

    #[inline]
    pub(super) fn field(&mut self, place: usize) -> Option<&mut Wanted> {
        self.fields.get_mut(place)
    }

    /// Says that a message begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }
}

/// How a field fills a column.
fn of_field(field: &FieldDescriptor, column: &Field) -> Result<(Read, Absent), String> {
    let misfit = || misfit(field, column.data_type());
    if field.is_group() {
        return Err(format!("the field {} is a group, which is not read", field.full_name()));
    }
    if field.is_map() {
        let (Kind::Message(entry), DataType::Map(pairs, _)) = (field.kind(), column.data_type()) else {
            return Err(misfit());
        };
        let DataType::Struct(pair) = pairs.data_type() else { return Err(misfit()) };
        let [key, value] = pair.as_ref() else { return Err(misfit()) };
        return Ok((Read::Map(Box::new(entry_of(&entry, key, value)?)), Absent::Items));
    }
    if field.is_list() {
        let DataType::List(item) = column.data_type() else { return Err(misfit()) };
        return Ok(match field.kind() {
            Kind::Message(message) => {
                (Read::Messages(held(field, &message, item.data_type())?), Absent::Items)
            }
            _ => (Read::Items(item_of(field, item.data_type())?), Absent::Items),
        });
    }
    if let Kind::Message(message) = field.kind() {
        return Ok((Read::Message(held(field, &message, column.data_type())?), Absent::Null));
    }
    let item = item_of(field, column.data_type())?;
    let absent = match field.field_descriptor_proto().default_value {
        Some(_) => value_of(&field.default_value(), &item),
        None => Absent::Null,
    };
    Ok((Read::One { item, implicit: !field.supports_presence() }, absent))
}

/// An entry of a map: two fields, each with a value also where it is absent.
fn entry_of(entry: &MessageDescriptor, key: &Field, value: &Field) -> Result<Message, String> {
    let mut message = Message { fields: Vec::new(), places: Vec::new(), absent: Vec::new(), next: 0 };
    for (child, (field, column)) in
        [(entry.map_entry_key_field(), key), (entry.map_entry_value_field(), value)].into_iter().enumerate()
    {
        let (read, absent) = match field.kind() {
            Kind::Message(inner) => (Read::Message(held(&field, &inner, column.data_type())?), Absent::Empty),
            _ => {
                let item = item_of(&field, column.data_type())?;
                let absent = value_of(&field.default_value(), &item);
                (Read::One { item, implicit: false }, absent)
            }
        };
        message.absent.push(absent);
        message.add(field.number(), Some(child), read);
    }
    message.fix_places();
    Ok(message)
}

fn held(field: &FieldDescriptor, message: &MessageDescriptor, wanted: &DataType) -> Result<Held, String> {
    Ok(match wanted {
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) if is_seconds_and_nanos(message, "Timestamp") => {
            Held::Time
        }
        DataType::Duration(TimeUnit::Microsecond) if is_seconds_and_nanos(message, "Duration") => Held::Time,
        DataType::Struct(fields) => Held::Struct(Box::new(Message::new(message, fields)?)),
        _ if is_wrapper(message) => {
            let value = message.get_field(1).ok_or_else(|| misfit(field, wanted))?;
            let item = item_of(&value, wanted).map_err(|_| misfit(field, wanted))?;
            let absent = value_of(&value.default_value(), &item);
            Held::Wrapped(Box::new(Wrapped { item, absent }))
        }
        _ => return Err(misfit(field, wanted)),
    })
}

/// Whether a message is one of `google/protobuf/wrappers.proto`.
pub(super) fn is_wrapper(message: &MessageDescriptor) -> bool {
    message.parent_file().package_name() == "google.protobuf" && message.name().ends_with("Value") && {
        let mut fields = message.fields();
        fields.next().is_some_and(|field| field.name() == "value" && field.number() == 1)
            && fields.next().is_none()
    }
}

fn item_of(field: &FieldDescriptor, wanted: &DataType) -> Result<Item, String> {
    let unsigned = DataType::Decimal128(20, 0);
    Ok(match (field.kind(), wanted) {
        (Kind::Bool, DataType::Boolean) => Item::Number(Number::Bool),
        (Kind::Int32 | Kind::Uint32, DataType::Int32) => Item::Number(Number::Int32),
        (Kind::Uint32, DataType::Int64) => Item::Number(Number::Uint32),
        (Kind::Sint32, DataType::Int32) => Item::Number(Number::Sint32),
        (Kind::Fixed32 | Kind::Sfixed32, DataType::Int32) => Item::Number(Number::Sfixed32),
        (Kind::Fixed32, DataType::Int64) => Item::Number(Number::Fixed32),
        (Kind::Int64 | Kind::Uint64, DataType::Int64) => Item::Number(Number::Int64),
        (Kind::Uint64, wanted) if *wanted == unsigned => Item::Number(Number::Int64),
        (Kind::Sint64, DataType::Int64) => Item::Number(Number::Sint64),
        (Kind::Fixed64 | Kind::Sfixed64, DataType::Int64) => Item::Number(Number::Fixed64),
        (Kind::Fixed64, wanted) if *wanted == unsigned => Item::Number(Number::Fixed64),
        (Kind::Float, DataType::Float32) => Item::Number(Number::Float),
        (Kind::Double, DataType::Float64) => Item::Number(Number::Double),
        (Kind::String, DataType::Utf8) => Item::Text { strict: is_strict(field) },
        (Kind::Bytes, DataType::Binary) => Item::Bytes,
        (Kind::Enum(found), DataType::Utf8 | DataType::Int32) => Item::Symbol(symbols(&found)),
        _ => return Err(misfit(field, wanted)),
    })
}

/// Whether texts that are no UTF-8 damage a record.
fn is_strict(field: &FieldDescriptor) -> bool {
    let file = field.parent_file();
    let proto = file.file_descriptor_proto();
    proto.syntax() == "proto3"
        || proto.options.as_ref().is_some_and(|options| options.java_string_check_utf8())
}

fn symbols(found: &EnumDescriptor) -> Symbols {
    let open = found.parent_file().file_descriptor_proto().syntax() == "proto3";
    let mut names = std::collections::HashMap::new();
    for value in found.values() {
        // Of two names of a number the first one counts.
        names.entry(value.number()).or_insert_with(|| value.name().into());
    }
    Symbols {
        names,
        unknown: open.then(|| format!("UNKNOWN_ENUM_VALUE_{}_", found.name())),
        first: found.default_value().number(),
    }
}

/// A default value, as it fills a column.
fn value_of(value: &Value, item: &Item) -> Absent {
    match (value, item) {
        (Value::EnumNumber(number), Item::Symbol(_)) => Absent::Number(u64::from(*number as u32)),
        (Value::Bool(value), _) => Absent::Number(u64::from(*value)),
        (Value::I32(value), _) => Absent::Number(u64::from(*value as u32)),
        (Value::U32(value), _) => Absent::Number(u64::from(*value)),
        (Value::I64(value), _) => Absent::Number(*value as u64),
        (Value::U64(value), _) => Absent::Number(*value),
        (Value::F32(value), _) => Absent::Number(u64::from(value.to_bits())),
        (Value::F64(value), _) => Absent::Number(value.to_bits()),
        (Value::String(text), _) => Absent::Bytes(text.clone().into_bytes()),
        (Value::Bytes(bytes), _) => Absent::Bytes(bytes.to_vec()),
        _ => Absent::Null,
    }
}

fn misfit(field: &FieldDescriptor, wanted: &DataType) -> String {
    format!(
        "the field {} ({:?}) cannot be shown by a column of the type {wanted}",
        field.full_name(),
        field.kind()
    )
}
