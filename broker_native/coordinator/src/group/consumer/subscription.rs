//! Topics behind names and regular expressions, and how a group notices that they changed.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use uuid::Uuid;

use super::change::{ConsumerChange, Resolved};
use super::group::ConsumerGroup;
use super::member::ConsumerMember;
use crate::group::context::{GroupContext, TopicsView};

/// Memory that a compiled expression may take: 256 KiB is some thousand characters.
const REGEX_BYTES_MAX: usize = 256 * 1024;

/// A topic that a member is subscribed to.
pub type TopicCounts = BTreeMap<Uuid, i32>;

/// Compiles an expression that must match whole names. Its syntax is that of RE2 (no look-around, no references back), in
/// time linear in the name's length.
///
/// # Errors
/// What is wrong with it, in a few words.
pub fn compile(regex: &str) -> Result<Regex, String> {
    // By itself first: `a)(b` is only right between parentheses.
    let build = |text: &str| {
        RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build().map_err(|error| reason(&error))
    };
    build(regex)?;
    build(&format!("^(?:{regex})$"))
}

/// The last line of the crate's drawing says what is wrong.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").trim_end_matches('.').to_owned()
}

/// Matches all topics. One that cannot be compiled, which no member can bring in, matches none.
fn resolve(regex: &str, topics: &Arc<dyn TopicsView>) -> BTreeSet<String> {
    let Ok(regex) = compile(regex) else { return BTreeSet::new() };
    topics.names().into_iter().filter(|name| regex.is_match(name)).collect()
}

impl ConsumerGroup {
    /// The topics that a member is subscribed to and that exist.
    pub(super) fn topics_of(&self, member: &ConsumerMember, topics: &Arc<dyn TopicsView>) -> TopicCounts {
        let matched =
            member.regex().and_then(|regex| self.regexes.get(regex)).map(|resolved| &resolved.topics);
        let names = member.subscribed_topic_names.iter().chain(matched.into_iter().flatten());
        names.filter_map(|name| topics.topic(name)).collect()
    }

    /// Writes who the member is now and resolves its expression; whether its subscription changed.
    pub(super) fn subscribe(
        &mut self,
        before: &ConsumerMember,
        now: &ConsumerMember,
        cx: &mut GroupContext<'_>,
    ) -> bool {
        if before == now && self.members.contains_key(&now.member_id) {
            return false;
        }
        self.emit(ConsumerChange::Member(now.member_id.clone(), Some(Box::new(now.clone()))), cx);
        let regex_changed = before.regex() != now.regex();
        if regex_changed {
            self.forget_regex(before.regex(), cx);
            if let Some(regex) = now.regex().filter(|regex| !self.regexes.contains_key(*regex)) {
                self.resolve(regex, cx);
            }
        }
        regex_changed || before.subscribed_topic_names != now.subscribed_topic_names
    }

    /// Forgets an expression that no member has any more.
    pub(super) fn forget_regex(&mut self, regex: Option<&str>, cx: &mut GroupContext<'_>) {
        let Some(regex) = regex else { return };
        if !self.members.values().any(|member| member.regex() == Some(regex))
            && self.regexes.contains_key(regex)
        {
            self.emit(ConsumerChange::Regex(regex.to_owned(), None), cx);
        }
    }

    fn resolve(&mut self, regex: &str, cx: &mut GroupContext<'_>) {
        let resolved = Resolved {
            topics: resolve(regex, cx.topics),
            version: i64::try_from(cx.topics.version()).unwrap_or(i64::MAX),
            timestamp_ms: cx.now_ms,
        };
        self.emit(ConsumerChange::Regex(regex.to_owned(), Some(resolved)), cx);
    }

    /// Looks at the topics when they are not those of the last look: matches the expressions again. Whether it had to.
    pub(super) fn look_at_topics(&mut self, cx: &mut GroupContext<'_>) -> bool {
        if self.topics_seen == Some(cx.topics.version()) {
            return false;
        }
        self.topics_seen = Some(cx.topics.version());
        let outdated: Vec<String> = self
            .regexes
            .iter()
            .filter(|(regex, resolved)| resolve(regex, cx.topics) != resolved.topics)
            .map(|(regex, _)| regex.clone())
            .collect();
        for regex in outdated {
            self.resolve(&regex, cx);
        }
        true
    }

    /// A number that changes when a topic that the group is subscribed to comes, goes, grows or is made anew; 0 without topics.
    pub(super) fn hash_topics(&self, topics: &Arc<dyn TopicsView>) -> i64 {
        let matched = self.regexes.values().flat_map(|resolved| &resolved.topics);
        let named = self.members.values().flat_map(|member| &member.subscribed_topic_names);
        let names: BTreeSet<&String> = named.chain(matched).collect();
        hash_topics(names, topics)
    }

    /// Raises the group's epoch when `needed`, or when its topics are not those of its epoch.
    pub(super) fn raise_epoch_if(&mut self, needed: bool, cx: &mut GroupContext<'_>) {
        let metadata_hash = self.hash_topics(cx.topics);
        if needed || metadata_hash != self.metadata_hash {
            self.emit(ConsumerChange::Epoch { epoch: self.group_epoch.saturating_add(1), metadata_hash }, cx);
        }
    }
}

/// A number that changes when one of these topics comes, goes, grows or is made anew; 0 when none is there.
pub fn hash_topics(names: BTreeSet<&String>, topics: &Arc<dyn TopicsView>) -> i64 {
    let mut hash = Fnv::default();
    for name in names {
        if let Some((id, partitions)) = topics.topic(name) {
            hash.add(&(name.len() as u64).to_be_bytes());
            hash.add(name.as_bytes());
            hash.add(id.as_bytes());
            hash.add(&partitions.to_be_bytes());
        }
    }
    hash.finish()
}

/// FNV-1a of 64 bits: the same on every machine and in every version, which a record needs.
#[derive(Default)]
struct Fnv(Option<u64>);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        let start = self.0.unwrap_or(0xcbf2_9ce4_8422_2325);
        self.0 = Some(
            bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)),
        );
    }

    fn finish(self) -> i64 {
        self.0.map_or(0, |hash| hash as i64)
    }
}
