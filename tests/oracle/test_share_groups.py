"""Share groups (KIP-932): members, sessions, which records a member gets, what becomes of them, administration.

What ShareFetch answers is compared by offset: how often each record was delivered, and the errors; not how runs are cut, nor partitions
without news. Epochs of groups are not: Apache Kafka raises them when it has made the share partitions, at its own time.
"""

from typing import Any

from tests.harness import waiting
from tests.oracle.batches import batch
from tests.oracle.compare import case
from tests.oracle.errors import NAMES
from tests.oracle.script import Answer, Script

LOADING = (14, 15, 16)
GROUP_RESOURCE, SET = 32, 0
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
CLOSES = -1
# Ids as Kafka's clients make them.
MEMBERS = {"a": "AAAAAAAAAAAAAAAAAAAAAQ", "b": "AAAAAAAAAAAAAAAAAAAAAg", "nobody": "AAAAAAAAAAAAAAAAAAAAAw"}
_UNTIL_S, _AGAIN_S = 60, 0.01
# Settings of one group that pylog does not have: docs/broker.md says so.
NOT_THERE = {
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.topic.name",
    "share.assignment.interval.ms",
    "share.assignor.offload.enable",
}
_EPOCHS = ("member_epoch", "group_epoch", "assignment_epoch")

Said = tuple[int, int, list[int]]


def contents(answer: Answer) -> dict[str, Any]:
    """What an answer to ShareFetch says."""
    partitions = {}
    for topic in answer["responses"]:
        for partition in topic["partitions"]:
            runs = partition.get("acquired_records", [])
            counts = {
                offset: run["delivery_count"]
                for run in runs
                for offset in range(run["first_offset"], run["last_offset"] + 1)
            }
            errors = [NAMES[partition["error_code"]], NAMES[partition.get("acknowledge_error_code", 0)]]
            if counts or errors != ["NONE", "NONE"]:
                partitions[partition["partition_index"]] = (errors, counts)
    return {"error": NAMES[answer["error_code"]], "partitions": partitions}


def batches(*said: Said) -> list[dict[str, Any]]:
    """Acknowledgements: first and last offset, one word for all or one for each."""
    return [{"first_offset": first, "last_offset": last, "acknowledge_types": words} for first, last, words in said]


