//! What ACLs say, against Kafka's rules one by one, and against a model that looks at every ACL in turn.
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::filter::PatternTypeFilter;
use super::policy::super_users;
use super::rules::AclMatch;
use super::*;
use crate::principal::Principal;

const HERE: &str = "10.0.0.1";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn acl(
    (resource_type, pattern_type, name): (ResourceType, PatternType, &str),
    (permission, operation): (Permission, Operation),
    (principal, host): (&str, &str),
) -> AclBinding {
    AclBinding {
        pattern: Pattern { resource_type, name: name.into(), pattern_type },
        entry: Entry { principal: principal.into(), host: host.into(), operation, permission },
    }
}

/// An ACL of topics, from every host.
fn topic(
    pattern_type: PatternType,
    name: &str,
    permission: Permission,
    operation: Operation,
    principal: &str,
) -> AclBinding {
    acl((ResourceType::Topic, pattern_type, name), (permission, operation), (principal, WILDCARD))
}

fn policy(acls: Vec<AclBinding>) -> Policy {
    Policy::new(HashSet::new(), false).with(Arc::new(Rules::new(acls)))
}

fn allows(policy: &Policy, user: &str, operation: Operation, name: &str) -> bool {
    let access = Access { principal: &Principal::user(user), host: address(HERE), operation };
    policy.allows(access, (ResourceType::Topic, name)).is_allowed()
}

fn allows_any(acls: Vec<AclBinding>, user: &str) -> bool {
    let access =
        Access { principal: &Principal::user(user), host: address(HERE), operation: Operation::Write };
    policy(acls).allows_any(access, ResourceType::Topic).is_allowed()
}

use Operation::{Alter, AlterConfigs, Create, Delete, Describe, DescribeConfigs, Read, Write};
use PatternType::{Literal, Prefixed};
use Permission::{Allow, Deny};

#[test]
fn every_word_is_read_back_by_name_and_by_number() {
    for operation in Operation::ALL {
        assert_eq!(operation.name().to_lowercase().parse(), Ok(*operation));
        assert_eq!(Operation::from_code(operation.code()), Some(*operation));
    }
    for resource_type in ResourceType::ALL {
        assert_eq!(resource_type.name().parse(), Ok(*resource_type));
        assert_eq!(ResourceType::from_code(resource_type.code()), Some(*resource_type));
        assert!(resource_type.operations().iter().all(|operation| *operation != Operation::All));
    }
    assert_eq!(Operation::from_code(ANY), None, "any means something in a filter only");
    let error = "TOPICS".parse::<ResourceType>().unwrap_err().to_string();
    assert!(error.contains("TRANSACTIONAL_ID"), "{error}");
}

#[test]
fn without_an_acl_nobody_may_but_super_users_and_where_everyone_is_let_in() {
    assert!(!allows(&policy(Vec::new()), "alice", Read, "t"));
    let open = Policy::new(HashSet::new(), true);
    assert!(allows(&open, "alice", Read, "t"));
    let some = open.with(Arc::new(Rules::new([topic(Literal, "t", Allow, Read, "User:bob")])));
    assert!(!allows(&some, "alice", Read, "t"), "there is an ACL for it, of somebody else");
    assert!(allows(&some, "alice", Read, "u"));
    let admins = Policy::new(super_users("User:root; User:CN=a,O=b ;").unwrap(), false);
    let denied = admins.with(Arc::new(Rules::new([topic(Literal, "t", Deny, Operation::All, "User:*")])));
    assert!(allows(&denied, "root", Read, "t"), "whatever is denied");
    assert!(allows(&denied, "CN=a,O=b", Read, "t"));
    assert!(!allows(&denied, "alice", Read, "t"));
    assert!(super_users("root").is_err());
}

#[test]
fn a_denial_wins_over_every_allowance() {
    for deny in [
        topic(Literal, "tea", Deny, Read, "User:alice"),
        topic(Prefixed, "te", Deny, Read, "User:*"),
        topic(Literal, WILDCARD, Deny, Operation::All, "User:alice"),
    ] {
        let acls = vec![
            topic(Literal, "tea", Allow, Operation::All, "User:alice"),
            topic(Literal, WILDCARD, Allow, Read, "User:*"),
            deny,
        ];
        assert!(!allows(&policy(acls), "alice", Read, "tea"));
    }
}

