//! Requests that Python decides: the question goes up, the answer comes down.
use pylog_server::decide::Kind;
use pylog_server::settings::Settings;
use pylog_wire::ErrorCode;
use pylog_wire::messages::create_topics::CreatableTopic;
use pylog_wire::messages::metadata::MetadataRequestTopic;
use pylog_wire::messages::{CreateTopicsRequest, CreateTopicsResponse, MetadataRequest};

use crate::server::support::Broker;

fn asking(name: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), ..Default::default() }
}

#[test]
fn a_missing_topic_is_made_before_metadata_answers() {
    let broker = Broker::start();
    let answer = broker.client().call(&asking("new"), 12);
    assert_eq!((answer.topics[0].error_code, answer.topics[0].partitions.len()), (0, 1));
    assert!(!answer.topics[0].topic_id.is_nil());
    assert_eq!(broker.client().produce("new", &["x"]).error_code, 0);
}

#[test]
fn a_topic_is_not_made_when_the_client_the_broker_or_its_name_forbids_it() {
    let broker = Broker::start();
    let mut client = broker.client();
    let careful = MetadataRequest { allow_auto_topic_creation: false, ..asking("new") };
    let answer = client.call(&careful, 12);
    assert_eq!(answer.topics[0].error_code, ErrorCode::UnknownTopicOrPartition.code());
    for name in ["..", "", "a/b", "\0", &"x".repeat(250)] {
        let answer = client.call(&asking(name), 12);
        assert_eq!(answer.topics[0].error_code, ErrorCode::InvalidTopicException.code(), "{name:?}");
    }
    let strict = Broker::with(Settings { auto_create_topics_enable: false, ..Default::default() });
    let answer = strict.client().call(&asking("new"), 12);
    assert_eq!(answer.topics[0].error_code, ErrorCode::UnknownTopicOrPartition.code());
    assert!(broker.server.shared().topics.now().is_empty());
}

#[test]
fn the_decision_about_a_request_reaches_its_client() {
    let broker = Broker::start();
    let mut client = broker.client();
    let topics = vec![CreatableTopic { name: "new".into(), num_partitions: 2, ..Default::default() }];
    client.send(&CreateTopicsRequest { topics, ..Default::default() }, 7, 1);
    broker.wait_for("events", 1);
    let question = loop {
        if let Some(question) = broker.decisions.kept.lock().unwrap().pop() {
            break question;
        }
    };
    assert_eq!(question.kind, Kind::CreateTopics);
    let asked: serde_json::Value = serde_json::from_str(&question.json).unwrap();
    assert_eq!(asked["topics"][0]["num_partitions"], 2);
    let decided = r#"{"topics": [{"name": "new", "error_code": 36, "error_message": "it exists"}]}"#;
    question.reply.send(decided.into()).unwrap();
    let (_, answer) = client.receive::<CreateTopicsResponse>(7);
    assert_eq!(answer.topics[0].error_code, ErrorCode::TopicAlreadyExists.code());
    assert_eq!(answer.topics[0].error_message.as_deref(), Some("it exists"));
}

#[test]
fn a_question_that_nobody_answers_is_told_as_retriable() {
    let broker = Broker::start();
    let mut client = broker.client();
    let topics = vec![CreatableTopic { name: "new".into(), ..Default::default() }];
    client.send(&CreateTopicsRequest { topics, ..Default::default() }, 7, 1);
    while broker.decisions.kept.lock().unwrap().pop().is_none() {
        std::thread::yield_now();
    }
    let (_, answer) = client.receive::<CreateTopicsResponse>(7);
    let error = ErrorCode::from_code(answer.topics[0].error_code).unwrap();
    assert!(error.is_retriable(), "{error}");
}
