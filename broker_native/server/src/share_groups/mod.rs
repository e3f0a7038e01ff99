//! What the broker keeps of share groups outside their logs: sessions, who waits for records, the groups' own settings.
//!
//! # Layout
//! | file | what it owns |
//! |---|---|
//! | [`sessions`] | which partitions a member reads here; the order of its requests (pure) |
//! | [`waking`] | long polls of a group |
//! | [`configs`] | the groups' own settings |
//! | [`gone`] | topics that were deleted a short while ago |
pub mod configs;
pub mod gone;
pub mod sessions;
pub mod waking;

use std::sync::Arc;

use configs::Configs;
use gone::Gone;
use sessions::Sessions;
use waking::Waking;

use crate::settings::Settings;

/// See the module.
pub struct ShareGroups {
    /// What members read here.
    pub sessions: Sessions,
    /// Who waits.
    pub waking: Arc<Waking>,
    /// The groups' own settings.
    pub configs: Configs,
    /// Topics that were deleted.
    pub gone: Arc<Gone>,
}

impl ShareGroups {
    /// Without any.
    pub fn new(settings: &Settings) -> Self {
        Self {
            sessions: Sessions::new(settings.shares.group_share_max_share_sessions),
            waking: Arc::default(),
            configs: Configs::new(&settings.shares, &settings.groups),
            gone: Arc::default(),
        }
    }
}