class Group:
    """A share group that begins at the start of a topic of one partition, whose records are batches of their own or given ones."""

    def __init__(self, s: Script, *values: str, **settings: str) -> None:
        self.s, self.name, self.topic = s, s.new("group"), s.topic(1)
        self.topic_id = s.topic_id(self.topic)
        self.epochs: dict[str, int] = {}
        s.until_good("FindCoordinator", 3, key=self.name)
        s.transcript.pop()
        s.until(
            lambda answer: answer["error_code"] not in LOADING,
            "ShareGroupHeartbeat",
            1,
            **self._as("a"),
            member_epoch=-1,
        )
        s.transcript.pop()
        self.configure(share_auto_offset_reset="earliest", **settings)
        if values:
            s.fill(self.topic, *values)

    def _as(self, member: str) -> dict[str, str]:
        return {"group_id": self.name, "member_id": MEMBERS[member]}

    def configure(self, **settings: str) -> None:
        """Settings of the group itself."""
        configs = [
            {"name": name.replace("_", "."), "config_operation": SET, "value": text} for name, text in settings.items()
        ]
        resource = {"resource_type": GROUP_RESOURCE, "resource_name": self.name, "configs": configs}
        self.s.quietly("IncrementalAlterConfigs", resources=[resource], validate_only=False)

    def beat(self, member: str, epoch: int, **fields: Any) -> Answer:
        """A heartbeat."""
        answer = self.s.call("ShareGroupHeartbeat", 1, **{**self._as(member), "member_epoch": epoch, **fields})
        self.s.without(*_EPOCHS, "assignment")
        return answer

    def join(self, member: str) -> int:
        """A member to which the topic is assigned; its epoch."""
        answer = self.beat(member, 0, subscribed_topic_names=[self.topic])

        def is_assigned() -> bool:
            nonlocal answer
            if (answer["assignment"] or {}).get("topic_partitions"):
                return True
            answer = self.beat(member, answer["member_epoch"], subscribed_topic_names=[self.topic])
            self.s.transcript.pop()
            return False

        waiting.until(is_assigned, lambda: f"{member} reads the topic: {answer}", _UNTIL_S, _AGAIN_S)
        return int(answer["member_epoch"])

    def fetch(
        self, member: str, *said: Said, epoch: int | None = None, topic_id: str = "", **fields: Any
    ) -> dict[str, Any]:
        """ShareFetch, the next one of its session unless `epoch` says otherwise."""
        if epoch is None:
            epoch = self.epochs.get(member, 0)
            self.epochs[member] = epoch + 1
        partition = {"partition_index": 0, "acknowledgement_batches": batches(*said)}
        limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        topics = [{"topic_id": topic_id or self.topic_id, "partitions": [partition]}]
        request = {**self._as(member), "share_session_epoch": epoch, "topics": topics, **limits, **fields}
        answer = contents(self.s.call("ShareFetch", 2, **request))
        self.s.transcript[-1] = ("ShareFetch", answer)
        return answer

    def read(self, member: str, *said: Said, **fields: Any) -> dict[int, int]:
        """Records, which there are some time or other: how often each was delivered. What is said is said once."""
        answer = self.fetch(member, *said, **fields)

        def has_some() -> bool:
            nonlocal answer
            if not answer["partitions"]:
                self.s.transcript.pop()
                answer = self.fetch(member, **fields)
            return bool(answer["partitions"])

        waiting.until(has_some, lambda: f"{member} gets records: {answer}", _UNTIL_S, _AGAIN_S)
        return dict(answer["partitions"][0][1])

    def acknowledge(self, member: str, *said: Said, epoch: int | None = None, **fields: Any) -> Answer:
        """ShareAcknowledge."""
        if epoch is None:
            epoch = self.epochs[member]
            self.epochs[member] = epoch + 1
        partition = {"partition_index": 0, "acknowledgement_batches": batches(*said)}
        topics = [{"topic_id": self.topic_id, "partitions": [partition]}] if said else []
        request = {**self._as(member), "share_session_epoch": epoch, "topics": topics, **fields}
        return self.s.call("ShareAcknowledge", 2, **request)

    def close(self, member: str) -> None:
        """The member closes its session and leaves."""
        self.acknowledge(member, epoch=CLOSES)
        self.beat(member, -1)

    def lag(self) -> Answer:
        """DescribeShareGroupOffsets; where the group begins is shown by Kafka one write later."""
        wanted = [{"group_id": self.name, "topics": [{"topic_name": self.topic, "partitions": [0]}]}]
        answer = self.s.call("DescribeShareGroupOffsets", 1, groups=wanted)
        self.s.without("start_offset", "leader_epoch")
        return answer


@case
def test_a_share_group_has_kafkas_settings(s: Script) -> None:
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": s.new("group"), "configuration_keys": None}
    (described,) = s.call("DescribeConfigs", resources=[resource])["results"]
    found = {
        config["name"]: config["value"]
        for config in described["configs"]
        if config["name"].startswith(("share.", "errors."))
    }
    if s.is_kafka:
        assert set(found) >= NOT_THERE
    s.transcript[-1] = ("DescribeConfigs", {name: value for name, value in found.items() if name not in NOT_THERE})


@case
def test_a_heartbeat_that_makes_no_sense_is_an_invalid_request(s: Script) -> None:
    g = Group(s)
    topics = {"subscribed_topic_names": [g.topic]}
    for fields in (
        {**topics, "member_id": ""},
        {**topics, "group_id": ""},
        {**topics, "rack_id": ""},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": []},
    ):
        g.beat("a", 0, **fields)
        s.says("INVALID_REQUEST")
    g.beat("a", -2, **topics)
    s.says("INVALID_REQUEST")


@case
def test_share_group_heartbeats_of_strangers_are_refused(s: Script) -> None:
    g = Group(s)
    for epoch in (1, -1):
        g.beat("a", epoch)
        s.says("GROUP_ID_NOT_FOUND")
    s.call("ShareGroupDescribe", 1, group_ids=[g.name])
    s.says("GROUP_ID_NOT_FOUND")
    epoch = g.join("a")
    for stranger in (1, -1):
        g.beat("b", stranger)
        s.says("UNKNOWN_MEMBER_ID")
    g.beat("a", epoch + 5)
    s.says("FENCED_MEMBER_EPOCH")
    g.beat("a", epoch)
    s.says("NONE")
    g.beat("a", -1)
    s.says("NONE")
    s.call("ShareGroupDescribe", 1, group_ids=[g.name])
    s.without(*_EPOCHS)
    s.holds(group_state="Empty", members=[])


