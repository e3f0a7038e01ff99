//! Ending transactions from anywhere, many at once: EndTxn, pipelined to each coordinator, until every partition knows.
//!
//! A coordinator answers when the end is decided and may write the markers afterwards. Whether they are written is answered by
//! asking once more: CONCURRENT_TRANSACTIONS while they are not, no error when they are. So each transaction is asked about
//! until it was acknowledged twice; asking again is harmless, because the epoch says which transaction is meant.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::errors::refusal;
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::address::Address;
use crate::metadata::cluster::Cluster;
use crate::metadata::coordinator::{CoordinatorType, locate};
use crate::net::connection::Sent;
use pylog_wire::ErrorCode;
use pylog_wire::messages::EndTxnRequest;

/// Requests on their way to one coordinator: their answers fit into the buffers of a socket.
const WINDOW: usize = 64;
/// The newest EndTxn for transactions before version 2, which do not raise the epoch.
const BEFORE_2: i16 = 4;
/// First pause when nothing got further; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// A transaction and the producer that may end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Its transactional id.
    pub transactional_id: String,
    /// The producer's id.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
}

/// How far one is.
struct Item<'a> {
    ending: &'a Ending,
    coordinator: Option<Address>,
    decided: bool,
    outcome: Option<Result<()>>,
    trouble: Option<ClientError>,
}

