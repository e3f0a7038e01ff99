//! Descriptors: from the bytes of a `FileDescriptorSet`, which `protoc --descriptor_set_out` writes, to a message; its fields as DDL.
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

/// How deep the types of fields may be nested.
const DEPTH_MAX: usize = 64;
/// Most fields of a type, with all that are nested in it: a file of some kilobytes could describe billions.
const FIELDS_MAX: usize = 20_000;

/// The message `name` of a `FileDescriptorSet`.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn message(set: &[u8], name: &str) -> Result<MessageDescriptor, String> {
    // Files of google/protobuf need not be in the set.
    let pool = DescriptorPool::decode(set).or_else(|error| {
        let mut pool = DescriptorPool::global();
        pool.decode_file_descriptor_set(set).map(|()| pool).map_err(|_| error)
    });
    let pool = pool.map_err(|error| {
        format!(
            "what should be a FileDescriptorSet cannot be read ({error}); make it with protoc --include_imports --descriptor_set_out"
        )
    })?;
    let found = pool.get_message_by_name(name).or_else(|| {
        let mut named = pool.all_messages().filter(|message| message.name() == name);
        named.next().filter(|_| named.next().is_none())
    });
    let known = || {
        let names =
            pool.all_messages().filter(|message| !message.full_name().starts_with("google.protobuf."));
        names.map(|message| message.full_name().to_owned()).take(20).collect::<Vec<_>>().join(", ")
    };
    let found =
        found.ok_or_else(|| format!("the descriptors have no message {name}; they have {}", known()))?;
    match found.parent_file().file_descriptor_proto().syntax() {
        "" | "proto2" | "proto3" => Ok(found),
        other => Err(format!(
            "the message {name} is in a file of the syntax {other}, which is not known; proto2 and proto3 are"
        )),
    }
}

/// Where a message stands in its file, as Confluent's serializers write it.
pub fn indexes(message: &MessageDescriptor) -> Vec<i32> {
    // A path has the number of a field before each index: of a file's messages, of a message's messages.
    message.path().iter().skip(1).step_by(2).copied().collect()
}

/// The fields of a message as DDL, with the types that `from_protobuf` gives them.
///
/// # Errors
/// For a message that holds itself, or more than can be columns.
pub fn ddl(message: &MessageDescriptor) -> Result<String, String> {
    let mut room = FIELDS_MAX;
    let mut above = vec![message.full_name().to_owned()];
    let parts = fields(message, &mut above, &mut room)?;
    let parts = parts.iter().map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>();
    if parts.is_empty() {
        return Err(format!("the message {} has no fields", message.full_name()));
    }
    Ok(parts.join(", "))
}

fn fields(
    message: &MessageDescriptor,
    above: &mut Vec<String>,
    room: &mut usize,
) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for field in in_order(message) {
        *room =
            room.checked_sub(1).ok_or_else(|| format!("the message has more than {FIELDS_MAX} fields"))?;
        let kind = if field.is_map() {
            let Kind::Message(entry) = field.kind() else { continue };
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            match (one(&key, above, room)?, one(&value, above, room)?) {
                (Some(key), Some(value)) => Some(format!("map<{key}, {value}>")),
                _ => None,
            }
        } else {
            let item = one(&field, above, room)?;
            if field.is_list() { item.map(|item| format!("array<{item}>")) } else { item }
        };
        found.extend(kind.map(|kind| (format!("`{}`", field.name()), kind)));
    }
    Ok(found)
}

/// The fields of a message as its file has them, which is the order of `from_protobuf`.
fn in_order(message: &MessageDescriptor) -> impl Iterator<Item = FieldDescriptor> {
    let names = message.descriptor_proto().field.iter().map(|field| field.name().to_owned());
    let message = message.clone();
    names.collect::<Vec<_>>().into_iter().filter_map(move |name| message.get_field_by_name(&name))
}

/// The type of a field, or of its items; `None` for a message without fields, which Spark cannot show.
fn one(field: &FieldDescriptor, above: &mut Vec<String>, room: &mut usize) -> Result<Option<String>, String> {
    Ok(Some(
        match field.kind() {
            Kind::Bool => "boolean",
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Uint32 | Kind::Fixed32 => "int",
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64 => "bigint",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::String | Kind::Enum(_) => "string",
            Kind::Bytes => "binary",
            Kind::Message(message) if is_seconds_and_nanos(&message, "Timestamp") => "timestamp",
            Kind::Message(message) if is_seconds_and_nanos(&message, "Duration") => "interval day to second",
            Kind::Message(message) => {
                let name = message.full_name().to_owned();
                if above.contains(&name) || above.len() > DEPTH_MAX {
                    return Err(format!(
                        "the field {} holds a message of the type {name} in itself, which columns cannot show to its end; name the \
                         columns that are wanted by .schema()",
                        field.full_name()
                    ));
                }
                above.push(name);
                let parts = fields(&message, above, room)?;
                above.pop();
                if parts.is_empty() {
                    return Ok(None);
                }
                let parts = parts.iter().map(|(name, kind)| format!("{name}: {kind}")).collect::<Vec<_>>();
                return Ok(Some(format!("struct<{}>", parts.join(", "))));
            }
        }
        .to_owned(),
    ))
}

/// Whether a message is a point or a span of time, by its name and fields, as Spark tells.
pub(super) fn is_seconds_and_nanos(message: &MessageDescriptor, name: &str) -> bool {
    let mut fields = in_order(message);
    message.name() == name
        && fields.next().is_some_and(|field| field.name() == "seconds" && field.kind() == Kind::Int64)
        && fields.next().is_some_and(|field| field.name() == "nanos" && field.kind() == Kind::Int32)
        && fields.next().is_none()
}
