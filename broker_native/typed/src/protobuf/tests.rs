use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{Field, TimeUnit};
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, OneofDescriptorProto,
};
use std::sync::Arc;

use crate::column::MAX_CELLS;

fn proto(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional as i32),
        r#type: Some(kind as i32),
        ..Default::default()
    }
}

fn of(name: &str, number: i32, kind: Type, type_name: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: Some(type_name.to_owned()), ..proto(name, number, kind) }
}

fn repeated(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { label: Some(Label::Repeated as i32), ..field }
}

/// `message M { int64 id = 1; string name = 2; repeated sint32 many = 3; M2 part = 4; repeated M2 parts = 5; oneof o { int32 x = 6; M2 y = 7; }
/// google.protobuf.Timestamp at = 8; E e = 9; } message M2 { int32 a = 1; repeated int32 b = 2; } enum E { ZERO = 0; ONE = 1; }`
fn set() -> Vec<u8> {
    let timestamp = FileDescriptorProto {
        name: Some("google/protobuf/timestamp.proto".to_owned()),
        package: Some("google.protobuf".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("Timestamp".to_owned()),
            field: vec![proto("seconds", 1, Type::Int64), proto("nanos", 2, Type::Int32)],
            ..Default::default()
        }],
        ..Default::default()
    };
    let in_oneof = |field: FieldDescriptorProto| FieldDescriptorProto { oneof_index: Some(0), ..field };
    let m = DescriptorProto {
        name: Some("M".to_owned()),
        field: vec![
            proto("id", 1, Type::Int64),
            proto("name", 2, Type::String),
            repeated(proto("many", 3, Type::Sint32)),
            of("part", 4, Type::Message, ".p.M2"),
            repeated(of("parts", 5, Type::Message, ".p.M2")),
            in_oneof(proto("x", 6, Type::Int32)),
            in_oneof(of("y", 7, Type::Message, ".p.M2")),
            of("at", 8, Type::Message, ".google.protobuf.Timestamp"),
            of("e", 9, Type::Enum, ".p.E"),
        ],
        oneof_decl: vec![OneofDescriptorProto { name: Some("o".to_owned()), ..Default::default() }],
        ..Default::default()
    };
    let m2 = DescriptorProto {
        name: Some("M2".to_owned()),
        field: vec![proto("a", 1, Type::Int32), repeated(proto("b", 2, Type::Int32))],
        nested_type: vec![DescriptorProto {
            name: Some("Self".to_owned()),
            field: vec![of("again", 1, Type::Message, ".p.M2.Self")],
            ..Default::default()
        }],
        ..Default::default()
    };
    let symbol = |name: &str, number| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        ..Default::default()
    };
    let file = FileDescriptorProto {
        name: Some("p.proto".to_owned()),
        package: Some("p".to_owned()),
        dependency: vec!["google/protobuf/timestamp.proto".to_owned()],
        syntax: Some("proto3".to_owned()),
        message_type: vec![m, m2],
        enum_type: vec![EnumDescriptorProto {
            name: Some("E".to_owned()),
            value: vec![symbol("ZERO", 0), symbol("ONE", 1)],
            ..Default::default()
        }],
        ..Default::default()
    };
    FileDescriptorSet { file: vec![timestamp, file] }.encode_to_vec()
}

fn protobuf(name: &str) -> Protobuf {
    Protobuf::new(&set(), name, Prefix::None).unwrap()
}

fn part() -> DataType {
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int32, true)));
    DataType::Struct(Fields::from(vec![Field::new("a", DataType::Int32, true), Field::new("b", list, true)]))
}

fn all() -> DataType {
    let list = |item| DataType::List(Arc::new(Field::new("element", item, true)));
    DataType::Struct(Fields::from(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("many", list(DataType::Int32), true),
        Field::new("part", part(), true),
        Field::new("parts", list(part()), true),
        Field::new("x", DataType::Int32, true),
        Field::new("y", part(), true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("e", DataType::Utf8, true),
    ]))
}

/// The columns of one record, and whether it is damaged.
fn read(protobuf: &Protobuf, wanted: &DataType, bytes: &[u8]) -> (StructArray, bool) {
    let mut column = Column::new(&Field::new("value", wanted.clone(), true)).unwrap();
    let mut reader = Reader::new(protobuf, wanted, &Writers::default()).unwrap();
    let damage = reader.read(&mut column, bytes, &mut Room::default());
    let array: ArrayRef = column.finish().unwrap();
    assert_eq!(array.len(), 1);
    (array.as_struct().clone(), damage.is_some())
}

