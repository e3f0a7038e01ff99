"""Each failure has its kind and one sentence that says what to do."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pylog_spark._native import Client, NativeError, RangeReader, RecordWriter
from pylog_spark.testing import LocalBroker
from tests.client.support import read, values_batch, write
from tests.harness.ports import nowhere

pytestmark = pytest.mark.cluster


def assert_refused(kind: str, *words: str) -> "pytest.RaisesExc[NativeError]":
    """Expects a NativeError of `kind` whose sentence has `words`."""

    def fits(error: NativeError) -> bool:
        return error.args[0] == kind and all(word in error.args[1] for word in words)

    return pytest.raises(NativeError, check=fits)


def kind_of(use: Callable[[], object]) -> str:
    """The kind of the error that `use` raises."""
    try:
        use()
    except NativeError as error:
        return str(error.args[0])
    return "no error"


def next_batch(config: dict[str, str], topic: str, start: int, end: int, **options: str) -> object:
    return RangeReader(config, topic, 0, start, end, ["value"], **options).next_batch(8_000)


def test_an_unreachable_broker_is_said_at_once_with_every_address() -> None:
    client = Client({"bootstrap.servers": f"{nowhere(1)},{nowhere(2)}"})
    with assert_refused("UNREACHABLE", nowhere(1), nowhere(2), "bootstrap.servers"):
        client.describe_topics(None)


def test_unknown_settings_are_refused_in_every_role() -> None:
    config = {"bootstrap.servers": nowhere(), "acks.": "1"}
    for make in (Client, RecordWriter, lambda given: RangeReader(given, "t", 0, 0, 1, ["value"])):
        with assert_refused("INVALID_ARGUMENT", "acks."):
            make(config)


def test_an_offset_before_the_log_names_the_first_one(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    write(config, topic, values_batch([b"x"] * 10))
    (answer,) = Client(config).delete_records([(topic, 0, 4)])
    assert answer == {"topic": topic, "partition": 0, "low_watermark": 4, "error": None}
    with assert_refused("OFFSET_OUT_OF_RANGE", f"{topic}-0", "offset 2", "first offset is 4"):
        next_batch(config, topic, 2, 10)


def test_an_error_in_the_stream_keeps_its_kind_on_the_reader(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    reader = RangeReader(config, new_topic(), 0, 5, 6, ["value"])
    stream = pa.RecordBatchReader.from_stream(reader)
    with pytest.raises(pa.ArrowException, match="OFFSET_OUT_OF_RANGE: "):
        stream.read_all()
    assert reader.error is not None
    assert reader.error[0] == "OFFSET_OUT_OF_RANGE"


def test_a_recreated_topic_is_recognised_by_its_id(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    write(config, topic, values_batch([b"x"]))
    (described,) = Client(config).describe_topics([topic])
    assert read(config, topic, 0, 0, 1, ["value"], topic_id=described["topic_id"]).num_rows == 1
    with assert_refused("UNKNOWN_TOPIC_ID", topic, "created again"):
        next_batch(config, topic, 0, 1, topic_id="AAAAAAAAAAAAAAAAAAAAAg")


def test_reading_an_unknown_topic_says_how_to_create_it(config: dict[str, str]) -> None:
    with assert_refused("UNKNOWN_TOPIC_OR_PARTITION", "no-such-topic", "pylog topic create"):
        next_batch(config, "no-such-topic", 0, 1)


def test_writing_to_an_unknown_topic_says_how_to_create_it(config: dict[str, str]) -> None:
    with assert_refused("UNKNOWN_TOPIC_OR_PARTITION", "no-such-topic", "pylog topic create"):
        write({**config, "allow.auto.create.topics": "false"}, "no-such-topic", values_batch([b"x"]))
    (described,) = Client(config).describe_topics(["no-such-topic"])
    assert described["error"] == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.long  # tests/oracle/test_topics.py
def test_a_topic_that_the_brokers_cannot_create_is_an_error_with_their_reason(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    taken = new_topic()
    other = taken.replace("-", "_")
    Client(config).create_topics([{"name": f"{other}.x", "num_partitions": 1, "replication_factor": -1, "configs": {}}])
    with assert_refused("INVALID_TOPIC_EXCEPTION", f"{other}_x", "cannot be created", "collides"):
        write(config, f"{other}_x", values_batch([b"x"]))


@pytest.mark.long  # tests/oracle/test_topics.py
def test_too_few_brokers_for_a_new_topic_is_not_taken_for_creation_that_is_off(tmp_path: Path) -> None:
    with LocalBroker(tmp_path, default_replication_factor=3) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        with assert_refused("INVALID_REPLICATION_FACTOR", "topic new", "only 1 broker(s) are registered"):
            write(config, "new", values_batch([b"x"]))
    with LocalBroker(tmp_path / "off", auto_create_topics_enable=False) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        with assert_refused("UNKNOWN_TOPIC_OR_PARTITION", "topic new", "auto.create.topics.enable=false"):
            write(config, "new", values_batch([b"x"]))


def test_an_unknown_partition_is_named(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    with assert_refused("UNKNOWN_TOPIC_OR_PARTITION", topic, "no partition 7"):
        RangeReader(config, topic, 7, 0, 1, ["value"]).next_batch(8_000)
    with assert_refused("INVALID_ARGUMENT", topic, "partitions 0 to 1"):
        write(config, topic, values_batch([b"x"], partition=pa.array([2], pa.int32())))


def test_a_record_too_large_for_the_topic_says_what_to_raise(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic(max_message_bytes="2000")
    with assert_refused("MESSAGE_TOO_LARGE", f"{topic}-0", "max.message.bytes"):
        write(config, topic, values_batch([b"x", b"y" * 5000, b"z"]))


def test_a_range_beyond_the_log_ends_in_a_timeout_that_names_its_end(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    write(config, topic, values_batch([b"x"] * 3))
    impatient = {**config, "default.api.timeout.ms": "1500", "fetch.max.wait.ms": "50"}
    reader = RangeReader(impatient, topic, 0, 0, 9, ["value"])
    with assert_refused("TIMED_OUT", "up to offset 3", "9 was asked for"):
        while reader.next_batch(8_000) is not None:
            pass


def test_what_cannot_be_written_is_refused_with_the_columns_name(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    for batch, word in [
        (pa.record_batch({"values": pa.array([b"x"])}), '"value"'),
        (pa.record_batch({"value": pa.array([1])}), '"value"'),
        (values_batch([b"x"], key=pa.array([1.5])), '"key"'),
    ]:
        with assert_refused("INVALID_ARGUMENT", word):
            write(config, topic, batch)
    with assert_refused("INVALID_ARGUMENT", "no topic"):
        write(config, None, values_batch([b"x"]))
    with assert_refused("INVALID_ARGUMENT", "record batch"):
        RecordWriter(config, topic).write([b"x"])


def test_a_closed_object_says_so(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    writer = RecordWriter(config, topic)
    writer.write(values_batch([b"x"]))
    writer.close()
    with assert_refused("CLOSED"):
        writer.write(values_batch([b"x"]))
    reader = RangeReader(config, topic, 0, 0, 5, ["value"])
    reader.stop()
    with assert_refused("CLOSED"):
        reader.next_batch(10)
    client = Client(config)
    client.close()
    with assert_refused("CLOSED"):
        client.describe_cluster()


def test_after_a_fork_every_object_refuses_and_the_parents_still_work(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    client, writer = Client(config), RecordWriter(config, topic)
    writer.write(values_batch([b"x"] * 3))
    writer.flush()
    reader = RangeReader(config, topic, 0, 0, 3, ["value"], batch_bytes=1)
    assert len(reader.next_batch(8_000)) == 1
    child = os.fork()
    if child == 0:
        uses = (client.describe_cluster, writer.flush, lambda: reader.next_batch(1))
        kinds = [kind_of(use) for use in uses]
        del client, writer, reader
        os._exit(0 if kinds == ["FORKED"] * 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(reader.next_batch(8_000)) == 1
    writer.write(values_batch([b"y"]))
    assert writer.flush()["records"] == 4
    assert client.describe_cluster()["brokers"]


@pytest.mark.parametrize("test", [("range", [b"a"]), ("suffix", [b"a"])])
def test_a_condition_on_keys_that_does_not_exist_is_refused(
    config: dict[str, str], test: tuple[str, list[bytes]]
) -> None:
    with pytest.raises(NativeError) as caught:
        RangeReader(config, "t", 0, 0, 1, ["value"], keys=[test])
    kind, message = caught.value.args
    assert (kind, test[0] in message) == ("INVALID_ARGUMENT", True)
