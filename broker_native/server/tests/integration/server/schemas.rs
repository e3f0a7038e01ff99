//! Topics whose records must name schemas that the registry has: what is refused, what is asked first, what costs nothing.
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pylog_record::{BatchBuilder, Codec};
use pylog_storage::LogConfig;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceResponse;
use pylog_wire::messages::produce::PartitionProduceResponse;

use crate::server::support::{Broker, produce_request, topic};

const LONG: Duration = Duration::from_secs(60);

/// A broker with a topic whose values are checked.
fn checking() -> Broker {
    let mut checked = topic("orders", 1);
    checked.config = LogConfig { value_schema_validation: true, ..LogConfig::default() };
    Broker::serving(checked).0
}

/// A value of a schema.
fn of(schema: i32) -> Vec<u8> {
    [&[0][..], &schema.to_be_bytes(), b"the rest"].concat()
}

/// A batch of an idempotent producer.
fn batch(sequence: i32, values: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for value in values {
        builder.append(0, None, Some(value), &[]).unwrap();
    }
    builder.set_producer(7, 0, sequence);
    builder.finish(Codec::Lz4).unwrap()
}

fn sent(broker: &Broker, batch: Vec<u8>) -> (ErrorCode, PartitionProduceResponse) {
    let mut answer: ProduceResponse = broker.client().call(&produce_request("orders", 0, batch, -1), 9);
    let answer = answer.responses.remove(0).partition_responses.remove(0);
    (ErrorCode::from_code(answer.error_code).unwrap(), answer)
}

#[test]
fn a_batch_with_a_record_of_no_known_schema_is_refused_by_name_and_leaves_no_trace() {
    let broker = checking();
    let registry = &broker.server.shared().schema_ids;
    registry.begin();
    registry.set("orders-value".into(), HashSet::from([3]));
    let (error, answer) = sent(&broker, batch(0, &[of(3), b"text".to_vec(), of(3), Vec::new()]));
    assert_eq!(error, ErrorCode::InvalidRecord);
    assert_eq!(answer.record_errors.iter().map(|named| named.batch_index).collect::<Vec<_>>(), [1, 3]);
    let named = answer.record_errors[0].batch_index_error_message.as_deref().unwrap_or_default();
    assert!(named.contains("does not begin with the id of a schema of subject orders-value"), "{named}");
    assert!(answer.error_message.is_some_and(|sentence| sentence.contains("orders-0")));
    // The producer's sequence goes on where it was, and nothing was written.
    let (error, answer) = sent(&broker, batch(0, &[of(3)]));
    assert_eq!((error, answer.base_offset), (ErrorCode::None, 0));
    registry.set("orders-value".into(), HashSet::new());
    let (error, _) = sent(&broker, batch(1, &[b"text".to_vec()]));
    assert_eq!(error, ErrorCode::InvalidRecord);
}

#[test]
fn a_schema_that_is_not_known_is_looked_for_before_the_record_is_refused() {
    let broker = checking();
    broker.server.shared().schema_ids.begin();
    let shared = Arc::clone(broker.server.shared());
    let registry = std::thread::spawn(move || {
        for ids in [HashSet::from([5]), HashSet::from([5])] {
            let question = shared.schema_ids.next_question(LONG).unwrap();
            shared.schema_ids.set("orders-value".into(), ids);
            shared.schema_ids.answer(question);
        }
    });
    assert_eq!(sent(&broker, batch(0, &[of(5)])).0, ErrorCode::None);
    let (error, answer) = sent(&broker, batch(1, &[of(5), of(6)]));
    assert_eq!(error, ErrorCode::InvalidRecord);
    assert_eq!(answer.record_errors[0].batch_index, 1);
    registry.join().unwrap();
    // What is known is asked for no more.
    assert_eq!(sent(&broker, batch(1, &[of(5)])).0, ErrorCode::None);
    assert_eq!(broker.server.shared().schema_ids.next_question(Duration::ZERO), None);
}

#[test]
fn without_a_registry_nothing_is_taken_and_while_it_does_not_answer_the_error_is_retriable() {
    let broker = checking();
    let (error, answer) = sent(&broker, batch(0, &[of(3)]));
    assert_eq!(error, ErrorCode::PolicyViolation);
    assert!(answer.error_message.is_some_and(|sentence| sentence.contains("--schema-registry")));
    broker.server.shared().schema_ids.begin();
    assert_eq!(sent(&broker, batch(0, &[of(3)])).0, ErrorCode::RequestTimedOut);
    // What names no schema at all needs no answer.
    assert_eq!(sent(&broker, batch(0, &[b"text".to_vec()])).0, ErrorCode::InvalidRecord);
}
