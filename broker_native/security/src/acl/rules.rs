//! All ACLs, indexed: an access is decided by a look at its name, at the prefixes of its name, and at `*`, whatever other ACLs there are.
//!
//! An ACL is found by its resource's type, then its pattern, then its principal. Of prefixes only those are looked at that an ordered map
//! has: at most two looks for each byte of the name.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Bound;

use super::{AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType, WILDCARD};
use crate::principal::{Principal, USER};

/// From where an ACL holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Every,
    Address(IpAddr),
    /// A text that is no address: it is kept and described, and nobody comes from there.
    Nowhere,
}

#[derive(Debug, Clone)]
struct Rule {
    host: Host,
    operation: Operation,
    permission: Permission,
}

/// What a pattern's ACLs say: of principals, and of everybody.
#[derive(Debug, Default)]
struct PatternRules {
    of: HashMap<Principal, Vec<Rule>>,
    of_everybody: Vec<Rule>,
}

/// The patterns of one type of resource.
#[derive(Debug, Default)]
struct TypeRules {
    literal: HashMap<String, PatternRules>,
    prefixed: BTreeMap<String, PatternRules>,
    wildcard: Option<PatternRules>,
    /// Patterns that name a principal, and those that name everybody.
    named_by: HashMap<Principal, BTreeSet<(PatternType, String)>>,
    named_by_everybody: BTreeSet<(PatternType, String)>,
}

/// What the ACLs say about an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclMatch {
    /// One denies it.
    Denied,
    /// One allows it, and none denies it.
    Allowed,
    /// There are ACLs for the resource, none of which is about this access.
    NotMentioned,
    /// There is no ACL for the resource.
    NoAcl,
}

/// All ACLs of a cluster. Made whole, and never changed.
#[derive(Debug, Default)]
pub struct Rules {
    types: [TypeRules; ResourceType::ALL.len()],
    /// All of them, in the order in which they are described.
    acls: BTreeSet<AclBinding>,
}

impl Rules {
    /// Indexes the ACLs; one that is there twice counts once.
    pub fn new(acls: impl IntoIterator<Item = AclBinding>) -> Self {
        let acls: BTreeSet<_> = acls.into_iter().collect();
        let mut types: [TypeRules; ResourceType::ALL.len()] = Default::default();
        for acl in &acls {
            if let Some(rules) = types.get_mut(acl.pattern.resource_type.index()) {
                rules.add(acl);
            }
        }
        Self { types, acls }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.acls.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.acls.is_empty()
    }

    /// The ACLs that the filter means, those of one pattern behind each other.
    pub fn matching<'a>(&'a self, filter: &'a AclFilter) -> impl Iterator<Item = &'a AclBinding> {
        self.acls.iter().filter(|acl| filter.matches(acl))
    }

    /// What the ACLs say about `operation` on the resource called `name`.
    pub fn match_of(
        &self,
        principal: &Principal,
        host: IpAddr,
        operation: Operation,
        (resource_type, name): (ResourceType, &str),
    ) -> AclMatch {
        let Some(rules) = self.types.get(resource_type.index()) else { return AclMatch::NoAcl };
        let mut found = AclMatch::NoAcl;
        for pattern in rules.of_name(name) {
            match pattern.match_of(principal, host, operation) {
                AclMatch::Denied => return AclMatch::Denied,
                AclMatch::Allowed => found = AclMatch::Allowed,
                AclMatch::NotMentioned if found == AclMatch::NoAcl => found = AclMatch::NotMentioned,
                AclMatch::NotMentioned | AclMatch::NoAcl => {}
            }
        }
        found
    }

    /// Whether ACLs allow `operation` on some resource of the type: on `*`, or on a name or a prefix that no denial covers. As in Kafka,
    /// other operations imply nothing here.
    pub fn allow_some(
        &self,
        principal: &Principal,
        host: IpAddr,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let Some(rules) = self.types.get(resource_type.index()) else { return false };
        let (mut allowed, mut denied) = (Vec::new(), HashSet::new());
        let own = rules.named_by.get(principal).into_iter().flatten();
        for (pattern_type, name) in own.chain(&rules.named_by_everybody) {
            let Some(pattern) = rules.pattern(*pattern_type, name) else { continue };
            let says = |permission| pattern.says(principal, host, operation, permission);
            let is_wildcard = *pattern_type == PatternType::Literal && name == WILDCARD;
            if says(Permission::Deny) {
                if is_wildcard {
                    return false;
                }
                denied.insert((*pattern_type, name.as_str()));
            }
            if says(Permission::Allow) {
                allowed.push((*pattern_type, name.as_str()));
            }
        }
        allowed.into_iter().any(|(pattern_type, name)| {
            let is_wildcard = pattern_type == PatternType::Literal && name == WILDCARD;
            is_wildcard
                || !(pattern_type == PatternType::Literal && denied.contains(&(pattern_type, name))
                    || beginnings(name).any(|beginning| denied.contains(&(PatternType::Prefixed, beginning))))
        })
    }
}

