//! Bytes of somebody who means harm or speaks something else: an error, never a panic, never much memory.
//!
//! Allocations are counted in `tests/hostile_lengths.rs`, which has the process for itself.
use bytes::Bytes;
use proptest::prelude::*;

use super::for_each_api;
use crate::messages as ours;
use crate::messages::MetadataRequest;
use crate::reader::{MAX_ELEMENTS, MAX_TAGGED_FIELDS, MEMORY_LIMIT_BYTES};
use crate::sample::{Entropy, Sample};
use crate::{Message, Reader, WireError, Writer};

fn encoded<T: Message>(value: &T, version: i16) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer, version).expect("encodes");
    writer.into_bytes().to_vec()
}

fn decoded<T: Message>(bytes: &[u8], version: i16) -> Result<T, WireError> {
    let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
    let value = T::decode(&mut reader, version)?;
    reader.finish().map(|()| value)
}

/// What decodes, whatever it came from, encodes and decodes to itself.
fn is_error_or_stable<T: Message + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    for version in T::API.min..=T::API.max {
        if let Ok(value) = decoded::<T>(bytes, version) {
            assert_eq!(decoded::<T>(&encoded(&value, version), version), Ok(value), "{} v{version}", T::NAME);
        }
    }
}

/// Changes bytes of valid messages, at `places` (position, value).
fn mutated_is_error_or_stable<T>(bytes: &[u8], places: &[(usize, u8)])
where
    T: Message + Sample + PartialEq + std::fmt::Debug,
{
    for number in T::API.min..=T::API.max {
        let version = T::version(number).expect("in the table");
        let mut wire = encoded(&T::sample(&mut Entropy::new(bytes), version), number);
        for &(place, byte) in places {
            let len = wire.len();
            if let Some(target) = wire.get_mut(place % len.max(1)) {
                *target = byte;
            }
        }
        is_error_or_stable::<T>(&wire);
    }
}

/// No part of a message is a message.
fn cut_is_an_error<T: Message + Sample + std::fmt::Debug>(bytes: &[u8]) {
    for number in T::API.min..=T::API.max {
        let version = T::version(number).expect("in the table");
        let wire = encoded(&T::sample(&mut Entropy::new(bytes), version), number);
        for len in 0..wire.len() {
            let result = decoded::<T>(&wire[..len], number);
            assert!(result.is_err(), "{} v{number} cut at {len} of {}: {result:?}", T::NAME, wire.len());
        }
    }
}

/// 64 in the suite; PROPTEST_CASES sets another number for long runs.
fn fuzz_cases() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(given.unwrap_or(64))
}

macro_rules! hostile {
    ($api:ident, $request:ident, $response:ident) => {
        #[allow(non_snake_case)]
        mod $api {
            use super::*;
            proptest! {
                #![proptest_config(fuzz_cases())]
                #[test]
                fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
                    is_error_or_stable::<ours::$request>(&bytes);
                    is_error_or_stable::<ours::$response>(&bytes);
                }
                #[test]
                fn mutated_messages_never_panic(
                    bytes in prop::collection::vec(any::<u8>(), 0..300),
                    places in prop::collection::vec((any::<usize>(), any::<u8>()), 1..5),
                ) {
                    mutated_is_error_or_stable::<ours::$request>(&bytes, &places);
                    mutated_is_error_or_stable::<ours::$response>(&bytes, &places);
                }
            }
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(8))]
                #[test]
                fn a_message_cut_anywhere_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
                    cut_is_an_error::<ours::$request>(&bytes);
                    cut_is_an_error::<ours::$response>(&bytes);
                }
            }
        }
    };
}
for_each_api!(hostile);

#[test]
fn a_count_that_the_frame_cannot_hold_is_refused_before_its_elements() {
    // The five bytes that abort the `kafka-protocol` 0.18 decoder.
    let refusal = decoded::<MetadataRequest>(&[0x7f, 0xff, 0xff, 0xf0, 0x01], 8).expect_err("hostile");
    assert_eq!(refusal, WireError::Length { at: 0, claimed: 0x7fff_fff0, left: 1 });
    let compact = decoded::<MetadataRequest>(&[0xf0, 0xff, 0xff, 0xff, 0x07, 0], 9).expect_err("hostile");
    assert_eq!(compact, WireError::Length { at: 0, claimed: 0x7fff_ffef, left: 1 });
    // Ten topics of two bytes do not fit into ten bytes.
    let ten = [&10i32.to_be_bytes()[..], &[0; 10]].concat();
    let refusal = decoded::<MetadataRequest>(&ten, 0).expect_err("hostile");
    assert_eq!(refusal, WireError::Length { at: 0, claimed: 10, left: 10 });
}

