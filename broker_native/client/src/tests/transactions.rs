//! Transactions with coordinators that move, are busy, or close the connection; and brokers before version 2.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::fake::{Answer, Asked, FakeBroker, metadata};
use crate::write::accumulator::Row;
use crate::write::producer::Producer;
use crate::write::transaction::end::{self, Ending};
use pylog_record::{BatchHeader, batches};
use pylog_wire::AnyRequest;
use pylog_wire::ErrorCode::{
    self, ConcurrentTransactions, CoordinatorLoadInProgress, CoordinatorNotAvailable, InvalidProducerEpoch,
    InvalidProducerIdMapping, InvalidTransactionTimeout, InvalidTxnState, NotCoordinator, ProducerFenced,
    TransactionalIdAuthorizationFailed, UnknownTopicOrPartition,
};
use pylog_wire::messages::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use pylog_wire::messages::find_coordinator::Coordinator;
use pylog_wire::messages::produce::{PartitionProduceResponse, TopicProduceResponse};
use pylog_wire::messages::{
    AddPartitionsToTxnResponse, EndTxnResponse, FindCoordinatorResponse, InitProducerIdResponse,
    ProduceResponse,
};

/// What is answered to the next requests of one kind; `None` closes the connection. When it is used up: no error.
type Script = Arc<Mutex<VecDeque<Option<ErrorCode>>>>;

#[derive(Clone, Default)]
struct Scripts {
    find: Script,
    init: Script,
    add: Script,
    end: Script,
    seen: Arc<Mutex<Vec<String>>>,
}

fn script(errors: &[Option<ErrorCode>]) -> Script {
    Arc::new(Mutex::new(errors.iter().copied().collect()))
}

fn next(script: &Script) -> Option<i16> {
    script.lock().pop_front().unwrap_or(Some(ErrorCode::None)).map(ErrorCode::code)
}

fn answer(asked: &Asked, port: u16, scripts: &Scripts) -> Answer {
    let version = asked.header.api_version;
    let see = |what: String| scripts.seen.lock().push(what);
    match &asked.request {
        AnyRequest::Metadata(_) => {
            see("Metadata".to_owned());
            asked.answer(&metadata(port))
        }
        AnyRequest::FindCoordinator(request) => {
            let error_code = next(&scripts.find)?;
            let found = |key: &String| Coordinator {
                key: key.clone(),
                host: "127.0.0.1".to_owned(),
                port: port.into(),
                error_code,
                ..Default::default()
            };
            let coordinators = request.coordinator_keys.iter().map(found).collect();
            asked.answer(&FindCoordinatorResponse { coordinators, ..Default::default() })
        }
        AnyRequest::InitProducerId(_) => {
            let error_code = next(&scripts.init)?;
            asked.answer(&InitProducerIdResponse {
                error_code,
                producer_id: 9,
                producer_epoch: 3,
                ..Default::default()
            })
        }
        AnyRequest::AddPartitionsToTxn(request) => {
            see(format!("AddPartitionsToTxn v{version}"));
            let result = AddPartitionsToTxnPartitionResult {
                partition_index: request.v3_and_below_topics[0].partitions[0],
                partition_error_code: next(&scripts.add)?,
            };
            let topic =
                AddPartitionsToTxnTopicResult { name: "t".to_owned(), results_by_partition: vec![result] };
            asked.answer(&AddPartitionsToTxnResponse {
                results_by_topic_v3_and_below: vec![topic],
                ..Default::default()
            })
        }
        AnyRequest::Produce(request) => {
            let data = &request.topic_data[0];
            let bytes = data.partition_data[0].records.clone().unwrap();
            let (header, _): (BatchHeader, &[u8]) = batches(&bytes).next().unwrap().unwrap();
            let (who, id) = ((header.producer_id, header.producer_epoch), &request.transactional_id);
            see(format!("Produce v{version} {who:?} {} {id:?}", header.is_transactional()));
            let response = TopicProduceResponse {
                name: data.name.clone(),
                topic_id: data.topic_id,
                partition_responses: vec![PartitionProduceResponse::default()],
            };
            asked.answer(&ProduceResponse { responses: vec![response], ..Default::default() })
        }
        AnyRequest::EndTxn(request) => {
            see(format!("EndTxn v{version} {}", request.committed));
            asked.answer(&EndTxnResponse { error_code: next(&scripts.end)?, ..Default::default() })
        }
        _ => None,
    }
}

/// A broker whose transactions are of version 0.
fn broker(scripts: &Scripts) -> FakeBroker {
    let (port, scripts) = (Arc::new(AtomicU16::new(0)), scripts.clone());
    let own = port.clone();
    let broker = FakeBroker::start(move |asked| answer(asked, own.load(Ordering::SeqCst), &scripts));
    port.store(broker.port, Ordering::SeqCst);
    broker
}

