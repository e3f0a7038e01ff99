//! Arrow -> rows: every accepted type, every refusal in words, and the round trip through a record batch.
#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, NullArray, RecordBatch, StringArray,
    StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray,
};
use arrow_schema::{DataType, Field, Fields};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pylog_columnar::{BatchDecoder, Column, DecodeOptions, Row, RowError, RowSource};
use pylog_record::{BatchBuilder, Codec, batches};

type Headers = Option<Vec<(String, Option<Vec<u8>>)>>;

/// Columns, given topic, the sentence.
type Mistake = (Vec<(&'static str, ArrayRef)>, Option<&'static str>, &'static str);

fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, array)| (*name, array.clone(), true)))
        .unwrap()
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn rows<'a>(source: &RowSource<'a>) -> Result<Vec<Row<'a>>, RowError> {
    (0..source.len()).map(|row| source.row(row, &mut Vec::new())).collect()
}

fn refusal(columns: &[(&str, ArrayRef)], topic: Option<&str>) -> String {
    let table = table(columns);
    let error = match RowSource::new(&table, topic) {
        Ok(source) => rows(&source).map(|_| ()).unwrap_err(),
        Err(error) => error,
    };
    error.to_string()
}

fn values() -> (&'static str, ArrayRef) {
    ("value", array(BinaryArray::from_vec(vec![b"a", b"b"])))
}

#[test]
fn every_string_and_binary_type_gives_the_same_rows() {
    let text = [Some("grüße"), None, Some("")];
    let bytes = text.map(|text| text.map(str::as_bytes));
    let kinds = [
        array(StringArray::from_iter(text)),
        array(LargeStringArray::from_iter(text)),
        array(StringViewArray::from_iter(text)),
        array(BinaryArray::from_iter(bytes)),
        array(LargeBinaryArray::from_iter(bytes)),
        array(BinaryViewArray::from_iter(bytes)),
    ];
    for kind in kinds {
        let table = table(&[("value", kind.clone()), ("key", kind.clone())]);
        let source = RowSource::new(&table, Some("t")).unwrap();
        let seen: Vec<_> = rows(&source).unwrap().iter().map(|row| (row.key, row.value)).collect();
        assert_eq!(seen, bytes.map(|bytes| (bytes, bytes)), "{}", kind.data_type());
    }
}

#[test]
fn every_timestamp_unit_and_zone_becomes_milliseconds_rounded_down() {
    let kinds: [(ArrayRef, i64); 6] = [
        (array(TimestampSecondArray::from(vec![Some(-2), None])), -2000),
        (array(TimestampMillisecondArray::from(vec![Some(1), None])), 1),
        (array(TimestampMicrosecondArray::from(vec![Some(1999), None])), 1),
        (array(TimestampMicrosecondArray::from(vec![Some(-1), None]).with_timezone("Europe/Berlin")), -1),
        (array(TimestampNanosecondArray::from(vec![Some(5_999_999), None]).with_timezone("UTC")), 5),
        (array(TimestampSecondArray::from(vec![Some(i64::MAX), None])), i64::MAX),
    ];
    for (kind, wanted) in kinds {
        let table = table(&[values(), ("timestamp", kind.clone())]);
        let source = RowSource::new(&table, Some("t")).unwrap();
        let seen: Vec<_> = rows(&source).unwrap().iter().map(|row| row.timestamp_ms).collect();
        assert_eq!(seen, [Some(wanted), None], "{}", kind.data_type());
    }
}

#[test]
fn every_integer_width_names_a_partition_and_null_leaves_it_to_the_partitioner() {
    let kinds = [
        array(Int8Array::from(vec![Some(7), None])),
        array(Int16Array::from(vec![Some(7), None])),
        array(Int32Array::from(vec![Some(7), None])),
        array(Int64Array::from(vec![Some(7), None])),
    ];
    for kind in kinds {
        let table = table(&[values(), ("partition", kind)]);
        let source = RowSource::new(&table, Some("t")).unwrap();
        let seen: Vec<_> = rows(&source).unwrap().iter().map(|row| row.partition).collect();
        assert_eq!(seen, [Some(7), None]);
    }
}

