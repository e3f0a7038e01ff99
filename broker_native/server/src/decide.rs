//! Decisions that the native side does not take: topics and settings. It asks a [`Decider`] and answers the client with
//! what comes back.
//!
//! In the broker the decider is Python's control loop, reached by a queue of events (`native/src/broker.rs`); tests decide
//! directly. Questions and answers are the wire's messages as JSON, fields in snake_case.
use std::time::Duration;

use tokio::sync::oneshot;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// CreateTopics.
    CreateTopics,
    /// DeleteTopics.
    DeleteTopics,
    /// CreatePartitions.
    CreatePartitions,
    /// AlterConfigs.
    AlterConfigs,
    /// IncrementalAlterConfigs.
    IncrementalAlterConfigs,
    /// DescribeConfigs.
    DescribeConfigs,
    /// A Metadata request named topics that are not there: `{"topics": [names]}`, answered `{}` when they are or will
    /// not be.
    AutoCreateTopics,
    /// The leader's proposal for the ISR of its partitions: `{"partitions": [{topic, partition, leader_epoch, partition_epoch,
    /// new_isr, new_isr_epochs}]}`, answered with `{"partitions": [{topic, partition, error_code}]}`. 0: it is stored, and was
    /// applied before the answer; anything else: it is surely not stored and never will be. `new_isr_epochs` are those of the
    /// members' registrations, -1 where none matters.
    AlterPartition,
    /// `{}`, answered `{"first", "count"}`: a block of ids for producers that nobody else has.
    AllocateProducerIds,
    /// AlterPartitionReassignments.
    AlterPartitionReassignments,
    /// ListPartitionReassignments.
    ListPartitionReassignments,
    /// ElectLeaders.
    ElectLeaders,
    /// UpdateFeatures.
    UpdateFeatures,
    /// UnregisterBroker.
    UnregisterBroker,
    /// AlterUserScramCredentials.
    AlterUserScramCredentials,
    /// DescribeUserScramCredentials.
    DescribeUserScramCredentials,
    /// CreateAcls: only creations that are valid.
    CreateAcls,
    /// DeleteAcls: only filters that are valid.
    DeleteAcls,
    /// AlterClientQuotas.
    AlterClientQuotas,
    /// DescribeClientQuotas.
    DescribeClientQuotas,
    /// A log that this broker leads cannot be written, and others are in sync: `{"reason"}`, answered `{}` when the broker is
    /// about to stop.
    StorageFailed,
    /// A token names a key that is not among those of `apply_jwks`: `{}`, answered `{}` when they will be read again.
    ReadKeys,
}

impl Kind {
    /// Whether it changes what clients may do: Python's log says who did it, so the question has the client's `principal` besides.
    pub fn changes_rights(self) -> bool {
        use Kind::{AlterClientQuotas, AlterUserScramCredentials, CreateAcls, DeleteAcls};
        matches!(self, AlterUserScramCredentials | CreateAcls | DeleteAcls | AlterClientQuotas)
    }

    /// Whether it changes what the cluster shares, which needs ZooKeeper.
    pub fn changes_cluster(self) -> bool {
        self.changes_rights()
            || matches!(
                self,
                Self::AlterConfigs
                    | Self::AlterPartitionReassignments
                    | Self::CreatePartitions
                    | Self::CreateTopics
                    | Self::DeleteTopics
                    | Self::ElectLeaders
                    | Self::IncrementalAlterConfigs
                    | Self::UnregisterBroker
                    | Self::UpdateFeatures
            )
    }

    /// The name that Python knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateTopics => "create_topics",
            Self::DeleteTopics => "delete_topics",
            Self::CreatePartitions => "create_partitions",
            Self::AlterConfigs => "alter_configs",
            Self::IncrementalAlterConfigs => "incremental_alter_configs",
            Self::DescribeConfigs => "describe_configs",
            Self::AutoCreateTopics => "auto_create_topics",
            Self::AlterPartition => "alter_partition",
            Self::AllocateProducerIds => "allocate_producer_ids",
            Self::AlterPartitionReassignments => "alter_partition_reassignments",
            Self::ListPartitionReassignments => "list_partition_reassignments",
            Self::ElectLeaders => "elect_leaders",
            Self::UpdateFeatures => "update_features",
            Self::UnregisterBroker => "unregister_broker",
            Self::AlterUserScramCredentials => "alter_user_scram_credentials",
            Self::DescribeUserScramCredentials => "describe_user_scram_credentials",
            Self::CreateAcls => "create_acls",
            Self::DeleteAcls => "delete_acls",
            Self::AlterClientQuotas => "alter_client_quotas",
            Self::DescribeClientQuotas => "describe_client_quotas",
            Self::StorageFailed => "storage_failed",
            Self::ReadKeys => "read_keys",
        }
    }
}

/// A question. When it is dropped without an answer, the request fails with [`Undecided::Refused`].
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub kind: Kind,
    /// The request.
    pub json: String,
    /// Where the answer goes.
    pub reply: oneshot::Sender<String>,
}

/// Who decides.
pub trait Decider: Send + Sync + 'static {
    /// Takes a question; never blocks. It may be answered from any thread, at any time.
    fn ask(&self, question: Question);
}

/// Why there is no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The broker stops, or too many questions wait.
    #[error("the broker is stopping or too busy to decide; try again")]
    Refused,
    /// The broker's session with ZooKeeper is over: it could not store what it decides.
    #[error("the broker has lost ZooKeeper, and another one may be the controller; try again")]
    CutOff,
    /// Too much is being decided, or answered to the client's address.
    #[error(
        "too much memory is in use for other requests and answers (queued.max.response.bytes); try again"
    )]
    NoRoom,
    /// Half of the room is not enough.
    #[error(
        "the answer would need more memory than one client may use (queued.max.response.bytes); split the request into several"
    )]
    TooLarge,
    /// It took too long. It may still be carried out.
    #[error("the broker did not decide within {0:?}; it may still do what was asked")]
    TimedOut(Duration),
    /// The answer does not fit the message.
    #[error("the broker's decision cannot be sent: {0}")]
    Malformed(String),
}

/// The shortest timeout of a decision: opening the logs of a large topic takes seconds.
const DECISION_TIMEOUT_MIN: Duration = Duration::from_secs(30);

/// Asks and waits for the JSON of the answer.
///
/// # Errors
/// [`Undecided`].
pub async fn ask(
    decider: &dyn Decider,
    kind: Kind,
    json: String,
    timeout_ms: i32,
) -> Result<String, Undecided> {
    let (reply, answer) = oneshot::channel();
    decider.ask(Question { kind, json, reply });
    let timeout = DECISION_TIMEOUT_MIN.max(Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)));
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(json)) => Ok(json),
        Ok(Err(_)) => Err(Undecided::Refused),
        Err(_) => Err(Undecided::TimedOut(timeout)),
    }
}
