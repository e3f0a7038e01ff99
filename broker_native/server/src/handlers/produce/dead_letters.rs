//! Records without a schema that go to the topic's dead letter topic: they are taken out of their batch, which keeps the offsets and the
//! sequence that it had, and are written there before the rest is appended. At least once: what is sent again is written there again.
//!
//! A batch with more than [`NAMED_MAX`](super::schemas::NAMED_MAX) of them, or with more than [`BYTES_MAX`] bytes, is refused as one without such a topic.
use std::time::Duration;

use super::look::{Batches, Looked};
use super::schemas::{Faults, NotDiverted};
use crate::authorization::table::PRODUCE_DEAD_LETTERS;
use crate::call::Call;
use crate::handlers::common::naming::owner_of;
use crate::io::slow::NotDone;
use crate::state::dead_letters::{BYTES_MAX, Letter, Letters, Written};
use pylog_record::batches::body;
use pylog_record::compression::{Codec, decompress};
use pylog_record::rewrite::{filter, rewrite, without_records};
use pylog_record::validate::{OPENED_BYTES_MAX, ProduceInfo};
use pylog_record::{BatchError, RecordRef};
use pylog_security::acl::{Operation, ResourceType};

/// How long a request waits until they are written.
const WAIT: Duration = Duration::from_secs(10);
/// What the names of topics begin with that brokers and the schema registry keep their own records in.
const OWN_PREFIX: char = '_';

/// A batch without what is at fault in it, and that.
struct Parted {
    /// Its place in the request.
    at: usize,
    letters: Letters,
    /// Who named the topic that they go to.
    owner: String,
    rest: Vec<u8>,
    info: ProduceInfo,
}

/// Writes the dead letters of all batches that have some, and leaves the others in the request.
///
/// # Errors
/// [`NotDone`]: too many requests wait to be looked at.
pub async fn divert(
    call: &Call,
    mut batches: Batches,
    bytes: Vec<u8>,
) -> Result<(Batches, Vec<u8>), NotDone> {
    let (parted, mut batches, mut bytes) = call
        .shared
        .slow
        .run(call.peer.ip(), move || {
            let parted = part(&mut batches, &bytes);
            (parted, batches, bytes)
        })
        .await?;
    for Parted { at, letters, owner, rest, info } in parted {
        let to = letters.to.clone();
        let asked = match check(call, &to, &owner) {
            Ok(()) => call.shared.dead_letters.ask(call.peer.ip(), letters, WAIT).await,
            Err(sentence) => Ok(Some(Written::Never(sentence.into()))),
        };
        let Some(looked) = batches.looked.get_mut(at) else { continue };
        match asked {
            Ok(Some(Written::All)) => {
                let start = bytes.len();
                bytes.extend_from_slice(&rest);
                if let Some(range) = batches.ranges.get_mut(at) {
                    *range = Some(start..bytes.len());
                }
                looked.info = Some(Ok(info));
                looked.faults = Some(Faults::default());
            }
            Ok(Some(Written::Never(sentence))) => {
                looked.not_diverted = Some(NotDiverted { again: false, sentence })
            }
            Ok(Some(Written::NotNow(sentence))) => {
                looked.not_diverted = Some(NotDiverted { again: true, sentence })
            }
            Ok(None) | Err(_) => {
                let sentence =
                    format!("the dead letter topic {to} could not be written in time; send the batch again");
                looked.not_diverted = Some(NotDiverted { again: true, sentence });
            }
        }
    }
    hide(call, &mut batches);
    Ok((batches, bytes))
}

/// Whether dead letters may go to the topic: the producer may write to it, or whoever named it there still may. The broker itself could write
/// to all of them.
///
/// # Errors
/// With a sentence.
fn check(call: &Call, to: &str, owner: &str) -> Result<(), &'static str> {
    let is_internal = call.shared.topics.now().named(to).is_some_and(|topic| topic.internal);
    if to.starts_with(OWN_PREFIX) || is_internal {
        return Err(
            "its dead letter topic is one that brokers and the schema registry keep their own records in",
        );
    }
    if call.could(Operation::Write, (ResourceType::Topic, to)) {
        return Ok(());
    }
    match owner_of(owner) {
        Some((principal, host)) if call.may_another((&principal, host), &PRODUCE_DEAD_LETTERS, to) => Ok(()),
        _ => Err("whoever named its dead letter topic may not write to that"),
    }
}

