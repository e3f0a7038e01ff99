//! What the client makes of brokers that lie, move, fall silent or hang up.
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use uuid::Uuid;

use super::fake::{Answer, Asked, FakeBroker, frame, metadata};
use crate::config::{Isolation, Settings};
use crate::error::{ClientError, Result, kind};
use crate::metadata::topic_partition::TopicPartition;
use crate::net::connection::{Connection, write_all};
use crate::net::stop::Stop;
use crate::net::transport::Transport;
use crate::read::advance::{LimitedRange, advance};
use crate::read::plan::{OffsetRange, ReadPlan};
use crate::read::range::RangeReader;
use pylog_columnar::Column;
use pylog_record::{BatchBuilder, Codec};
use pylog_wire::AnyRequest;
use pylog_wire::messages::fetch::{FetchableTopicResponse, PartitionData};
use pylog_wire::messages::{FetchResponse, ListOffsetsResponse, MetadataResponse};
use pylog_wire::{Chunk, ErrorCode};

/// A batch of `count` records whose first offset is `base_offset`.
fn batch(base_offset: i64, count: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_base_offset(base_offset);
    for n in 0..count {
        builder.append(1, None, Some(&[n as u8; 4]), &[]).unwrap();
    }
    builder.finish(Codec::None).unwrap()
}

/// The answer to a fetch of topic `t`.
fn fetched(records: Vec<u8>, error: ErrorCode) -> FetchResponse {
    let partition = PartitionData {
        error_code: error.code(),
        high_watermark: 1_000,
        records: Some(Bytes::from(records)),
        ..Default::default()
    };
    let topic = FetchableTopicResponse {
        topic: "t".into(),
        topic_id: Uuid::from_u128(7),
        partitions: vec![partition],
    };
    FetchResponse { responses: vec![topic], ..Default::default() }
}

/// The offset that a fetch asks for.
fn offset_asked(asked: &Asked) -> Option<i64> {
    match &asked.request {
        AnyRequest::Fetch(request) => Some(request.topics[0].partitions[0].fetch_offset),
        _ => None,
    }
}

/// A broker that leads partition 0 of `t` and answers fetches by `fetch`, which gets the offset.
fn leader(fetch: impl Fn(&Asked, i64) -> Answer + Send + Sync + 'static) -> FakeBroker {
    let port = Arc::new(AtomicUsize::new(0));
    let own = port.clone();
    let broker = FakeBroker::start(move |asked| match &asked.request {
        AnyRequest::Metadata(_) => asked.answer(&metadata(own.load(Ordering::SeqCst) as u16)),
        AnyRequest::ListOffsets(_) => asked.answer(&ListOffsetsResponse::default()),
        _ => fetch(asked, offset_asked(asked)?),
    });
    port.store(broker.port.into(), Ordering::SeqCst);
    broker
}

/// Reads `[start, end)` of partition 0 of `t`: the number of rows.
fn read(broker: &FakeBroker, start: i64, end: i64, given: &[(&str, &str)]) -> Result<usize> {
    let topic_partition = TopicPartition::by_name("t", 0);
    let columns = vec![Column::Value];
    let ranges = vec![OffsetRange { topic_partition, start, end: Some(end) }];
    let plan = ReadPlan { ranges, columns, batch_bytes: 1_000_000, max_rows: 1_000, ..ReadPlan::default() };
    let mut reader = RangeReader::new(broker.settings(given), plan)?;
    let mut rows = 0;
    while let Some(batch) = reader.next(Duration::from_secs(20))? {
        rows += batch.num_rows();
    }
    assert!(reader.at_end());
    assert_eq!(reader.next_offset(), end);
    Ok(rows)
}

/// A reader of ranges of partition 0 of `t`, and one of a partition that does not exist when asked for.
fn reader(broker: &FakeBroker, ranges: &[(i32, i64, i64)], limit: Option<usize>) -> RangeReader {
    let topic_partition = |partition| TopicPartition::by_name("t", partition);
    let offset_ranges = ranges.iter().map(|(partition, start, end)| OffsetRange {
        topic_partition: topic_partition(*partition),
        start: *start,
        end: Some(*end),
    });
    let columns = vec![Column::Value];
    let (batch_bytes, max_rows) = (1_000_000, 1_000);
    let plan = ReadPlan {
        ranges: offset_ranges.collect(),
        columns,
        batch_bytes,
        max_rows,
        limit,
        ..ReadPlan::default()
    };
    RangeReader::new(broker.settings(&[]), plan).unwrap()
}

