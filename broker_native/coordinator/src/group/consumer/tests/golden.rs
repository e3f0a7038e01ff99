//! Records that Apache Kafka 4.3 wrote: a static member on one topic, a second member with a regular expression on two, the
//! first leaving for a while, the second for good.
use crate::Record;
use crate::group::consumer::{self, ConsumerChange, MemberState};
use crate::group::{Group, GroupKind};
use pylog_wire::stored::type_and_name;

/// Keys and values in hexadecimal digits, in the order of the log.
const RECORDS: &[(&str, Option<&str>)] = &[
    (
        "00050004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some(
            "000005696e7374077261636b2d310c676f6c642d636c69656e740b2f3132372e302e302e310207676f6c642d6101000493e00001000100",
        ),
    ),
    ("00030004676f6c64", Some("0000000000020100080020212066f71f51")),
    (
        "00070004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some("0000029e8d6b95c5a44942b39ea7de1b14d38605000000000000000100000002000000030000"),
    ),
    ("00060004676f6c64", Some("000000000002010008000001a1fe6abbb5")),
    (
        "00080004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some(
            "0000000000020000000000029e8d6b95c5a44942b39ea7de1b14d386050000000000000001000000020000000301001105000000020000000200000002000000020100",
        ),
    ),
    (
        "00050004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941",
        Some(
            "000000000c676f6c642d636c69656e740b2f3132372e302e302e31010b285e676f6c642d2e2a29000493e008756e69666f726d01000100",
        ),
    ),
    (
        "00080004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941",
        Some("0000000000020000000000010100"),
    ),
    (
        "00100004676f6c64000a285e676f6c642d2e2a29",
        Some("00000307676f6c642d6107676f6c642d620000000000000020000001a1fe6abc1d00"),
    ),
    ("00030004676f6c64", Some("000000000003010008219b4a2641ce61df")),
    (
        "00070004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941",
        Some(
            "0000039e8d6b95c5a44942b39ea7de1b14d38602000000030015c3f23dfac14b70a4ec91cd4af4b4750300000000000000010000",
        ),
    ),
    (
        "00070004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some("0000029e8d6b95c5a44942b39ea7de1b14d386040000000000000001000000020000"),
    ),
    ("00060004676f6c64", Some("000000000003010008000001a1fe6ac108")),
    (
        "00080004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some(
            "0000000000020000000201029e8d6b95c5a44942b39ea7de1b14d3860400000000000000010000000201000d04000000020000000200000002029e8d6b95c5a44942b39ea7de1b14d3860200000003010005020000000200",
        ),
    ),
    (
        "00080004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some(
            "0000000000030000000200029e8d6b95c5a44942b39ea7de1b14d3860400000000000000010000000201000d040000000200000002000000020100",
        ),
    ),
    (
        "00080004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941",
        Some(
            "0000000000030000000200039e8d6b95c5a44942b39ea7de1b14d3860200000003010005020000000315c3f23dfac14b70a4ec91cd4af4b4750300000000000000010100090300000003000000030100",
        ),
    ),
    (
        "00080004676f6c64001651696e41364e53505266694a534c3079374551585a41",
        Some(
            "0000fffffffe0000000200029e8d6b95c5a44942b39ea7de1b14d3860400000000000000010000000201000d040000000000000000000000000100",
        ),
    ),
    ("00080004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941", None),
    ("00070004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941", None),
    ("00050004676f6c6400166c4b2f573374757353314f344a7a65762f7a73315941", None),
    ("00100004676f6c64000a285e676f6c642d2e2a29", None),
    ("00030004676f6c64", Some("0000000000040100080020212066f71f51")),
];

fn bytes(digits: &str) -> bytes::Bytes {
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn records() -> impl Iterator<Item = Record> {
    RECORDS.iter().map(|(key, value)| Record { key: bytes(key), value: value.map(bytes) })
}

fn read(record: &Record) -> ConsumerChange {
    let (key_type, group_id) = type_and_name(&record.key).expect("a key");
    assert_eq!(group_id, "gold");
    ConsumerChange::read(key_type, record).expect("a record of Kafka's").expect("of use")
}

#[test]
fn records_of_kafka_are_written_back_byte_by_byte() {
    let mut equal = 0;
    for record in records() {
        let change = read(&record);
        let written = change.record("gold").expect("it can be written");
        assert_eq!(written.key, record.key);
        assert_eq!(read(&written), change);
        // Kafka keeps topics in the order of a hash table, here they are sorted; and it writes the null of an absent classic
        // member, which is not read here.
        let topics = match &change {
            ConsumerChange::Target(_, Some(target)) => target.len(),
            ConsumerChange::Current(_, Some(member)) => member.assigned.len(),
            ConsumerChange::Member(_, Some(_)) => continue,
            _ => 0,
        };
        if topics < 2 {
            assert_eq!(written.value, record.value, "{change:?}");
            equal += 1;
        }
    }
    assert_eq!((equal, RECORDS.len()), (17, 21));
}

#[test]
fn the_log_of_kafka_is_replayed_to_the_state_that_it_had() {
    let mut group = Group::default();
    let mut states = Vec::new();
    for record in records() {
        let (key_type, _) = type_and_name(&record.key).expect("a key");
        consumer::replay(&mut group, key_type, &record).expect("it can be replayed");
        let GroupKind::Consumer(members) = &group.kind else { panic!("{:?}", group.kind) };
        states.push((members.group_epoch, members.state_name(), members.regexes.len()));
    }
    assert_eq!(states[4], (2, "Stable", 0), "the first has joined");
    assert_eq!(states[11], (3, "Reconciling", 1), "the second has its target");
    assert_eq!(states[14], (3, "Stable", 1), "both have what they shall have");
    let GroupKind::Consumer(members) = &group.kind else { panic!("{:?}", group.kind) };
    assert_eq!((members.group_epoch, members.members.len(), members.regexes.len()), (4, 1, 0));
    let one = members.static_member("inst").expect("it left for a while");
    assert_eq!(
        (one.member_epoch, one.state, one.rack_id.as_deref()),
        (-2, MemberState::Stable, Some("rack-1"))
    );
    assert_eq!(one.owned().count(), 2 + 1);
}
