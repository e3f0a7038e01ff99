//! What a writer makes of brokers that refuse, forget or delay its batches.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::fake::{Answer, Asked, FakeBroker, metadata};
use crate::error::Result;
use crate::write::accumulator::Row;
use crate::write::delivery::Delivered;
use crate::write::producer::Producer;
use pylog_record::{BatchHeader, batches, records};
use pylog_wire::AnyRequest;
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::{PartitionProduceResponse, TopicProduceResponse};
use pylog_wire::messages::{InitProducerIdResponse, ProduceRequest, ProduceResponse};

/// What the broker saw of a batch: base sequence and values' first bytes.
type Seen = Arc<Mutex<Vec<(i32, Vec<u8>)>>>;

fn seen_batch(request: &ProduceRequest) -> (i32, Vec<u8>) {
    let bytes = request.topic_data[0].partition_data[0].records.clone().unwrap();
    let (header, batch): (BatchHeader, &[u8]) = batches(&bytes).next().unwrap().unwrap();
    let body = pylog_record::batches::body(batch);
    let values = records(body, &header).map(|record| record.unwrap().value.unwrap()[0]).collect();
    (header.base_sequence, values)
}

fn produced(asked: &Asked, request: &ProduceRequest, error: ErrorCode, base_offset: i64) -> Answer {
    let topic = &request.topic_data[0];
    let partition = PartitionProduceResponse { error_code: error.code(), base_offset, ..Default::default() };
    let response = TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: vec![partition],
    };
    asked.answer(&ProduceResponse { responses: vec![response], ..Default::default() })
}

/// A broker that answers the n-th produce request by `verdict(n, base sequence)`.
fn broker(verdict: impl Fn(usize, i32) -> Option<ErrorCode> + Send + Sync + 'static) -> (FakeBroker, Seen) {
    let (port, count, seen) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0), Seen::default());
    let (own, noted) = (port.clone(), seen.clone());
    let broker = FakeBroker::start(move |asked| match &asked.request {
        AnyRequest::Metadata(_) => asked.answer(&metadata(own.load(Ordering::SeqCst) as u16)),
        AnyRequest::InitProducerId(_) => {
            asked.answer(&InitProducerIdResponse { producer_id: 9, producer_epoch: 0, ..Default::default() })
        }
        AnyRequest::Produce(request) => {
            let batch = seen_batch(request);
            let sequence = batch.0;
            noted.lock().push(batch);
            let error = verdict(count.fetch_add(1, Ordering::SeqCst), sequence)?;
            produced(asked, request, error, sequence.into())
        }
        _ => None,
    });
    port.store(broker.port.into(), Ordering::SeqCst);
    (broker, seen)
}

/// Writes `count` records, each a batch of its own, and waits for them.
fn write(broker: &FakeBroker, count: u8, given: &[(&str, &str)]) -> Result<Delivered> {
    let mut settings = vec![("batch.size", "1"), ("max.block.ms", "5000")];
    settings.extend(given);
    let mut producer = Producer::new(broker.settings(&settings))?;
    let topic = producer.topic("t")?;
    for n in 0..count {
        let value = [n];
        let row = Row { partition: Some(0), timestamp_ms: 1, key: None, value: Some(&value), headers: &[] };
        producer.append(topic, &row)?;
    }
    producer.begin_flush()?;
    loop {
        if let Some(delivered) = producer.wait_flushed(Duration::from_secs(20))? {
            return Ok(delivered);
        }
    }
}

/// The values in the order of their last arrival, which is the one that was stored.
fn order(seen: &Seen) -> Vec<u8> {
    let mut order: Vec<u8> = Vec::new();
    for (sequence, values) in seen.lock().iter() {
        assert_eq!(i32::from(values[0]), *sequence, "a batch changed its sequence");
        order.retain(|value| *value != values[0]);
        order.extend(values);
    }
    order
}

#[test]
fn a_batch_that_is_refused_for_now_goes_again_before_later_ones() {
    let (refused, next) = (AtomicBool::new(false), AtomicI32::new(0));
    let (broker, seen) = broker(move |_, sequence| {
        if sequence == 2 && !refused.swap(true, Ordering::SeqCst) {
            return Some(ErrorCode::NotEnoughReplicas);
        }
        // Batches that were on their way behind the refused one do not follow on what is stored.
        let follows =
            next.compare_exchange(sequence, sequence + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        Some(if follows { ErrorCode::None } else { ErrorCode::OutOfOrderSequenceNumber })
    });
    let delivered = write(&broker, 20, &[("max.in.flight.requests.per.connection", "4")]).unwrap();
    assert_eq!(delivered.records, 20);
    assert_eq!(order(&seen), (0..20).collect::<Vec<u8>>());
}

#[test]
fn batches_on_a_lost_connection_go_again_in_order() {
    let (broker, seen) = broker(|n, _| if n % 5 == 4 { None } else { Some(ErrorCode::None) });
    let delivered = write(&broker, 30, &[]).unwrap();
    assert_eq!(delivered.records, 30);
    assert_eq!(order(&seen), (0..30).collect::<Vec<u8>>());
}

#[test]
fn a_duplicate_counts_as_stored() {
    let (broker, _) = broker(|_, _| Some(ErrorCode::DuplicateSequenceNumber));
    let delivered = write(&broker, 3, &[]).unwrap();
    assert_eq!(delivered.records, 3);
    assert_eq!(delivered.offsets.values().collect::<Vec<_>>(), [&(-1, -1)]);
}

#[test]
fn a_sequence_gap_without_an_earlier_failure_is_lost_data_and_ends_the_writer() {
    let (broker, _) = broker(|_, _| Some(ErrorCode::OutOfOrderSequenceNumber));
    let error = write(&broker, 1, &[]).unwrap_err();
    assert_eq!(error.kind, "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert!(error.message.contains("t-0"), "{}", error.message);
}

#[test]
fn a_final_refusal_names_partition_and_cause() {
    let (broker, _) = broker(|_, _| Some(ErrorCode::InvalidRecord));
    let error = write(&broker, 1, &[]).unwrap_err();
    assert_eq!(error.kind, "INVALID_RECORD");
    assert!(error.message.contains("partition t-0"), "{}", error.message);
}

#[test]
fn retries_end_with_the_delivery_timeout_and_the_last_cause() {
    let (broker, _) = broker(|_, _| Some(ErrorCode::NotLeaderOrFollower));
    let error = write(&broker, 1, &[("delivery.timeout.ms", "2000")]).unwrap_err();
    assert_eq!(error.kind, "NOT_LEADER_OR_FOLLOWER");
    assert!(error.message.contains("delivery.timeout.ms (2 s)"), "{}", error.message);
}

#[test]
fn without_idempotence_batches_carry_no_sequence() {
    let (broker, seen) = broker(|_, _| Some(ErrorCode::None));
    write(&broker, 2, &[("enable.idempotence", "false")]).unwrap();
    assert_eq!(seen.lock().iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [-1, -1]);
}
