//! Promises of the assignors; cases after Kafka's UniformHomogeneous-, UniformHeterogeneous- and RangeAssignorTest.
use std::collections::BTreeMap;

use proptest::prelude::*;
use uuid::Uuid;

use super::subscriber::Subscriber;
use super::{AssignedPartitions, range, uniform};

type Assign = fn(&[Subscriber]) -> BTreeMap<String, AssignedPartitions>;

fn topic(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn member(id: &str, topics: &[(u128, i32)], before: &[(u128, &[i32])]) -> Subscriber {
    Subscriber {
        member_id: id.into(),
        instance_id: None,
        topics: topics.iter().map(|(number, partitions)| (topic(*number), *partitions)).collect(),
        before: partitions(before),
    }
}

fn partitions(of: &[(u128, &[i32])]) -> AssignedPartitions {
    of.iter().map(|(number, partitions)| (topic(*number), partitions.iter().copied().collect())).collect()
}

fn targets<const N: usize>(assign: Assign, members: [Subscriber; N]) -> [AssignedPartitions; N] {
    let targets = assign(&members);
    assert_eq!(targets.len(), N);
    members.map(|member| targets[&member.member_id].clone())
}

#[test]
fn one_member_gets_everything() {
    for assign in [uniform::assign as Assign, range::assign] {
        let [a] = targets(assign, [member("a", &[(1, 3), (2, 2)], &[])]);
        assert_eq!(a, partitions(&[(1, &[0, 1, 2]), (2, &[0, 1])]));
    }
}

#[test]
fn members_without_topics_get_nothing() {
    for assign in [uniform::assign as Assign, range::assign] {
        let [a, b] = targets(assign, [member("a", &[], &[(1, &[0])]), member("b", &[(1, 1)], &[])]);
        assert_eq!((a, b), (AssignedPartitions::new(), partitions(&[(1, &[0])])));
    }
}

#[test]
fn uniform_gives_the_rest_to_some_and_nothing_to_more_members_than_partitions() {
    let [a, b, c] = targets(uniform::assign, ["a", "b", "c"].map(|id| member(id, &[(1, 2)], &[])));
    assert_eq!([a.len(), b.len(), c.len()], [1, 1, 0]);
}

#[test]
fn uniform_moves_no_more_than_it_must_when_a_member_joins() {
    let topics = [(1, 3), (2, 3)];
    let [a, b, c] = targets(
        uniform::assign,
        [
            member("a", &topics, &[(1, &[0, 1]), (2, &[0])]),
            member("b", &topics, &[(1, &[2]), (2, &[1, 2])]),
            member("c", &topics, &[]),
        ],
    );
    assert_eq!([&a, &b, &c].map(|target| target.values().map(|p| p.len()).sum::<usize>()), [2, 2, 2]);
    let kept = |target: &AssignedPartitions, before: &AssignedPartitions| {
        target
            .iter()
            .all(|(id, partitions)| before.get(id).is_some_and(|before| partitions.is_subset(before)))
    };
    assert!(kept(&a, &partitions(&[(1, &[0, 1]), (2, &[0])])), "{a:?}");
    assert!(kept(&b, &partitions(&[(1, &[2]), (2, &[1, 2])])), "{b:?}");
}

#[test]
fn uniform_moves_nothing_when_who_has_one_more_comes_second() {
    let before = [partitions(&[(1, &[0])]), partitions(&[(1, &[1, 2])])];
    let [a, b] = targets(
        uniform::assign,
        [member("a", &[(1, 3)], &[(1, &[0])]), member("b", &[(1, 3)], &[(1, &[1, 2])])],
    );
    assert_eq!([a, b], before);
}

#[test]
fn uniform_gives_the_partitions_of_who_left_to_who_is_left() {
    let [b] = targets(uniform::assign, [member("b", &[(1, 4)], &[(1, &[2, 3])])]);
    assert_eq!(b, partitions(&[(1, &[0, 1, 2, 3])]));
}

#[test]
fn uniform_drops_topics_that_a_member_is_not_subscribed_to_any_more() {
    let [a, b] = targets(
        uniform::assign,
        [member("a", &[(2, 1)], &[(1, &[0, 1])]), member("b", &[(1, 2), (2, 1)], &[(2, &[0])])],
    );
    assert_eq!(a, partitions(&[(2, &[0])]), "b has enough of topic 1");
    assert_eq!(b, partitions(&[(1, &[0, 1])]));
}

#[test]
fn uniform_evens_out_over_topics_that_only_some_are_subscribed_to() {
    let [a, b, c] = targets(
        uniform::assign,
        [
            member("a", &[(1, 3), (2, 3)], &[]),
            member("b", &[(2, 3), (3, 3)], &[]),
            member("c", &[(1, 3), (2, 3), (3, 3)], &[]),
        ],
    );
    assert_eq!([&a, &b, &c].map(|target| target.values().map(|p| p.len()).sum::<usize>()), [3, 3, 3]);
}

#[test]
fn range_gives_the_same_numbers_of_topics_of_equal_size_to_the_same_member() {
    let topics = [(1, 3), (2, 3)];
    let [a, b] = targets(range::assign, [member("a", &topics, &[]), member("b", &topics, &[])]);
    assert_eq!(a, partitions(&[(1, &[0, 1]), (2, &[0, 1])]));
    assert_eq!(b, partitions(&[(1, &[2]), (2, &[2])]));
}

#[test]
fn range_counts_only_the_subscribers_of_a_topic() {
    let [a, b, c] = targets(
        range::assign,
        [
            member("a", &[(1, 3), (2, 3)], &[]),
            member("b", &[(3, 2)], &[]),
            member("c", &[(2, 3), (3, 2)], &[]),
        ],
    );
    assert_eq!(a, partitions(&[(1, &[0, 1, 2]), (2, &[0, 1])]));
    assert_eq!(b, partitions(&[(3, &[0])]));
    assert_eq!(c, partitions(&[(2, &[2]), (3, &[1])]));
}

#[test]
fn range_keeps_the_runs_of_static_members_whatever_their_ids_are() {
    let named =
        |id: &str, name: &str| Subscriber { instance_id: Some(name.into()), ..member(id, &[(1, 3)], &[]) };
    let [one, two, dynamic] =
        targets(range::assign, [named("z", "one"), named("a", "two"), member("b", &[(1, 3)], &[])]);
    assert_eq!(one, partitions(&[(1, &[0])]));
    assert_eq!(two, partitions(&[(1, &[1])]));
    assert_eq!(dynamic, partitions(&[(1, &[2])]));
}

proptest! {
    #[test]
    fn every_partition_goes_to_exactly_one_of_its_subscribers(
        counts in prop::collection::vec(1i32..9, 1..5),
        subscribed in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 1..7),
    ) {
        for assign in [uniform::assign as Assign, range::assign] {
            let mut members: Vec<Subscriber> = subscribed.iter().enumerate().map(|(at, topics)| {
                let chosen: Vec<(u128, i32)> = (0u128..).zip(&counts).zip(topics)
                    .filter(|(_, chosen)| **chosen).map(|((number, count), _)| (number, *count)).collect();
                member(&format!("m{at}"), &chosen, &[])
            }).collect();
            // Twice: from nothing, and from its own result, which must stay.
            let first = assign(&members);
            for member in &mut members {
                member.before = first[&member.member_id].clone();
            }
            prop_assert_eq!(&assign(&members), &first);
            let mut owners: BTreeMap<(Uuid, i32), usize> = BTreeMap::new();
            for member in &members {
                for (id, partitions) in &first[&member.member_id] {
                    let count = member.topics.get(id);
                    for partition in partitions {
                        prop_assert!(count.is_some_and(|count| partition < count), "{id} is not its topic");
                        *owners.entry((*id, *partition)).or_default() += 1;
                    }
                }
            }
            prop_assert!(owners.values().all(|count| *count == 1));
            let wanted: usize = members.iter().flat_map(|member| member.topics.clone()).collect::<BTreeMap<_, _>>()
                .values().map(|count| *count as usize).sum();
            prop_assert_eq!(owners.len(), wanted);
        }
    }
}
