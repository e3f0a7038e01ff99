"""Groups of the KIP-848 protocol: heartbeats, epochs, what is refused, descriptions, commits by epoch.

Members are identified by the ids that they choose, so that both brokers speak of the same ones.
"""

from typing import Any

from tests.oracle.compare import case
from tests.oracle.script import Answer, Script

# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
LOADING = (14, 15, 16)


def _assigned(answer: Answer) -> bool:
    return bool((answer["assignment"] or {}).get("topic_partitions"))


class Members:
    """A group and what its members say."""

    def __init__(self, s: Script, partitions: int = 2) -> None:
        self.s, self.name = s, s.new("group")
        self.topic = s.topic(partitions)
        self.topic_id = s.topic_id(self.topic)
        # A coordinator may have to be made first.
        s.until_good("FindCoordinator", 3, key=self.name)
        s.transcript.pop()
        stranger = {"group_id": self.name, "member_id": "stranger", "member_epoch": -1}
        s.until(lambda answer: answer["error_code"] not in LOADING, "ConsumerGroupHeartbeat", 1, **stranger)
        s.transcript.pop()
        self._await_topic()

    def _await_topic(self) -> None:
        """Kafka's coordinator hears of a topic some time after everybody else: ask it in another group."""
        member = {"group_id": self.s.new("group"), "member_id": "first"}
        joining = {"member_epoch": 0, "subscribed_topic_names": [self.topic], "rebalance_timeout_ms": 30_000}
        self.s.until(_assigned, "ConsumerGroupHeartbeat", 1, **member, **joining, topic_partitions=[])
        self.s.transcript.pop()
        self.s.quietly("ConsumerGroupHeartbeat", 1, **member, member_epoch=-1)

    def beat(self, member: str, epoch: int, version: int = 1, **fields: Any) -> Answer:
        """A heartbeat that says nothing but `fields`."""
        return self.s.call(
            "ConsumerGroupHeartbeat", version, group_id=self.name, member_id=member, member_epoch=epoch, **fields
        )

    def join(self, member: str, version: int = 1, **fields: Any) -> Answer:
        """A join with the topic's name, unless `fields` say otherwise."""
        said = {"subscribed_topic_names": [self.topic], "rebalance_timeout_ms": 30_000, "topic_partitions": []} | fields
        return self.beat(member, 0, version, **said)

    def owning(self, member: str, epoch: int, *partitions: int) -> Answer:
        """A heartbeat that says what the member owns."""
        owned = [{"topic_id": self.topic_id, "partitions": list(partitions)}] if partitions else []
        return self.beat(member, epoch, topic_partitions=owned)

    def describe(self) -> Answer:
        """ConsumerGroupDescribe."""
        return self.s.call("ConsumerGroupDescribe", group_ids=[self.name])

    def commit(self, member: str, epoch: int, partition: int = 0, version: int = 9) -> Answer:
        """OffsetCommit of one partition."""
        partitions = [{"partition_index": partition, "committed_offset": 5, "committed_metadata": ""}]
        topics = [{"name": self.topic, "partitions": partitions}]
        return self.s.call(
            "OffsetCommit",
            version,
            group_id=self.name,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=topics,
        )

    def fetch(self, member: str | None, epoch: int) -> Answer:
        """OffsetFetch of everything, as a member."""
        group = {"group_id": self.name, "member_id": member, "member_epoch": epoch, "topics": None}
        return self.s.call("OffsetFetch", 9, groups=[group])


@case
def test_the_first_member_gets_everything_at_epoch_2(s: Script) -> None:
    g = Members(s)
    g.join("a")
    s.says("NONE")
    s.holds(member_epoch=2, heartbeat_interval_ms=5000, partitions=[0, 1])
    g.beat("a", 2)
    s.holds(member_epoch=2, assignment=None)
    g.describe()
    s.holds(group_state="Stable", group_epoch=2, assignor_name="uniform")


@case
def test_a_member_of_version_0_is_given_an_id(s: Script) -> None:
    g = Members(s)
    answer = g.join("", version=0)
    s.says("NONE")
    g.beat(answer["member_id"], 2, version=0)
    s.says("NONE")
    g.join("", version=1)
    s.says("INVALID_REQUEST")


