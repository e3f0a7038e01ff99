//! Old records, which only the archive has: a request that wants some waits until Python has brought them.
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::call::Call;
use crate::io::response_queue::Part;
use crate::state::archives::{AbortedBatches, Answered, Place, Wanted};
use pylog_record::batches::batches;
use pylog_storage::{LogSlice, PartitionLog};
use pylog_wire::ErrorCode;

/// Most bytes that one request gets from the archive, beside one larger batch: each is in memory twice while it is handed over.
const MOST_BYTES: usize = /* 2 MiB */ 2 << 20;

/// Records of a partition in an answer.
pub enum Records {
    /// They lie in a segment.
    File(LogSlice),
    /// They come from the archive.
    Memory(Bytes),
}

impl Records {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::File(slice) => slice.len,
            Self::Memory(bytes) => bytes.len(),
        }
    }

    /// As a part of an answer.
    pub fn part(self) -> Part {
        match self {
            Self::File(slice) => Part::File(slice),
            Self::Memory(bytes) => Part::Bytes(bytes),
        }
    }
}

/// Whole batches, and what a reader of committed data must hide of them.
#[derive(Debug, PartialEq, Eq)]
pub struct ArchivedBatches {
    /// The batches.
    pub data: Bytes,
    /// Aborted transactions among them.
    pub aborted: Vec<AbortedBatches>,
}

/// Asks for the records from an offset on, about so many bytes; nothing yet where the archive takes too long.
///
/// # Errors
/// As [`crate::state::archives::Archives::ask`].
pub async fn bring(
    call: &Call,
    at: Place,
    offset: i64,
    max_bytes: usize,
) -> Result<Option<ArchivedBatches>, ErrorCode> {
    let max_bytes = max_bytes.min(MOST_BYTES);
    let timeout = Duration::from_millis(call.shared.settings.remote_fetch_max_wait_ms);
    let asked = Wanted::Batches { offset, max_bytes };
    let answered = call.shared.archives.ask(call.peer.ip(), at, asked, timeout).await?;
    Ok(batches_of(answered, offset, max_bytes))
}

/// Asks one thing of a partition's archive and blocks until it is answered, for at most `remote.list.offsets.request.timeout.ms`; `None` when it
/// takes longer. Only for a thread for slow requests.
///
/// # Errors
/// As [`crate::state::archives::Archives::ask`].
pub fn ask_and_wait(call: &Call, log: &PartitionLog, wanted: Wanted) -> Result<Option<Answered>, ErrorCode> {
    let at = log.topic_partition();
    let place = Place { topic: at.topic.to_string(), topic_id: log.topic_id(), partition: at.partition };
    let timeout = Duration::from_millis(call.shared.settings.remote_list_offsets_request_timeout_ms);
    Handle::current().block_on(call.shared.archives.ask(call.peer.ip(), place, wanted, timeout))
}

fn batches_of(answered: Option<Answered>, offset: i64, max_bytes: usize) -> Option<ArchivedBatches> {
    match answered {
        Some(Answered::Batches(data, aborted)) => Some(cut(&data, &aborted, offset, max_bytes)),
        Some(Answered::Offset(_) | Answered::Refused(_)) | None => None,
    }
}

/// The batches from the one with `offset` on, up to `max_bytes`, but one at least.
fn cut(data: &Bytes, aborted: &[AbortedBatches], offset: i64, max_bytes: usize) -> ArchivedBatches {
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
    ArchivedBatches { data: data.slice(start..end), aborted: hidden.copied().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_record::{BatchBuilder, Codec};

    /// A batch of `count` records from `first` on.
    fn batch(first: i64, count: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        for _ in 0..count {
            builder.append(0, None, Some(b"value"), &[]).unwrap();
        }
        let mut bytes = builder.finish(Codec::None).unwrap();
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes
    }

    fn found(offset: i64, max_bytes: usize, aborted: &[AbortedBatches]) -> (Vec<i64>, Vec<AbortedBatches>) {
        let data = Bytes::from([batch(0, 5), batch(5, 5), batch(20, 5)].concat());
        let ArchivedBatches { data, aborted } = cut(&data, aborted, offset, max_bytes);
        (batches(&data).map(|each| each.unwrap().0.base_offset).collect(), aborted)
    }

    #[test]
    fn a_client_gets_the_batches_from_its_offset_on_as_far_as_they_fit_and_one_at_least() {
        assert_eq!(found(0, 1 << 20, &[]).0, [0, 5, 20]);
        assert_eq!(found(4, 1 << 20, &[]).0, [0, 5, 20]);
        assert_eq!(found(5, 1, &[]).0, [5]);
        assert_eq!(found(10, 1, &[]).0, [20], "there is a gap");
        assert_eq!(found(25, 1, &[]).0, [] as [i64; 0]);
        let two = batch(0, 5).len() * 2;
        assert_eq!(found(0, two, &[]).0, [0, 5]);
    }

    #[test]
    fn only_transactions_among_these_batches_are_hidden() {
        let aborted = [(1, 0, 4), (2, 3, 9), (3, 22, 30)];
        assert_eq!(found(5, 1, &aborted).1, [(2, 3, 9)]);
        assert_eq!(found(0, 1 << 20, &aborted).1, aborted);
    }
}