/// Rows of each batch, with the range they came from.
fn drain(reader: &mut RangeReader) -> Result<Vec<(usize, usize)>> {
    let mut rows = Vec::new();
    while let Some(batch) = reader.next(Duration::from_secs(20))? {
        rows.push((reader.range_index(), batch.num_rows()));
    }
    Ok(rows)
}

#[test]
fn ranges_are_read_one_after_the_other() {
    let broker = leader(|asked, offset| asked.answer(&fetched(batch(offset, 4), ErrorCode::None)));
    let mut several = reader(&broker, &[(0, 5, 5), (0, 0, 10), (0, 7, 9), (0, 3, 3)], None);
    assert_eq!(drain(&mut several).unwrap(), [(1, 10), (2, 2)]);
    assert!(several.at_end());
    let mut none = reader(&broker, &[(0, 5, 5), (0, 3, 3)], None);
    assert_eq!(drain(&mut none).unwrap(), []);
    assert!(none.at_end());
}

#[test]
fn an_error_shows_the_range_it_ended() {
    let broker = leader(|asked, offset| asked.answer(&fetched(batch(offset, 4), ErrorCode::None)));
    let mut several = reader(&broker, &[(0, 0, 10), (3, 6, 8), (0, 7, 9)], None);
    let error = drain(&mut several).unwrap_err();
    assert_eq!(error.kind, "UNKNOWN_TOPIC_OR_PARTITION");
    assert!(error.message.contains("topic t has no partition 3"), "{}", error.message);
    assert_eq!((several.range_index(), several.next_offset(), several.at_end()), (1, 6, false));
}

#[test]
fn a_limit_counts_over_all_ranges_and_fetches_no_more_than_it_needs() {
    let fetches = Arc::new(AtomicUsize::new(0));
    let counted = fetches.clone();
    let broker = leader(move |asked, offset| {
        counted.fetch_add(1, Ordering::SeqCst);
        asked.answer(&fetched(batch(offset, 4), ErrorCode::None))
    });
    let mut several = reader(&broker, &[(0, 0, 6), (0, 20, 40), (0, 50, 60)], Some(9));
    assert_eq!(drain(&mut several).unwrap(), [(0, 6), (1, 3)]);
    assert!(several.at_end());
    assert_eq!(fetches.load(Ordering::SeqCst), 3);
}

#[test]
fn one_answer_serves_the_pieces_of_a_partition_that_it_covers() {
    let fetches = Arc::new(AtomicUsize::new(0));
    let counted = fetches.clone();
    let broker = leader(move |asked, offset| {
        counted.fetch_add(1, Ordering::SeqCst);
        let first = offset - offset % 10;
        let records = [batch(first, 5), batch(first + 5, 5)].concat();
        asked.answer(&fetched(records, ErrorCode::None))
    });
    let mut reader =
        reader(&broker, &[(0, 1, 2), (0, 3, 5), (0, 6, 7), (0, 8, 12), (0, 19, 20), (0, 40, 41)], None);
    assert_eq!(drain(&mut reader).unwrap(), [(0, 1), (1, 2), (2, 1), (3, 4), (4, 1), (5, 1)]);
    assert_eq!(fetches.load(Ordering::SeqCst), 3);
}

#[test]
fn silence_before_the_end_of_what_is_visible_is_an_error_and_no_gap() {
    // The log is visible up to 1000, and nothing comes from 4 on.
    let broker = leader(|asked, offset| {
        let records = if offset < 4 { batch(0, 4) } else { vec![] };
        asked.answer(&fetched(records, ErrorCode::None))
    });
    let error = read(&broker, 0, 50, &[SOON]).unwrap_err();
    assert_eq!(error.kind, kind::TIMED_OUT);
    assert!(error.message.contains("gave no batch from offset 4 on"), "{}", error.message);
    let range = LimitedRange {
        topic_partition: TopicPartition::by_name("t", 0),
        start: 0,
        end: 50,
        max_records: None,
        max_bytes: None,
        at_least_one: false,
    };
    let error = advance(broker.cluster(&[]), &[range]).1.unwrap_err();
    assert!(error.message.contains("gave no batch from offset 4 on"), "{}", error.message);
}

