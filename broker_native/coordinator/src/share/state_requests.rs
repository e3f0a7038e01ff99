//! Events and answers of the states of share partitions: what leaders and administrators ask of [`super::state`].
use super::requests::ShareKey;
use crate::Ticket;
use pylog_wire::ErrorCode;
use pylog_wire::stored::shares::StateBatch;

/// Stands for a start offset that is not known yet.
pub const UNKNOWN: i64 = -1;

/// A request about the state of a share partition.
#[derive(Debug, Clone, PartialEq)]
pub struct StateEvent {
    /// Where the answer goes.
    pub ticket: Ticket,
    /// Which one.
    pub key: ShareKey,
    /// What.
    pub request: StateRequest,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum StateRequest {
    /// It begins, or begins anew with a higher state epoch.
    Initialize {
        /// How often an administrator set the start offset.
        state_epoch: i32,
        /// [`UNKNOWN`]: its leader will say.
        start_offset: i64,
    },
    /// A leader asks what there is; leaders before it are fenced.
    Read {
        /// Its epoch.
        leader_epoch: i32,
    },
    /// A leader says what became of records.
    Write(Written),
    /// It ends.
    Delete,
    /// An administrator asks.
    Summary,
}

/// What a leader says.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// That of the state that it knows.
    pub state_epoch: i32,
    /// Its own.
    pub leader_epoch: i32,
    /// [`UNKNOWN`]: it stays.
    pub start_offset: i64,
    /// Runs of offsets behind it.
    pub batches: Vec<StateBatch>,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum StateReply {
    /// To [`StateRequest::Read`].
    Read(Result<StoredState, ErrorCode>),
    /// To [`StateRequest::Initialize`], [`StateRequest::Write`], [`StateRequest::Delete`].
    Done(ErrorCode),
    /// To [`StateRequest::Summary`]; `None`: it is not there.
    Summary(Option<Summary>),
}

/// What a leader goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredState {
    /// How often an administrator set the start offset.
    pub state_epoch: i32,
    /// Everything before it is done with; [`UNKNOWN`] until its leader says.
    pub start_offset: i64,
    /// Runs of offsets behind it.
    pub batches: Vec<StateBatch>,
}

/// A share partition as an administrator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// How often an administrator set the start offset.
    pub state_epoch: i32,
    /// Who read or wrote it last.
    pub leader_epoch: i32,
    /// Everything before it is done with; [`UNKNOWN`] until its leader says.
    pub start_offset: i64,
    /// Offsets behind it that are done with.
    pub complete_count: i32,
}