fn int(array: &StructArray, name: &str) -> Option<i32> {
    let column = array.column_by_name(name).unwrap();
    column.is_valid(0).then(|| column.as_primitive::<Int32Type>().value(0))
}

#[test]
fn fields_that_are_absent_or_as_good_as_absent_are_null_and_lists_are_empty() {
    for bytes in [&b""[..], b"\x08\x00\x12\x00\x48\x00"] {
        let (array, damaged) = read(&protobuf("p.M"), &all(), bytes);
        assert!(!damaged);
        for name in ["id", "name", "part", "x", "y", "at", "e"] {
            assert!(array.column_by_name(name).unwrap().is_null(0), "{name}");
        }
        assert_eq!(array.column_by_name("parts").unwrap().as_list::<i32>().value_length(0), 0);
    }
}

#[test]
fn a_member_of_a_oneof_counts_when_it_has_its_default_and_ends_the_others() {
    let (array, _) = read(&protobuf("p.M"), &all(), b"\x3a\x02\x08\x05\x30\x00");
    assert_eq!(int(&array, "x"), Some(0));
    assert!(array.column_by_name("y").unwrap().is_null(0));
    // Also where the other is no column.
    let only = DataType::Struct(Fields::from(vec![Field::new("y", part(), true)]));
    let (array, _) = read(&protobuf("p.M"), &only, b"\x3a\x02\x08\x05\x30\x00");
    assert!(array.column_by_name("y").unwrap().is_null(0));
    // And a message begins anew then.
    let (array, _) = read(&protobuf("p.M"), &all(), b"\x3a\x02\x08\x05\x30\x01\x3a\x02\x10\x07");
    let y = array.column_by_name("y").unwrap().as_struct().clone();
    assert_eq!(int(&y, "a"), None);
    assert_eq!(y.column_by_name("b").unwrap().as_list::<i32>().value_length(0), 1);
}

