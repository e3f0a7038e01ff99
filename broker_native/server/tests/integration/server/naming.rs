//! Settings of topics that name something else: nobody reaches by them what they have no right to.
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pylog_record::{BatchBuilder, Codec};
use pylog_security::acl::{AclBinding, Entry, Operation, Pattern, PatternType, Permission, ResourceType};
use pylog_server::cluster::spec::TopicSpec;
use pylog_server::state::dead_letters::Written;
use pylog_storage::LogConfig;
use pylog_wire::messages::*;
use pylog_wire::{ErrorCode, Request};
use serde_json::{Value, json};

use super::authorization::{all_but, guarded};
use crate::server::support::{Broker, produce_request, topic};

const DEAD_LETTERS: &str = "schema.validation.dead.letter.topic";
const OWNER: &str = "schema.validation.dead.letter.owner";

/// A change of the settings of the topic `mine`.
fn changes(configs: &Value) -> (CreateTopicsRequest, AlterConfigsRequest, IncrementalAlterConfigsRequest) {
    let altered = json!({"resources": [{"resource_type": 2, "resource_name": "mine", "configs": configs}]});
    let created = json!({"topics": [{"name": "mine", "configs": configs}]});
    (
        serde_json::from_value(created).unwrap(),
        serde_json::from_value(altered.clone()).unwrap(),
        serde_json::from_value(altered).unwrap(),
    )
}

/// What the control plane is asked to set, after `send`.
fn settings(broker: &Broker, request: &impl Request, version: i16) -> Vec<(String, Option<String>)> {
    let mut client = broker.client();
    client.send(request, version, 1);
    let question = loop {
        if let Some(question) = broker.decisions.kept.lock().unwrap().pop() {
            break question;
        }
        std::thread::yield_now();
    };
    let asked: Value = serde_json::from_str(&question.json).unwrap();
    let place = asked["topics"].get(0).or_else(|| asked["resources"].get(0)).unwrap();
    let config = |config: &Value| {
        let text = config["value"].as_str().map(str::to_owned);
        (config["name"].as_str().unwrap().to_owned(), text)
    };
    place["configs"].as_array().unwrap().iter().map(config).collect()
}

#[test]
fn a_denial_does_not_tell_whether_what_a_setting_names_is_there() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("payments", 1)]).unwrap();
    broker.server.apply_acls(all_but(&[(ResourceType::Topic, "*", Operation::Write)]));
    let answers = ["payments", "missing-"].map(|name| {
        let (create, alter, incremental) = changes(&json!([{"name": DEAD_LETTERS, "value": name}]));
        let mut client = broker.client();
        let answers = [
            serde_json::to_string(&client.call(&create, 7)).unwrap(),
            serde_json::to_string(&client.call(&alter, 2)).unwrap(),
            serde_json::to_string(&client.call(&incremental, 1)).unwrap(),
        ];
        for answer in &answers {
            let code = ErrorCode::TopicAuthorizationFailed.code();
            assert!(answer.contains(&format!("\"error_code\":{code}")), "{answer}");
        }
        answers
    });
    assert_eq!(answers[0], answers[1]);
    assert!(broker.decisions.kept.lock().unwrap().is_empty());
}

#[test]
fn whoever_names_a_dead_letter_topic_is_put_down_whatever_they_say_and_whoever_resets_it_takes_that_away() {
    let broker = guarded();
    broker.server.apply_acls(all_but(&[]));
    let owner = Some("127.0.0.1 User:ANONYMOUS".to_owned());
    let named =
        json!([{"name": OWNER, "value": "127.0.0.1 User:root"}, {"name": DEAD_LETTERS, "value": "letters"}]);
    let (create, alter, incremental) = changes(&named);
    let expected = vec![(DEAD_LETTERS.to_owned(), Some("letters".to_owned())), (OWNER.to_owned(), owner)];
    assert_eq!(settings(&broker, &create, 7), expected);
    assert_eq!(settings(&broker, &alter, 2), expected);
    assert_eq!(settings(&broker, &incremental, 1), expected);
    let mut reset = changes(&json!([{"name": DEAD_LETTERS}])).2;
    reset.resources[0].configs[0].config_operation = 1;
    let expected = vec![(DEAD_LETTERS.to_owned(), None), (OWNER.to_owned(), None)];
    assert_eq!(settings(&broker, &reset, 1), expected);
    let alone = json!([{"name": OWNER, "value": "127.0.0.1 User:root"}]);
    assert_eq!(settings(&broker, &changes(&alone).2, 1), Vec::new());
    // Where nobody asks for rights, nobody is put down, and whoever was is not believed later.
    let open = Broker::start();
    let (create, _, incremental) = changes(&named);
    assert_eq!(settings(&open, &create, 7), [(DEAD_LETTERS.to_owned(), Some("letters".to_owned()))]);
    assert_eq!(settings(&open, &incremental, 1)[1], (OWNER.to_owned(), None));
}

