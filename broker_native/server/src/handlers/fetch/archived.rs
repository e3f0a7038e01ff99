//! Old records, which only the archive has: a fetch that names some waits until Python has brought those of its first such partition.
//! The others come with the fetches behind it.
use std::time::Duration;

use bytes::Bytes;

use super::failed::failed;
use super::read::{Records, Unread, WantedPartitions, whereabouts};
use super::reader::FetchReader;
use crate::call::Call;
use crate::fetch_sessions::Position;
use crate::state::archives::{AbortedBatches, Answered, Wanted};
use pylog_record::batches::batches;
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::{AbortedTransaction, PartitionData};

/// Most bytes that one fetch gets from the archive, beside one larger batch.
const MOST_BYTES: usize = /* 8 MiB */ 8 << 20;

/// What became of the question for the records of one partition.
pub struct Brought {
    /// Its place in the request.
    pub index: usize,
    found: Result<Option<Batches>, ErrorCode>,
}

/// Whole batches, and what a reader of committed data must hide of them.
#[derive(Debug, PartialEq, Eq)]
struct Batches {
    data: Bytes,
    aborted: Vec<(i64, i64)>,
}

/// Asks for the records of the partition at `index`.
pub async fn bring(call: &Call, wanted: &WantedPartitions, index: usize) -> Brought {
    let found = match wanted.place(index) {
        None => Err(ErrorCode::UnknownTopicOrPartition),
        Some((at, position, max_bytes)) => {
            let (offset, max_bytes) = (position.offset, max_bytes.min(MOST_BYTES));
            let timeout = Duration::from_millis(call.shared.settings.remote_fetch_max_wait_ms);
            let asked = Wanted::Batches { offset, max_bytes };
            let answered = call.shared.archives.ask(call.peer.ip(), at, asked, timeout).await;
            answered.map(|answered| batches_of(answered, offset, max_bytes))
        }
    };
    Brought { index, found }
}

fn batches_of(answered: Option<Answered>, offset: i64, max_bytes: usize) -> Option<Batches> {
    match answered {
        Some(Answered::Batches(data, aborted)) => Some(cut(&data, &aborted, offset, max_bytes)),
        Some(Answered::Offset(_) | Answered::Refused(_)) | None => None,
    }
}

/// The batches from the one with `offset` on, up to `max_bytes`, but one at least.
fn cut(data: &Bytes, aborted: &[AbortedBatches], offset: i64, max_bytes: usize) -> Batches {
    let (mut start, mut end, mut next_offset) = (0, 0, offset);
    for (header, batch) in batches(data).map_while(Result::ok) {
        let behind = end + batch.len();
        if header.last_offset() < offset {
            (start, end) = (behind, behind);
        } else if end > start && behind - start > max_bytes {
            break;
        } else {
            (end, next_offset) = (behind, header.last_offset() + 1);
        }
    }
    let hidden = aborted.iter().filter(|(_, first, last)| *first < next_offset && *last >= offset);
    Batches { data: data.slice(start..end), aborted: hidden.map(|(id, first, _)| (*id, *first)).collect() }
}

impl Brought {
    /// The answer about the partition; nothing yet where the archive took too long.
    pub fn answer(
        &self,
        log: &PartitionLog,
        position: &Position,
        reader: &FetchReader,
    ) -> Result<(PartitionData, Records), Unread> {
        let found = match &self.found {
            Ok(found) => found,
            Err(error) => return Err(Unread::Failed(Box::new(failed(position.partition, *error)))),
        };
        let blank = whereabouts(log, position);
        let Some(Batches { data, aborted }) = found else { return Err(Unread::Failed(Box::new(blank))) };
        let of = |&(producer_id, first_offset): &(i64, i64)| AbortedTransaction { producer_id, first_offset };
        let aborted_transactions = reader.is_committed().then(|| aborted.iter().map(of).collect());
        Ok((PartitionData { aborted_transactions, ..blank }, Records::Memory(data.clone())))
    }
}
