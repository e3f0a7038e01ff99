use super::*;
use arrow_schema::{DataType, Field, Fields};
use std::sync::Arc;

use crate::column::MAX_CELLS;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn root(fields: Vec<Field>) -> Column {
    Column::new(&field("value", DataType::Struct(Fields::from(fields)))).unwrap()
}

/// What a record becomes, as Arrow shows it, and whether it is damaged.
fn shown(fields: Vec<Field>, text: &str) -> (String, bool) {
    let mut root = root(fields);
    let damage = read(&mut root, text.as_bytes(), &mut Room::default());
    let array = root.finish().unwrap();
    assert_eq!(array.len(), 1);
    (
        format!(
            "{:?}",
            array
                .to_data()
                .child_data()
                .iter()
                .map(|child| arrow_array::make_array(child.clone()))
                .collect::<Vec<_>>()
        ),
        damage.is_some(),
    )
}

#[test]
fn a_column_of_texts_gets_what_is_no_text_in_the_way_of_jackson() {
    for (json, wanted) in [
        ("1.10", "1.1"),
        ("1e3", "1000.0"),
        ("12345678901234567890", "12345678901234567890"),
        ("1e400", "\"Infinity\""),
        ("0.1e-9", "1.0E-10"),
        ("123456789.125", "1.23456789125E8"),
        ("1e8", "1.0E8"),
        ("true", "true"),
        ("[1, 2.50, \"x\\u0001\\n/\\\"é\"]", "[1,2.5,\"x\\u0001\\n/\\\"é\"]"),
        ("{\"k\" : null , \"z\":[], \"y\":{}}", "{\"k\":null,\"z\":[],\"y\":{}}"),
        ("[1e2,NaN,-Infinity]", "[100.0,\"NaN\",\"-Infinity\"]"),
        ("'x\\'y'", "x'y"),
        ("\"\\u00e9\\/\"", "é/"),
    ] {
        let mut column = root(vec![field("a", DataType::Utf8)]);
        let text = format!("{{\"a\":{json}}} behind");
        assert_eq!(read(&mut column, text.as_bytes(), &mut Room::default()), None, "{json}");
        let array = column.finish().unwrap();
        let array = arrow_array::make_array(array.to_data().child_data()[0].clone());
        assert_eq!(arrow_array::cast::AsArray::as_string::<i32>(&array).value(0), wanted);
    }
}

#[test]
fn an_integer_is_never_a_negative_zero() {
    let shown = |json: &str| {
        let fields = vec![field("a", DataType::Float64), field("b", DataType::Float32)];
        shown(fields, &format!("{{\"a\":{json},\"b\":{json}}}"))
    };
    assert_eq!(shown("-0"), shown("0"));
    assert_eq!(shown("-0.0"), shown("-0e1"));
    assert_ne!(shown("-0.0"), shown("0"));
}

#[test]
fn what_does_not_fit_is_null_and_the_other_columns_keep_their_values() {
    let fields = || vec![field("a", DataType::Int32), field("b", DataType::Int32)];
    let plain = shown(fields(), r#"{"a":1,"c":[{}],"b":2}"#);
    assert!(!plain.1);
    assert_eq!(shown(fields(), r#"{"b":2,"a":9,"a":1}"#), plain);
    for (json, same) in [
        (r#"{"a":"1","b":2}"#, r#"{"b":2}"#),
        (r#"{"a":{"b":7},"b":2}"#, r#"{"b":2}"#),
        (r#"{"a":1,"b":2.0}"#, r#"{"a":1}"#),
        (r#"{"a":1,"b":3000000000}"#, r#"{"a":1}"#),
        (r#"{"a":1,"b":2"#, "{}"),
        (r#"{"a":1,"b":tru}"#, "{}"),
        (r#"{a:1}"#, "{}"),
        (r#"[{"a":1}]"#, "{}"),
        ("null", "{}"),
    ] {
        let (columns, damaged) = shown(fields(), json);
        assert!(damaged, "{json}");
        assert_eq!(columns, shown(fields(), same).0, "{json}");
    }
}

#[test]
fn a_list_or_map_with_one_value_that_does_not_fit_is_null() {
    let item = Arc::new(field("element", DataType::Int32));
    let fields = || vec![field("a", DataType::List(item.clone())), field("b", DataType::Int32)];
    let (columns, damaged) = shown(fields(), r#"{"a":[1,"x",{"b":5},[2]],"b":3}"#);
    assert!(damaged);
    assert_eq!(columns, shown(fields(), r#"{"b":3}"#).0);
}

#[test]
fn a_record_that_opens_to_more_than_its_room_is_damaged() {
    let wide = (0..1000).map(|number| field(&format!("f{number}"), DataType::Int64)).collect::<Vec<_>>();
    let item = Arc::new(field("element", DataType::Struct(Fields::from(wide))));
    let mut column = root(vec![field("a", DataType::List(item))]);
    let text = format!("{{\"a\":[{}{{}}]}}", "{},".repeat(MAX_CELLS / 1000));
    let mut room = Room { left: MAX_CELLS / 100 };
    let damage = read(&mut column, text.as_bytes(), &mut room).unwrap();
    assert_eq!(damage.what, "opens to more values than a batch may have");
    assert_eq!(column.len(), 1);
}

proptest::proptest! {
    #[test]
    fn each_record_is_one_row_whatever_its_bytes_are(records: Vec<Vec<u8>>) {
        let item = Arc::new(field("element", DataType::Utf8));
        let mut column = root(vec![field("a", DataType::List(item)), field("b", DataType::Float64)]);
        for (row, record) in records.iter().enumerate() {
            read(&mut column, record, &mut Room::default());
            proptest::prop_assert_eq!(column.len(), row + 1);
        }
        proptest::prop_assert_eq!(column.finish().unwrap().len(), records.len());
    }
}
