//! What the members of classic consumer groups send each other through a broker, which does not read it: Kafka's
//! ConsumerProtocolAssignment, for tools that show which member reads which partition.
use bytes::Bytes;

use super::field::{Field, Version};
use super::reader::Reader;
use super::schema::messages;

messages! {
    /// What a member was assigned, as the group's leader wrote it. Newer versions only add fields behind.
    ConsumerProtocolAssignment {
        version: i16 [0+],
        assigned_partitions: Vec<AssignedPartitions> [0+],
    }

    /// Partitions of a topic.
    AssignedPartitions {
        topic: String [0+],
        partitions: Vec<i32> [0+],
    }
}

/// (topic, partition) of an assignment; none when it is empty or in another format.
pub fn assigned(assignment: &Bytes) -> Vec<(String, i32)> {
    let version = Version { number: 0, flexible: false };
    let read = ConsumerProtocolAssignment::read(&mut Reader::new(assignment.clone()), version);
    let topics = read.map(|read| read.assigned_partitions).unwrap_or_default();
    let pairs = topics.into_iter().flat_map(|topic| {
        topic.partitions.into_iter().map(move |partition| (topic.topic.clone(), partition))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_names_its_partitions_and_rubbish_names_none() {
        let bytes = b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05\xff\xff\xff\xff";
        assert_eq!(assigned(&Bytes::from_static(bytes)), [("t".to_owned(), 0), ("t".to_owned(), 5)]);
        for rubbish in [&b""[..], b"\x00", b"\x00\x00\x7f\xff\xff\xff"] {
            assert_eq!(assigned(&Bytes::from_static(rubbish)), []);
        }
    }
}
