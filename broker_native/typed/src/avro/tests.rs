//! Hostile datums and schemas; that what is read is right is compared with `from_avro` (`tests/typed`).
use super::*;
use arrow_schema::{Field, Fields};
use proptest::prelude::*;

use super::cursor::DEPTH_MAX;
use super::decode::EMPTY_ITEMS_MAX;
use super::defaults::long;

fn of(schema: &str) -> Avro {
    Avro { schema: Some(Arc::new(Schema::parse(schema, []).unwrap())), registered: false, id: None }
}

fn one(name: &str, kind: DataType) -> DataType {
    DataType::Struct(Fields::from(vec![Field::new(name, kind, true)]))
}

fn list(kind: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", kind, true)))
}

/// What is wrong with a datum, and how many cells of the room it took.
fn damage(schema: &str, wanted: DataType, datum: &[u8]) -> (Option<String>, usize) {
    let mut reader = Reader::new(&of(schema), &wanted, false, &Writers::default()).unwrap();
    let mut column = Column::new(&Field::new("value", wanted, true)).unwrap();
    let mut room = Room::default();
    let before = room.left;
    let found = reader.read(&mut column, datum, &mut room);
    assert_eq!(column.len(), 1);
    column.finish().unwrap();
    (found.map(|damage| damage.to_string()), before - room.left)
}

fn varints(numbers: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.iter().for_each(|number| long(&mut out, *number));
    out
}

const NULLS: &str = r#"{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"null"}},{"name":"b","type":"int"}]}"#;
const LONGS: &str = r#"{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"long"}},{"name":"b","type":"int"}]}"#;
const TREE: &str = r#"{"type":"record","name":"T","fields":[{"name":"next","type":["null","T"]},{"name":"b","type":"int"}]}"#;

#[test]
fn a_list_that_claims_2_to_60_items_is_damage_and_takes_no_memory() {
    for count in [1 << 60, i64::MAX, i64::MIN, -(1 << 60)] {
        let datum = varints(&[count, 1 << 61, 0, 0]);
        for (schema, kind) in [(NULLS, DataType::Null), (LONGS, DataType::Int64)] {
            let (found, taken) = damage(schema, one("a", list(kind)), &datum);
            assert!(found.is_some() && taken == 0, "{count} {schema}");
        }
    }
}

#[test]
fn a_list_of_items_without_bytes_has_a_bound_of_its_own_and_is_passed_over_at_once() {
    let most = i64::try_from(EMPTY_ITEMS_MAX).unwrap();
    let nulls = one("a", list(DataType::Null));
    assert_eq!(damage(NULLS, nulls.clone(), &varints(&[most, 0, 7])).0, None);
    let (found, _) = damage(NULLS, nulls, &varints(&[most, 1, 0, 7]));
    assert_eq!(found.unwrap(), "has a list of more empty items than one may have");
    assert_eq!(damage(NULLS, one("b", DataType::Int32), &varints(&[1 << 60, 0, 7])).0, None);
}

#[test]
fn a_datum_that_is_nested_without_end_is_damage() {
    let depth = i64::try_from(DEPTH_MAX).unwrap();
    let deep = |depth: i64| {
        let mut numbers = vec![1; usize::try_from(depth).unwrap()];
        numbers.push(0);
        numbers.extend(vec![5; usize::try_from(depth + 1).unwrap()]);
        varints(&numbers)
    };
    let wanted = one("b", DataType::Int32);
    assert_eq!(damage(TREE, wanted.clone(), &deep(depth / 2 - 1)).0, None);
    assert_eq!(damage(TREE, wanted, &deep(1_000_000)).0.unwrap(), "is nested too deep");
}

#[test]
fn a_schema_of_few_bytes_whose_types_hold_each_other_twice_costs_nothing() {
    let mut schema = r#"{"type":"record","name":"R0","fields":[]}"#.to_owned();
    for depth in 1..38 {
        schema = format!(
            r#"{{"type":"record","name":"R{depth}","fields":[{{"name":"a","type":{schema}}},{{"name":"b","type":"R{}","default":{{}}}}]}}"#,
            depth - 1
        );
    }
    let schema = format!(
        r#"{{"type":"record","name":"R","fields":[{{"name":"s","type":{schema}}},{{"name":"i","type":"int"}}]}}"#
    );
    assert_eq!(damage(&schema, one("i", DataType::Int32), &[2]).0, None);
    assert_eq!(damage(&schema, one("i", DataType::Int32), &[]).0.unwrap(), "is no datum of its Avro schema");
}

#[test]
fn what_is_nested_too_deep_or_names_nothing_is_no_schema() {
    let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(101), "}".repeat(101));
    for text in [&deep, "", "{}", "[]x", "\"R\"", r#"{"type":"fixed","name":"F","size":-1}"#, r#"[["int"]]"#]
    {
        assert!(Schema::parse(text, []).is_err(), "{text}");
    }
}

const ALL: &str = r#"{"type":"record","name":"R","fields":[
    {"name":"a","type":{"type":"array","items":["null","long",{"type":"map","values":"string"}]}},
    {"name":"m","type":{"type":"map","values":{"type":"array","items":"int"}}},
    {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":30,"scale":2}},
    {"name":"e","type":{"type":"enum","name":"E","symbols":["x","y"]}},
    {"name":"t","type":"R2"},
    {"name":"f","type":{"type":"fixed","name":"F","size":3}},
    {"name":"u","type":["null","double",{"type":"array","items":"boolean"}]}]}"#;

fn everything() -> (Avro, DataType) {
    let avro = Avro {
        schema: Some(Arc::new(Schema::parse(ALL, [TREE.replace("\"T\"", "\"R2\"").as_str()]).unwrap())),
        registered: false,
        id: None,
    };
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let map = |value: DataType| {
        let pair = vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)];
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false)
    };
    let member = |one: DataType, two: DataType| {
        DataType::Struct(vec![Field::new("member0", one, true), Field::new("member1", two, true)].into())
    };
    let fields = vec![
        Field::new("a", list(member(DataType::Int64, map(DataType::Utf8))), true),
        Field::new("m", map(list(DataType::Int32)), true),
        Field::new("d", DataType::Decimal128(30, 2), true),
        text("e"),
        Field::new("f", DataType::Binary, true),
        Field::new("u", member(DataType::Float64, list(DataType::Boolean)), true),
    ];
    (avro, DataType::Struct(fields.into()))
}

proptest! {
    #[test]
    fn random_bytes_are_a_row_or_damage(datums in proptest::collection::vec(proptest::collection::vec(
        prop_oneof![3 => 0u8..8, 1 => any::<u8>()], 0..80), 1..20)) {
        let (avro, wanted) = everything();
        let mut reader = Reader::new(&avro, &wanted, false, &Writers::default()).unwrap();
        let mut column = Column::new(&Field::new("value", wanted, true)).unwrap();
        let mut room = Room::default();
        for datum in &datums {
            reader.read(&mut column, datum, &mut room);
        }
        prop_assert_eq!(column.finish().unwrap().len(), datums.len());
    }

    #[test]
    fn a_random_text_is_a_schema_or_none(text in r#"[\[\]{}":,a-z0-9 ]{0,60}"#) {
        let is_schema = Schema::parse(&text, []).is_ok();
        prop_assert!(!is_schema || serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
