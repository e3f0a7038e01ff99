//! The table is whole, and it is what the handlers ask.
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::table::{FREE, PRODUCE_TOPIC, RIGHTS};
use super::{Authorizer, Denial, Who};
use crate::call::SERVED;
use crate::settings::Settings;
use pylog_security::acl::Decision;
use pylog_security::principal::Principal;
use pylog_wire::ApiKey;

/// `DescribeShareGroupOffsets` -> `describe_share_group_offsets`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for char in name.chars() {
        if char.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(char.to_lowercase());
    }
    snake
}

/// The handler of an API: a file, or a folder.
fn handler_of(api: ApiKey) -> PathBuf {
    let handlers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handlers");
    let name = match api {
        ApiKey::InitializeShareGroupState
        | ApiKey::ReadShareGroupState
        | ApiKey::WriteShareGroupState
        | ApiKey::DeleteShareGroupState
        | ApiKey::ReadShareGroupStateSummary => "share_state".to_owned(),
        api => snake_case(api.name()),
    };
    let folder = handlers.join(&name);
    if folder.is_dir() { folder } else { handlers.join(name + ".rs") }
}

/// The words of a handler's code. What is imported is used, too: the compiler sees to that.
fn words_of(handler: &Path) -> HashSet<String> {
    let files: Vec<PathBuf> = match handler.is_dir() {
        true => fs::read_dir(handler).unwrap().map(|entry| entry.unwrap().path()).collect(),
        false => vec![handler.to_owned()],
    };
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts
        .flat_map(|text| {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            code.flat_map(|line| line.split(|char: char| !is_word(char)).map(str::to_owned))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_served_api_has_a_row_or_is_free() {
    for api in SERVED {
        let has_row = RIGHTS.iter().any(|right| right.api == *api);
        assert!(has_row != FREE.contains(api), "{}", api.name());
    }
}

#[test]
fn every_row_is_asked_by_its_handler() {
    for right in RIGHTS.iter().filter(|right| SERVED.contains(&right.api)) {
        let handler = handler_of(right.api);
        assert!(
            words_of(&handler).contains(right.name),
            "{} does not ask for {}",
            handler.display(),
            right.name
        );
    }
}

#[test]
fn a_row_is_called_as_its_api_and_stands_there_once() {
    let mut names = HashSet::new();
    for right in RIGHTS {
        assert!(names.insert(right.name), "{} stands there twice", right.name);
        let api = snake_case(right.api.name()).to_uppercase();
        assert!(right.name.starts_with(&api), "{} is of {api}", right.name);
        assert!(
            right.resource_type.operations().contains(&right.operation)
                || right.name == "DELETE_TOPICS_CLUSTER"
        );
    }
}

#[test]
fn no_name_makes_a_second_line_of_the_audit_log() {
    let mallory = Principal::user("mallory\nUser:root");
    let who = Who { principal: &mallory, host: "::ffff:10.0.0.1".parse().unwrap() };
    let name = "t\" \r\n\u{1b}[2J";
    let denial = Denial { who, right: &PRODUCE_TOPIC, name, decision: Decision::NotAllowed };
    assert_eq!(
        denial.to_string(),
        "User:mallory\\nUser:root at 10.0.0.1 may not WRITE TOPIC \"t\\\" \\r\\n\\u{1b}[2J\" for Produce: no ACL allows it"
    );
}

#[test]
fn an_authorizer_is_there_where_one_is_named_and_holds_what_is_handed_down() {
    assert!(Authorizer::of(&Settings::default()).unwrap().is_none());
    let named = |super_users: &str| Settings {
        authorizer_class_name: Some("org.apache.kafka.metadata.authorizer.StandardAuthorizer".into()),
        super_users: super_users.into(),
        ..Default::default()
    };
    let error = Authorizer::of(&named("User:root;alice")).unwrap_err().to_string();
    assert!(error.contains("alice"), "{error}");
    let authorizer = Authorizer::of(&named("User:root")).unwrap().unwrap();
    let alice = Principal::user("alice");
    let may = || authorizer.may(Who { principal: &alice, host: [127, 0, 0, 1].into() }, &PRODUCE_TOPIC, "t");
    assert!(!may());
    let acl = r#"{"resource_type": "TOPIC", "resource_name": "t", "pattern_type": "LITERAL", "principal": "User:alice",
        "host": "*", "operation": "WRITE", "permission": "ALLOW"}"#;
    authorizer.apply([serde_json::from_str(acl).unwrap()]);
    assert!(may());
    authorizer.apply([]);
    assert!(!may());
}