impl TypeRules {
    fn add(&mut self, acl: &AclBinding) {
        let (name, pattern_type) = (&acl.pattern.name, acl.pattern.pattern_type);
        let pattern = match pattern_type {
            PatternType::Literal if name == WILDCARD => self.wildcard.get_or_insert_default(),
            PatternType::Literal => self.literal.entry(name.clone()).or_default(),
            PatternType::Prefixed => self.prefixed.entry(name.clone()).or_default(),
        };
        let rule = Rule {
            host: Host::of(&acl.entry.host),
            operation: acl.entry.operation,
            permission: acl.entry.permission,
        };
        let named = match acl.entry.principal.split_once(':') {
            Some((USER, WILDCARD)) => {
                pattern.of_everybody.push(rule);
                &mut self.named_by_everybody
            }
            _ => {
                // What is no principal is nobody: it is kept and described, and holds for no one.
                let Ok(principal) = acl.entry.principal.parse::<Principal>() else { return };
                pattern.of.entry(principal.clone()).or_default().push(rule);
                self.named_by.entry(principal).or_default()
            }
        };
        named.insert((pattern_type, name.clone()));
    }

    fn pattern(&self, pattern_type: PatternType, name: &str) -> Option<&PatternRules> {
        match pattern_type {
            PatternType::Literal if name == WILDCARD => self.wildcard.as_ref(),
            PatternType::Literal => self.literal.get(name),
            PatternType::Prefixed => self.prefixed.get(name),
        }
    }

    /// The patterns that match a name.
    fn of_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a PatternRules> {
        let prefixes = Prefixes { of: name, left: Some(name), all: &self.prefixed };
        self.literal.get(name).into_iter().chain(&self.wildcard).chain(prefixes)
    }
}

/// The prefixes of a name that a map has, the longest first.
struct Prefixes<'a> {
    of: &'a str,
    /// Those that are left begin as this does, or are it.
    left: Option<&'a str>,
    all: &'a BTreeMap<String, PatternRules>,
}

impl<'a> Iterator for Prefixes<'a> {
    type Item = &'a PatternRules;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(left) = self.left {
            // What is between a prefix and the name in the map's order has the prefix, too, or is longer than it.
            let (key, rules) =
                self.all.range::<str, _>((Bound::Unbounded, Bound::Included(left))).next_back()?;
            let common = common_len(self.of, key);
            if common == key.len() {
                self.left = shortened(self.of, common);
                return Some(rules);
            }
            self.left = self.of.get(..common);
        }
        None
    }
}

/// The bytes that both begin with, as whole characters.
fn common_len(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    same.map(|(char, _)| char.len_utf8()).sum()
}

/// The first `len` bytes without their last character.
fn shortened(name: &str, len: usize) -> Option<&str> {
    let (last, _) = name.get(..len)?.char_indices().next_back()?;
    name.get(..last)
}

/// All beginnings of a name, the empty one left out.
fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    name.char_indices().filter_map(|(at, char)| name.get(..at + char.len_utf8()))
}

impl PatternRules {
    fn rules_of(&self, principal: &Principal) -> impl Iterator<Item = &Rule> {
        self.of.get(principal).into_iter().flatten().chain(&self.of_everybody)
    }

    fn match_of(&self, principal: &Principal, host: IpAddr, operation: Operation) -> AclMatch {
        let mut found = AclMatch::NotMentioned;
        for rule in self.rules_of(principal).filter(|rule| rule.host.holds_for(host)) {
            match rule.permission {
                Permission::Deny if rule.operation.denies(operation) => return AclMatch::Denied,
                Permission::Allow if rule.operation.implies(operation) => found = AclMatch::Allowed,
                Permission::Deny | Permission::Allow => {}
            }
        }
        found
    }

    /// Whether one says just this about the operation, or about all.
    fn says(
        &self,
        principal: &Principal,
        host: IpAddr,
        operation: Operation,
        permission: Permission,
    ) -> bool {
        let of_host = |rule: &&Rule| rule.host.holds_for(host);
        self.rules_of(principal)
            .filter(of_host)
            .any(|rule| rule.permission == permission && rule.operation.denies(operation))
    }
}

impl Host {
    fn of(text: &str) -> Self {
        match text {
            WILDCARD => Self::Every,
            text => {
                text.parse().map_or(Self::Nowhere, |address: IpAddr| Self::Address(address.to_canonical()))
            }
        }
    }

    fn holds_for(&self, host: IpAddr) -> bool {
        match self {
            Self::Every => true,
            Self::Address(address) => *address == host.to_canonical(),
            Self::Nowhere => false,
        }
    }
}
