//! What a member says became of its records; locks that are over; members that are gone.
use super::partition::{Run, SharePartition, State};
use crate::wire::ErrorCode;
use crate::wire::messages::share_fetch::AcknowledgementBatch;

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// There is none at that offset.
    Gap,
    Accepted,
    Released,
    Rejected,
    /// The member needs more time.
    Renewed,
}

impl Fate {
    fn of(number: i8) -> Result<Self, ErrorCode> {
        match number {
            0 => Ok(Self::Gap),
            1 => Ok(Self::Accepted),
            2 => Ok(Self::Released),
            3 => Ok(Self::Rejected),
            4 => Ok(Self::Renewed),
            _ => Err(ErrorCode::InvalidRequest),
        }
    }
}

/// What an acknowledgement works with.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// A record that was delivered so often is not delivered again.
    pub delivery_count_limit: i16,
    /// Until when renewed locks hold, by the steady clock.
    pub until_ms: i64,
}

impl SharePartition {
    /// Takes what `member` says, all of it or nothing. Offsets before the start are passed over.
    ///
    /// # Errors
    /// INVALID_RECORD_STATE when the member does not hold one of the records; INVALID_REQUEST.
    pub fn acknowledge(
        &mut self,
        member: &str,
        batches: &[AcknowledgementBatch],
        terms: Terms,
    ) -> Result<(), ErrorCode> {
        let mut parts = Vec::new();
        let mut next = 0;
        for batch in batches {
            if batch.first_offset < next || batch.last_offset < batch.first_offset {
                return Err(ErrorCode::InvalidRequest);
            }
            next = batch.last_offset.checked_add(1).ok_or(ErrorCode::InvalidRequest)?;
            parts.extend(fates(batch)?);
        }
        let parts: Vec<_> = parts
            .into_iter()
            .filter(|(_, last, _)| *last >= self.start_offset)
            .map(|(first, last, fate)| (first.max(self.start_offset), last, fate))
            .collect();
        for (first, last, _) in &parts {
            let mine = self.overlap(*first, *last, |run| is_held_by(run, member));
            if mine.iter().map(|(first, last)| last - first + 1).sum::<i64>() != last - first + 1 {
                return Err(ErrorCode::InvalidRecordState);
            }
        }
        for (first, last, fate) in parts {
            self.change(first, last, |run| meet(run, fate, terms));
            self.dirty |= fate != Fate::Renewed;
        }
        self.advance();
        Ok(())
    }

    /// The member is gone: what it holds goes to others. The delivery counts, for a record may be what ended the member.
    pub fn release(&mut self, member: &str, terms: Terms) -> bool {
        self.give_back(|run| is_held_by(run, member), |run| meet(run, Fate::Released, terms))
    }

    /// Gives back what is locked until `now_ms` or before.
    pub fn expire(&mut self, now_ms: i64, terms: Terms) -> bool {
        let over = |run: &Run| matches!(run.state, State::Acquired { until_ms, .. } if until_ms <= now_ms);
        self.give_back(over, |run| meet(run, Fate::Released, terms))
    }

    /// Whether there was something.
    fn give_back(&mut self, which: impl Fn(&Run) -> bool, change: impl Fn(&mut Run)) -> bool {
        let mut found = false;
        for run in self.runs.values_mut().filter(|run| which(run)) {
            change(run);
            found = true;
        }
        if found {
            self.dirty = true;
            self.advance();
        }
        found
    }
}

/// Runs of a batch that met the same fate.
fn fates(batch: &AcknowledgementBatch) -> Result<Vec<(i64, i64, Fate)>, ErrorCode> {
    let length = batch.last_offset - batch.first_offset + 1;
    let types = &batch.acknowledge_types;
    if let [one] = types[..] {
        return Ok(vec![(batch.first_offset, batch.last_offset, Fate::of(one)?)]);
    }
    if i64::try_from(types.len()).ok() != Some(length) {
        return Err(ErrorCode::InvalidRequest);
    }
    let mut runs: Vec<(i64, i64, Fate)> = Vec::new();
    for (offset, number) in (batch.first_offset..).zip(types) {
        let fate = Fate::of(*number)?;
        match runs.last_mut() {
            Some((_, last, before)) if *before == fate => *last = offset,
            _ => runs.push((offset, offset, fate)),
        }
    }
    Ok(runs)
}

fn is_held_by(run: &Run, wanted: &str) -> bool {
    matches!(&run.state, State::Acquired { member, .. } if &**member == wanted)
}

fn meet(run: &mut Run, fate: Fate, terms: Terms) {
    run.state = match fate {
        Fate::Accepted => State::Acknowledged,
        Fate::Rejected | Fate::Gap => State::Archived,
        Fate::Released if run.delivery_count >= terms.delivery_count_limit => State::Archived,
        Fate::Released => State::Available,
        Fate::Renewed => match &run.state {
            State::Acquired { member, .. } => {
                State::Acquired { member: member.clone(), until_ms: terms.until_ms }
            }
            other => other.clone(),
        },
    };
}
