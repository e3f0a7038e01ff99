//! An internal topic that is not there yet, made before a request that needs it is answered.
use crate::call::Call;
use crate::coordinators::Coordinator;
use crate::decide::{Kind, ask};
use pylog_coordinator::Machine;
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;

/// The topic that the coordinators lack.
pub fn missing<M: Machine>(of: &Coordinator<M>) -> Option<&'static str> {
    (!of.has_topic()).then(|| of.topic())
}

/// Makes the topic. When that fails, which is logged, the request goes on and fails because the coordinator is not there.
pub async fn make(call: &Call, topic: &'static str) {
    let json = serde_json::json!({ "topics": [topic] }).to_string();
    if let Err(why) = ask(call.shared.decider.as_ref(), Kind::AutoCreateTopics, json, 0).await {
        warn!(target: COORDINATOR, "topic {topic} is not created: {why}");
    }
}
