//! The table of APIs and the table of error codes.
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages as theirs;

use crate::api::TABLE;
use crate::{ApiKey, ErrorCode, Message, messages};

#[test]
fn every_api_in_the_table_is_under_its_own_number_and_in_order() {
    assert!(TABLE.windows(2).all(|pair| pair[0].key.code() < pair[1].key.code()));
    for info in TABLE {
        assert_eq!(ApiKey::from_code(info.key.code()), Some(info.key));
        assert_eq!(info.key.info(), *info);
        assert!(info.min <= info.max && info.advertised_max <= info.max, "{}", info.key.name());
        assert!(info.supports(info.min) && info.supports(info.max) && !info.supports(info.max + 1));
        let theirs = theirs::ApiKey::try_from(info.key.code()).expect("the oracle has every API");
        assert_eq!(format!("{theirs:?}"), info.key.name(), "same name for the same number");
    }
}

#[test]
fn header_versions_are_the_oracles_in_every_version() {
    for info in TABLE {
        let theirs = theirs::ApiKey::try_from(info.key.code()).expect("the oracle has every API");
        for version in info.min..=info.max {
            let flexible = theirs.request_header_version(version) == 2;
            assert_eq!(info.is_flexible(version), flexible, "{} v{version}", info.key.name());
        }
    }
}

#[test]
fn old_produce_versions_are_advertised_but_have_no_layout() {
    // librdkafka sends uncompressed to a broker that does not advertise version 0 (KAFKA-18659).
    let produce = ApiKey::Produce.info();
    assert_eq!((produce.advertisement().min_version, produce.advertisement().max_version), (0, 13));
    assert!(!produce.supports(0) && messages::ProduceRequest::version(0).is_err());
}

#[test]
fn error_codes_are_kafkas_without_a_gap() {
    for (index, error) in ErrorCode::ALL.iter().enumerate() {
        assert_eq!(error.code(), index as i16 - 1, "{}", error.name());
        assert_eq!(ErrorCode::from_code(error.code()), Some(*error));
    }
    assert_eq!(ErrorCode::ALL.len(), 138, "-1 to 136, as in Kafka 4.4");
    assert_eq!(ErrorCode::from_code(137), None);
    assert_eq!(i16::from(ErrorCode::UnsupportedVersion), 35);
}

/// Codes whose exceptions became RetriableExceptions after the oracle's table was written.
const NEWLY_RETRIABLE: &[&str] = &["CONCURRENT_TRANSACTIONS"];

#[test]
fn error_names_and_retriability_agree_with_the_oracle() {
    let (mut compared, mut differing) = (0, Vec::new());
    for error in ErrorCode::ALL.iter().filter(|e| e.code() > 0) {
        let Some(theirs) = ResponseError::try_from_code(error.code()) else { continue };
        if matches!(theirs, ResponseError::Unknown(_)) {
            continue;
        }
        let camel = format!("{theirs:?}").to_lowercase();
        assert_eq!(error.name().replace('_', "").to_lowercase(), camel, "code {}", error.code());
        if error.is_retriable() != theirs.is_retriable() {
            differing.push(error.name());
        }
        compared += 1;
    }
    assert_eq!(differing, NEWLY_RETRIABLE);
    assert!(compared > 110, "only {compared} codes were compared");
}

#[test]
fn every_error_is_one_sentence() {
    for error in ErrorCode::ALL {
        let sentence = error.sentence();
        assert!(sentence.ends_with('.') && sentence.len() < 160, "{}: {sentence}", error.name());
        assert!(!sentence[..sentence.len() - 1].contains(". "), "{}: {sentence}", error.name());
    }
}
