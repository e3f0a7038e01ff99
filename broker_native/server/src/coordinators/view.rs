//! The topics, as the machines see them.
use uuid::Uuid;

use crate::state::topics::{Topic, Topics};
use pylog_coordinator::group::TopicsView;

impl TopicsView for Topics {
    fn version(&self) -> u64 {
        self.now().version()
    }

    fn topic(&self, name: &str) -> Option<(Uuid, i32)> {
        self.now().named(name).map(|topic| (topic.id, count(topic)))
    }

    fn topic_with_id(&self, id: &Uuid) -> Option<(String, i32)> {
        self.now().with_id(id).map(|topic| (topic.name.clone(), count(topic)))
    }

    fn names(&self) -> Vec<String> {
        self.now().all().map(|topic| topic.name.clone()).collect()
    }
}

fn count(topic: &Topic) -> i32 {
    i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX)
}
