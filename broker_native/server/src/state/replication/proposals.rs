//! ISRs on their way to the store: those of many partitions in one question, one question at a time.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use super::is_current;
use super::leading::Leading;
use crate::decide::{Kind, ask};
use crate::notice::notice;
use crate::shared::Shared;
use pylog_replica::progress::{Answer, Proposal};
use pylog_wire::ErrorCode;

/// Most partitions in one question.
const BATCH_MAX: usize = 1_000;
/// A proposal whose fate is unknown is sent again after so long.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Who has something to propose.
#[derive(Default)]
pub struct Proposals {
    waiting: Mutex<Vec<Arc<Leading>>>,
    wake: Notify,
}

impl Proposals {
    /// `leading` has a proposal.
    pub fn add(&self, leading: &Arc<Leading>) {
        self.waiting.lock().push(Arc::clone(leading));
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<(Arc<Leading>, Proposal)> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(BATCH_MAX);
        let taken: Vec<_> = waiting.drain(..count).collect();
        drop(waiting);
        let mut seen = HashMap::with_capacity(taken.len());
        let first = |leading: &Arc<Leading>| {
            let key = (leading.topic().to_owned(), leading.partition());
            seen.insert(key, ()).is_none()
        };
        let each: Vec<_> = taken.into_iter().filter(first).collect();
        each.into_iter()
            .filter_map(|leading| leading.proposal().map(|proposal| (leading, proposal)))
            .collect()
    }

    async fn some(&self) {
        while self.waiting.lock().is_empty() {
            self.wake.notified().await;
        }
    }
}

#[derive(Deserialize)]
struct Answers {
    partitions: Vec<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    topic: String,
    partition: i32,
    error_code: i16,
}

/// Sends proposals as long as the server runs.
pub async fn send_all(shared: Arc<Shared>) {
    let proposals = &shared.replication.proposals;
    loop {
        tokio::select! {
            () = proposals.some() => {}
            () = shared.shutdown.wait() => return,
        }
        let batch = proposals.take();
        if batch.is_empty() {
            continue;
        }
        let answers = match shared.cluster.may_lead() {
            true => put(&shared, &batch).await,
            // Somebody else may lead by now; the document will tell.
            false => HashMap::new(),
        };
        let again: Vec<_> = batch
            .into_iter()
            .filter(|(leading, proposal)| {
                let key = (leading.topic().to_owned(), leading.partition());
                let answer = answers.get(&key).copied().unwrap_or(Answer::Undecided);
                leading.answered(proposal.partition_epoch, answer)
            })
            .map(|(leading, _)| leading)
            .collect();
        retry_later(&shared, again);
    }
}

fn retry_later(shared: &Arc<Shared>, again: Vec<Arc<Leading>>) {
    if again.is_empty() {
        return;
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::time::sleep(RETRY_PAUSE).await;
        // One that another epoch has replaced is dropped here: nobody else holds it.
        let again = again.iter().filter(|leading| is_current(&shared, leading));
        again.for_each(|leading| shared.replication.proposals.add(leading));
    });
}

/// Asks; nothing is said of partitions whose fate is unknown.
async fn put(shared: &Shared, batch: &[(Arc<Leading>, Proposal)]) -> HashMap<(String, i32), Answer> {
    shared.metrics.events.one();
    let asked = ask(shared.decider.as_ref(), Kind::AlterPartition, question(batch), 0).await;
    let answers = match asked {
        Ok(json) => serde_json::from_str::<Answers>(&json).map_err(|error| error.to_string()),
        Err(undecided) => Err(undecided.to_string()),
    };
    match answers {
        Ok(answers) => {
            let known = |one: Answered| ((one.topic, one.partition), meant(one.error_code));
            answers.partitions.into_iter().map(known).collect()
        }
        Err(why) => {
            notice(&format!(
                "whether {} in-sync sets are stored is not known, asked again: {why}",
                batch.len()
            ));
            HashMap::new()
        }
    }
}

fn question(batch: &[(Arc<Leading>, Proposal)]) -> String {
    let one = |(leading, proposal): &(Arc<Leading>, Proposal)| {
        let (ids, epochs): (Vec<i32>, Vec<i64>) = proposal.new_isr.iter().copied().unzip();
        json!({
            "topic": leading.topic(),
            "partition": leading.partition(),
            "leader_epoch": leading.leader_epoch(),
            "partition_epoch": proposal.partition_epoch,
            "new_isr": ids,
            "new_isr_epochs": epochs,
        })
    };
    json!({ "partitions": batch.iter().map(one).collect::<Vec<_>>() }).to_string()
}

fn meant(error_code: i16) -> Answer {
    let is = |error: ErrorCode| error.code() == error_code;
    let outdated = [
        ErrorCode::InvalidUpdateVersion,
        ErrorCode::FencedLeaderEpoch,
        ErrorCode::UnknownLeaderEpoch,
        ErrorCode::NotLeaderOrFollower,
        ErrorCode::UnknownTopicOrPartition,
    ];
    match is(ErrorCode::None) {
        true => Answer::Accepted,
        false if outdated.into_iter().any(is) => Answer::Outdated,
        false => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_the_leader_must_wait_for_the_document() {
        assert_eq!(meant(0), Answer::Accepted);
        assert_eq!(meant(ErrorCode::InvalidUpdateVersion.code()), Answer::Outdated);
        assert_eq!(meant(ErrorCode::IneligibleReplica.code()), Answer::Refused);
    }
}
