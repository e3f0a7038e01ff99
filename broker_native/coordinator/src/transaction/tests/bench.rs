//! A machine with its log, and short words for requests.
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use crate::transaction::machine::Warn;
use crate::transaction::metadata::{ProducerIdentity, TxnMetadata};
use crate::transaction::{
    MarkersWritten, ProducerIdSource, Settings, TransactionMachine, TransactionVersion, TxnAction,
    TxnEffects, TxnEvent, TxnReply, TxnRequest,
};
use crate::{Caller, LogEntry, Machine, Now, Record, Room, Ticket};
use pylog_record::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};
use pylog_wire::messages::{EndTxnRequest, EndTxnResponse, InitProducerIdRequest, InitProducerIdResponse};

/// The transactional id that is meant when none is named.
pub const ID: &str = "payments";
/// Time-out of transactions.
pub const TIMEOUT_MS: i32 = 60_000;
/// First version of EndTxn that raises the epoch.
pub const V2: i16 = 5;
/// Last version of EndTxn that does not.
pub const V1: i16 = 4;

pub struct Ids(AtomicI64);

impl ProducerIdSource for Ids {
    fn next(&self) -> Result<i64, ErrorCode> {
        Ok(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

pub struct Bench {
    pub machine: TransactionMachine,
    pub settings: Arc<Settings>,
    pub now_ms: i64,
    /// By how much the wall clock was set.
    pub set_ms: i64,
    pub log: Vec<Record>,
    /// Markers that were asked for and not written.
    pub markers: Vec<TxnAction>,
    /// Answers to those who did not wait for them.
    pub late: Vec<(Ticket, TxnReply)>,
    ids: Arc<Ids>,
    next_ticket: u64,
    lines: Arc<Mutex<Vec<String>>>,
}

/// Keeps the lines of the log.
fn listener(lines: &Arc<Mutex<Vec<String>>>) -> Warn {
    let lines = Arc::clone(lines);
    Arc::new(move |line| lines.lock().unwrap().push(line.to_owned()))
}

fn room(settings: &Settings) -> Room {
    Room::new(settings.transaction_coordinator_max_bytes, || {})
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        let (settings, ids) = (Arc::new(settings), Arc::new(Ids(AtomicI64::new(1000))));
        let lines = Arc::default();
        let machine = TransactionMachine::new(
            Arc::clone(&settings),
            Arc::clone(&ids) as _,
            room(&settings),
            listener(&lines),
        );
        let (log, markers, late) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            machine,
            settings,
            now_ms: 1_000_000,
            set_ms: 0,
            log,
            markers,
            late,
            ids,
            next_ticket: 0,
            lines,
        }
    }

    fn take(&mut self, effects: TxnEffects) {
        assert_eq!(effects.transaction, None);
        self.log.extend(effects.records);
        self.markers.extend(effects.actions);
        self.late.extend(effects.replies);
    }

    /// Asks; gives the answer when there is one.
    pub fn ask(&mut self, version: i16, request: TxnRequest) -> Option<TxnReply> {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let caller = Caller { version, ..Caller::default() };
        let effects = self.machine.handle(TxnEvent::Asked { ticket, caller, request }, self.now());
        self.take(effects);
        let at = self.late.iter().position(|(one, _)| *one == ticket)?;
        Some(self.late.remove(at).1)
    }

    pub fn init_with(&mut self, request: InitProducerIdRequest) -> InitProducerIdResponse {
        match self.ask(6, TxnRequest::InitProducerId(request)) {
            Some(TxnReply::InitProducerId(answer)) => answer,
            other => unreachable!("{other:?}"),
        }
    }

    pub fn request() -> InitProducerIdRequest {
        InitProducerIdRequest {
            transactional_id: Some(ID.into()),
            transaction_timeout_ms: TIMEOUT_MS,
            ..Default::default()
        }
    }

    /// The lines since the last call.
    pub fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }

    /// A producer of this id begins a transaction that never times out.
    pub fn prepare_as(&mut self, transactional_id: &str) {
        let request = InitProducerIdRequest {
            transactional_id: Some(transactional_id.into()),
            enable_2_pc: true,
            ..Self::request()
        };
        let who = producer(&self.init_with(request)).unwrap();
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: transactional_id.into(),
            ..self.partitions(who, false, &[0])
        };
        let transaction_version = TransactionVersion::V2;
        let request = TxnRequest::AddPartitions { transaction, transaction_version, patient: false };
        assert_eq!(code(self.ask(12, request)), ErrorCode::None);
    }

    /// A producer comes.
    pub fn init(&mut self) -> Result<ProducerIdentity, ErrorCode> {
        producer(&self.init_with(Self::request()))
    }

    /// A producer asks for its next epoch.
    pub fn resume(&mut self, who: ProducerIdentity) -> Result<ProducerIdentity, ErrorCode> {
        producer(&self.init_with(InitProducerIdRequest {
            producer_id: who.id,
            producer_epoch: who.epoch,
            ..Self::request()
        }))
    }

    fn partitions(
        &self,
        who: ProducerIdentity,
        verify_only: bool,
        numbers: &[i32],
    ) -> AddPartitionsToTxnTransaction {
        AddPartitionsToTxnTransaction {
            transactional_id: ID.into(),
            producer_id: who.id,
            producer_epoch: who.epoch,
            verify_only,
            topics: vec![AddPartitionsToTxnTopic { name: "orders".into(), partitions: numbers.to_vec() }],
        }
    }

    fn add_request(
        &self,
        who: ProducerIdentity,
        verify_only: bool,
        numbers: &[i32],
        patient: bool,
    ) -> TxnRequest {
        let transaction = self.partitions(who, verify_only, numbers);
        TxnRequest::AddPartitions { transaction, transaction_version: TransactionVersion::V2, patient }
    }

    pub fn add(&mut self, who: ProducerIdentity, numbers: &[i32]) -> ErrorCode {
        let request = self.add_request(who, false, numbers, false);
        code(self.ask(4, request))
    }

    /// As a produced batch does; `None`: it waits.
    pub fn add_patiently(&mut self, who: ProducerIdentity, number: i32) -> Option<ErrorCode> {
        let request = self.add_request(who, false, &[number], true);
        self.ask(12, request).map(|reply| code(Some(reply)))
    }

    pub fn verify(&mut self, who: ProducerIdentity, number: i32) -> ErrorCode {
        let request = self.add_request(who, true, &[number], true);
        code(self.ask(4, request))
    }

    pub fn end_with(&mut self, version: i16, who: ProducerIdentity, committed: bool) -> EndTxnResponse {
        let request = EndTxnRequest {
            transactional_id: ID.into(),
            producer_id: who.id,
            producer_epoch: who.epoch,
            committed,
        };
        match self.ask(version, TxnRequest::EndTxn(request)) {
            Some(TxnReply::EndTxn(answer)) => answer,
            other => unreachable!("{other:?}"),
        }
    }

    /// Ends the transaction; who goes on.
    pub fn end(
        &mut self,
        version: i16,
        who: ProducerIdentity,
        committed: bool,
    ) -> Result<ProducerIdentity, ErrorCode> {
        let answer = self.end_with(version, who, committed);
        match ErrorCode::from_code(answer.error_code) {
            Some(ErrorCode::None) => {
                Ok(ProducerIdentity { id: answer.producer_id, epoch: answer.producer_epoch })
            }
            other => Err(other.unwrap()),
        }
    }

    /// All markers that were asked for are written.
    pub fn write_markers(&mut self) -> Vec<TxnAction> {
        let all = std::mem::take(&mut self.markers);
        for one in &all {
            self.written(one, Vec::new());
        }
        all
    }

    pub fn written(&mut self, action: &TxnAction, failed: Vec<TopicPartition>) {
        let outcome = MarkersWritten {
            transactional_id: action.transactional_id.clone(),
            producer_id: action.producer_id,
            producer_epoch: action.producer_epoch,
            failed,
        };
        let effects = self.machine.handle(TxnEvent::MarkersWritten(outcome), self.now());
        self.take(effects);
    }

    pub fn now(&self) -> Now {
        Now { wall_ms: self.now_ms + self.set_ms, steady_ms: self.now_ms }
    }

    /// Time passes; what is due is done.
    pub fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        while self.machine.next_deadline_ms().is_some_and(|due| due <= self.now_ms) {
            let effects = self.machine.tick(self.now());
            self.take(effects);
        }
    }

    pub fn metadata(&self) -> &TxnMetadata {
        self.machine.transaction(ID).expect("the id is known")
    }

    /// A machine that has read the log so far.
    pub fn replayed(&self) -> TransactionMachine {
        let mut machine = TransactionMachine::new(
            Arc::clone(&self.settings),
            Arc::clone(&self.ids) as _,
            room(&self.settings),
            listener(&self.lines),
        );
        for (offset, record) in self.log.iter().enumerate() {
            let entry = LogEntry::Record {
                offset: offset as i64,
                timestamp_ms: 0,
                transaction: None,
                record: record.clone(),
            };
            machine.replay(&entry).expect("what is written can be read");
        }
        machine
    }

    /// The broker is killed and comes back: only the log is left.
    pub fn restart(&mut self) {
        self.machine = self.replayed();
        self.markers.clear();
        let effects = self.machine.loaded(self.now());
        self.take(effects);
    }
}

pub fn producer(answer: &InitProducerIdResponse) -> Result<ProducerIdentity, ErrorCode> {
    match ErrorCode::from_code(answer.error_code) {
        Some(ErrorCode::None) => {
            Ok(ProducerIdentity { id: answer.producer_id, epoch: answer.producer_epoch })
        }
        other => Err(other.unwrap()),
    }
}

fn code(reply: Option<TxnReply>) -> ErrorCode {
    match reply {
        Some(TxnReply::AddPartitions(answers)) => {
            let first = answers.first().expect("an answer for each partition").1;
            assert!(answers.iter().all(|(_, error)| *error == first), "{answers:?}");
            first
        }
        other => unreachable!("{other:?}"),
    }
}