#[test]
fn an_allowance_implies_to_describe_and_a_denial_implies_nothing() {
    for operation in [Read, Write, Delete, Alter] {
        let allowed = policy(vec![topic(Literal, "t", Allow, operation, "User:alice")]);
        assert!(allows(&allowed, "alice", Describe, "t"), "{operation}");
        let both = vec![
            topic(Literal, "t", Deny, operation, "User:alice"),
            topic(Literal, "t", Allow, Describe, "User:alice"),
        ];
        assert!(allows(&policy(both), "alice", Describe, "t"), "{operation}");
    }
    for operation in [Create, AlterConfigs, DescribeConfigs] {
        let allowed = policy(vec![topic(Literal, "t", Allow, operation, "User:alice")]);
        assert!(!allows(&allowed, "alice", Describe, "t"), "{operation}");
    }
    let configs = policy(vec![topic(Literal, "t", Allow, AlterConfigs, "User:alice")]);
    assert!(allows(&configs, "alice", DescribeConfigs, "t"));
}

#[test]
fn names_prefixes_and_the_wildcard_match_what_they_should() {
    let acls = vec![
        topic(Literal, "foo", Allow, Read, "User:l"),
        topic(Prefixed, "foo", Allow, Read, "User:p"),
        topic(Literal, WILDCARD, Allow, Read, "User:w"),
        topic(Prefixed, WILDCARD, Allow, Read, "User:star"),
    ];
    let policy = policy(acls);
    for (user, name, expected) in [
        ("l", "foo", true),
        ("l", "foobar", false),
        ("l", "fo", false),
        ("p", "foo", true),
        ("p", "foobar", true),
        ("p", "fo", false),
        ("p", "fop", false),
        ("w", "anything", true),
        ("w", WILDCARD, true),
        ("star", "*foo", true),
        ("star", "foo", false),
    ] {
        assert_eq!(allows(&policy, user, Read, name), expected, "{user} {name}");
    }
    let group = (ResourceType::Group, "foo");
    let access = Access { principal: &Principal::user("w"), host: address(HERE), operation: Read };
    assert_eq!(policy.allows(access, group), Decision::NotAllowed, "another type of resource");
}

#[test]
fn an_acl_of_a_host_holds_for_that_host_however_it_is_written() {
    let of = |host| {
        let what = (ResourceType::Topic, Literal, "t");
        Rules::new([acl(what, (Allow, Read), ("User:alice", host))])
    };
    let from = |rules: &Rules, host: &str| {
        rules.match_of(&Principal::user("alice"), address(host), Read, (ResourceType::Topic, "t"))
    };
    assert_eq!(from(&of(HERE), HERE), AclMatch::Allowed);
    assert_eq!(from(&of(HERE), "::ffff:10.0.0.1"), AclMatch::Allowed);
    assert_eq!(from(&of(HERE), "10.0.0.2"), AclMatch::NotMentioned);
    assert_eq!(from(&of("0:0:0:0:0:0:0:1"), "::1"), AclMatch::Allowed);
    assert_eq!(from(&of("example.org"), HERE), AclMatch::NotMentioned);
    assert_eq!(from(&of(WILDCARD), "::1"), AclMatch::Allowed);
}

#[test]
fn a_principal_has_a_type_and_everybody_is_a_user() {
    let acls = vec![topic(Literal, "t", Allow, Read, "User:*"), topic(Literal, "g", Allow, Read, "Group:*")];
    let rules = Rules::new(acls);
    let may = |principal: &str, name| {
        let principal = principal.parse::<Principal>().unwrap();
        rules.match_of(&principal, address(HERE), Read, (ResourceType::Topic, name)) == AclMatch::Allowed
    };
    assert!(may("User:a:b", "t"));
    assert!(may("Token:x", "t"), "as Kafka: everybody");
    assert!(!may("Group:x", "g"), "only User:* is everybody");
    assert!(may("Group:*", "g"));
}

/// Kafka's `testAuthorizeByResourceType*`.
#[test]
fn something_of_a_type_is_allowed_unless_denials_cover_all_that_is() {
    let (alice, all) = ("User:alice", "User:*");
    let of = |pattern_type, name, permission| topic(pattern_type, name, permission, Write, alice);
    for (acls, expected) in [
        (vec![], false),
        (vec![of(Literal, "a", Allow)], true),
        (vec![of(Literal, "a", Allow), of(Literal, "a", Deny)], false),
        (vec![of(Literal, "a", Allow), of(Literal, "b", Deny)], true),
        (vec![of(Literal, "ab", Allow), of(Prefixed, "a", Deny)], false),
        (vec![of(Prefixed, "ab", Allow), of(Prefixed, "a", Deny)], false),
        (vec![of(Prefixed, "a", Allow), of(Prefixed, "ab", Deny)], true),
        (vec![of(Prefixed, "a", Allow), of(Literal, "a", Deny)], true),
        (vec![of(Literal, WILDCARD, Allow), of(Prefixed, "a", Deny)], true),
        (vec![of(Literal, WILDCARD, Allow), of(Literal, WILDCARD, Deny)], false),
        (vec![of(Literal, "a", Allow), of(Literal, WILDCARD, Deny)], false),
        (vec![of(Literal, "a", Allow), topic(Literal, "a", Deny, Operation::All, all)], false),
        (vec![of(Literal, "a", Allow), topic(Literal, "a", Deny, Read, all)], true),
        (vec![topic(Literal, "a", Allow, Write, "User:bob")], false),
        (vec![topic(Literal, "a", Allow, Operation::All, all)], true),
        (vec![topic(Literal, "a", Allow, Read, all)], false),
    ] {
        assert_eq!(allows_any(acls.clone(), "alice"), expected, "{acls:?}");
    }
    let access =
        Access { principal: &Principal::user("alice"), host: address(HERE), operation: Operation::Write };
    let root = Policy::new(super_users(alice).unwrap(), false);
    assert!(root.allows_any(access, ResourceType::Topic).is_allowed());
    let open = Policy::new(HashSet::new(), true);
    assert_eq!(open.allows_any(access, ResourceType::Topic), Decision::AllowedWithoutAcl);
}