#[test]
fn a_given_topic_wins_over_the_column() {
    let table = table(&[values(), ("topic", array(StringArray::from(vec![Some("x"), Some("y")])))]);
    let topics = |topic| {
        rows(&RowSource::new(&table, topic).unwrap())
            .unwrap()
            .iter()
            .map(|row| row.topic.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(topics(None), ["x", "y"]);
    assert_eq!(topics(Some("given")), ["given", "given"]);
}

#[test]
fn a_column_of_type_null_is_as_if_each_row_were_null() {
    let nulls = || array(NullArray::new(2));
    let columns = ["value", "key", "partition", "headers", "timestamp"].map(|name| (name, nulls()));
    let table = table(&columns);
    let source = RowSource::new(&table, Some("t")).unwrap();
    let empty = Row { topic: "t", partition: None, key: None, value: None, timestamp_ms: None };
    assert_eq!(rows(&source).unwrap(), [empty; 2]);
}

#[test]
fn each_mistake_is_one_sentence_that_says_what_to_do() {
    let floats = || array(Float64Array::from(vec![1.0, 2.0]));
    let bools = || array(BooleanArray::from(vec![true, false]));
    let cases: Vec<Mistake> = vec![
        (
            vec![("key", values().1)],
            Some("t"),
            "the data has no column \"value\"; select one, e.g. to_json(struct(*)) as value",
        ),
        (vec![values()], None, "no topic to write to: set the option \"topic\" or add a column \"topic\""),
        (
            vec![values(), ("topic", array(StringArray::from(vec![Some("x"), None])))],
            None,
            "row 1 has a null \"topic\"; set the option \"topic\" or fill the column",
        ),
        (
            vec![("value", floats())],
            Some("t"),
            "column \"value\" has type Float64, it must be binary or string",
        ),
        (
            vec![values(), ("key", bools())],
            Some("t"),
            "column \"key\" has type Boolean, it must be binary or string",
        ),
        (vec![values(), ("topic", values().1)], None, "column \"topic\" has type Binary, it must be string"),
        (
            vec![values(), ("partition", floats())],
            Some("t"),
            "column \"partition\" has type Float64, it must be int (8, 16, 32 or 64 bits)",
        ),
        (
            vec![values(), ("timestamp", array(Int64Array::from(vec![1, 2])))],
            Some("t"),
            "column \"timestamp\" has type Int64, it must be timestamp",
        ),
        (
            vec![values(), ("headers", values().1)],
            Some("t"),
            "column \"headers\" has type Binary, it must be array<struct<key: string, value: binary>>",
        ),
        (
            vec![values(), ("partition", array(Int64Array::from(vec![0, 1 << 32])))],
            Some("t"),
            "row 1 has partition 4294967296; it must be null or from 0 to the topic's partitions - 1",
        ),
        (
            vec![values(), ("partition", array(Int32Array::from(vec![-1, 0])))],
            Some("t"),
            "row 0 has partition -1; it must be null or from 0 to the topic's partitions - 1",
        ),
    ];
    for (columns, topic, sentence) in cases {
        assert_eq!(refusal(&columns, topic), sentence);
    }
}

fn headers_array(rows: &[Headers], with_null_key: bool) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ]);
    let items =
        StructBuilder::new(fields, vec![Box::new(StringBuilder::new()), Box::new(BinaryBuilder::new())]);
    let mut lists = ListBuilder::new(items);
    for row in rows {
        for (key, value) in row.iter().flatten() {
            let key = if with_null_key { None } else { Some(key) };
            lists.values().field_builder::<StringBuilder>(0).unwrap().append_option(key);
            lists.values().field_builder::<BinaryBuilder>(1).unwrap().append_option(value.as_deref());
            lists.values().append(true);
        }
        lists.append(row.is_some());
    }
    array(lists.finish())
}

#[test]
fn a_header_without_key_is_refused() {
    let headers = headers_array(&[None, Some(vec![("k".to_owned(), None)])], true);
    let sentence = refusal(&[values(), ("headers", headers)], Some("t"));
    assert_eq!(sentence, "row 1 has a header without key; every header needs a key");
}

#[derive(Debug, Clone)]
struct Input {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp_ms: i64,
    headers: Headers,
}

fn input() -> impl Strategy<Value = Input> {
    let bytes = |max| option::of(vec(any::<u8>(), 0..max));
    // Without headers is null: an empty list comes back as null, as from Spark's connector.
    let headers = option::of(vec(("\\PC{0,8}", bytes(8)), 1..4));
    (bytes(20), bytes(200), -1..4_000_000_000_000_i64, headers)
        .prop_map(|(key, value, timestamp_ms, headers)| Input { key, value, timestamp_ms, headers })
}

fn to_arrow(inputs: &[Input]) -> RecordBatch {
    let times = TimestampMicrosecondArray::from_iter_values(inputs.iter().map(|row| row.timestamp_ms * 1000));
    let headers: Vec<_> = inputs.iter().map(|row| row.headers.clone()).collect();
    table(&[
        ("key", array(BinaryArray::from_iter(inputs.iter().map(|row| row.key.as_deref())))),
        ("value", array(BinaryArray::from_iter(inputs.iter().map(|row| row.value.as_deref())))),
        ("timestamp", array(times.with_timezone("UTC"))),
        ("headers", headers_array(&headers, false)),
    ])
}

fn through_a_batch(table: &RecordBatch, codec: Codec) -> Vec<u8> {
    let source = RowSource::new(table, Some("t")).unwrap();
    let (mut builder, mut headers) = (BatchBuilder::new(), Vec::new());
    for row in 0..source.len() {
        source.row(row, &mut headers).unwrap().append_to(&mut builder, &headers, 0).unwrap();
    }
    builder.finish(codec).unwrap()
}

proptest! {
    #[test]
    fn rows_come_back_from_a_record_batch_as_they_were(
        inputs in vec(input(), 1..40),
        codec in proptest::sample::select(Codec::ALL.to_vec()),
        skip in 0..40_usize,
    ) {
        let columns = [Column::Key, Column::Value, Column::Timestamp, Column::Headers];
        let table = to_arrow(&inputs);
        let log = through_a_batch(&table, codec);
        let mut decoder = BatchDecoder::new(&columns, "t", 0, 0..i64::MAX, DecodeOptions::default());
        decoder.push(&batches(&log).next().unwrap().unwrap()).unwrap();
        let back = decoder.flush().unwrap().unwrap();
        for (at, column) in columns.iter().enumerate().take(3) {
            prop_assert_eq!(back.column(at).as_ref(), table.column_by_name(column.name()).unwrap().as_ref());
        }
        // The names of list items differ, so headers are compared once more through a batch; so is a slice.
        prop_assert_eq!(&through_a_batch(&back, codec), &log);
        let skip = skip % inputs.len();
        let (left, wanted) = (inputs.len() - skip, to_arrow(&inputs[skip..]));
        prop_assert_eq!(through_a_batch(&table.slice(skip, left), codec), through_a_batch(&wanted, codec));
    }
}
