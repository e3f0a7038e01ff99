//! What the broker keeps of share groups outside their logs: sessions, long polls, the groups' own settings.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`sessions`] | which partitions a member reads here; the order of its requests (pure) |
//! | [`group_watchers`] | long polls of a group |
//! | [`configs`] | the groups' own settings |
//! | [`deleted_topics`] | topics that were deleted a short while ago |
pub mod configs;
pub mod deleted_topics;
pub mod group_watchers;
pub mod sessions;

use std::sync::Arc;

use configs::GroupConfigs;
use deleted_topics::DeletedTopics;
use group_watchers::GroupWatchers;
use sessions::ShareSessions;

use crate::settings::Settings;

/// See the module.
pub struct ShareGroups {
    /// What members read here.
    pub sessions: ShareSessions,
    /// Long polls.
    pub group_watchers: Arc<GroupWatchers>,
    /// The groups' own settings.
    pub configs: GroupConfigs,
    /// Topics that were deleted.
    pub deleted_topics: Arc<DeletedTopics>,
}

impl ShareGroups {
    /// Without any.
    pub fn new(settings: &Settings) -> Self {
        Self {
            sessions: ShareSessions::new(settings.shares.group_share_max_share_sessions),
            group_watchers: Arc::default(),
            configs: GroupConfigs::new(&settings.shares, &settings.groups),
            deleted_topics: Arc::default(),
        }
    }
}
