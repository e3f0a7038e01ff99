//! Any sequence of appends, reads, stops, kills, deletions and maintenance behaves like a list of records.
use proptest::prelude::*;
use pylog_storage::{LogConfig, ReadUpTo};

use crate::support::{Broker, fill, read_all};

#[derive(Debug, Clone)]
enum Do {
    Append { count: i64, padding: usize },
    Read { at: f64, max_bytes: usize },
    Delete { at: f64 },
    Maintain { after_ms: i64 },
    Restart { clean: bool },
}

fn any_step() -> impl Strategy<Value = Do> {
    prop_oneof![
        8 => (1..6_i64, 0..300_usize).prop_map(|(count, padding)| Do::Append { count, padding }),
        4 => (0.0..1.0, 1..5_000_usize).prop_map(|(at, max_bytes)| Do::Read { at, max_bytes }),
        1 => (0.0..1.0).prop_map(|at| Do::Delete { at }),
        1 => (0..100_000_i64).prop_map(|after_ms| Do::Maintain { after_ms }),
        1 => any::<bool>().prop_map(|clean| Do::Restart { clean }),
    ]
}

fn between(start: i64, end: i64, at: f64) -> i64 {
    start + ((end - start) as f64 * at) as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_log_behaves_like_a_list_of_records(
        steps in proptest::collection::vec(any_step(), 1..80),
        segment_bytes in 600..6_000_i64,
        index_interval_bytes in 0..2_000_i64,
        preallocate: bool,
    ) {
        let config = LogConfig {
            segment_bytes, index_interval_bytes, preallocate, file_delete_delay_ms: 0,
            max_message_bytes: 600, message_timestamp_after_max_ms: i64::MAX, ..LogConfig::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let mut broker = Broker::real(dir.path(), config.clone()).unwrap();
        let (mut start, mut end) = (0, 0);
        for step in steps {
            match step {
                Do::Append { count, padding } => {
                    // A batch larger than a segment is refused, and nothing changes.
                    if fill(&broker.log, count, padding).is_ok() {
                        end += count;
                    }
                }
                Do::Read { at, max_bytes } => {
                    let from = between(start, end, at);
                    let seen = read_all(&broker.log, from, max_bytes, ReadUpTo::HighWatermark).unwrap();
                    let offsets: Vec<i64> = seen.iter().map(|(offset, _)| *offset).filter(|o| *o >= from).collect();
                    prop_assert_eq!(offsets, (from..end).collect::<Vec<_>>());
                    prop_assert!(seen.iter().all(|(offset, value)| *value == offset.to_string()));
                }
                Do::Delete { at } => {
                    start = between(start, end, at);
                    prop_assert_eq!(broker.log.delete_records_before(start).unwrap(), start);
                }
                Do::Maintain { after_ms } => {
                    broker.clock.advance_ms(after_ms);
                    prop_assert!(broker.manager.run_maintenance().is_empty());
                }
                Do::Restart { clean } => {
                    if clean {
                        broker.manager.close().unwrap();
                    }
                    let clock = broker.clock.clone();
                    drop(broker);
                    broker = Broker::at(clock, std::sync::Arc::new(pylog_storage::RealDisk), dir.path(), config.clone()).unwrap();
                }
            }
            let offsets = broker.log.offsets();
            prop_assert_eq!((offsets.log_start_offset, offsets.log_end_offset), (start, end));
        }
    }
}
