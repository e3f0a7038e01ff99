"""Brokers that belong to a cluster while they are dead: what is placed on them, how they are forgotten."""

import pytest

from pylog_spark.broker import requests
from pylog_spark.cluster import documents
from pylog_spark.cluster.errors import ErrorCode
from tests.unit.broker.shared_world import Member, create, turn


class TestWhileABrokerIsDead:
    """It is known, so that topics are placed on it, and it joins when it comes back."""

    @pytest.fixture
    def left(self, members):
        members[2].close()
        turn(members[:2])
        return members[:2]

    def test_a_topic_of_three_replicas_is_made_and_the_dead_one_joins(self, left, world, tmp_path):
        assert create(left[1], "t", partitions=6)["error_code"] == 0
        turn(left)
        for partition in left[0].partitions("t").values():
            assert set(partition["replicas"]) == {1, 2, 3}
            assert set(partition["isr"]) == {1, 2}
            assert partition["leader"] in (1, 2)
        assert {partition["leader"] for partition in left[0].partitions("t").values()} == {1, 2}
        back = Member(world, 3, tmp_path / "3")
        turn([*left, back])
        assert set(back.partitions("t")) == set(range(6))
        partition = left[0].partitions("t")[0]
        leader = left[partition["leader"] - 1]
        asked = {
            "topic": "t", "partition": 0, "leader_epoch": partition["leader_epoch"],
            "partition_epoch": partition["partition_epoch"], "new_isr": [1, 2, 3],
        }  # fmt: skip
        leader.clustered.answer(7, "alter_partition", {"partitions": [asked]})
        assert leader.native.answers[7]["partitions"][0]["error_code"] == 0
        back.close()

    def test_so_are_partitions_moves_and_internal_topics(self, left):
        assert create(left[0], "t", partitions=1, factor=2)["error_code"] == 0
        asked = {"topics": [{"name": "t", "count": 2, "assignments": [{"broker_ids": [3, 1]}]}], "validate_only": False}
        assert requests.create_partitions(left[0].registry, asked)["results"][0]["error_code"] == 0
        assert left[0].partitions("t")[1]["isr"] == [1]
        moves = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [1, 2, 3]}]}]}
        answer = requests.HANDLERS["alter_partition_reassignments"](left[0].registry, moves)
        assert answer["responses"][0]["partitions"][0]["error_code"] == 0
        assert left[0].partitions("t")[0]["adding"] == [3]
        requests.auto_create_topics(left[0].registry, {"topics": ["__consumer_offsets", "auto"]})
        assert set(left[0].partitions("__consumer_offsets")[0]["replicas"]) == {1, 2, 3}
        assert "auto" in left[0].native.topics

    def test_it_is_listed_as_dead_and_not_among_the_brokers(self, left):
        assert [broker["id"] for broker in left[0].native.view["brokers"]] == [1, 2]
        (dead,) = left[0].native.view["dead"]
        assert (dead["id"], dead["endpoints"]) == (3, {"PLAINTEXT": ["127.0.0.1", 9003]})

    def test_once_forgotten_nothing_is_placed_on_it(self, left, world, tmp_path):
        def unregister(broker_id):
            return requests.HANDLERS["unregister_broker"](left[1].registry, {"broker_id": broker_id})["error_code"]

        assert unregister(1) == ErrorCode.INVALID_REQUEST
        assert unregister(9) == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert unregister(3) == 0
        turn(left)
        assert [member.native.view["dead"] for member in left] == [[], []]
        assert create(left[0], "t")["error_code"] == ErrorCode.INVALID_REPLICATION_FACTOR
        assert unregister(3) == ErrorCode.BROKER_ID_NOT_REGISTERED
        back = Member(world, 3, tmp_path / "3")
        turn([*left, back])
        assert create(left[0], "t")["error_code"] == 0
        back.close()

    def test_who_comes_back_while_it_is_forgotten_is_not(self, left, world, tmp_path):
        get_all, back = left[0].store.get_all, []

        def comes_back(paths):
            found = get_all(paths)
            if documents.KNOWN_BROKERS in paths and not back:
                back.append(Member(world, 3, tmp_path / "3"))
            return found

        left[0].store.get_all = comes_back
        answer = requests.HANDLERS["unregister_broker"](left[0].registry, {"broker_id": 3})
        assert answer["error_code"] == ErrorCode.INVALID_REQUEST
        assert 3 in documents.decode_known_brokers(world.documents[documents.KNOWN_BROKERS].data)
        back[0].close()


def test_a_cluster_without_the_document_knows_live_brokers_and_those_that_register_again(members, world, tmp_path):
    # As an older pylog left it.
    world.remove(documents.KNOWN_BROKERS)
    members[2].close()
    turn(members[:2])
    assert members[0].native.view["dead"] == []
    assert create(members[0], "t")["error_code"] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert create(members[0], "t", factor=2)["error_code"] == 0
    again = Member(world, 3, tmp_path / "3")
    turn([*members[:2], again])
    again.close()
    turn(members[:2])
    assert [broker["id"] for broker in members[0].native.view["dead"]] == [3]
    assert create(members[0], "u")["error_code"] == 0


def test_a_broker_that_moves_is_known_by_its_new_address(members, world, tmp_path):
    members[2].close()
    again = Member(world, 3, tmp_path / "3", **{"broker.rack": "r"})
    again.close()
    turn(members[:2])
    (dead,) = members[0].native.view["dead"]
    assert dead["rack"] == "r"
    revision = world.documents[documents.KNOWN_BROKERS].revision
    Member(world, 3, tmp_path / "3", **{"broker.rack": "r"}).close()
    assert world.documents[documents.KNOWN_BROKERS].revision == revision