@case
def test_a_share_group_is_no_group_of_another_kind(s: Script) -> None:
    g = Group(s)
    g.join("a")
    joined = {
        "member_epoch": 0,
        "rebalance_timeout_ms": 5_000,
        "topic_partitions": [],
        "subscribed_topic_names": [g.topic],
    }
    s.call("ConsumerGroupHeartbeat", 1, group_id=g.name, member_id="x", **joined)
    s.says("GROUP_ID_NOT_FOUND")
    s.call("ConsumerGroupDescribe", group_ids=[g.name])
    s.says("GROUP_ID_NOT_FOUND")
    s.call("DescribeGroups", 6, groups=[g.name])
    s.says("GROUP_ID_NOT_FOUND")
    s.call("OffsetFetch", 9, groups=[{"group_id": g.name, "topics": None}])
    partitions = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
    topics = [{"name": g.topic, "partitions": partitions}]
    s.call("OffsetCommit", 9, group_id=g.name, member_id="", generation_id_or_member_epoch=-1, topics=topics)
    s.call("ListGroups", 5, states_filter=[], types_filter=["share"])
    s.only_mine()
    s.holds(group_type="share", protocol_type="share", group_state="Stable")


@case
def test_a_session_goes_on_with_the_next_epoch_and_ends_once(s: Script) -> None:
    g = Group(s, "one", "two")
    g.join("a")
    g.fetch("a", epoch=1)
    g.fetch("a", epoch=CLOSES)
    g.fetch("a", (0, 0, [ACCEPT]), epoch=0)
    assert g.read("a") == {0: 1, 1: 1}
    g.fetch("a", epoch=77)
    g.acknowledge("a", epoch=0)
    s.says("INVALID_SHARE_SESSION_EPOCH")
    g.acknowledge("a", (0, 0, [ACCEPT]))
    s.says("NONE")
    g.acknowledge("a", epoch=CLOSES)
    s.says("NONE")
    g.acknowledge("a", epoch=CLOSES)
    s.says("SHARE_SESSION_NOT_FOUND")
    g.join("b")
    g.read("b")


@case
def test_each_record_meets_the_fate_that_its_member_says(s: Script) -> None:
    g = Group(s)
    s.produce(g.topic, batch("a", "b", "c", "d", "e", "f"))
    g.join("a")
    g.read("a")
    g.acknowledge("a", (0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT]), (5, 5, [RELEASE]))
    s.says("NONE")
    g.read("a")
    g.lag()
    g.fetch("a", (1, 1, [ACCEPT]), (5, 5, [ACCEPT]))
    g.lag()
    s.holds(lag=0)


@case
def test_acknowledgements_that_cannot_be_taken(s: Script) -> None:
    g = Group(s)
    s.produce(g.topic, batch("a", "b", "c"))
    g.join("a")
    g.join("b")
    g.read("a")
    g.fetch("b")
    for said in (
        (0, 9, [ACCEPT]),
        (2, 1, [ACCEPT]),
        (0, 2, [ACCEPT, ACCEPT]),
        (0, 0, [9]),
        (0, 0, []),
        (0, 0, [RENEW]),
    ):
        g.acknowledge("a", said)
    g.acknowledge("b", (0, 0, [ACCEPT]))
    s.says("INVALID_RECORD_STATE")
    g.acknowledge("a", (0, 0, [ACCEPT]))
    s.says("NONE")
    g.acknowledge("a", (0, 0, [ACCEPT]))
    g.acknowledge("a", (2, 2, [ACCEPT]))
    g.acknowledge("a", (2, 2, [ACCEPT]))
    s.says("INVALID_RECORD_STATE")
    g.fetch("a", topic_id="00000000-0000-0000-0000-000000000007")


@case
def test_a_lock_is_renewed_where_the_group_allows_it(s: Script) -> None:
    for allowed in ("true", "false"):
        g = Group(s, "one", share_renew_acknowledge_enable=allowed)
        g.join("a")
        g.read("a")
        g.acknowledge("a", (0, 0, [RENEW]), is_renew_ack=True)
        s.says("NONE" if allowed == "true" else "INVALID_RECORD_STATE")
        g.acknowledge("a", (0, 0, [ACCEPT]))
        s.says("NONE")


@case
def test_records_near_their_last_delivery_come_apart(s: Script) -> None:
    g = Group(s)
    s.produce(g.topic, batch(*"abcdefgh"))
    g.join("a")
    for _ in range(3):
        found = g.read("a")
        g.acknowledge("a", (min(found), max(found), [RELEASE]))
    # Half of them, and then one by one.
    for _ in range(2):
        found = g.read("a")
        g.acknowledge("a", (min(found), max(found), [RELEASE]))
    g.lag()