#[test]
fn a_gap_before_a_batch_that_readers_of_committed_data_may_not_see_yet_is_passed() {
    // Offsets 4 to 9 are gone; at 10 a transaction is open.
    let broker = leader(|asked, offset| {
        let AnyRequest::Fetch(request) = &asked.request else { return None };
        let committed = request.isolation_level == Isolation::ReadCommitted.code();
        let records = match offset {
            0..4 => batch(0, 4),
            _ if committed => vec![],
            _ => batch(10, 3),
        };
        let mut answer = fetched(records, ErrorCode::None);
        answer.responses[0].partitions[0].last_stable_offset = 10;
        asked.answer(&answer)
    });
    assert_eq!(read(&broker, 0, 10, &[("isolation.level", "read_committed")]).unwrap(), 4);
}

#[test]
fn a_broker_that_answers_at_once_without_anything_is_not_asked_without_a_pause() {
    let fetches = Arc::new(AtomicUsize::new(0));
    for records in [vec![], batch(0, 4)] {
        let counted = fetches.clone();
        let broker = leader(move |asked, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            asked.answer(&fetched(records.clone(), ErrorCode::None))
        });
        // Half a second, with pauses of 50 ms, and as many looks at what is stored.
        let given = [SOON, ("retry.backoff.ms", "50"), ("retry.backoff.max.ms", "50")];
        assert_fails(&broker, kind::TIMED_OUT, &given);
    }
    let fetches = fetches.load(Ordering::SeqCst);
    assert!(fetches < 60, "{fetches} fetches");
}

/// Of a client that is to give up what a broker never does.
const SOON: (&str, &str) = ("default.api.timeout.ms", "500");

fn assert_fails(broker: &FakeBroker, kind: &str, given: &[(&str, &str)]) -> ClientError {
    let error = read(broker, 0, 10, given).unwrap_err();
    assert_eq!(error.kind, kind, "{}", error.message);
    error
}

#[test]
fn a_range_ends_at_its_end_when_compaction_left_nothing_there() {
    // Offsets 4 to 99 are gone: the next batch begins behind the range.
    let broker = leader(|asked, offset| {
        let records = if offset < 4 { batch(0, 4) } else { batch(100, 5) };
        asked.answer(&fetched(records, ErrorCode::None))
    });
    assert_eq!(read(&broker, 0, 50, &[]).unwrap(), 4);
    assert_eq!(read(&broker, 2, 50, &[]).unwrap(), 2);
    assert_eq!(read(&broker, 50, 102, &[]).unwrap(), 2);
}

#[test]
fn a_cut_batch_at_the_end_of_an_answer_is_asked_for_again() {
    let broker = leader(|asked, offset| {
        let mut records = batch(offset, 3);
        let next = batch(offset + 3, 3);
        records.extend(&next[..next.len() - 1]);
        asked.answer(&fetched(records, ErrorCode::None))
    });
    assert_eq!(read(&broker, 0, 30, &[]).unwrap(), 30);
}

#[test]
fn a_flipped_byte_is_a_corrupt_batch_error_that_names_the_place() {
    let broker = leader(|asked, offset| {
        let mut records = batch(offset, 3);
        let last = records.len() - 1;
        records[last] ^= 1;
        asked.answer(&fetched(records, ErrorCode::None))
    });
    let error = assert_fails(&broker, "CORRUPT_BATCH", &[]);
    assert!(error.message.contains("topic t, partition 0, batch at offset 0"), "{}", error.message);
}

#[test]
fn a_leader_that_moved_is_found_again() {
    let new = leader(|asked, offset| asked.answer(&fetched(batch(offset, 5), ErrorCode::None)));
    let (new_port, old_port) = (new.port, Arc::new(AtomicUsize::new(0)));
    let (own, asked_before) = (old_port.clone(), AtomicUsize::new(0));
    let old = FakeBroker::start(move |asked| match &asked.request {
        AnyRequest::Metadata(_) if asked_before.fetch_add(1, Ordering::SeqCst) == 0 => {
            asked.answer(&metadata(own.load(Ordering::SeqCst) as u16))
        }
        AnyRequest::Metadata(_) => asked.answer(&metadata(new_port)),
        _ => asked.answer(&fetched(vec![], ErrorCode::NotLeaderOrFollower)),
    });
    old_port.store(old.port.into(), Ordering::SeqCst);
    assert_eq!(read(&old, 0, 10, &[]).unwrap(), 10);
}

#[test]
fn a_connection_that_breaks_is_opened_again() {
    let count = AtomicUsize::new(0);
    let broker = leader(move |asked, offset| {
        if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return None;
        }
        asked.answer(&fetched(batch(offset, 2), ErrorCode::None))
    });
    assert_eq!(read(&broker, 0, 10, &[]).unwrap(), 10);
}

