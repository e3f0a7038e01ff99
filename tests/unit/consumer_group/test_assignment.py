"""Algorithm 1: every partition has an owner, shares are even, and members who see different registries never share one."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pylog_spark.consumer_group.assignment import Step, next_step, share
from pylog_spark.topic_partition import TopicPartition

TOPICS = ("a", "b", "c")
MEMBERS = st.dictionaries(st.text("mnop123", min_size=1, max_size=4), st.sets(st.sampled_from(TOPICS)), max_size=7)
PARTITIONS = st.dictionaries(st.sampled_from(TOPICS), st.sets(st.integers(0, 40), max_size=20))


def test_the_shares_are_those_of_the_paper_and_the_first_members_take_the_rest() -> None:
    members = {"c1": ["t"], "c2": ["t"], "c3": ["t", "u"], "c4": ["u"]}
    partitions = {"t": range(8), "u": range(1)}
    assert share("c1", members, partitions) == {("t", 0), ("t", 1), ("t", 2)}
    assert share("c2", members, partitions) == {("t", 3), ("t", 4), ("t", 5)}
    assert share("c3", members, partitions) == {("t", 6), ("t", 7), ("u", 0)}
    assert share("c4", members, partitions) == set()
    assert share("nobody", members, partitions) == set()


@settings(deadline=None)
@given(MEMBERS, PARTITIONS)
def test_every_partition_of_a_subscribed_topic_has_one_owner_and_shares_differ_by_one(
    members: dict[str, set[str]], partitions: dict[str, set[int]]
) -> None:
    owners = Counter(partition for member in members for partition in share(member, members, partitions))
    subscribed = {topic for topics in members.values() for topic in topics}
    assert set(owners) == {(topic, number) for topic in subscribed for number in partitions.get(topic, ())}
    assert set(owners.values()) <= {1}
    for topic in subscribed:
        sizes = [
            sum(partition[0] == topic for partition in share(member, members, partitions))
            for member, topics in members.items()
            if topic in topics
        ]
        assert max(sizes) - min(sizes) <= 1


@settings(deadline=None)
@given(MEMBERS, PARTITIONS, st.randoms())
def test_a_share_does_not_depend_on_the_order_in_which_registries_are_read(
    members: dict[str, set[str]], partitions: dict[str, set[int]], random: "object"
) -> None:
    again = list(members.items())
    random.shuffle(again)  # type: ignore[attr-defined]
    for member in members:
        assert share(member, dict(again), partitions) == share(member, members, partitions)


@settings(deadline=None)
@given(MEMBERS, PARTITIONS)
def test_what_stays_a_members_is_not_given_up_in_between(
    members: dict[str, set[str]], partitions: dict[str, set[int]]
) -> None:
    for member in members:
        mine = share(member, members, partitions)
        assert next_step(member, mine, members, partitions) == Step(frozenset(), frozenset())
        fewer = {other: topics for other, topics in members.items() if other == member}
        assert not next_step(member, mine, fewer, partitions).release


class Registry:
    """What ZooKeeper keeps: a node that only one can create."""

    def __init__(self) -> None:
        self.members: dict[str, set[str]] = {}
        self.owners: dict[TopicPartition, str] = {}


class Member:
    """One member: the registries as it saw them last, and what it owns."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.owned: set[TopicPartition] = set()
        self.view: dict[str, set[str]] = {}

    def act(self, registry: Registry, partitions: dict[str, set[int]]) -> None:
        step = next_step(self.name, self.owned, self.view, partitions)
        for partition in step.release:
            del registry.owners[partition]
            self.owned.discard(partition)
        for partition in step.claim:
            if registry.owners.setdefault(partition, self.name) == self.name:
                self.owned.add(partition)


EVENTS = st.lists(st.tuples(st.sampled_from(("join", "die", "look", "act")), st.integers(0, 4)), max_size=60)


@settings(deadline=None)
@given(EVENTS, st.integers(0, 12))
def test_members_that_see_changes_late_never_own_the_same_and_agree_when_they_have_seen_all(
    events: list[tuple[str, int]], count: int
) -> None:
    registry, partitions = Registry(), {"t": set(range(count))}
    living: dict[str, Member] = {}
    for what, number in events:
        name = f"m{number}"
        if what == "join" and name not in living:
            living[name] = Member(name)
            registry.members[name] = {"t"}
        elif name in living:
            if what == "die":
                registry.owners = {partition: owner for partition, owner in registry.owners.items() if owner != name}
                del living[name], registry.members[name]
            elif what == "look":
                living[name].view = dict(registry.members)
            elif what == "act":
                living[name].act(registry, partitions)
        owned = [partition for member in living.values() for partition in member.owned]
        assert len(owned) == len(set(owned))
    for member in living.values():
        member.view = dict(registry.members)
    for _ in range(2):  # Once to release, once to claim what others released.
        for member in living.values():
            member.act(registry, partitions)
    owned = [partition for member in living.values() for partition in member.owned]
    assert sorted(owned) == [("t", number) for number in range(count if living else 0)]
