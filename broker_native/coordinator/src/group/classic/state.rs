//! The states of a classic group and which may follow which.
//!
//! ```text
//!            first member joins                all have joined, or time is up
//!   Empty ───────────────────────▶ PreparingRebalance ───────────────────▶ CompletingRebalance
//!     ▲                              │   ▲     ▲                               │        │
//!     └───── nobody is left ─────────┘   │     └── a member comes, goes ───────┘        │ the leader brings
//!                                        │          or changes                          ▼ the assignments
//!                                        └────── a member comes, goes or changes ─── Stable
//! ```
//! Every state may become `Dead`: the group is deleted. Nothing follows it, and no group is kept in it.

/// The state of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassicState {
    /// No members; it stays for its offsets.
    Empty,
    /// Members are awaited; those who have joined wait for their answers.
    PreparingRebalance(Option<InitialDelay>),
    /// Members know the generation; the leader's assignments are awaited.
    CompletingRebalance,
    /// Every member can have its assignment.
    Stable,
    /// Deleted, or never there.
    Dead,
}

/// An empty group's first rebalance is put off so that members which start together share one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialDelay {
    /// How long the current wait is.
    pub delay_ms: i64,
    /// How much longer it may still become.
    pub remaining_ms: i64,
    /// Whether a member joined since it began: it is worth to wait once more.
    pub member_added: bool,
}

impl ClassicState {
    /// Kafka's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance(_) => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }

    /// Whether `next` may follow.
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Empty | Self::CompletingRebalance => matches!(self, Self::PreparingRebalance(_)),
            Self::PreparingRebalance(_) => self.may_rebalance(),
            Self::Stable => matches!(self, Self::CompletingRebalance),
            Self::Dead => true,
        }
    }

    /// Whether a rebalance may begin.
    pub const fn may_rebalance(self) -> bool {
        matches!(self, Self::Empty | Self::CompletingRebalance | Self::Stable)
    }

    /// Whether members are awaited.
    pub const fn is_preparing(self) -> bool {
        matches!(self, Self::PreparingRebalance(_))
    }
}
