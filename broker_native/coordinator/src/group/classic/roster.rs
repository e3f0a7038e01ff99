//! The members of a classic group, their leader, the protocols that all of them support. Counts are kept, so that joining costs the same in a
//! large group as in a small one.
use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;

use super::member::{ClassicMember, detached};
use crate::Ticket;
use pylog_wire::messages::JoinGroupRequest;
use pylog_wire::messages::join_group::JoinGroupRequestProtocol;

/// The members. There is a leader exactly when there are members.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    members: BTreeMap<String, ClassicMember>,
    /// Member ids of the static members by their instance ids.
    instances: HashMap<String, String>,
    leader: Option<String>,
    /// How many members' JoinGroups wait.
    awaiting_join: usize,
    /// How many members support a protocol.
    speakers: HashMap<String, usize>,
    bytes: usize,
}

impl Roster {
    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// About how many bytes the members take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives a member its assignment.
    pub fn assign(&mut self, member_id: &str, assignment: Bytes) {
        if let Some(member) = self.members.get_mut(member_id) {
            self.bytes += assignment.len();
            self.bytes = self.bytes.saturating_sub(member.assignment.len());
            member.assignment = assignment;
        }
    }

    /// All members, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &ClassicMember> {
        self.members.values()
    }

    /// All ids.
    pub fn ids(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// The member with this id.
    pub fn get(&self, member_id: &str) -> Option<&ClassicMember> {
        self.members.get(member_id)
    }

    /// The member with this id; what the roster counts is changed by its own methods only.
    pub fn get_mut(&mut self, member_id: &str) -> Option<&mut ClassicMember> {
        self.members.get_mut(member_id)
    }

    /// Whether there is a member with this id.
    pub fn contains(&self, member_id: &str) -> bool {
        self.members.contains_key(member_id)
    }

    /// The id of the static member with this instance id.
    pub fn static_member(&self, instance_id: &str) -> Option<&str> {
        self.instances.get(instance_id).map(String::as_str)
    }

    /// The leader's id.
    pub fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    /// Whether this member leads.
    pub fn is_leader(&self, member_id: &str) -> bool {
        self.leader() == Some(member_id)
    }

    /// How many members' JoinGroups wait.
    pub fn awaiting_join(&self) -> usize {
        self.awaiting_join
    }

    /// Whether every member's JoinGroup waits.
    pub fn all_await_join(&self) -> bool {
        self.awaiting_join == self.members.len()
    }

    /// The largest of the members' rebalance time-outs; 0 without members.
    pub fn rebalance_timeout_ms(&self) -> i64 {
        self.iter().map(|member| i64::from(member.rebalance_timeout_ms)).max().unwrap_or_default().max(0)
    }

    /// Adds a member; the first one leads.
    pub fn add(&mut self, member: ClassicMember) {
        self.remove(&member.member_id);
        self.count_protocols(&member.protocols, true);
        self.bytes += member.bytes();
        self.awaiting_join += usize::from(member.awaits_join());
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), member.member_id.clone());
        }
        self.leader.get_or_insert_with(|| member.member_id.clone());
        self.members.insert(member.member_id.clone(), member);
    }

    /// Removes a member. When it led, another one leads.
    pub fn remove(&mut self, member_id: &str) -> Option<ClassicMember> {
        let member = self.members.remove(member_id)?;
        self.count_protocols(&member.protocols, false);
        self.bytes = self.bytes.saturating_sub(member.bytes());
        self.awaiting_join -= usize::from(member.awaits_join());
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Gives a static member another id; the tickets that waited are given back first.
    pub fn rename(&mut self, old_id: &str, new_id: &str) -> (Option<Ticket>, Option<Ticket>) {
        let led = self.is_leader(old_id);
        let Some(mut member) = self.remove(old_id) else { return (None, None) };
        let waited = (member.join.take(), member.sync.take());
        member.member_id = new_id.to_owned();
        member.is_new = false;
        self.add(member);
        if led {
            self.leader = Some(new_id.to_owned());
        }
        waited
    }

    /// Takes what a member that joins again says about itself, and its new ticket; the ticket that it had is given back.
    pub fn update(&mut self, member_id: &str, request: &JoinGroupRequest, ticket: Ticket) -> Option<Ticket> {
        let mut member = self.members.remove(member_id)?;
        self.count_protocols(&member.protocols, false);
        self.bytes = self.bytes.saturating_sub(member.bytes());
        member.protocols = detached(&request.protocols);
        self.bytes += member.bytes();
        self.count_protocols(&member.protocols, true);
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        member.session_timeout_ms = request.session_timeout_ms;
        let earlier = member.join.replace(ticket);
        self.awaiting_join += usize::from(earlier.is_none());
        self.members.insert(member_id.to_owned(), member);
        earlier
    }

    /// Takes the ticket of a member's JoinGroup that waits.
    pub fn take_join(&mut self, member_id: &str) -> Option<Ticket> {
        let ticket = self.members.get_mut(member_id)?.join.take();
        self.awaiting_join -= usize::from(ticket.is_some());
        ticket
    }

    /// Whether all members support the protocol.
    fn is_common(&self, protocol: &str) -> bool {
        self.speakers.get(protocol).copied().unwrap_or_default() == self.members.len()
    }

    /// Whether all members support one of these protocols.
    pub fn any_is_common(&self, protocols: &[JoinGroupRequestProtocol]) -> bool {
        protocols.iter().any(|protocol| self.is_common(&protocol.name))
    }

    /// The protocol that gets most votes, of those that all members support; the first by name when votes are equal.
    pub fn select_protocol(&self) -> Option<String> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for choice in self.iter().filter_map(|member| member.vote(|protocol| self.is_common(protocol))) {
            *votes.entry(choice).or_default() += 1;
        }
        let most = votes.values().max()?;
        votes.iter().find(|(_, count)| *count == most).map(|(protocol, _)| (*protocol).to_owned())
    }

    /// Makes a member that has joined the leader if the present one has not; `false` when nobody has joined.
    pub fn elect_joined_leader(&mut self) -> bool {
        if self.leader.as_ref().and_then(|id| self.members.get(id)).is_some_and(ClassicMember::awaits_join) {
            return true;
        }
        let Some(joined) = self.members.values().find(|member| member.awaits_join()) else { return false };
        self.leader = Some(joined.member_id.clone());
        true
    }

    /// Makes a member the leader; for what is read from the log.
    pub fn set_leader(&mut self, member_id: &str) {
        if self.contains(member_id) {
            self.leader = Some(member_id.to_owned());
        }
    }

    /// A protocol that a member names twice counts once.
    fn count_protocols(&mut self, protocols: &[JoinGroupRequestProtocol], more: bool) {
        let names: HashSet<&str> = protocols.iter().map(|protocol| protocol.name.as_str()).collect();
        for name in names {
            let speakers = self.speakers.get(name).copied().unwrap_or_default();
            match if more { speakers + 1 } else { speakers.saturating_sub(1) } {
                0 => self.speakers.remove(name),
                count => self.speakers.insert(name.to_owned(), count),
            };
        }
    }
}