@case
def test_a_member_that_counts_gets_no_more_than_it_asks_for(s: Script) -> None:
    g = Group(s)
    s.produce(g.topic, batch("a", "b", "c", "d"))
    g.join("a")
    g.read("a", max_records=3, share_acquire_mode=1)
    g.acknowledge("a", (0, 0, [RELEASE]))
    g.read("a", max_records=2, share_acquire_mode=1)
    g.acknowledge("a", (0, 3, [ACCEPT]))
    g.lag()


@case
def test_a_group_with_members_is_not_moved_and_one_without_is(s: Script) -> None:
    g = Group(s, "one", "two", "three")
    g.join("a")
    g.read("a")
    there = [{"topic_name": g.topic, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    s.call("AlterShareGroupOffsets", 0, group_id=g.name, topics=there)
    s.says("NON_EMPTY_GROUP")
    s.call("DeleteShareGroupOffsets", 0, group_id=g.name, topics=[{"topic_name": g.topic}])
    s.says("NON_EMPTY_GROUP")
    s.call("DeleteGroups", 2, groups_names=[g.name])
    s.says("NON_EMPTY_GROUP")
    g.close("a")
    s.call("AlterShareGroupOffsets", 0, group_id=g.name, topics=there)
    s.says("NONE")
    g.lag()
    s.call("DeleteShareGroupOffsets", 0, group_id=g.name, topics=[{"topic_name": s.new("topic")}])
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    s.call("DeleteShareGroupOffsets", 0, group_id=g.name, topics=[{"topic_name": g.topic}])
    s.says("NONE")
    s.call("DeleteGroups", 2, groups_names=[g.name])
    s.says("NONE")


@case
def test_a_share_group_that_there_is_not_has_no_offsets(s: Script) -> None:
    g = Group(s)
    g.lag()
    s.call("DescribeShareGroupOffsets", 1, groups=[{"group_id": g.name, "topics": None}])
    s.call("DeleteShareGroupOffsets", 0, group_id=g.name, topics=[{"topic_name": g.topic}])
    s.says("GROUP_ID_NOT_FOUND")


@case
def test_offsets_of_a_share_group_that_there_is_not_make_it(s: Script) -> None:
    g = Group(s, "one", "two", "three")
    there = [{"topic_name": g.topic, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    s.call("AlterShareGroupOffsets", 0, group_id=g.name, topics=there)
    s.says("NONE")
    s.call("ShareGroupDescribe", 1, group_ids=[g.name])
    s.without(*_EPOCHS)
    s.holds(group_state="Empty", members=[])
    s.call("ListGroups", 5, states_filter=[], types_filter=["share"])
    s.only_mine()
    g.lag()
    s.holds(lag=2)
    g.join("a")
    assert g.read("a") == {1: 1, 2: 1}
    g.close("a")
    s.call("DeleteShareGroupOffsets", 0, group_id=g.name, topics=[{"topic_name": g.topic}])
    s.says("NONE")
    s.call("DeleteGroups", 2, groups_names=[g.name])
    s.says("NONE")


@case
def test_offsets_that_cannot_be_are_refused(s: Script) -> None:
    g = Group(s)
    nowhere = [{"topic_name": s.new("topic"), "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    s.call("AlterShareGroupOffsets", 0, group_id=g.name, topics=nowhere)
    s.call("ShareGroupDescribe", 1, group_ids=[g.name])
    s.without(*_EPOCHS)
    for index, offset in ((7, 1), (0, -1)):
        partitions = [{"partition_index": index, "start_offset": offset}]
        s.call("AlterShareGroupOffsets", 0, group_id=g.name, topics=[{"topic_name": g.topic, "partitions": partitions}])
    g.lag()
    s.call("AlterShareGroupOffsets", 0, group_id="", topics=nowhere)
    s.call("DescribeShareGroupOffsets", 1, groups=[{"group_id": "", "topics": None}])
    s.call("DeleteShareGroupOffsets", 0, group_id="", topics=[{"topic_name": g.topic}])
    other = s.new("group")
    partitions = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
    topics = [{"name": g.topic, "partitions": partitions}]
    s.call("OffsetCommit", 9, group_id=other, member_id="", generation_id_or_member_epoch=-1, topics=topics)
    s.call("AlterShareGroupOffsets", 0, group_id=other, topics=nowhere)
    s.call("DescribeShareGroupOffsets", 1, groups=[{"group_id": other, "topics": None}])
    s.call("DeleteShareGroupOffsets", 0, group_id=other, topics=[{"topic_name": g.topic}])