#[test]
fn what_is_wrong_with_a_new_acl_is_said_in_kafkas_order() {
    let new = |pattern, who, what| AclBinding::of_request(pattern, who, what).map(|acl| acl.to_string());
    let (who, read) = (("User:alice", WILDCARD), (Read.code(), Allow.code()));
    let sentence = |pattern, who, what| new(pattern, who, what).unwrap_err().to_string();
    assert_eq!(new((2, "t", 3), who, read).unwrap(), "ALLOW READ on TOPIC:LITERAL:t to User:alice from *");
    assert!(sentence((4, "other", 3), who, read).contains(CLUSTER_NAME));
    assert!(sentence((2, "", 3), who, read).contains("empty resource name"));
    assert_eq!(sentence((ANY, "t", 3), who, read), "Invalid resourceType ANY");
    assert_eq!(sentence((99, "t", 3), who, read), "Invalid resourceType UNKNOWN");
    assert_eq!(sentence((2, "t", MATCH), who, read), "Invalid patternType MATCH");
    assert_eq!(sentence((2, "t", 3), who, (ANY, 3)), "Invalid operation ANY");
    assert_eq!(sentence((2, "t", 3), who, (3, ANY)), "Invalid permissionType ANY");
    assert!(sentence((2, "t", 3), ("alice", "*"), read).contains("`alice`"));
    assert!(sentence((2, "t", 3), ("User:alice", ""), read).contains("host"));
}

#[test]
fn an_acl_is_read_from_json_with_kafkas_names() {
    let text = r#"{"resource_type": "TRANSACTIONAL_ID", "resource_name": "t", "pattern_type": "PREFIXED",
        "principal": "User:alice", "host": "*", "operation": "TWO_PHASE_COMMIT", "permission": "DENY"}"#;
    let read: AclBinding = serde_json::from_str(text).unwrap();
    assert_eq!(read.to_string(), "DENY TWO_PHASE_COMMIT on TRANSACTIONAL_ID:PREFIXED:t to User:alice from *");
    let error = serde_json::from_str::<AclBinding>(&text.replace("DENY", "MAYBE")).unwrap_err().to_string();
    assert!(error.contains("\"MAYBE\" is no permission of an ACL: use DENY, ALLOW"), "{error}");
}

#[test]
fn a_filter_means_the_acls_that_kafkas_would() {
    let pattern = |pattern_type, name: &str| Pattern {
        resource_type: ResourceType::Topic,
        name: name.into(),
        pattern_type,
    };
    let filter = |pattern_type, name: Option<&str>| AclFilter {
        pattern_type,
        name: name.map(str::to_owned),
        ..AclFilter::ALL
    };
    use PatternTypeFilter::{Any, Match, Only};
    for (wanted, name, have, expected) in [
        (Any, None, pattern(Prefixed, "a"), true),
        (Any, Some("ab"), pattern(Prefixed, "a"), false),
        (Any, Some("a"), pattern(Prefixed, "a"), true),
        (Match, Some("ab"), pattern(Prefixed, "a"), true),
        (Match, Some("ab"), pattern(Literal, "ab"), true),
        (Match, Some("ab"), pattern(Literal, WILDCARD), true),
        (Match, Some("ab"), pattern(Literal, "a"), false),
        (Match, None, pattern(Literal, "a"), true),
        (Only(Literal), Some("ab"), pattern(Literal, WILDCARD), false),
        (Only(Literal), Some(WILDCARD), pattern(Literal, WILDCARD), true),
        (Only(Prefixed), None, pattern(Literal, "a"), false),
    ] {
        let matches = filter(wanted, name).matches_pattern(&have);
        assert_eq!(matches, expected, "{wanted:?} {name:?} {have}");
    }
    let rules = Rules::new([
        topic(Literal, "t", Allow, Read, "User:*"),
        topic(Literal, "t", Allow, Read, "User:alice"),
        topic(Literal, "t", Deny, Write, "User:alice"),
    ]);
    let of_request = |principal, what| {
        let filter = AclFilter::of_request((ANY, None, ANY), (principal, None), what).unwrap();
        rules.matching(&filter).count()
    };
    assert_eq!(of_request(None, (ANY, ANY)), 3);
    assert_eq!(of_request(Some("User:*"), (ANY, ANY)), 1);
    assert_eq!(of_request(Some("User:alice"), (ANY, Deny.code())), 1);
    assert_eq!(of_request(None, (Read.code(), ANY)), 2);
    let refused = |pattern, what| AclFilter::of_request(pattern, (None, None), what).unwrap_err().to_string();
    assert_eq!(refused((0, None, ANY), (ANY, ANY)), "Unknown patternFilter.");
    assert_eq!(refused((ANY, None, 9), (ANY, ANY)), "Unknown patternFilter.");
    assert_eq!(refused((ANY, None, ANY), (0, ANY)), "Unknown entryFilter.");
}

