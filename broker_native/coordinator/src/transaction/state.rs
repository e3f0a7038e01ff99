//! The states of a transactional id, and which may follow which.

/// A state; the numbers are those of Kafka's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i8)]
pub enum TxnState {
    /// There was no transaction since the producer came.
    Empty = 0,
    /// A transaction is open.
    Ongoing = 1,
    /// Decided: it is committed. Markers are being written.
    PrepareCommit = 2,
    /// Decided: it is aborted. Markers are being written.
    PrepareAbort = 3,
    /// Every partition knows that it is committed.
    CompleteCommit = 4,
    /// Every partition knows that it is aborted.
    CompleteAbort = 5,
    /// The id is being forgotten; never written.
    Dead = 6,
    /// The producer is being fenced; passed through on the way to [`TxnState::PrepareAbort`], never written.
    PrepareEpochFence = 7,
}

impl TxnState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
        Self::Dead,
        Self::PrepareEpochFence,
    ];

    /// The state with this number.
    pub fn from_id(id: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.id() == id)
    }

    /// The state that Kafka calls so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Its number.
    pub const fn id(self) -> i8 {
        self as i8
    }

    /// What Kafka calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
            Self::Dead => "Dead",
            Self::PrepareEpochFence => "PrepareEpochFence",
        }
    }

    /// The states that this one may follow.
    pub const fn predecessors(self) -> &'static [Self] {
        match self {
            Self::Empty | Self::Dead => &[Self::Empty, Self::CompleteCommit, Self::CompleteAbort],
            Self::Ongoing => &[Self::Ongoing, Self::Empty, Self::CompleteCommit, Self::CompleteAbort],
            Self::PrepareCommit | Self::PrepareEpochFence => &[Self::Ongoing],
            // A producer of transaction version 2 may abort before it wrote anything.
            Self::PrepareAbort => &[
                Self::Ongoing,
                Self::PrepareEpochFence,
                Self::Empty,
                Self::CompleteCommit,
                Self::CompleteAbort,
            ],
            Self::CompleteCommit => &[Self::PrepareCommit],
            Self::CompleteAbort => &[Self::PrepareAbort],
        }
    }

    /// Whether it may follow `previous`.
    pub fn may_follow(self, previous: Self) -> bool {
        self.predecessors().contains(&previous)
    }

    /// Whether the end is decided and not everywhere known: whatever else is asked has to wait.
    pub const fn is_ending(self) -> bool {
        matches!(self, Self::PrepareCommit | Self::PrepareAbort)
    }

    /// Whether the id may be forgotten.
    pub const fn can_expire(self) -> bool {
        matches!(self, Self::Empty | Self::CompleteCommit | Self::CompleteAbort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_number_and_one_name() {
        for (number, state) in TxnState::ALL.into_iter().enumerate() {
            assert_eq!(usize::try_from(state.id()), Ok(number));
            assert_eq!(TxnState::from_id(state.id()), Some(state));
            assert_eq!(TxnState::from_name(state.name()), Some(state));
        }
        assert_eq!(
            (TxnState::from_id(8), TxnState::from_id(-1), TxnState::from_name("ongoing")),
            (None, None, None)
        );
    }

    #[test]
    fn a_decided_end_cannot_be_changed() {
        for state in TxnState::ALL {
            assert_eq!(
                state.may_follow(TxnState::PrepareCommit),
                state == TxnState::CompleteCommit,
                "{state:?}"
            );
            assert_eq!(
                state.may_follow(TxnState::PrepareAbort),
                state == TxnState::CompleteAbort,
                "{state:?}"
            );
        }
    }

    #[test]
    fn nothing_follows_a_dead_id() {
        assert!(TxnState::ALL.into_iter().all(|state| !state.may_follow(TxnState::Dead)));
    }
}
