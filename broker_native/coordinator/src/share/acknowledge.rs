//! Acknowledgements of members; locks that are over; members that are gone.
use super::partition::{RecordState, Run, SharePartition};
use pylog_wire::ErrorCode;
use pylog_wire::messages::share_fetch::AcknowledgementBatch;

/// How a member acknowledges a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcknowledgeType {
    /// There is none at that offset.
    Gap,
    Accepted,
    Released,
    Rejected,
    /// The member needs more time.
    Renewed,
}

impl AcknowledgeType {
    fn of(number: i8) -> Option<Self> {
        match number {
            0 => Some(Self::Gap),
            1 => Some(Self::Accepted),
            2 => Some(Self::Released),
            3 => Some(Self::Rejected),
            4 => Some(Self::Renewed),
            _ => None,
        }
    }
}

/// The limits of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Deliveries after which a record is not delivered again.
    pub delivery_count_limit: i16,
    /// Until when renewed locks hold, by the steady clock.
    pub until_ms: i64,
}

impl SharePartition {
    /// Takes the acknowledgements of `member`, all of them or none. Offsets before the start are passed over.
    ///
    /// # Errors
    /// INVALID_REQUEST when it makes no sense or goes beyond the window; INVALID_RECORD_STATE when the member does not hold one of the
    /// records.
    pub fn acknowledge(
        &mut self,
        member: &str,
        batches: &[AcknowledgementBatch],
        terms: Terms,
    ) -> Result<(), ErrorCode> {
        check(batches)?;
        let start_offset = self.start_offset;
        let rest = || batches.iter().filter(move |batch| batch.last_offset >= start_offset);
        // Before anything is taken apart: what a member holds is bounded, what it may say is not.
        for batch in rest() {
            if batch.last_offset >= self.end_offset && !self.runs.is_empty() {
                return Err(ErrorCode::InvalidRequest);
            }
            if !self.holds(member, batch.first_offset.max(start_offset), batch.last_offset) {
                return Err(ErrorCode::InvalidRecordState);
            }
        }
        for (first, last, fate) in rest().flat_map(|batch| fates(batch, start_offset)) {
            self.change(first, last, |run| meet(run, fate, terms));
            self.dirty |= fate != AcknowledgeType::Renewed;
        }
        self.advance();
        Ok(())
    }

    fn holds(&self, member: &str, first: i64, last: i64) -> bool {
        let mine = self.overlap(first, last, |run| is_held_by(run, member));
        mine.iter().map(|(first, last)| last - first + 1).sum::<i64>() == last - first + 1
    }

    /// The member is gone: what it holds goes to others. The delivery counts, for a record may be what ended the member.
    pub fn release(&mut self, member: &str, terms: Terms) -> bool {
        self.give_back(|run| is_held_by(run, member), |run| meet(run, AcknowledgeType::Released, terms))
    }

    /// Gives back what is locked until `now_ms` or before.
    pub fn expire(&mut self, now_ms: i64, terms: Terms) -> bool {
        let over =
            |run: &Run| matches!(run.state, RecordState::Acquired { until_ms, .. } if until_ms <= now_ms);
        self.give_back(over, |run| meet(run, AcknowledgeType::Released, terms))
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

/// Whether the batches follow each other, each with one known word for all of its offsets or one for each.
fn check(batches: &[AcknowledgementBatch]) -> Result<(), ErrorCode> {
    let mut next = 0;
    for AcknowledgementBatch { first_offset, last_offset, acknowledge_types } in batches {
        let is_in_order = *first_offset >= next && last_offset >= first_offset;
        let length = last_offset.saturating_sub(*first_offset).saturating_add(1);
        let count = i64::try_from(acknowledge_types.len()).unwrap_or(i64::MAX);
        let are_known = acknowledge_types.iter().all(|number| AcknowledgeType::of(*number).is_some());
        if !is_in_order || (count != 1 && count != length) || !are_known {
            return Err(ErrorCode::InvalidRequest);
        }
        next = last_offset.checked_add(1).ok_or(ErrorCode::InvalidRequest)?;
    }
    Ok(())
}

/// Runs of a batch, from `start` on, that met the same fate.
fn fates(batch: &AcknowledgementBatch, start: i64) -> Vec<(i64, i64, AcknowledgeType)> {
    let first = batch.first_offset.max(start);
    if let [one] = batch.acknowledge_types[..] {
        return AcknowledgeType::of(one).map(|fate| (first, batch.last_offset, fate)).into_iter().collect();
    }
    let mut runs: Vec<(i64, i64, AcknowledgeType)> = Vec::new();
    let each = (batch.first_offset..).zip(&batch.acknowledge_types);
    for (offset, number) in each.skip_while(|(offset, _)| *offset < first) {
        let Some(fate) = AcknowledgeType::of(*number) else { continue };
        match runs.last_mut() {
            Some((_, last, before)) if *before == fate => *last = offset,
            _ => runs.push((offset, offset, fate)),
        }
    }
    runs
}

fn is_held_by(run: &Run, wanted: &str) -> bool {
    matches!(&run.state, RecordState::Acquired { member, .. } if &**member == wanted)
}

fn meet(run: &mut Run, fate: AcknowledgeType, terms: Terms) {
    run.state = match fate {
        AcknowledgeType::Accepted => RecordState::Acknowledged,
        AcknowledgeType::Rejected | AcknowledgeType::Gap => RecordState::Archived,
        AcknowledgeType::Released if run.delivery_count >= terms.delivery_count_limit => {
            RecordState::Archived
        }
        AcknowledgeType::Released => RecordState::Available,
        AcknowledgeType::Renewed => match &run.state {
            RecordState::Acquired { member, .. } => {
                RecordState::Acquired { member: member.clone(), until_ms: terms.until_ms }
            }
            other => other.clone(),
        },
    };
}
