"""The topics in which a broker keeps groups and transactions: who needs one has it made, and it does not grow without bound.

Clients that speak to a coordinator without having looked for it (FindCoordinator makes the topic) get NOT_COORDINATOR. A
fresh Apache Kafka says the same to all of these requests but TxnOffsetCommit, where it says COORDINATOR_NOT_AVAILABLE, after which
clients look for it, too. AddOffsetsToTxn is answered by a transaction's coordinator; the client may not have looked for the coordinator
of its group yet: there it succeeds at once, and makes no topic; here it makes the topic.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import RawConnection
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.interop.clients import create_topic
from tests.oracle.script import error_names

TRANSACTION = 1
GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
ROLL_BYTES = 5_000


@pytest.fixture
def fresh(tmp_path):
    """A broker with an empty directory: no internal topic is there. They get few partitions, and are compacted early."""
    settings = {
        "offsets_topic_num_partitions": 2,
        "transaction_state_log_num_partitions": 1,
        "log_cleaner_internal_roll_bytes": ROLL_BYTES,
        "log_cleaner_backoff_ms": 20,
        "log_retention_check_interval_ms": 20,
    }
    with LocalBroker(tmp_path / "data", **settings) as broker:
        yield broker


@contextmanager
def raw(broker: LocalBroker) -> Iterator[RawConnection]:
    connection = RawConnection(broker.host, broker.port)
    try:
        yield connection
    finally:
        connection.close()


def ask(connection: RawConnection, api: str, version: int, **fields: Any) -> dict[str, Any]:
    return json.loads(connection.call(api, version, json.dumps(fields)))


def errors_in(answer: dict[str, Any]) -> set[str]:
    """The errors of an answer, wherever they stand."""
    return set(error_names(answer)) - {"NONE"}


def until_good(connection: RawConnection, api: str, version: int, **fields: Any) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []

    def answered() -> bool:
        answers[:] = [ask(connection, api, version, **fields)]
        return not errors_in(answers[0])

    until(answered, lambda: f"{api} is answered without an error, at last: {answers}")
    return answers[0]


def transactional(connection: RawConnection, name: str) -> dict[str, Any]:
    """A producer with a transactional id, made as clients do: the fields that name it."""
    until_good(connection, "FindCoordinator", 4, key_type=TRANSACTION, coordinator_keys=[name])
    made = until_good(connection, "InitProducerId", 4, transactional_id=name, transaction_timeout_ms=60_000)
    return {
        "transactional_id": name,
        "producer_id": made["producer_id"],
        "producer_epoch": made["producer_epoch"],
    }


def internal_topics(broker: LocalBroker) -> set[str]:
    return {path.name.rpartition("-")[0] for path in Path(broker.data_dir).iterdir() if path.name.startswith("__")}


def test_offsets_are_added_to_a_transaction_though_nobody_has_looked_for_a_group_yet(fresh):
    with raw(fresh) as connection:
        named = transactional(connection, "t")
        assert internal_topics(fresh) == {TRANSACTIONS}
        until_good(connection, "AddOffsetsToTxn", 3, **named, group_id="g")
        assert internal_topics(fresh) == {TRANSACTIONS, GROUPS}
        assert not errors_in(ask(connection, "EndTxn", 3, **named, committed=True))


OFFSETS = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
TO_A_COORDINATOR = {
    "JoinGroup": (
        5,
        {
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": ""}],
        },
    ),
    "SyncGroup": (3, {"group_id": "g", "generation_id": 1, "member_id": "m", "assignments": []}),
    "Heartbeat": (3, {"group_id": "g", "generation_id": 1, "member_id": "m"}),
    "LeaveGroup": (2, {"group_id": "g", "member_id": "m"}),
    "OffsetCommit": (
        7,
        {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": OFFSETS},
    ),
    "OffsetFetch": (5, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}),
    "DescribeGroups": (4, {"groups": ["g"]}),
    "DeleteGroups": (1, {"groups_names": ["g"]}),
    "ConsumerGroupHeartbeat": (
        0,
        {
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        },
    ),
    "TxnOffsetCommit": (
        2,
        {"transactional_id": "t", "group_id": "g", "producer_id": 1, "producer_epoch": 0, "topics": OFFSETS},
    ),
    "InitProducerId": (4, {"transactional_id": "t", "transaction_timeout_ms": 60_000}),
    "AddPartitionsToTxn": (
        3,
        {
            "v3_and_below_transactional_id": "t",
            "v3_and_below_producer_id": 1,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": [{"name": "t", "partitions": [0]}],
        },
    ),
    "AddOffsetsToTxn": (
        3,
        {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "group_id": "g"},
    ),
    "EndTxn": (
        3,
        {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "committed": True},
    ),
}


def test_a_client_that_has_not_looked_for_a_coordinator_gets_not_coordinator(fresh):
    with raw(fresh) as connection:
        create_topic(fresh.bootstrap_servers, "t")
        until_good(connection, "InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1_000)
        answers = {
            api: errors_in(ask(connection, api, version, **fields))
            for api, (version, fields) in TO_A_COORDINATOR.items()
        }
        assert answers == {api: {"NOT_COORDINATOR"} for api in TO_A_COORDINATOR}
        assert internal_topics(fresh) <= {GROUPS}, "AddOffsetsToTxn alone makes one"


def kept_bytes(log: Path) -> int:
    """The size of a log's segments; the compactor may be exchanging them."""
    while True:
        with suppress(FileNotFoundError):
            return sum(path.stat().st_size for path in log.glob("*.log"))


def test_what_one_producer_writes_again_and_again_does_not_grow_the_internal_topic(fresh):
    """A query with a trigger of a second writes some 5 kB/s there, of which only the last record of each id counts."""
    log = Path(fresh.data_dir) / f"{TRANSACTIONS}-0"
    with raw(fresh) as connection:
        transactional(connection, "t")
        for _ in range(1_000):
            until_good(connection, "InitProducerId", 4, transactional_id="t", transaction_timeout_ms=60_000)
    # Each has written a batch, of more than 100 bytes.
    until(lambda: kept_bytes(log) < 3 * ROLL_BYTES, lambda: f"it is compacted; {kept_bytes(log)} bytes are left")