/// Commits or aborts all, and waits until every partition of each knows; outcomes stand in the order of `endings`. One that
/// had ended in this way before is a success.
///
/// `limit` bounds the whole, but for the answers that are under way then (`request.timeout.ms`).
pub fn all(cluster: &mut Cluster, endings: &[Ending], commit: bool, limit: Duration) -> Vec<Result<()>> {
    let item = |ending| Item { ending, coordinator: None, decided: false, outcome: None, trouble: None };
    let mut items: Vec<Item<'_>> = endings.iter().map(item).collect();
    let until = Instant::now() + limit;
    let mut pause = PAUSE;
    while items.iter().any(|item| item.outcome.is_none()) {
        find(cluster, &mut items);
        if round(cluster, &mut items, commit) {
            pause = PAUSE;
            continue;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || cluster.stop().pause(pause.min(left)) {
            break;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    items.into_iter().map(|item| item.finish(limit)).collect()
}

/// The outcomes for a program: transactional id, error, message.
pub fn report(endings: &[Ending], outcomes: Vec<Result<()>>) -> Vec<Value> {
    let outcome_json = |(ending, outcome): (&Ending, Result<()>)| {
        let error = outcome.err();
        json!({
            "transactional_id": ending.transactional_id,
            "error": error.as_ref().map(|error| error.kind),
            "message": error.as_ref().map(|error| &error.message),
        })
    };
    endings.iter().zip(outcomes).map(outcome_json).collect()
}

/// Looks for the coordinators that are not known.
fn find(cluster: &mut Cluster, items: &mut [Item<'_>]) {
    let mut lost: Vec<&mut Item<'_>> =
        items.iter_mut().filter(|item| item.outcome.is_none() && item.coordinator.is_none()).collect();
    let ids: Vec<String> = lost.iter().map(|item| item.ending.transactional_id.clone()).collect();
    if ids.is_empty() {
        return;
    }
    match locate(cluster, CoordinatorType::Transaction, &ids) {
        Ok(found) => lost.iter_mut().zip(found).for_each(|(item, found)| match found {
            Ok(found) => item.coordinator = Some(found.address),
            Err(error) => item.failed(error),
        }),
        Err(error) => lost.iter_mut().for_each(|item| item.failed(error.clone())),
    }
}

/// Asks about every transaction that is not done; whether any of them got further.
fn round(cluster: &mut Cluster, items: &mut [Item<'_>], commit: bool) -> bool {
    let mut by_coordinator: BTreeMap<Address, Vec<usize>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.outcome.is_none()) {
        if let Some(address) = &item.coordinator {
            by_coordinator.entry(address.clone()).or_default().push(index);
        }
    }
    let mut further = false;
    let longest = by_coordinator.values().map(Vec::len).max().unwrap_or(0);
    for start in (0..longest).step_by(WINDOW) {
        let window = |indexes: &Vec<usize>| indexes.iter().copied().skip(start).take(WINDOW).collect();
        let windows: Vec<(&Address, Vec<usize>)> =
            by_coordinator.iter().map(|(address, indexes)| (address, window(indexes))).collect();
        let sent: Vec<_> = windows
            .into_iter()
            .map(|(address, indexes)| (address, send(cluster, address, items, &indexes, commit)))
            .collect();
        for (address, sent) in sent {
            further |= receive(cluster, address, items, sent);
        }
    }
    further
}

/// Sends one window to its coordinator; what could not be sent has its trouble noted.
fn send(
    cluster: &mut Cluster,
    address: &Address,
    items: &mut [Item<'_>],
    indexes: &[usize],
    commit: bool,
) -> Vec<(usize, Sent)> {
    let mut sent = Vec::new();
    for &index in indexes {
        let Some(item) = items.get_mut(index) else { continue };
        let request = EndTxnRequest {
            transactional_id: item.ending.transactional_id.clone(),
            producer_id: item.ending.producer_id,
            producer_epoch: item.ending.producer_epoch,
            committed: commit,
        };
        let outcome = cluster.connection(address).and_then(|connection| {
            let newest = if connection.versions().batches_add_partitions() { i16::MAX } else { BEFORE_2 };
            connection.send_up_to(&request, newest)
        });
        match outcome {
            Ok(request) => sent.push((index, request)),
            Err(error) => {
                cluster.mark_failed(address, &error);
                item.failed(error.clone());
                // Their answers are lost with the connection.
                for (index, _) in sent.drain(..) {
                    if let Some(item) = items.get_mut(index) {
                        item.failed(error.clone());
                    }
                }
                break;
            }
        }
    }
    sent
}

fn receive(
    cluster: &mut Cluster,
    address: &Address,
    items: &mut [Item<'_>],
    sent: Vec<(usize, Sent)>,
) -> bool {
    let mut further = false;
    let mut broken: Option<ClientError> = None;
    for (index, request) in sent {
        let Some(item) = items.get_mut(index) else { continue };
        let answer = match &broken {
            Some(error) => Err(error.clone()),
            None => cluster
                .connection(address)
                .and_then(|connection| connection.receive::<EndTxnRequest>(request)),
        };
        match answer {
            Ok(answer) => further |= item.answered(code(answer.error_code)),
            Err(error) => {
                cluster.mark_failed(address, &error);
                item.failed(error.clone());
                broken = Some(error);
            }
        }
    }
    further
}

impl Item<'_> {
    /// Takes an answer; whether that got it further.
    fn answered(&mut self, error: ErrorCode) -> bool {
        match error {
            ErrorCode::None if !self.decided => self.decided = true,
            ErrorCode::ConcurrentTransactions | ErrorCode::CoordinatorLoadInProgress => {
                self.trouble = Some(refusal(&self.ending.transactional_id, error));
                return false;
            }
            error if error.is_retriable() => {
                self.failed(refusal(&self.ending.transactional_id, error));
                return false;
            }
            // Decided is decided: whoever has the id now could only get it after the end was complete.
            _ if self.decided => self.outcome = Some(Ok(())),
            error => self.outcome = Some(Err(refusal(&self.ending.transactional_id, error))),
        }
        true
    }

    /// Notes what went wrong; an error that no retry mends is the outcome.
    fn failed(&mut self, error: ClientError) {
        self.coordinator = None;
        if error.retriable {
            self.trouble = Some(error);
        } else {
            self.outcome = Some(Err(error));
        }
    }

    fn finish(self, limit: Duration) -> Result<()> {
        self.outcome.unwrap_or_else(|| {
            let cause = self.trouble.map_or_else(|| "closed meanwhile".to_owned(), |error| error.message);
            let seconds = limit.as_secs_f64();
            let id = &self.ending.transactional_id;
            let decided = if self.decided {
                "its end is decided, but not known to every partition"
            } else {
                "it is open"
            };
            Err(ClientError::fatal(
                kind::TIMED_OUT,
                format!("transaction {id} was not ended within {seconds} s ({decided}): {cause}"),
            ))
        })
    }
}
