"""Rolling upgrade: brokers of this version and of the next one (`next_version`) in one cluster, as real processes under load.

What brokers of two levels say to each other is tested in every run: `tests/unit/broker/test_clustered.py`.
"""

import json
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.cluster import documents
from pylog_spark.cluster.features import FEATURE
from pylog_spark.testing import ProcessError, ZooKeeper
from pylog_spark.testing.local_broker import PROGRAM
from tests.cluster import next_version
from tests.cluster.rounds import await_records, outage_s
from tests.cluster.running import judge, running
from tests.harness import watch
from tests.harness.bench import Bench
from tests.harness.history import Outcome
from tests.harness.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(180)]

_KNOWS = rf"\(1 to {documents.LEVEL_MAX}\)"
_topics = (f"upgrade-{number}" for number in count())


@pytest.fixture
def bench(worker_zookeeper: ZooKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # Who looks on reads both versions.
    monkeypatch.setattr(watch, "decode_topic", next_version.decode_topic)
    with Bench(tmp_path, worker_zookeeper) as made:
        yield made


def document(bench: Bench, path: str) -> dict[str, Any]:
    """As it is stored."""
    client = KazooClient(hosts=bench.documents)
    client.start()
    try:
        return dict(json.loads(client.get("/" + path)[0]))
    finally:
        client.stop()
        client.close()


def replace(bench: Bench, broker: int, program: tuple[str, ...], topic: str) -> None:
    """Stop a broker in good order and start another version in its place; returns when all is in sync."""
    bench.stop(broker)
    bench.brokers[broker].program = program
    bench.start(broker)
    bench.await_whole([topic])


def level(bench: Bench) -> tuple[int, int]:
    """The cluster's level as the newest of all brokers say, and the highest that the controller's broker understands."""
    found = []
    for broker in bench.ids:
        with Admin(f"127.0.0.1:{bench.brokers[broker].port}") as admin:
            found += [(feature.level, feature.max) for feature in admin.features() if feature.feature == FEATURE]
    assert len(found) == len(bench.ids)
    return max(found)


def change(bench: Bench, topic: str, retention_ms: str) -> None:
    """Let the document of a topic be written anew."""
    with Admin(bench.servers) as admin:
        admin.alter_configs("topic", topic, {"retention.ms": retention_ms})


def raise_level(bench: Bench) -> None:
    """To that of the next version."""
    with Admin(bench.servers) as admin:
        admin.raise_level(FEATURE, next_version.LEVEL)


def test_a_cluster_is_upgraded_under_load_and_back_and_up_for_good(bench: Bench) -> None:
    topic = next(_topics)
    bench.make_topic(topic, 3, min_insync_replicas=2)
    places = [(topic, partition) for partition in range(3)]
    began = time.monotonic()
    with running(bench, places) as history:
        await_records(history, places)
        replace(bench, 1, next_version.PROGRAM, topic)
        # One broker of the next version and two of this one: each leads, follows, and reads what the others stored.
        with Admin(bench.servers) as admin:
            admin.elect_leaders()
        until(lambda: {bench.leader(place) for place in places} == {1, 2, 3}, "all three lead")
        await_records(history, places, time.monotonic())
        change(bench, topic, "900000000")
        assert next_version.FIELD in document(bench, documents.registration_path(1))
        assert next_version.FIELD not in document(bench, documents.topic_path(topic))
        with pytest.raises(
            LogError, match=rf"Level {next_version.LEVEL} is not understood by broker 2 {_KNOWS}, broker 3 {_KNOWS}:"
        ):
            raise_level(bench)
        # Back, as if the next version had disappointed.
        replace(bench, 1, PROGRAM, topic)
        assert document(bench, documents.FEATURES)["level"] == documents.LEVEL_MAX
        for broker in bench.ids:
            replace(bench, broker, next_version.PROGRAM, topic)
        assert level(bench) == (documents.LEVEL_MAX, next_version.LEVEL)
        raise_level(bench)
        until(lambda: level(bench) == (next_version.LEVEL,) * 2, "all brokers know the new level")
        change(bench, topic, "800000000")
        stored = document(bench, documents.topic_path(topic))
        assert (stored["version"], stored[next_version.FIELD]) == (next_version.VERSION, True)
        await_records(history, places, time.monotonic())
        bench.await_whole([topic])
    print(f"rolling upgrade: at most {outage_s(history, places, began):.2f} s without a record")
    assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
    assert judge(bench, history, places) == []

    older = bench.brokers[2]
    bench.stop(2)
    older.program = PROGRAM
    with pytest.raises(
        ProcessError,
        match=rf"The cluster is at level {next_version.LEVEL}, this pylog understands 1 to {documents.LEVEL_MAX}: start a newer pylog\.",
    ):
        older.start()
    assert document(bench, documents.topic_path(topic))[next_version.FIELD] is True
    older.program = next_version.PROGRAM
    bench.start(2)
    bench.await_whole([topic])