#[test]
fn a_broker_that_always_hangs_up_ends_in_unreachable_with_the_time_it_took() {
    let broker = leader(|_, _| None);
    let error = assert_fails(&broker, "UNREACHABLE", &[SOON]);
    let port = broker.port.to_string();
    assert!(error.message.contains("could not read partition t-0 within"), "{}", error.message);
    assert!(error.message.contains(&port), "{}", error.message);
}

#[test]
fn a_broker_that_falls_silent_ends_in_a_timeout() {
    let broker = leader(|_, _| Some(Vec::new()));
    // Each attempt connects anew, for which it has the time of a request, too.
    let given = [("default.api.timeout.ms", "2500"), ("request.timeout.ms", "2000")];
    let started = Instant::now();
    let error = assert_fails(&broker, "TIMED_OUT", &given);
    assert!(error.message.contains("request.timeout.ms"), "{}", error.message);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_answer_that_drips_is_given_up_when_its_time_is_over() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let broker = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = 10_000_i32.to_be_bytes().into_iter().chain(std::iter::repeat(0));
        while stream.write_all(&[bytes.next().unwrap()]).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let given = [
        ("bootstrap.servers", "127.0.0.1:1"),
        ("request.timeout.ms", "500"),
        ("socket.connection.setup.timeout.ms", "500"),
    ];
    let settings = Settings::new(given).unwrap();
    let asked = Instant::now();
    let opened = Connection::open("127.0.0.1", address.port(), &settings, &Stop::default());
    assert_eq!(opened.unwrap_err().kind, kind::TIMED_OUT);
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    broker.join().unwrap();
}

#[test]
fn a_request_that_is_taken_in_drips_is_given_up_when_its_time_is_over() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let broker = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Enough at a time that the sender's socket has room again and again.
        let mut taken = vec![0; 256 << 10];
        while matches!(stream.read(&mut taken), Ok(1..)) {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut stream = Transport::Plain(std::net::TcpStream::connect(address).unwrap());
    let timeout = Duration::from_millis(500);
    stream.socket().set_write_timeout(Some(timeout)).unwrap();
    let frame = vec![Chunk::Bytes(Bytes::from(vec![0; 256 << 20]))];
    let begun = Instant::now();
    assert_eq!(write_all(&mut stream, &frame, timeout).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() >= timeout);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(stream);
    broker.join().unwrap();
}

#[test]
fn an_answer_longer_than_allowed_is_refused_before_it_is_read() {
    let broker = leader(|_, _| Some(i32::MAX.to_be_bytes().to_vec()));
    let error = assert_fails(&broker, "IO", &[]);
    assert!(error.message.contains("receive.message.max.bytes"), "{}", error.message);
}

#[test]
fn an_answer_to_another_request_is_refused() {
    let broker = leader(|asked, _| {
        let header = &asked.header;
        Some(frame(&fetched(vec![], ErrorCode::None), header.api_version, header.correlation_id + 1))
    });
    let error = assert_fails(&broker, "IO", &[SOON]);
    assert!(error.message.contains("belongs to another request"), "{}", error.message);
}

#[test]
fn a_topic_that_is_recreated_under_a_reader_is_an_error() {
    let (port, count) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let own = port.clone();
    let broker = FakeBroker::start(move |asked| match &asked.request {
        AnyRequest::Metadata(_) => {
            let mut answer: MetadataResponse = metadata(own.load(Ordering::SeqCst) as u16);
            if count.fetch_add(1, Ordering::SeqCst) > 0 {
                answer.topics[0].topic_id = Uuid::from_u128(8);
            }
            asked.answer(&answer)
        }
        _ => asked.answer(&fetched(vec![], ErrorCode::UnknownTopicId)),
    });
    port.store(broker.port.into(), Ordering::SeqCst);
    assert_fails(&broker, "UNKNOWN_TOPIC_ID", &[]);
}

#[test]
fn metadata_nobody_gives_is_an_error_at_once_for_a_new_client() {
    let broker = FakeBroker::start(|_| None);
    let mut cluster = broker.cluster(&[("default.api.timeout.ms", "60000")]);
    let started = Instant::now();
    let error = crate::admin::topics::describe_topics(&mut cluster, None).unwrap_err();
    assert_eq!(error.kind, "UNREACHABLE");
    assert!(started.elapsed() < Duration::from_secs(20));
}