/// Keeps from a producer that may not describe a dead letter topic which one it is, and what it is like.
fn hide(call: &Call, batches: &mut Batches) {
    for looked in &mut batches.looked {
        let (Some(to), Some(not_diverted)) = (&looked.dead_letter_topic, &mut looked.not_diverted) else {
            continue;
        };
        if !call.could(Operation::Describe, (ResourceType::Topic, &to.to)) {
            not_diverted.sentence = "its dead letter topic does not take them".into();
        }
    }
}

/// Parts all batches with dead letters; where that cannot be, the reason is kept for the answer.
fn part(batches: &mut Batches, bytes: &[u8]) -> Vec<Parted> {
    let mut parted = Vec::new();
    let mut at = 0;
    let is_sure = batches.is_sure;
    for asked in &batches.request.topic_data {
        for data in &asked.partition_data {
            let range = batches.ranges.get(at).cloned().flatten();
            let batch = range.and_then(|range| bytes.get(range));
            if let (Some(batch), Some(looked)) = (batch, batches.looked.get_mut(at)) {
                match part_one(looked, is_sure, data.index, batch) {
                    Ok(Some((letters, rest, info))) => {
                        let owner = looked.dead_letter_topic.as_ref().map(|to| to.owner.clone());
                        parted.push(Parted { at, letters, owner: owner.unwrap_or_default(), rest, info });
                    }
                    Ok(None) => {}
                    Err(sentence) => looked.not_diverted = Some(NotDiverted { again: false, sentence }),
                }
            }
            at += 1;
        }
    }
    parted
}

/// The dead letters of one batch, and the batch without them; `None` where it has none or is not taken for another reason.
fn part_one(
    looked: &Looked,
    is_sure: bool,
    partition: i32,
    batch: &[u8],
) -> Result<Option<(Letters, Vec<u8>, ProduceInfo)>, String> {
    let (Some(to), Some(faults), Some(Ok(info))) = (&looked.dead_letter_topic, &looked.faults, &looked.info)
    else {
        return Ok(None);
    };
    if !looked.unkeyed.is_empty() || (faults.are_unsure() && !is_sure) {
        return Ok(None);
    }
    let Some(sentences) = faults.sentences(&to.topic) else {
        return Err(format!("more records are at fault than go to the dead letter topic {} at once", to.to));
    };
    let mut letters = Vec::new();
    let (rest, info) = without(info, batch, |record| {
        let index = i32::try_from(record.offset - info.header.base_offset).unwrap_or(i32::MAX);
        let sentence = sentences.get(&index);
        letters.extend(sentence.map(|sentence| letter(record, &to.topic, partition, sentence)));
        sentence.is_some()
    })
    .map_err(|error| error.to_string())?;
    if letters.iter().map(Letter::bytes).sum::<usize>() > BYTES_MAX {
        return Err(format!("more bytes are at fault than go to the dead letter topic {} at once", to.to));
    }
    Ok(Some((Letters { to: to.to.clone(), letters }, rest, info)))
}

/// The batch without the records for which `is_taken` says yes; it is asked once of each, in their order.
fn without(
    info: &ProduceInfo,
    batch: &[u8],
    mut is_taken: impl FnMut(&RecordRef<'_>) -> bool,
) -> Result<(Vec<u8>, ProduceInfo), BatchError> {
    let header = info.header;
    let opened = match info.codec {
        Codec::None => None,
        codec => Some(decompress(codec, body(batch), OPENED_BYTES_MAX)?),
    };
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    let records = opened.as_deref().unwrap_or_else(|| body(batch));
    let seen = filter(&header, records, &mut kept, |record| !is_taken(record))?;
    let written = match seen.kept {
        0 => without_records(&header, &mut out),
        _ => rewrite(&header, &kept, &seen, None, &mut out)?,
    };
    let info = ProduceInfo {
        header: written,
        records_count: seen.kept,
        max_timestamp: written.max_timestamp,
        ..*info
    };
    Ok((out, info))
}

fn letter(record: &RecordRef<'_>, topic: &str, partition: i32, sentence: &str) -> Letter {
    let own = record.headers.iter().flatten();
    let mut headers: Vec<_> = own
        .map(|header| (String::from_utf8_lossy(header.key).into_owned(), header.value.map(<[u8]>::to_vec)))
        .collect();
    for (name, text) in [
        ("pylog.topic", topic.to_owned()),
        ("pylog.partition", partition.to_string()),
        ("pylog.error", sentence.to_owned()),
    ] {
        headers.push((name.to_owned(), Some(text.into_bytes())));
    }
    Letter {
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        timestamp_ms: record.timestamp,
        headers,
    }
}