#[test]
fn a_message_that_comes_in_parts_is_one_and_of_a_number_the_last_value_counts() {
    let (array, damaged) =
        read(&protobuf("p.M"), &all(), b"\x22\x02\x08\x05\x08\x01\x22\x02\x10\x07\x08\x02\x22\x02\x10\x08");
    assert!(!damaged);
    let part = array.column_by_name("part").unwrap().as_struct().clone();
    assert_eq!(int(&part, "a"), Some(5));
    assert_eq!(part.column_by_name("b").unwrap().as_list::<i32>().value_length(0), 2);
    assert_eq!(array.column_by_name("id").unwrap().as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn a_list_is_read_packed_and_one_by_one() {
    let (array, damaged) = read(&protobuf("p.M"), &all(), b"\x1a\x02\x01\x02\x18\x03");
    assert!(!damaged);
    let many = array.column_by_name("many").unwrap().as_list::<i32>().value(0);
    assert_eq!(many.as_primitive::<Int32Type>().values(), &[-1, 1, -2]);
}

#[test]
fn times_are_microseconds_and_one_beyond_them_damages_the_record() {
    let (array, _) = read(&protobuf("p.M"), &all(), b"\x42\x06\x08\x01\x10\xe8\x92\x18");
    let at = array.column_by_name("at").unwrap();
    assert_eq!(at.as_primitive::<TimestampMicrosecondType>().value(0), 1_000_395);
    let (_, damaged) = read(&protobuf("p.M"), &all(), b"\x42\x09\x08\xff\xff\xff\xff\xff\xff\xff\x1f");
    assert!(damaged);
}

#[test]
fn unknown_fields_and_groups_are_passed_over_and_numbers_of_no_symbol_are_named() {
    let (array, damaged) =
        read(&protobuf("p.M"), &all(), b"\xa3\x06\x08\x01\x0b\x0c\xa4\x06\x48\x07\xaa\x06\x01x");
    assert!(!damaged);
    assert_eq!(array.column_by_name("e").unwrap().as_string::<i32>().value(0), "UNKNOWN_ENUM_VALUE_E_7");
}

#[test]
fn what_is_no_message_damages_the_record_and_leaves_nothing_of_it() {
    for bytes in [
        &b"\x08"[..],
        b"\x08\x01\x12\x05abc",
        b"\x08\x01\x12\x02\xff\xfe",
        b"\x08\x01\x0c",
        b"\x08\x01\x0b\x08\x01",
        b"\x08\x01\x00\x01",
        b"\x08\x01\x0e",
        b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x0a\x01x",
        b"\x08\x01\x1a\x02\x01\x80",
        b"\x08\x01\x12\xff\xff\xff\xff\x0f",
    ] {
        let (array, damaged) = read(&protobuf("p.M"), &all(), bytes);
        assert!(damaged, "{bytes:?}");
        assert!(array.columns().iter().all(|column| column.is_null(0)), "{bytes:?}");
    }
    let deep = [0x0b].repeat(10_000);
    assert!(read(&protobuf("p.M"), &all(), &deep).1);
}

#[test]
fn lists_of_empty_messages_have_a_bound() {
    let mut column = Column::new(&Field::new("value", all(), true)).unwrap();
    let mut reader = Reader::new(&protobuf("p.M"), &all(), &Writers::default()).unwrap();
    let mut room = Room::default();
    let many = b"\x2a\x00".repeat(MAX_CELLS / 3 / 4);
    let damage: Vec<_> = (0..5).map(|_| reader.read(&mut column, &many, &mut room).is_some()).collect();
    assert_eq!(damage.iter().filter(|damaged| **damaged).count(), 1, "{damage:?}");
}

#[test]
fn the_prefix_of_a_registry_names_the_message() {
    let second = Protobuf::new(&set(), "p.M2", Prefix::Given).unwrap();
    for (bytes, wanted) in [
        (&b"\x00\x00\x00\x00\x07\x02\x02\x08\x05"[..], Some(5)),
        (b"\x00\x00\x00\x00\x07\x00\x08\x05", None),
        (b"\x00\x00\x00\x00\x07\x02\x04\x08\x05", None),
        (b"\x00\x00\x00\x00\x07\x01\x08\x05", None),
        (b"\x01\x00\x00\x00\x07\x02\x02\x08\x05", None),
        (b"\x00\x00\x00", None),
    ] {
        let (array, damaged) = read(&second, &part(), bytes);
        assert_eq!((int(&array, "a"), damaged), (wanted, wanted.is_none()), "{bytes:?}");
    }
    let first = Protobuf::new(&set(), "p.M", Prefix::Given).unwrap();
    for prefix in [&b"\x00\x00\x00\x00\x07\x00"[..], b"\x00\x00\x00\x00\x07\x02\x00"] {
        assert!(!read(&first, &all(), prefix).1);
    }
}

/// What is read of the message `p.M2` by a registry with these schemas, and what is wrong with it.
fn registered(writers: &Writers, bytes: &[u8]) -> (Option<i32>, Option<String>) {
    let second = Protobuf::new(&set(), "p.M2", Prefix::Registered(None)).unwrap();
    let mut column = Column::new(&Field::new("value", part(), true)).unwrap();
    let mut reader = Reader::new(&second, &part(), writers).unwrap();
    assert!(reader.prepare(Some(bytes)));
    let damage = reader.read(&mut column, bytes, &mut Room::default());
    let array = column.finish().unwrap();
    (int(array.as_struct(), "a"), damage.map(|damage| damage.to_string()))
}

fn schema(schema_type: &str, text: &str) -> Option<writers::WriterSchema> {
    let (schema_type, text) = (schema_type.to_owned(), text.to_owned());
    Some(writers::WriterSchema { schema_type, text, references: Vec::new() })
}

#[test]
fn a_message_is_found_where_the_schema_of_its_writer_has_it() {
    let table = Writers::default();
    let of_first = Protobuf::new(&set(), "p.M2", Prefix::Registered(None)).unwrap();
    let mut unprepared = Reader::new(&of_first, &part(), &table).unwrap();
    assert!(unprepared.has_writers() && !unprepared.prepare(Some(b"\x00\x00\x00\x00\x07\x00\x08\x05")));
    assert_eq!(table.missing(), [7]);
    table.add(7, schema("PROTOBUF", "syntax = \"proto3\"; package p; message M2 { int32 a = 1; }"));
    let nested = "syntax = \"proto3\"; package p; message New {} message M2 { int32 a = 1; string b = 9; }";
    table.add(8, schema("PROTOBUF", nested));
    table.add(9, schema("PROTOBUF", "syntax = \"proto3\"; package q; message M2 { int32 a = 1; }"));
    table.add(10, schema("AVRO", "\"int\""));
    table.add(11, schema("PROTOBUF", "message {"));
    table.add(12, None);
    for (bytes, wanted, why) in [
        (&b"\x00\x00\x00\x00\x07\x00\x08\x05"[..], Some(5), ""),
        (b"\x00\x00\x00\x00\x08\x02\x02\x08\x05", Some(5), ""),
        (b"\x00\x00\x00\x00\x08\x00\x08\x05", None, "another message of its schema"),
        (b"\x00\x00\x00\x00\x09\x00\x08\x05", None, "no message p.M2"),
        (b"\x00\x00\x00\x00\x0a\x00\x08\x05", None, "none of Protobuf"),
        (b"\x00\x00\x00\x00\x0b\x00\x08\x05", None, "cannot be compiled"),
        (b"\x00\x00\x00\x00\x0c\x00\x08\x05", None, "the registry does not have"),
        (b"\x08\x05", None, "does not begin with the id"),
    ] {
        let (read, damage) = registered(&table, bytes);
        assert_eq!(read, wanted, "{bytes:?}: {damage:?}");
        assert_eq!(damage.is_some(), wanted.is_none(), "{bytes:?}");
        assert!(damage.unwrap_or_default().contains(why), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn what_stands_before_a_message_is_read_as_it_was_written(id in any::<u32>(), indexes in proptest::collection::vec(0..300_i32, 1..4)) {
        let mut out = Vec::new();
        places::put(id, &indexes, &mut out);
        out.push(42);
        let (read, found, rest) = places::split(&out).unwrap();
        prop_assert_eq!((read, rest), (id, &[42_u8][..]));
        prop_assert!(found.are(&indexes));
        prop_assert!(!found.are(&[indexes.as_slice(), &[0]].concat()));
        let mut other = indexes.clone();
        other[0] += 1;
        prop_assert!(!found.are(&other));
    }
}

#[test]
fn a_message_is_known_by_its_full_name_or_the_last_part_of_it_and_its_fields_are_ddl() {
    assert_eq!(
        descriptor::ddl(&protobuf("M").message).unwrap(),
        "`id` bigint, `name` string, `many` array<int>, `part` struct<`a`: int, `b`: array<int>>, \
         `parts` array<struct<`a`: int, `b`: array<int>>>, `x` int, `y` struct<`a`: int, `b`: array<int>>, `at` timestamp, `e` string"
    );
    assert!(descriptor::ddl(&protobuf("p.M2.Self").message).unwrap_err().contains("p.M2.Self.again"));
    assert!(
        Protobuf::new(&set(), "p.N", Prefix::None).unwrap_err().contains("they have p.M, p.M2, p.M2.Self")
    );
    assert!(Protobuf::new(b"\xff", "p.N", Prefix::None).unwrap_err().contains("FileDescriptorSet"));
}

/// What is read, written and read again; `None` where it has a number that the enum has no name for.
fn again(array: &StructArray) -> Option<StructArray> {
    let protobuf = protobuf("p.M");
    let mut out = Vec::new();
    if let Err(why) = encode::Writer::new(&protobuf, array).unwrap().write(0, &mut out) {
        assert!(why.contains("the enum of p.M.e has no \"UNKNOWN_ENUM_VALUE_E_"), "{why}");
        return None;
    }
    let (again, damaged) = read(&protobuf, &all(), &out);
    assert!(!damaged, "{out:?}");
    Some(again)
}

/// Bytes that are often something of the message.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let field = (1_u8..12, 0_u8..6, proptest::collection::vec(any::<u8>(), 0..12)).prop_map(
        |(number, layout, bytes)| {
            let mut out = vec![number << 3 | layout];
            if layout == 2 {
                out.push(bytes.len() as u8);
            }
            out.extend(
                bytes.iter().map(|byte| if layout == 0 { byte & 0x7f } else { *byte }).take(if layout == 0 {
                    1
                } else {
                    12
                }),
            );
            out
        },
    );
    proptest::collection::vec(field, 0..8).prop_map(|fields| fields.concat())
}

proptest! {
    #[test]
    fn fuzz_any_bytes_make_one_row_that_is_written_and_read_as_it_was(bytes in prop_oneof![pieces(), proptest::collection::vec(any::<u8>(), 0..60)]) {
        let (array, damaged) = read(&protobuf("p.M"), &all(), &bytes);
        if let (false, Some(again)) = (damaged, again(&array)) {
            prop_assert_eq!(&again, &array);
        }
    }
}