#[test]
fn a_length_below_minus_one_is_refused_and_minus_one_only_where_null_is_allowed() {
    let minus_two = decoded::<MetadataRequest>(&(-2i32).to_be_bytes(), 1).expect_err("hostile");
    assert_eq!(minus_two, WireError::Length { at: 0, claimed: -2, left: 0 });
    let null = (-1i32).to_be_bytes();
    assert_eq!(decoded::<MetadataRequest>(&null, 1).expect("null is all").topics, None);
    let refusal = decoded::<MetadataRequest>(&null, 0).expect_err("no null in version 0");
    assert_eq!(refusal, WireError::Null { field: "topics", version: 0 });
}

#[test]
fn a_megabyte_of_empty_names_is_refused_when_it_would_need_more_memory_than_allowed() {
    let count = MEMORY_LIMIT_BYTES / size_of::<ours::metadata::MetadataRequestTopic>() + 1;
    let mut wire = i32::try_from(count).expect("fits").to_be_bytes().to_vec();
    wire.resize(4 + 2 * count, 0);
    let refusal = decoded::<MetadataRequest>(&wire, 0).expect_err("hostile");
    assert_eq!(refusal, WireError::Memory { at: 4, limit_bytes: MEMORY_LIMIT_BYTES });
}

#[test]
fn more_elements_or_tagged_fields_than_kafka_takes_are_refused_though_the_frame_holds_them() {
    let mut wire = i32::try_from(MAX_ELEMENTS + 1).expect("fits").to_be_bytes().to_vec();
    wire.resize(4 + 2 * (MAX_ELEMENTS + 1), 0);
    let refusal = decoded::<MetadataRequest>(&wire, 0).expect_err("hostile");
    assert_eq!(refusal, WireError::TooMany { at: 0, claimed: MAX_ELEMENTS + 1, most: MAX_ELEMENTS });
    // 10,001 in seven bits each, then that many tags without bytes.
    let mut tags = vec![0, 0, 0, 0x91, 0x4e];
    tags.extend([0x21, 0].repeat(MAX_TAGGED_FIELDS + 1));
    let refusal = decoded::<MetadataRequest>(&tags, 12).expect_err("hostile");
    assert_eq!(
        refusal,
        WireError::TooMany { at: 3, claimed: MAX_TAGGED_FIELDS + 1, most: MAX_TAGGED_FIELDS }
    );
}

#[test]
fn unknown_tagged_fields_are_skipped_and_wrong_sizes_refused() {
    let body = |tags: &[u8]| [&[0, 0, 0][..], tags].concat();
    let request = decoded::<MetadataRequest>(&body(&[1, 0x21, 2, 9, 9]), 12).expect("an unknown tag");
    assert_eq!(request.topics, None);
    let too_long = decoded::<MetadataRequest>(&body(&[1, 0x21, 3, 9, 9]), 12).expect_err("hostile");
    assert_eq!(too_long, WireError::Length { at: 5, claimed: 3, left: 2 });
    // ApiVersionsResponse's tag 1 is an int64; five bytes follow its announced eight.
    let epoch = [&[0, 0, 1, 0, 0, 0, 0, 1, 1, 9][..], &[0; 9]].concat();
    let left_over = decoded::<ours::ApiVersionsResponse>(&epoch, 3).expect_err("hostile");
    assert_eq!(left_over, WireError::Trailing { at: 18, left: 1 });
}

#[test]
fn a_varint_of_more_than_32_bits_is_refused() {
    let refusal = decoded::<MetadataRequest>(&[0xff, 0xff, 0xff, 0xff, 0x1f], 9).expect_err("hostile");
    assert_eq!(refusal, WireError::Varint { at: 0 });
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let refusal = decoded::<MetadataRequest>(&[0, 0, 0, 1, 0, 2, 0xc3, 0x28], 0).expect_err("hostile");
    assert_eq!(refusal, WireError::Utf8 { at: 6 });
}

#[test]
fn text_longer_than_its_length_field_is_refused_when_written() {
    let name = Some("x".repeat(40_000));
    let topics = Some(vec![ours::metadata::MetadataRequestTopic { name, ..Default::default() }]);
    let request = MetadataRequest { topics, ..Default::default() };
    let refusal = request.encode(&mut Writer::new(), 8).expect_err("16 bits");
    assert_eq!(refusal, WireError::TooLong { len: 40_000, max: 32_767 });
}
