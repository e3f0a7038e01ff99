"""Connections that one small task leaves to the next one of its process, where opening one takes a TLS handshake or a login. About 4 s."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from pylog_spark import _native
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.login import Login
from tests.harness.waiting import until

ROWS = 10


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path_factory.mktemp("kept") / "data", tls=True, sasl="SCRAM-SHA-512") as started:
        with Admin(started.bootstrap_servers, started.client_settings) as admin:
            admin.create_topic("t", partitions=1)
        write(settings(started), keeps=False)
        yield started


def settings(broker: LocalBroker, **others: str) -> dict[str, str]:
    """Of a client that no other test has."""
    name = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
    return {**broker.client_settings, "bootstrap.servers": broker.bootstrap_servers, "client.id": name, **others}


def write(config: Mapping[str, str], keeps: bool = True) -> None:
    writer = _native.RecordWriter(config, "t", keep_connections=keeps)
    writer.write(pa.RecordBatch.from_pydict({"value": pa.array([b"v"] * ROWS, pa.binary())}))
    writer.flush()
    writer.close()


def read(config: Mapping[str, str], keeps: bool = True) -> int:
    reader = _native.RangeReader(config, "t", 0, 0, ROWS, ["value"], keep_connections=keeps)
    rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(reader))
    reader.stop()
    return rows


def connections(broker: LocalBroker) -> set[str]:
    """The client's ends of the connections of this process to the broker."""
    to, established = f":{broker.port:04X}", "01"
    own = set()
    for name in os.listdir("/proc/self/fd"):
        # Another thread may have closed it meanwhile.
        with suppress(FileNotFoundError):
            own.add(os.readlink(f"/proc/self/fd/{name}"))
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {
        line[1] for line in lines if line[2].endswith(to) and line[3] == established and f"socket:[{line[9]}]" in own
    }


def test_the_second_of_two_readers_opens_no_connection(broker: LocalBroker) -> None:
    config, before = settings(broker), connections(broker)
    assert read(config) == ROWS
    left = connections(broker) - before
    assert left
    assert read(config) == ROWS
    assert connections(broker) - before == left


def test_the_second_of_two_writers_opens_no_connection(broker: LocalBroker) -> None:
    config, before = settings(broker), connections(broker)
    write(config)
    left = connections(broker) - before
    assert left
    write(config)
    assert connections(broker) - before == left


def test_a_client_that_was_not_made_to_leaves_none(broker: LocalBroker) -> None:
    config, before = settings(broker), connections(broker)
    assert read(config, keeps=False) == ROWS
    write(config, keeps=False)
    until(lambda: connections(broker) <= before, "no connection is left")


def test_a_wrong_password_is_refused_beside_a_kept_connection(broker: LocalBroker) -> None:
    config = settings(broker)
    assert read(config) == ROWS
    assert broker.login
    wrong = Login(broker.login.mechanism, broker.login.user, "another", broker.login.file).client_settings()
    with pytest.raises(Exception, match=r"(?i)authenticat"):
        read({**config, **wrong})
    assert read(config) == ROWS


def test_a_reader_that_stops_early_leaves_no_connection_with_an_answer_on_its_way(broker: LocalBroker) -> None:
    config, before = settings(broker), connections(broker)
    follower = _native.RangeReader(config, "t", 0, 0, ROWS, ["value"], follow=True, keep_connections=True)
    batch = follower.next_batch(10_000)
    assert batch is not None
    follower.stop()
    until(lambda: connections(broker) <= before, "no connection is left")
    assert read(config) == ROWS


def test_a_forked_process_does_not_take_the_connections_of_its_parent(broker: LocalBroker) -> None:
    config = settings(broker)
    assert read(config) == ROWS
    child = os.fork()
    if child == 0:
        # Nothing of pytest's may run here.
        os._exit(0 if read(config) == ROWS else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert read(config) == ROWS


def test_a_broker_that_was_started_again_is_read_although_kept_connections_ended(broker: LocalBroker) -> None:
    config = settings(broker)
    assert read(config) == ROWS
    broker.kill()
    broker.start()
    assert read(config) == ROWS
    write(config)