/// What a look at every ACL in turn says.
fn model(
    acls: &[AclBinding],
    principal: &Principal,
    host: IpAddr,
    operation: Operation,
    (resource_type, name): (ResourceType, &str),
) -> AclMatch {
    let (mut mentioned, mut allowed) = (false, false);
    for AclBinding { pattern, entry } in acls {
        let names = match pattern.pattern_type {
            Literal => pattern.name == name || pattern.name == "*",
            Prefixed => name.starts_with(pattern.name.as_str()),
        };
        if pattern.resource_type != resource_type || !names {
            continue;
        }
        mentioned = true;
        let is_about = (entry.principal == principal.to_string() || entry.principal == "User:*")
            && (entry.host == "*" || entry.host == host.to_string());
        match entry.permission {
            Deny if is_about && (entry.operation == operation || entry.operation == Operation::All) => {
                return AclMatch::Denied;
            }
            Allow if is_about && entry.operation.implies(operation) => allowed = true,
            _ => {}
        }
    }
    match (mentioned, allowed) {
        (_, true) => AclMatch::Allowed,
        (true, false) => AclMatch::NotMentioned,
        (false, false) => AclMatch::NoAcl,
    }
}

/// Names that share beginnings, in characters of one and of several bytes.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[aäb€]{1,5}", 1 => Just("*".to_owned())]
}

fn any_acl() -> impl Strategy<Value = AclBinding> {
    let pattern = (
        prop::sample::select(&[ResourceType::Topic, ResourceType::Group][..]),
        prop::sample::select(PatternType::ALL),
        name(),
    );
    let who = (
        prop::sample::select(&["User:a", "User:b", "User:*"][..]),
        prop::sample::select(&["*", "*", HERE, "10.0.0.2"][..]),
    );
    let what = (
        prop::sample::select(&[Allow, Allow, Allow, Deny][..]),
        prop::sample::select(&[Operation::All, Read, Write, Describe, AlterConfigs][..]),
    );
    (pattern, what, who).prop_map(|((resource_type, pattern_type, name), what, who)| {
        acl((resource_type, pattern_type, &name), what, who)
    })
}

proptest! {
    #[test]
    fn the_index_says_what_a_look_at_every_acl_says(
        acls in prop::collection::vec(any_acl(), 0..40),
        names in prop::collection::vec(name(), 1..8),
    ) {
        let rules = Rules::new(acls.clone());
        for name in &names {
            for user in ["a", "b", "c"] {
                for operation in [Read, Describe, DescribeConfigs, Create] {
                    let (principal, host) = (Principal::user(user), address(HERE));
                    let resource = (ResourceType::Topic, name.as_str());
                    let said = rules.match_of(&principal, host, operation, resource);
                    prop_assert_eq!(said, model(&acls, &principal, host, operation, resource));
                }
            }
        }
    }

    /// Where some name is allowed by an ACL that names the operation, something of the type is allowed; where a denial of everything
    /// stands, nothing is.
    #[test]
    fn something_is_allowed_where_a_name_is(
        acls in prop::collection::vec(any_acl(), 0..12),
        names in prop::collection::vec(name(), 1..8),
    ) {
        let rules = Rules::new(acls);
        let (principal, host) = (Principal::user("a"), address(HERE));
        let some = rules.allow_some(&principal, host, Write, ResourceType::Topic);
        for name in &names {
            let of_name = rules.match_of(&principal, host, Write, (ResourceType::Topic, name));
            prop_assert!(some || of_name != AclMatch::Allowed, "{} is allowed", name);
        }
    }
}
