//! What a fetcher has asked of its leader, so that a request names only what changed (KIP-227). Pure.
//!
//! The leader remembers the partitions of a session. A request with session epoch 0 names all and begins one; each later
//! request names those that moved on, are new, or are to be forgotten. Whenever the two sides may disagree (an error, a
//! broken connection), everything is named again.
use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::machine::Position;
use pylog_wire::messages::FetchRequest;
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic, ForgottenTopic};

/// A partition, as a fetch names it.
pub type Key = (Uuid, i32);

/// See the module.
#[derive(Debug, Default)]
pub struct Session {
    id: i32,
    /// Of the next request; 0: it names everything.
    epoch: i32,
    wanted: BTreeMap<Key, Position>,
    /// Wanted, and not as the leader knows it.
    changed: BTreeSet<Key>,
    /// What the leader's session has.
    known: BTreeSet<Key>,
    /// Known, and not wanted.
    unwanted: BTreeSet<Key>,
    /// Full requests so far: each begins with another partition, so that none starves where no session is to be had.
    turns: usize,
}

impl Session {
    /// Wants records of `key` from there on.
    pub fn want(&mut self, key: Key, position: Position) {
        if self.wanted.insert(key, position) != Some(position) {
            self.changed.insert(key);
            self.unwanted.remove(&key);
        }
    }

    /// Wants nothing of `key`.
    pub fn drop(&mut self, key: &Key) {
        if self.wanted.remove(key).is_some() {
            self.changed.remove(key);
            if self.known.contains(key) {
                self.unwanted.insert(*key);
            }
        }
    }

    /// From where records of `key` were asked.
    pub fn asked(&self, key: &Key) -> Option<&Position> {
        self.wanted.get(key)
    }

    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The part of the next request that concerns partitions.
    pub fn request(&mut self, partition_max_bytes: i32) -> FetchRequest {
        let mut request =
            FetchRequest { session_id: self.id, session_epoch: self.epoch, ..FetchRequest::default() };
        if self.epoch == 0 {
            let first = (self.turns * 16) % self.wanted.len().max(1);
            self.turns = self.turns.wrapping_add(1);
            let all = self.wanted.iter().skip(first).chain(self.wanted.iter().take(first));
            request.topics = topics(all.map(|(key, at)| (*key, *at)), partition_max_bytes);
            self.known = self.wanted.keys().copied().collect();
        } else {
            let changed = self.changed.iter().filter_map(|key| Some((*key, *self.wanted.get(key)?)));
            request.topics = topics(changed, partition_max_bytes);
            request.forgotten_topics_data = forgotten(self.unwanted.iter().copied());
            self.unwanted.iter().for_each(|key| _ = self.known.remove(key));
            self.known.extend(&self.changed);
        }
        self.changed.clear();
        self.unwanted.clear();
        request
    }

    /// The request was answered without an error of the session, in session `id` (0: there is none).
    pub fn answered(&mut self, id: i32) {
        let ended = id == 0 || (self.epoch > 0 && id != self.id);
        self.id = id;
        self.epoch = match self.epoch {
            _ if ended => 0,
            i32::MAX => 1,
            epoch => epoch + 1,
        };
    }

    /// Names everything in the next request, which also ends the session that was.
    pub fn begin_again(&mut self) {
        self.epoch = 0;
    }

    /// The leader has no such session.
    pub fn lost(&mut self) {
        (self.id, self.epoch) = (0, 0);
    }
}

fn topics(partitions: impl Iterator<Item = (Key, Position)>, max_bytes: i32) -> Vec<FetchTopic> {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for ((topic_id, partition), at) in partitions {
        if topics.last().is_none_or(|last| last.topic_id != topic_id) {
            topics.push(FetchTopic { topic_id, ..FetchTopic::default() });
        }
        if let Some(topic) = topics.last_mut() {
            topic.partitions.push(FetchPartition {
                partition,
                current_leader_epoch: at.leader_epoch,
                fetch_offset: at.offset,
                last_fetched_epoch: at.last_fetched_epoch,
                log_start_offset: at.log_start_offset,
                partition_max_bytes: max_bytes,
                ..FetchPartition::default()
            });
        }
    }
    topics
}

fn forgotten(keys: impl Iterator<Item = Key>) -> Vec<ForgottenTopic> {
    let mut topics: Vec<ForgottenTopic> = Vec::new();
    for (topic_id, partition) in keys {
        match topics.last_mut().filter(|last| last.topic_id == topic_id) {
            Some(topic) => topic.partitions.push(partition),
            None => {
                topics.push(ForgottenTopic { topic_id, partitions: vec![partition], ..Default::default() })
            }
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: i64) -> Position {
        Position { leader_epoch: 1, offset, last_fetched_epoch: 1, log_start_offset: 0 }
    }

    fn key(partition: i32) -> Key {
        (Uuid::from_u128(1), partition)
    }

    fn named(request: &FetchRequest) -> Vec<(i32, i64)> {
        let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
        let mut named: Vec<_> = partitions.map(|one| (one.partition, one.fetch_offset)).collect();
        named.sort_unstable();
        named
    }

    fn begun(partitions: i32) -> Session {
        let mut session = Session::default();
        (0..partitions).for_each(|one| session.want(key(one), at(0)));
        let request = session.request(100);
        assert_eq!((request.session_id, request.session_epoch), (0, 0));
        assert_eq!(named(&request).len(), partitions as usize);
        session.answered(7);
        session
    }

    #[test]
    fn only_what_changed_is_named() {
        let mut session = begun(3);
        session.want(key(1), at(5));
        session.want(key(2), at(0));
        let request = session.request(100);
        assert_eq!((request.session_id, request.session_epoch), (7, 1));
        assert_eq!(named(&request), [(1, 5)]);
        session.answered(7);
        let request = session.request(100);
        assert_eq!((request.session_epoch, named(&request)), (2, vec![]));
    }

    #[test]
    fn what_is_not_wanted_any_more_is_forgotten_once() {
        let mut session = begun(3);
        session.drop(&key(0));
        session.want(key(9), at(1));
        session.drop(&key(9));
        let request = session.request(100);
        assert_eq!(request.forgotten_topics_data[0].partitions, [0], "9 was never told");
        session.answered(7);
        assert!(session.request(100).forgotten_topics_data.is_empty());
    }

    #[test]
    fn a_partition_that_is_wanted_again_is_named_again() {
        let mut session = begun(2);
        session.drop(&key(0));
        session.request(100);
        session.answered(7);
        session.want(key(0), at(0));
        assert_eq!(named(&session.request(100)), [(0, 0)]);
    }

    #[test]
    fn everything_is_named_after_a_break_and_the_old_session_ended() {
        let mut session = begun(3);
        session.request(100);
        session.begin_again();
        let request = session.request(100);
        assert_eq!((request.session_id, request.session_epoch, named(&request).len()), (7, 0, 3));
        session.answered(8);
        assert_eq!(session.request(100).session_id, 8);
        session.lost();
        let request = session.request(100);
        assert_eq!((request.session_id, request.session_epoch, named(&request).len()), (0, 0, 3));
    }

    #[test]
    fn without_room_for_a_session_every_request_names_everything_in_turn() {
        let mut session = Session::default();
        (0..40).for_each(|one| session.want(key(one), at(0)));
        let mut firsts = Vec::new();
        for _ in 0..3 {
            let request = session.request(100);
            assert_eq!((request.session_epoch, named(&request).len()), (0, 40));
            firsts.push(request.topics[0].partitions[0].partition);
            session.answered(0);
        }
        assert_eq!(firsts, [0, 16, 32]);
    }
}
