//! Events, answers and actions of share partitions.
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::settings::GroupSettings;
use crate::Ticket;
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::AcknowledgementBatch;

/// Which share partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareKey {
    /// Whose.
    pub group_id: String,
    /// Of which topic.
    pub topic_id: Uuid,
    /// Which partition of it.
    pub partition: i32,
}

impl ShareKey {
    /// The text that says which partition of `__share_group_state` keeps it, as in Kafka.
    pub fn text(&self) -> String {
        let Self { group_id, topic_id, partition } = self;
        format!("{group_id}:{}:{partition}", URL_SAFE_NO_PAD.encode(topic_id.as_bytes()))
    }

    /// Whether a text is of that form.
    pub fn is_text(text: &str) -> bool {
        let mut parts = text.rsplitn(3, ':');
        let partition = parts.next().and_then(|number| number.parse::<i32>().ok());
        let topic_id = parts.next().is_some_and(|id| id.len() == ID_TEXT_LEN);
        partition.is_some_and(|number| number >= 0)
            && topic_id
            && parts.next().is_some_and(|group| !group.is_empty())
    }
}

/// Characters of Kafka's text form of an id: base64 for URLs, without padding.
const ID_TEXT_LEN: usize = 22;

/// The offsets of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// Its first one.
    pub start: i64,
    /// Behind its last one.
    pub end: i64,
}

/// A batch of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBatch {
    /// Its first offset.
    pub first_offset: i64,
    /// Its last one.
    pub last_offset: i64,
    /// Nothing in it is for members: markers of transactions, and what was aborted for a group that reads committed records only.
    pub is_void: bool,
}

/// Records that a member has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acquired {
    /// The first.
    pub first_offset: i64,
    /// The last.
    pub last_offset: i64,
    /// How often they were delivered, this time included.
    pub delivery_count: i16,
}

/// A request to a share partition.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareEvent {
    /// Where the answer goes.
    pub ticket: Ticket,
    /// Which one.
    pub key: ShareKey,
    /// Its group's settings.
    pub settings: GroupSettings,
    /// What.
    pub request: ShareRequest,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ShareRequest {
    /// From where on is to be read for the next request. A share partition that does not exist yet begins.
    Next {
        /// What the log has.
        log: LogRange,
        /// Where one begins that is made; `None`: none is.
        begin: Option<i64>,
    },
    /// Records for a member, of what was read.
    Acquire {
        /// Whom for.
        member_id: String,
        /// The offset that was read from.
        from: i64,
        /// What the log has there.
        batches: Vec<LogBatch>,
        /// The number of records that are wanted.
        max_records: i64,
        /// None more.
        exact: bool,
    },
    /// A member says what became of records.
    Acknowledge {
        /// Who.
        member_id: String,
        /// Of which.
        batches: Vec<AcknowledgementBatch>,
    },
    /// A member is gone.
    Release {
        /// Who.
        member_id: String,
    },
    /// A share partition of which no member holds a record is read anew from where it is kept: another broker may have set it.
    Refresh,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShareReply {
    /// To [`ShareRequest::Next`]; `None`: the most records that are allowed are in flight.
    Next(Result<Option<i64>, ErrorCode>),
    /// To [`ShareRequest::Acquire`].
    Acquired(Vec<Acquired>),
    /// To [`ShareRequest::Acknowledge`], [`ShareRequest::Release`], [`ShareRequest::Refresh`].
    Done(ErrorCode),
}

/// What a step of the share partitions of a leader gives.
#[derive(Debug, Default)]
pub struct ShareEffects {
    /// Those that are to be written down.
    pub changed: Vec<ShareKey>,
    /// Groups whose members may find records that they did not find before.
    pub woken: Vec<String>,
    /// Answers.
    pub replies: Vec<(Ticket, ShareReply)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_partition_is_kept_where_kafka_keeps_it() {
        let topic_id = Uuid::from_u128(0xfedc_ba98_7654_3210_0123_4567_89ab_cdef);
        let key = ShareKey { group_id: "g".into(), topic_id, partition: 3 };
        assert_eq!(key.text(), "g:_ty6mHZUMhABI0VniavN7w:3");
        assert!(ShareKey::is_text(&key.text()) && ShareKey::is_text("a:b:_ty6mHZUMhABI0VniavN7w:3"));
        for wrong in [
            "g",
            "g:x:3",
            "_ty6mHZUMhABI0VniavN7w:3",
            ":_ty6mHZUMhABI0VniavN7w:3",
            "g:_ty6mHZUMhABI0VniavN7w:x",
        ] {
            assert!(!ShareKey::is_text(wrong));
        }
    }
}
