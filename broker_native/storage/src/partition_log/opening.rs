//! A log while it is opened: what was found so far, step by step put in order by `open` and its helpers.
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::config::LogConfig;
use crate::epochs::LeaderEpochs;
use crate::error::TopicPartition;
use crate::inventory::LogInventory;
use crate::producers::Producers;
use crate::segment::{Segment, SegmentSettings};
use crate::shared::Shared;
use crate::types::CutTail;

/// The log while it is put together.
pub(super) struct Opening<'a> {
    pub shared: &'a Arc<Shared>,
    pub at: &'a TopicPartition,
    /// As the caller gave it; may be nil.
    pub topic_id: Uuid,
    pub dir: Arc<Path>,
    pub config: &'a LogConfig,
    pub segments: Vec<Arc<Segment>>,
    pub log_start_offset: i64,
    pub recovery_point: i64,
    pub next_offset: i64,
    pub epochs: LeaderEpochs,
    pub producers: Producers,
    /// Base offsets of the segments with an index of aborted transactions.
    pub with_aborted: Vec<i64>,
    /// Base offsets of those whose index cannot be right.
    pub bad_aborted: Vec<i64>,
    pub snapshots: Vec<i64>,
    pub snapshot_offset: i64,
    /// What the log was at the last clean stop.
    pub held: Option<LogInventory>,
    /// What was mended.
    pub notes: Vec<String>,
    pub cut_tail: Option<CutTail>,
    /// Everything is on the device.
    pub clean: bool,
    /// Names in the directory may not be on the device: the first flush brings them there.
    pub unsynced_names: bool,
    /// Base offset of the first segment whose indexes may not be on the device.
    pub unsynced_from: i64,
    pub topic_id_unsynced: bool,
}

impl<'a> Opening<'a> {
    /// Nothing was found yet.
    pub fn new(
        shared: &'a Arc<Shared>,
        (at, topic_id): (&'a TopicPartition, Uuid),
        dir: Arc<Path>,
        config: &'a LogConfig,
    ) -> Self {
        Self {
            shared,
            at,
            topic_id,
            dir,
            config,
            segments: Vec::new(),
            log_start_offset: 0,
            recovery_point: 0,
            next_offset: 0,
            epochs: LeaderEpochs::default(),
            producers: Producers::default(),
            with_aborted: Vec::new(),
            bad_aborted: Vec::new(),
            snapshots: Vec::new(),
            snapshot_offset: -1,
            held: None,
            notes: Vec::new(),
            cut_tail: None,
            clean: true,
            unsynced_names: false,
            unsynced_from: i64::MAX,
            topic_id_unsynced: false,
        }
    }

    /// What the topic's settings mean to its segments.
    pub fn settings(&self) -> SegmentSettings {
        SegmentSettings::of(self.config, self.shared.cleaner_offsets.get(self.at).is_some())
    }
}
