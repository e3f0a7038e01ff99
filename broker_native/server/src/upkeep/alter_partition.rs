//! Sends ISRs to the store: those of many partitions in one question, one question at a time.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::cluster::view::Cluster;
use crate::decide::{Decider, Kind, ask};
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::state::replication::Replication;
use crate::state::replication::proposals::Proposer;
use crate::state::topics::Topics;
use pylog_log::loggers::REPLICATION;
use pylog_log::warn;
use pylog_replica::progress::{Proposal, ProposalOutcome};
use pylog_storage::TopicPartition;
use pylog_wire::ErrorCode;

/// Pause before a proposal is sent again of which is not known whether it was stored.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answers {
    partitions: Vec<Answered>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    topic: String,
    partition: i32,
    error_code: i16,
}

/// Who sends.
pub struct ProposalSender {
    /// Has the proposals.
    pub replication: Arc<Replication>,
    /// Knows which partitions are still led here.
    pub topics: Arc<Topics>,
    /// Whether this broker may lead.
    pub cluster: Arc<Cluster>,
    /// Is asked.
    pub decider: Arc<dyn Decider>,
    /// Counts the questions.
    pub metrics: Arc<Metrics>,
    /// Ends it.
    pub shutdown: Arc<Shutdown>,
}

impl ProposalSender {
    /// Sends proposals as long as the server runs.
    pub async fn run(&self) {
        let proposals = &self.replication.proposals;
        loop {
            tokio::select! {
                () = proposals.some() => {}
                () = self.shutdown.wait() => return,
            }
            let batch = proposals.take();
            if batch.is_empty() {
                continue;
            }
            let answers = match self.cluster.may_lead() {
                true => self.put(&batch).await,
                // Another broker may lead by now; what is stored will say so.
                false => HashMap::new(),
            };
            let again: Vec<_> = batch
                .into_iter()
                .filter(|(proposer, proposal)| {
                    let key = TopicPartition::new(proposer.topic(), proposer.partition());
                    let answer = answers.get(&key).copied().unwrap_or(ProposalOutcome::Undecided);
                    Arc::clone(proposer).answered(proposal.partition_epoch, answer)
                })
                .map(|(proposer, _)| proposer)
                .collect();
            self.retry_later(again);
        }
    }

    fn retry_later(&self, again: Vec<Arc<dyn Proposer>>) {
        if again.is_empty() {
            return;
        }
        let (topics, replication) = (Arc::clone(&self.topics), Arc::clone(&self.replication));
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_PAUSE).await;
            // One that another epoch has replaced is dropped here: nobody else holds it.
            let again = again.into_iter().filter(|proposer| topics.is_current(proposer));
            again.for_each(|proposer| replication.proposals.add(proposer));
        });
    }

    /// Asks; partitions of which is not known whether their ISR was stored are left out.
    async fn put(&self, batch: &[(Arc<dyn Proposer>, Proposal)]) -> HashMap<TopicPartition, ProposalOutcome> {
        self.metrics.events.increment();
        let asked = ask(self.decider.as_ref(), Kind::AlterPartition, question(batch), 0).await;
        let answers = match asked {
            Ok(json) => serde_json::from_str::<Answers>(&json).map_err(|error| error.to_string()),
            Err(undecided) => Err(undecided.to_string()),
        };
        match answers {
            Ok(answers) => {
                let known = |answered: Answered| {
                    let partition = TopicPartition::new(&answered.topic, answered.partition);
                    (partition, meant(answered.error_code))
                };
                answers.partitions.into_iter().map(known).collect()
            }
            Err(why) => {
                let count = batch.len();
                warn!(
                    target: REPLICATION,
                    "it is not known whether the ISRs of {count} partitions are stored; asking again: {why}"
                );
                HashMap::new()
            }
        }
    }
}

fn question(batch: &[(Arc<dyn Proposer>, Proposal)]) -> String {
    let proposed = |(proposer, proposal): &(Arc<dyn Proposer>, Proposal)| {
        let (ids, epochs): (Vec<i32>, Vec<i64>) = proposal.new_isr.iter().copied().unzip();
        json!({
            "topic": proposer.topic(),
            "partition": proposer.partition(),
            "leader_epoch": proposer.leader_epoch(),
            "partition_epoch": proposal.partition_epoch,
            "new_isr": ids,
            "new_isr_epochs": epochs,
        })
    };
    json!({ "partitions": batch.iter().map(proposed).collect::<Vec<_>>() }).to_string()
}

fn meant(error_code: i16) -> ProposalOutcome {
    let is = |error: ErrorCode| error.code() == error_code;
    let outdated = [
        ErrorCode::InvalidUpdateVersion,
        ErrorCode::FencedLeaderEpoch,
        ErrorCode::UnknownLeaderEpoch,
        ErrorCode::NotLeaderOrFollower,
        ErrorCode::UnknownTopicOrPartition,
    ];
    match is(ErrorCode::None) {
        true => ProposalOutcome::Accepted,
        false if outdated.into_iter().any(is) => ProposalOutcome::Outdated,
        false => ProposalOutcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_the_leader_must_wait_for_the_document() {
        assert_eq!(meant(0), ProposalOutcome::Accepted);
        assert_eq!(meant(ErrorCode::InvalidUpdateVersion.code()), ProposalOutcome::Outdated);
        assert_eq!(meant(ErrorCode::IneligibleReplica.code()), ProposalOutcome::Refused);
    }
}