@case
def test_what_makes_no_sense_is_an_invalid_request(s: Script) -> None:
    g = Members(s)
    for fields in (
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [{"topic_id": g.topic_id, "partitions": [0]}]},
        {"subscribed_topic_names": None},
    ):
        g.join("a", **fields)
        s.says("INVALID_REQUEST")
    for epoch in (-2, -3):
        g.beat("a", epoch)
        s.says("INVALID_REQUEST")
    s.call("ConsumerGroupHeartbeat", group_id="", member_id="a", member_epoch=1)
    s.says("INVALID_REQUEST")


@case
def test_an_unknown_assignor_is_unsupported(s: Script) -> None:
    g = Members(s)
    g.join("a", server_assignor="sticky")
    s.says("UNSUPPORTED_ASSIGNOR")
    g.join("a", server_assignor="range")
    s.says("NONE")
    g.describe()
    s.holds(assignor_name="range")


@case
def test_a_group_that_there_is_not_is_not_found(s: Script) -> None:
    g = Members(s)
    for epoch in (1, -1):
        g.beat("a", epoch)
        s.says("GROUP_ID_NOT_FOUND")
    g.describe()
    s.says("GROUP_ID_NOT_FOUND")


@case
def test_a_member_that_there_is_not_is_unknown(s: Script) -> None:
    g = Members(s)
    g.join("a")
    for epoch in (1, -1):
        g.beat("b", epoch)
        s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_wrong_epoch_is_fenced_and_0_begins_anew(s: Script) -> None:
    g = Members(s)
    g.join("a")
    for epoch in (1, 3):
        g.beat("a", epoch)
        s.says("FENCED_MEMBER_EPOCH")
    g.join("a")
    s.holds(member_epoch=2, partitions=[0, 1])