fn write(producer: &mut Producer) {
    let row = Row { partition: None, timestamp_ms: 1, key: None, value: Some(b"v"), headers: &[] };
    let topic = producer.topic("t").unwrap();
    producer.append(topic, &row).unwrap();
    producer.begin_flush().unwrap();
    assert!(producer.wait_flushed(Duration::from_secs(30)).unwrap().is_some());
}

#[test]
fn before_version_2_a_partition_is_added_once_and_older_requests_are_sent() {
    let scripts = Scripts::default();
    let broker = broker(&scripts);
    let mut producer = Producer::transactional(broker.settings(&[]), "id".to_owned()).unwrap();
    write(&mut producer);
    write(&mut producer);
    let handle = producer.prepare().unwrap().unwrap();
    assert!(!handle.prepared, "InitProducerId 5 cannot");
    assert_eq!((handle.ending.producer_id, handle.ending.producer_epoch), (9, 3));
    producer.end(true).unwrap();
    let produce = "Produce v11 (9, 3) true Some(\"id\")";
    let end = "EndTxn v4 true";
    let expected = ["Metadata", "AddPartitionsToTxn v3", produce, produce, end, end];
    assert_eq!(*scripts.seen.lock(), expected);
}

#[test]
fn coordinators_that_move_load_or_close_the_connection_are_asked_again() {
    let scripts = Scripts {
        find: script(&[Some(CoordinatorNotAvailable), None]),
        init: script(&[
            Some(NotCoordinator),
            None,
            Some(CoordinatorLoadInProgress),
            Some(ConcurrentTransactions),
        ]),
        add: script(&[None, Some(ConcurrentTransactions), Some(UnknownTopicOrPartition)]),
        end: script(&[None, Some(NotCoordinator), Some(ErrorCode::None), Some(ConcurrentTransactions), None]),
        ..Default::default()
    };
    let broker = broker(&scripts);
    let mut producer = Producer::transactional(broker.settings(&[]), "id".to_owned()).unwrap();
    write(&mut producer);
    producer.end(true).unwrap();
    for used in [&scripts.find, &scripts.init, &scripts.add, &scripts.end] {
        assert!(used.lock().is_empty(), "{used:?}");
    }
    assert_eq!(scripts.seen.lock().iter().filter(|one| one.starts_with("EndTxn")).count(), 6);
}

#[test]
fn what_is_decided_stays_so_when_the_id_goes_to_somebody_else() {
    let scripts =
        Scripts { end: script(&[Some(ErrorCode::None), Some(ProducerFenced)]), ..Default::default() };
    let broker = broker(&scripts);
    let ending = Ending { transactional_id: "id".to_owned(), producer_id: 1, producer_epoch: 0 };
    let outcomes = end::all(&mut broker.cluster(&[]), &[ending], true, Duration::from_secs(30));
    assert_eq!(outcomes, [Ok(())]);
}

#[test]
fn an_end_that_does_not_come_is_an_error_of_its_transaction_with_the_last_cause() {
    let scripts = Scripts { end: script(&[Some(ConcurrentTransactions); 100_000]), ..Default::default() };
    let broker = broker(&scripts);
    let ending = |id: &str| Ending { transactional_id: id.to_owned(), producer_id: 1, producer_epoch: 0 };
    let endings = [ending("a"), ending("b")];
    let outcomes = end::all(&mut broker.cluster(&[]), &endings, false, Duration::from_millis(30));
    for (outcome, ending) in outcomes.into_iter().zip(&endings) {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, "TIMED_OUT");
        let begin =
            format!("transaction {} was not ended within 0.03 s (it is open): ", ending.transactional_id);
        assert!(error.message.starts_with(&begin), "{}", error.message);
    }
}

#[test]
fn a_refusal_is_one_sentence_that_says_what_to_do() {
    for (error, said) in [
        (ProducerFenced, "newer producer"),
        (InvalidProducerEpoch, "newer producer"),
        (InvalidTxnState, "not open any more"),
        (InvalidProducerIdMapping, "not known to its coordinator"),
        (TransactionalIdAuthorizationFailed, "no permission"),
        (InvalidTransactionTimeout, "transaction.max.timeout.ms"),
    ] {
        let scripts = Scripts { init: script(&[Some(error)]), ..Default::default() };
        let broker = broker(&scripts);
        let mut producer = Producer::transactional(broker.settings(&[]), "id".to_owned()).unwrap();
        let refused = producer.begin().unwrap_err();
        assert_eq!(refused.kind, error.name());
        assert!(
            refused.message.starts_with("transaction id ") && refused.message.contains(said),
            "{refused}"
        );
        assert!(!refused.message.contains('\n'));
    }
}
