//! Transactions that stay open for long: a line in the broker's log, with the partitions where readers wait and what ends it.
//!
//! An ordinary transaction is ended by its time-out. One that is prepared (KIP-939) has none, and waits for a program that may
//! never come back; one that is decided waits for partitions that nobody leads. Each gets a line when it is open for longer
//! than any transaction may be that times out (`transaction.max.timeout.ms`), then when it is open for twice as long, and so on;
//! and one more from a coordinator that has loaded it.
use std::fmt::Write;

use super::machine::{Purpose, TransactionMachine};
use super::metadata::{TxnMetadata, TxnPartitions};
use super::settings::SINGLE_USE;
use super::state::TxnState;

/// Most partitions that a line names.
const PLACES_MAX: usize = 3;
/// Most characters of a transactional id in a line: clients choose it.
const ID_MAX: usize = 200;

impl TransactionMachine {
    /// Begins to watch an open transaction that never times out, and leaves alone what is not one any more.
    pub(super) fn watch_long(&mut self, transactional_id: &str) {
        let key = (transactional_id.to_owned(), Purpose::Long);
        let open = self.transactions.get(transactional_id).filter(|metadata| waits_for_its_program(metadata));
        let begun = self.begun.get(transactional_id).filter(|_| open.is_some());
        match begun {
            None => self.timers.cancel(&key),
            Some(&(_, begun_ms)) if self.timers.deadline_ms(&key).is_none() => {
                self.timers.set(key, begun_ms.saturating_add(self.long_ms()));
            }
            Some(_) => {}
        }
    }

    /// The marker of a transaction could not be written into some partitions now.
    pub(super) fn watch_long_end(&mut self, transactional_id: &str) {
        let key = (transactional_id.to_owned(), Purpose::Long);
        if self.timers.deadline_ms(&key).is_none() {
            self.timers.set(key, self.now.steady_ms.saturating_add(self.long_ms()));
        }
    }

    /// A transaction that is watched has been open for long.
    pub(super) fn is_open_long(&mut self, transactional_id: &str) {
        let now = self.now;
        let Some(metadata) = self.transactions.get(transactional_id) else { return };
        let since_ms = match self.begun.get(transactional_id) {
            Some(&(_, begun_ms)) if waits_for_its_program(metadata) => begun_ms,
            // The decision was the last thing that changed.
            _ if metadata.state.is_ending() => now.steady_of(metadata.last_update_ms),
            _ => return,
        };
        let open_ms = now.steady_ms.saturating_sub(since_ms).max(self.long_ms());
        (self.warn)(&sentence(transactional_id, metadata, open_ms));
        let key = (transactional_id.to_owned(), Purpose::Long);
        self.timers.set(key, now.steady_ms.saturating_add(open_ms));
    }

    fn long_ms(&self) -> i64 {
        self.settings.transaction_max_timeout_ms.into()
    }
}

fn waits_for_its_program(metadata: &TxnMetadata) -> bool {
    metadata.state == TxnState::Ongoing && metadata.never_times_out()
}

fn sentence(transactional_id: &str, metadata: &TxnMetadata, open_ms: i64) -> String {
    let id: String = transactional_id.chars().take(ID_MAX).collect();
    let (time, places) = (time(open_ms), places(&metadata.partitions));
    if metadata.state.is_ending() {
        return format!(
            "transaction {id:?} was ended {time} ago, but that cannot be written into {places}, where readers of committed data \
             wait for it: see with 'pylog cluster describe' who leads there"
        );
    }
    let end = if transactional_id.starts_with(SINGLE_USE) {
        "it is of a write of Spark that 'pylog sink list --open' shows; to end that: pylog sink finish, or pylog sink abort KEY \
         --execute"
            .to_owned()
    } else {
        format!("when its program does not come back, end it: pylog transaction abort {id:?} --execute")
    };
    format!(
        "transaction {id:?} is open for {time} and prepared, so that no broker ends it; readers of committed data wait for it in \
         {places}; {end}"
    )
}

fn time(ms: i64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match (hours, minutes) {
        (2.., _) => format!("{hours} h"),
        (_, 2..) => format!("{minutes} min"),
        _ => format!("{seconds} s"),
    }
}

fn places(partitions: &TxnPartitions) -> String {
    let all =
        partitions.iter().flat_map(|(topic, numbers)| numbers.iter().map(move |number| (topic, number)));
    let (mut named, mut count) = (String::new(), 0);
    for (topic, number) in all {
        if count < PLACES_MAX {
            let between = if count == 0 { "" } else { ", " };
            // A string takes everything.
            let _ = write!(named, "{between}{topic}-{number}");
        }
        count += 1;
    }
    match count {
        0 => "no partition".into(),
        more if more > PLACES_MAX => format!("{named} and {} more", more - PLACES_MAX),
        _ => named,
    }
}
