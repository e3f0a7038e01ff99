//! Events and answers of groups: the wire's own messages, one variant for each request.
//!
//! Each room of a request adds its variants here.
use crate::coordinator::{Caller, Ticket};

/// Somebody asks something of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupEvent {
    /// Where the answer goes.
    pub ticket: Ticket,
    /// Who asks.
    pub caller: Caller,
    /// What.
    pub request: GroupRequest,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupRequest {}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupReply {}
