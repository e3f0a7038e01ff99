"""Spark on three brokers: tasks that read and write while leaders die, topics that grow, replicas that are read.

A failed task is not run again here (`spark.task.maxFailures` is 1): what is survived is survived inside the task.

It takes about a minute: each test waits until the session of a broker that was killed is over, and until all is in sync again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark._native import RecordWriter
from pylog_spark.client import Admin, Consumer
from pylog_spark.testing import LocalBroker, LocalCluster
from tests.harness.waiting import until

pytestmark = pytest.mark.long  # without Spark's engine: test_sink_kill.py

PARTITIONS = 2
VALUE_BYTES = 100
RACK = "PYLOG_TEST_RACK"
DEADLINE_S = 120.0


class Gate:
    """Holds the tasks of a query in their middle: they report that they have begun, and go on when they are released.

    Parameters
    ----------
    folder : Path
        Where the words are left; tasks are other processes.
    """

    def __init__(self, folder: Path) -> None:
        self._here, self._go = folder / "here", folder / "go"

    def __call__(self, frame: Any) -> Any:
        """The same rows, held after the first batch of each task."""
        here, go = self._here, self._go

        def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(batches):
                yield batch
                if number == 0:
                    here.touch()
                    end = time.monotonic() + DEADLINE_S
                    while not go.exists():
                        assert time.monotonic() < end, "the gate was not opened"
                        time.sleep(0.01)

        return frame.mapInArrow(hold, frame.schema)

    def while_held(self, fault: Callable[[], LocalBroker]) -> LocalBroker:
        """What `fault` gives; it happens while a task is held, and all go on after it."""
        until(self._here.exists, "a task in its middle", DEADLINE_S)
        try:
            return fault()
        finally:
            self._go.touch()


class Beside(threading.Thread):
    """Something that happens beside Spark, which stays on the test's thread: only there it finds its sources by name."""

    def __init__(self, action: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._action = action
        self._result: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._action()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error

    def result(self) -> Any:
        """What it gave, or what it raised."""
        self.join(DEADLINE_S)
        assert not self.is_alive(), f"not done within {DEADLINE_S} s"
        if self._error is not None:
            raise self._error
        return self._result


def create(cluster: LocalCluster, name: str, partitions: int = PARTITIONS) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(name, partitions, 3, {"min.insync.replicas": "2"})
    cluster.wait_in_sync(name)


def text(number: int) -> bytes:
    return f"{number:0{VALUE_BYTES}}".encode()


def put(cluster: LocalCluster, topic: str, numbers: range, partitions: int = PARTITIONS) -> None:
    """Write each number, acknowledged by all replicas in sync."""
    writer = RecordWriter({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"}, topic)
    values = pa.array([text(number) for number in numbers], pa.binary())
    places = pa.array([number % partitions for number in numbers], pa.int32())
    writer.write(pa.record_batch({"value": values, "partition": places}))
    writer.flush()
    writer.close()


def numbers_in(cluster: LocalCluster, topic: str) -> Counter[int]:
    """What readers of committed data find, and how often."""
    config = {"isolation.level": "read_committed"}
    with Consumer(cluster.bootstrap_servers, topic, start="earliest", follow=False, config=config) as consumer:
        return Counter(int(record.value or b"-1") for record in consumer)


def reading(spark: Any, cluster: LocalCluster, topic: str, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **options}
    return spark.read.format("pylog").options(**given).schema("value BINARY").load()


@pytest.fixture(scope="module")
def cluster_settings() -> dict[str, object]:
    """Three brokers in racks a, b and c."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    return {"racks": ["a", "b", "c"], "replica_selector_class": selector}


@pytest.fixture(scope="module")
def _first_write(spark: Any, shared_cluster: LocalCluster) -> None:
    """What exactly-once writes need are topics of three replicas: they are made while three brokers live."""
    shared_cluster.heal()
    create(shared_cluster, "first", 1)
    rows = spark.createDataFrame([("first",)], "value STRING").write.format("pylog")
    rows.options(**{"kafka.bootstrap.servers": shared_cluster.bootstrap_servers, "topic": "first"}).mode(
        "append"
    ).save()


@pytest.fixture(scope="module")
def filled(shared_cluster: LocalCluster) -> str:
    """A topic of one partition with 50,000 records, which the tests of racks read."""
    shared_cluster.heal()
    create(shared_cluster, "filled", 1)
    put(shared_cluster, "filled", range(50_000), partitions=1)
    return "filled"


def kill_leader(cluster: LocalCluster, topic: str) -> LocalBroker:
    """Kill -9 the leader of partition 0 and wait for the next one."""
    leader = cluster.wait_for_leader(topic, 0)
    leader.kill()
    cluster.wait_for_leader(topic, 0, other_than=leader)
    return leader


@pytest.mark.long  # a write, which reads back, is below
def test_a_read_goes_on_when_the_leader_is_killed_in_the_middle_of_its_task(
    spark: Any, cluster: LocalCluster, new_topic: str, tmp_path: Path
) -> None:
    create(cluster, new_topic)
    put(cluster, new_topic, range(100_000))
    gate = Gate(tmp_path)
    # Little is fetched ahead: most of the range is read from the next leader.
    small = {"kafka.max.partition.fetch.bytes": "50000", "batchBytes": "50000"}
    fault = Beside(lambda: gate.while_held(lambda: kill_leader(cluster, new_topic)))
    found = Counter(int(row.value) for row in gate(reading(spark, cluster, new_topic, **small)).collect())
    assert found == Counter(range(100_000))
    fault.result().start()
    cluster.wait_in_sync(new_topic)
    assert reading(spark, cluster, new_topic).count() == 100_000


@pytest.mark.usefixtures("_first_write")
def test_a_write_is_there_once_when_leaders_are_killed_in_the_middle_of_its_tasks(
    spark: Any, cluster: LocalCluster, new_topic: str, tmp_path: Path
) -> None:
    create(cluster, new_topic)
    gate = Gate(tmp_path)
    rows = spark.range(0, 60_000, 1, 2).selectExpr(f"CAST(lpad(id, {VALUE_BYTES}, '0') AS BINARY) AS value")
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": new_topic}
    fault = Beside(lambda: gate.while_held(lambda: kill_leader(cluster, new_topic)))
    gate(rows).write.format("pylog").options(**options).mode("append").save()
    assert numbers_in(cluster, new_topic) == Counter(range(60_000))
    fault.result().start()
    cluster.wait_in_sync(new_topic)
    assert numbers_in(cluster, new_topic) == Counter(range(60_000))


@pytest.mark.long  # a batch: above
@pytest.mark.usefixtures("_first_write")
# A read whose leader is killed is above.
@pytest.mark.parametrize("victim", [pytest.param("source", marks=pytest.mark.long), "sink"])
def test_a_stream_goes_on_when_the_leader_of_its_source_or_sink_is_killed_in_the_middle_of_a_batch(
    spark: Any, cluster: LocalCluster, new_topic: str, tmp_path: Path, victim: str
) -> None:
    source, sink = f"{new_topic}-source", f"{new_topic}-sink"
    for name in (source, sink):
        create(cluster, name)
    put(cluster, source, range(60_000))
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    small = {"kafka.max.partition.fetch.bytes": "50000", "batchBytes": "50000"}
    rows = spark.readStream.format("pylog").options(**servers, **small, subscribe=source, startingOffsets="earliest")
    gate = Gate(tmp_path)
    writer = gate(rows.load().select("value")).writeStream.format("pylog").options(**servers, topic=sink)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        killed = gate.while_held(lambda: kill_leader(cluster, f"{new_topic}-{victim}"))
        query.processAllAvailable()
        assert numbers_in(cluster, sink) == Counter(range(60_000))
        killed.start()
        cluster.wait_in_sync(sink)
        cluster.wait_in_sync(source)
        put(cluster, source, range(60_000, 61_000))
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()
    assert numbers_in(cluster, sink) == Counter(range(61_000))


@pytest.mark.long  # tests/spark/test_stream.py, test_restart.py
def test_a_stream_finds_new_partitions_and_survives_each_brokers_death_without_a_restart(
    spark: Any, cluster: LocalCluster, new_topic: str, tmp_path: Path
) -> None:
    source, sink = f"{new_topic}-source", f"{new_topic}-sink"
    create(cluster, source)
    create(cluster, sink)
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    frame = spark.readStream.format("pylog").options(**servers, subscribe=source, startingOffsets="earliest").load()
    writer = frame.select("value").writeStream.format("pylog").options(**servers, topic=sink)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        put(cluster, source, range(1_000))
        query.processAllAvailable()
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_partitions(source, 4)
        until(lambda: len(cluster.describe_topic(source)) == 4, "new partitions", DEADLINE_S)
        cluster.wait_in_sync(source)
        for number, broker in enumerate(cluster.brokers):
            broker.kill()
            first = 1_000 * (number + 1)
            put(cluster, source, range(first, first + 1_000), partitions=4)
            query.processAllAvailable()
            broker.start()
            cluster.wait_in_sync(source)
            cluster.wait_in_sync(sink)
        assert query.exception() is None
    finally:
        query.stop()
    assert numbers_in(cluster, sink) == Counter(range(4_000))


def written_bytes(broker: LocalBroker) -> int:
    """Bytes that the process wrote to sockets and files so far."""
    words = Path(f"/proc/{broker.pid}/io").read_text().split()
    return int(words[words.index("wchar:") + 1])


@pytest.mark.parametrize(("rack", "served_by"), [("env:" + RACK, 2), ("c", 3), (None, None), ("nowhere", None)])
def test_records_come_from_the_replica_in_the_rack_of_the_task(
    spark: Any, cluster: LocalCluster, filled: str, rack: str | None, served_by: int | None
) -> None:
    before = [written_bytes(broker) for broker in cluster.brokers]
    # Over the network, as on machines of their own.
    options = {"localReads": "never"} | ({} if rack is None else {"clientRack": rack})
    assert reading(spark, cluster, filled, **options).count() == 50_000
    sent = {number: written_bytes(broker) - before[number - 1] for number, broker in enumerate(cluster.brokers, 1)}
    all_bytes = 50_000 * VALUE_BYTES
    leaders = {partition.leader for partition in cluster.describe_topic(filled)}
    expected = leaders if served_by is None else {served_by}
    assert {number for number, size in sent.items() if size > all_bytes // 10} == expected


@pytest.mark.long  # tests/client/test_faults.py
def test_a_read_goes_on_when_the_follower_that_serves_it_is_killed_in_the_middle_of_its_task(
    spark: Any, cluster: LocalCluster, new_topic: str, tmp_path: Path
) -> None:
    rows = 400_000
    create(cluster, new_topic, 1)
    put(cluster, new_topic, range(rows), partitions=1)
    leader = cluster.wait_for_leader(new_topic, 0)
    # Any replica but the leader is near enough.
    near = next(broker for broker in cluster.brokers if broker is not leader)
    rack = "abc"[near.broker_id - 1]
    before = written_bytes(near)
    sent: list[int] = []

    def kill() -> LocalBroker:
        sent.append(written_bytes(near) - before)
        near.kill()
        return near

    gate = Gate(tmp_path)
    small = {"kafka.max.partition.fetch.bytes": "50000", "batchBytes": "50000", "localReads": "never"}
    fault = Beside(lambda: gate.while_held(kill))
    number = "CAST(CAST(value AS STRING) AS BIGINT) AS n"
    found = gate(reading(spark, cluster, new_topic, clientRack=rack, **small)).selectExpr(number)
    (counted,) = found.selectExpr("count(n) AS count", "count(DISTINCT n) AS distinct", "max(n) AS last").collect()
    assert (counted["count"], counted["distinct"], counted["last"]) == (rows, rows, rows - 1)
    fault.result().start()
    cluster.wait_in_sync(new_topic)
    # More than heartbeats, and the rest came from others.
    assert 50_000 < sent[0] < rows * VALUE_BYTES * 3 // 4