@case
def test_a_partition_moves_when_its_owner_gave_it_back(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.join("b")
    s.holds(member_epoch=3)
    g.describe()
    s.holds(group_state="Reconciling")
    answer = g.beat("a", 2)
    kept = answer["assignment"]["topic_partitions"][0]["partitions"]
    s.holds(member_epoch=2)
    g.beat("b", 3)
    s.holds(assignment=None)
    g.owning("a", 2, *kept)
    s.holds(member_epoch=3)
    g.beat("b", 3)
    s.says("NONE")
    g.describe()
    s.holds(group_state="Stable")


@case
def test_the_epoch_before_is_accepted_from_a_member_that_owns_no_more_than_it_may(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.join("b")
    kept = g.beat("a", 2)["assignment"]["topic_partitions"][0]["partitions"]
    g.owning("a", 2, *kept)
    s.holds(member_epoch=3)
    g.owning("a", 2, *kept)
    s.holds(member_epoch=3, error_code=0)
    g.beat("a", 2)
    s.says("FENCED_MEMBER_EPOCH")
    g.owning("a", 2, 0, 1)
    s.says("FENCED_MEMBER_EPOCH")


@case
def test_who_leaves_frees_its_partitions(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.join("b")
    g.beat("a", -1)
    s.holds(member_epoch=-1)
    g.describe()
    s.holds(group_state="Assigning")
    g.beat("b", 3)
    s.holds(member_epoch=4, partitions=[0, 1])
    g.beat("b", -1)
    g.describe()
    s.holds(group_state="Empty", members=[])


@case
def test_a_static_member_comes_back_to_what_it_had(s: Script) -> None:
    g = Members(s)
    g.join("a", instance_id="one")
    g.beat("a", -2, instance_id="one")
    s.holds(member_epoch=-2)
    g.describe()
    g.join("b", instance_id="one")
    s.holds(partitions=[0, 1])
    g.describe()
    g.beat("a", 2, instance_id="one")
    s.says("FENCED_INSTANCE_ID")
    g.beat("a", 2)
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_name_in_use_is_unreleased(s: Script) -> None:
    g = Members(s)
    g.join("a", instance_id="one")
    g.join("b", instance_id="one")
    s.says("UNRELEASED_INSTANCE_ID")
    g.beat("b", 2, instance_id="one")
    s.says("FENCED_INSTANCE_ID")
    g.beat("b", -2, instance_id="one")
    s.says("FENCED_INSTANCE_ID")
    g.beat("a", 2, instance_id="two")
    s.says("UNKNOWN_MEMBER_ID")
    g.beat("a", -1, instance_id="one")
    s.says("NONE")


@case
def test_a_join_without_topics_gets_nothing(s: Script) -> None:
    g = Members(s)
    g.join("a", subscribed_topic_names=[])
    s.says("NONE")
    s.holds(topic_partitions=[])
    g.describe()


@case
def test_a_topic_that_is_not_there_gives_nothing(s: Script) -> None:
    g = Members(s)
    g.join("a", subscribed_topic_names=[s.new("nothing")])
    s.says("NONE")
    s.holds(topic_partitions=[])


@case
def test_changed_topics_begin_an_epoch(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.beat("a", 2, subscribed_topic_names=[])
    s.says("NONE")
    g.owning("a", 2)
    s.holds(member_epoch=3)
    g.beat("a", 3, rack_id="rack")
    s.holds(member_epoch=3)


@case
def test_a_full_request_is_answered_in_full(s: Script) -> None:
    g = Members(s)
    g.join("a")
    owned = [{"topic_id": g.topic_id, "partitions": [0, 1]}]
    g.beat("a", 2, subscribed_topic_names=[g.topic], rebalance_timeout_ms=30_000, topic_partitions=owned)
    s.holds(partitions=[0, 1])


@case
def test_a_wrong_regular_expression_is_refused(s: Script) -> None:
    g = Members(s)
    for regex in ("(", "a)(b", "[z-a]", "(?=a)"):
        g.join("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
        s.says("INVALID_REGULAR_EXPRESSION")


@case
def test_a_regular_expression_finds_its_topics(s: Script) -> None:
    g = Members(s)
    regex = f"{g.topic[:-1]}."
    g.join("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    s.transcript.pop()
    # Kafka looks for them in the background.
    s.until(lambda answer: len(_described(answer)) > 0, "ConsumerGroupDescribe", group_ids=[g.name])
    s.transcript.pop()
    _until_given(s, g, regex)
    s.holds(partitions=[0, 1])


@case
def test_a_regular_expression_finds_internal_topics_as_well(s: Script) -> None:
    g = Members(s)
    regex = "__consumer_offset."
    g.join("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    s.transcript.pop()
    _until_given(s, g, regex)
    s.holds(partitions=[0])


def _until_given(s: Script, g: Members, regex: str) -> None:
    """Member `a` joins by `regex` again and again until it is given partitions."""
    full = {"rebalance_timeout_ms": 30_000, "topic_partitions": [], "subscribed_topic_regex": regex}
    s.until(
        lambda answer: bool((answer["assignment"] or {}).get("topic_partitions")),
        "ConsumerGroupHeartbeat", 1, group_id=g.name, member_id="a", member_epoch=0, **full,
    )  # fmt: skip
    s.without("member_epoch")


def _described(answer: Answer) -> list[Any]:
    return list(answer["groups"][0]["members"])


@case
def test_commits_are_taken_at_the_members_epoch(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.commit("a", 2)
    s.says("NONE")
    g.commit("a", 3)
    s.says("STALE_MEMBER_EPOCH")
    g.commit("a", 1)
    s.says("STALE_MEMBER_EPOCH")
    g.commit("b", 2)
    s.says("UNKNOWN_MEMBER_ID")
    g.commit("", -1)
    s.says("UNKNOWN_MEMBER_ID")
    g.commit("a", 2, version=8)
    s.says("UNSUPPORTED_VERSION")


@case
def test_a_commit_of_the_epoch_before_is_taken_for_what_the_member_still_has(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.join("b")
    kept = g.beat("a", 2)["assignment"]["topic_partitions"][0]["partitions"]
    g.owning("a", 2, *kept)
    g.commit("a", 2, kept[0])
    s.says("NONE")
    g.commit("a", 2, 1 - kept[0])
    s.says("STALE_MEMBER_EPOCH")


@case
def test_tools_commit_when_nobody_is_there(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.beat("a", -1)
    g.commit("", -1)
    s.says("NONE")
    g.commit("a", 2)
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_offsets_are_fetched_by_members_at_their_epoch_or_by_nobody(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.commit("a", 2)
    g.fetch("a", 2)
    s.holds(committed_offset=5)
    g.fetch(None, -1)
    s.holds(committed_offset=5)
    g.fetch("a", 3)
    s.says("STALE_MEMBER_EPOCH")
    g.fetch("b", 2)
    s.says("UNKNOWN_MEMBER_ID")


@case
def test_a_group_with_members_is_not_deleted(s: Script) -> None:
    g = Members(s)
    g.join("a")
    s.call("DeleteGroups", groups_names=[g.name])
    s.says("NON_EMPTY_GROUP")
    g.beat("a", -1)
    s.call("DeleteGroups", groups_names=[g.name])
    s.says("NONE")
    g.describe()
    s.says("GROUP_ID_NOT_FOUND")


@case
def test_the_group_is_listed_with_its_type_and_state(s: Script) -> None:
    g = Members(s)
    g.join("a")
    answer = s.call("ListGroups", 5, states_filter=["stable"], types_filter=["Consumer"])
    s.transcript.pop()
    (listed,) = (group for group in answer["groups"] if group["group_id"] == g.name)
    s.keep("ListGroups, this one", listed)
    s.holds(group_state="Stable", group_type="consumer", protocol_type="consumer")


@case
def test_the_classic_description_of_the_group_is_dead_or_not_found(s: Script) -> None:
    g = Members(s)
    g.join("a")
    for version in (5, 6):
        s.call("DescribeGroups", version, groups=[g.name])
    s.says("GROUP_ID_NOT_FOUND")


@case
def test_an_empty_group_is_taken_over_by_the_other_protocol(s: Script) -> None:
    g = Members(s)
    g.join("a")
    g.beat("a", -1)
    protocols = [{"name": "range", "metadata": "00"}]
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    answer = s.call("JoinGroup", 9, group_id=g.name, member_id="", protocols=protocols, **fields)
    s.says("MEMBER_ID_REQUIRED")
    g.beat("b", 5)
    s.says("GROUP_ID_NOT_FOUND")
    leaving = [{"member_id": answer["member_id"]}]
    s.call("LeaveGroup", 5, group_id=g.name, members=leaving)
    g.join("b")
    s.says("NONE")


def _classic_member(g: Members) -> None:
    """A member of the classic protocol, alone in its group and assigned."""
    protocols = [{"name": "range", "metadata": CLASSIC_METADATA}]
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    joined = g.s.quietly("JoinGroup", 3, group_id=g.name, member_id="", protocols=protocols, **fields)
    member, generation = joined["member_id"], joined["generation_id"]
    assignments = [{"member_id": member, "assignment": CLASSIC_METADATA}]
    g.s.quietly("SyncGroup", 2, group_id=g.name, generation_id=generation, member_id=member, assignments=assignments)


# Version 0, no topics, no user data: a subscription, and an assignment.
CLASSIC_METADATA = "000000000000ffffffff"


@case
def test_a_classic_group_with_members_is_not_taken_over(s: Script) -> None:
    g = Members(s)
    _classic_member(g)
    g.join("a")
    s.says("GROUP_ID_NOT_FOUND")
    g.beat("a", 1)
    s.says("GROUP_ID_NOT_FOUND")
    g.describe()
    s.says("GROUP_ID_NOT_FOUND")


@case
def test_a_classic_member_does_not_join_members_of_the_consumer_protocol(s: Script) -> None:
    g = Members(s)
    g.join("a")
    protocols = [{"name": "range", "metadata": CLASSIC_METADATA}]
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "connect"}
    s.call("JoinGroup", 3, group_id=g.name, member_id="", protocols=protocols, **fields)
    s.says("INCONSISTENT_GROUP_PROTOCOL")