/// A topic whose values are checked, and its refused records go to another one.
fn diverting(name: &str, to: &str, owner: &str) -> TopicSpec {
    let config = LogConfig {
        value_schema_validation: true,
        dead_letter_topic: to.into(),
        dead_letter_owner: owner.into(),
        ..LogConfig::default()
    };
    TopicSpec { config, ..topic(name, 1) }
}

/// What a record without a schema is answered, with the sentence, and where it went, as far as the broker asked for that.
fn diverted(broker: &Broker, name: &str) -> (ErrorCode, String, Vec<String>) {
    let shared = broker.server.shared();
    shared.schema_ids.set(format!("{name}-value"), HashSet::from([3]));
    let mut builder = BatchBuilder::new();
    builder.append(0, None, Some(b"text"), &[]).unwrap();
    let request = produce_request(name, 0, builder.finish(Codec::None).unwrap(), -1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // As the registry would, which writes what it is asked for.
        let answering = scope.spawn(|| {
            let mut went = Vec::new();
            while !done.load(Ordering::SeqCst) {
                if let Some((number, letters)) = shared.dead_letters.next(Duration::from_millis(10)) {
                    went.push(letters.to);
                    shared.dead_letters.answer(number, Written::All);
                }
            }
            went
        });
        let mut answer = broker.client().call(&request, 9);
        done.store(true, Ordering::SeqCst);
        let answer = answer.responses.remove(0).partition_responses.remove(0);
        let error = ErrorCode::from_code(answer.error_code).unwrap();
        (error, answer.error_message.unwrap_or_default(), answering.join().unwrap())
    })
}

/// Whoever named the dead letter topics here.
const ALICE: &str = "127.0.0.1 User:alice";

fn may_write(user: &str, topic: &str) -> AclBinding {
    AclBinding {
        pattern: Pattern {
            resource_type: ResourceType::Topic,
            name: topic.into(),
            pattern_type: PatternType::Literal,
        },
        entry: Entry {
            principal: user.into(),
            host: "127.0.0.1".into(),
            operation: Operation::Write,
            permission: Permission::Allow,
        },
    }
}

#[test]
fn dead_letters_are_written_while_whoever_named_their_topic_or_the_producer_may_write_there() {
    let broker = guarded();
    broker.server.shared().schema_ids.begin();
    let owned = diverting("orders", "letters", ALICE);
    broker.server.apply_topics(vec![owned, diverting("old", "letters", ""), topic("letters", 1)]).unwrap();
    let producer = |topic: &str| may_write("User:ANONYMOUS", topic);
    let went = (ErrorCode::None, String::new(), vec!["letters".to_owned()]);
    broker.server.apply_acls([producer("orders"), may_write("User:alice", "letters")]);
    assert_eq!(diverted(&broker, "orders"), went);
    // A topic that is older than its owner's record.
    broker.server.apply_acls([producer("old"), may_write("User:alice", "letters")]);
    assert_eq!(diverted(&broker, "old").0, ErrorCode::InvalidRecord);
    broker.server.apply_acls([producer("old"), producer("letters")]);
    assert_eq!(diverted(&broker, "old"), went);
    // What is taken away is refused from then on, and the producer is not told of a topic that it may not see.
    broker.server.apply_acls([producer("orders"), may_write("User:alice", "other")]);
    let (error, sentence, went) = diverted(&broker, "orders");
    assert_eq!((error, went), (ErrorCode::InvalidRecord, Vec::new()));
    assert!(sentence.contains("Not diverted: its dead letter topic does not take them."), "{sentence}");
    assert!(!sentence.contains("letters"), "{sentence}");
}

#[test]
fn no_dead_letter_is_written_to_a_topic_of_the_brokers_or_of_the_registry() {
    let broker = guarded();
    broker.server.shared().schema_ids.begin();
    broker.server.apply_acls(all_but(&[]));
    let internal = TopicSpec { internal: true, ..topic("offsets", 1) };
    broker.server.apply_topics(vec![internal, topic("_schemas", 1)]).unwrap();
    for to in ["_schemas", "__pylog_sink", "offsets"] {
        let name = format!("to-{to}");
        broker.server.apply_topics(vec![diverting(&name, to, ALICE)]).unwrap();
        let (error, sentence, went) = diverted(&broker, &name);
        assert_eq!((error, went), (ErrorCode::InvalidRecord, Vec::new()), "{to}");
        assert!(sentence.contains("keep their own records"), "{sentence}");
    }
}
