"""Starting, stopping, killing and starting a broker again."""

import contextlib
import os
import re
import resource
import struct
import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

import pylog_spark
from pylog_spark.testing import LocalBroker, LocalBrokerError
from tests.broker.wire import connect, text
from tests.harness.waiting import said, until
from tests.peers.kafka import KafkaBroker
from tests.peers.probe import answers

CLEAN_MARKER = ".kafka_cleanshutdown"
API_VERSIONS = 18


def created(admin, name, partitions=1, **config):
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(60)


def written(broker, topic, values):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def read(broker, topic, partition=0):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
        values = []

        def all_read():
            if len(values) < high and (message := consumer.poll(0.5)) is not None:
                assert message.error() is None, message.error()
                values.append(message.value())
            return len(values) == high

        until(all_read, f"{high} records of {topic}-{partition} are read", pause_s=0)
        return values
    finally:
        consumer.close()


@pytest.mark.parametrize("stop", ["terminate", "kill"])
def test_topics_records_and_settings_are_there_after_a_restart(new_broker, admin_of, stop):
    broker = new_broker()
    created(admin_of(broker), "t", 3, **{"retention.ms": "1234567"})
    values = [b"value %d" % i for i in range(100)]
    written(broker, "t", values)
    before = admin_of(broker).list_topics(timeout=60).topics["t"]
    getattr(broker, stop)()
    broker.start()
    after = admin_of(broker).list_topics(timeout=60).topics["t"]
    assert sorted(after.partitions) == sorted(before.partitions) == [0, 1, 2]
    assert sorted(value for partition in range(3) for value in read(broker, "t", partition)) == sorted(values)


def test_sigterm_exits_with_zero_and_leaves_the_clean_stop_marker(broker):
    marker = os.path.join(broker.data_dir, CLEAN_MARKER)
    assert not os.path.exists(marker)
    assert broker.terminate() == 0
    assert os.path.exists(marker)
    broker.start()
    assert not os.path.exists(marker)
    assert broker.kill() == -9
    assert not os.path.exists(marker)


def test_sigterm_answers_what_is_in_flight(broker, admin_of):
    created(admin_of(broker), "t")
    with connect(broker.bootstrap_servers) as connection:
        # A fetch that may wait for a minute: Fetch v4, one partition at its end.
        partition = struct.pack(">iqi", 0, 0, 1 << 20)
        body = struct.pack(">iiiib", -1, 60_000, 1, 1 << 20, 0) + struct.pack(">i", 1) + text("t")
        wanted = connection.send(1, 4, body + struct.pack(">i", 1) + partition)
        until(connection.is_taken, "the broker has taken the request")
        started = time.monotonic()
        assert broker.terminate() == 0
        correlation_id, answer = connection.receive()
        assert correlation_id == wanted
        assert answer.left > 0
        assert connection.closed()
        assert time.monotonic() - started < 30


def test_a_second_process_on_the_same_directory_is_refused_in_one_sentence(broker):
    second = LocalBroker(broker.data_dir)
    with pytest.raises(LocalBrokerError) as refused:
        second.start()
    sentence = str(refused.value).partition("log:\n")[2].strip()
    assert sentence == (
        f"Error: The data directory {broker.data_dir} is in use by another broker: stop that one, or use another directory."
    )
    second.close()


def test_a_port_in_use_is_one_sentence_and_the_directory_is_free_again(broker, tmp_path):
    second = LocalBroker(tmp_path / "other", port=broker.port)
    with pytest.raises(LocalBrokerError, match=f"Error: 127.0.0.1:{broker.port} is already in use: "):
        second.start()
    second.port = 0
    second.start()
    second.close()


def test_a_damaged_document_stops_the_start_and_names_its_file(broker, admin_of):
    created(admin_of(broker), "t")
    broker.terminate()
    file = os.path.join(broker.data_dir, ".pylog", "topics", "t.json")
    with open(file, "r+b") as damaged:
        damaged.seek(5)
        damaged.write(b"#")
    with pytest.raises(LocalBrokerError, match=rf"Error: {file} is damaged \(its checksum does not match\)"):
        broker.start()


def test_what_recovery_cuts_after_a_kill_is_logged_and_kept(broker, admin_of):
    created(admin_of(broker), "t")
    for number in range(3):
        written(broker, "t", [f"{number}"])
    broker.kill()
    folder = os.path.join(broker.data_dir, "t-0")
    file = os.path.join(folder, f"{0:020}.log")
    size = os.path.getsize(file)
    with open(file, "r+b") as damaged:
        damaged.seek(size // 3 + 65)
        damaged.write(b"#")
    broker.start()
    assert read(broker, "t") == [b"0"]
    said(
        broker, f"t-0: after an unclean stop the log ends at offset 1: {size - size // 3} bytes from there on were cut"
    )
    said(broker, f"{size - size // 3} of them are kept as .cut files in {folder} (at most log.recovery.kept.bytes)")
    assert os.path.getsize(os.path.join(folder, f"{1:020}.log.cut")) == size - size // 3


def test_what_retention_removes_is_logged_with_its_reason(new_broker, admin_of):
    broker = new_broker(log_retention_check_interval_ms=50)
    created(admin_of(broker), "t", **{"segment.bytes": "200", "retention.bytes": "400"})
    for _ in range(8):
        written(broker, "t", [b"x" * 60])
    line = re.compile(
        r"t-0: retention removed \d+ segments \(\d+ bytes\), offsets 0 to \d: the log is larger than retention.bytes=400; "
    )
    until(lambda: line.search(broker.logs()), "retention is logged")


def descriptors_in_use(broker):
    return max(map(int, os.listdir(f"/proc/{broker.pid}/fd"))) + 1


def limit_descriptors(broker, soft):
    """Set how many file descriptors the running broker may have; gives what it might have before."""
    before, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (soft, hard))
    return before


def one_by_one(broker):
    """A producer of one record at a time, in order: without idempotence librdkafka may send a later one before it repeats one."""
    single = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 1}
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, **single})


def test_a_log_goes_on_when_the_broker_has_file_descriptors_again(broker, admin_of):
    created(admin_of(broker), "t", **{"segment.bytes": "200"})
    values = [f"{number}".encode() * 60 for number in range(10)]
    producer = one_by_one(broker)
    producer.produce("t", values[0])
    assert producer.flush(60) == 0
    soft, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    assert soft == hard, "the broker takes what it may have"
    # Fewer than are in use already: no file that is closed makes room.
    limit_descriptors(broker, 3)
    errors = []
    for value in values[1:]:
        producer.produce("t", value, on_delivery=lambda error, _: errors.append(error))

    def refused():
        producer.poll(0)
        return "t-0: no file descriptor is left to open" in broker.logs()

    until(refused, "the next segment cannot be begun")
    limit_descriptors(broker, soft)
    assert producer.flush(30) == 0
    assert errors == [None] * 9
    assert read(broker, "t") == values


def test_a_broker_without_a_free_file_descriptor_closes_idle_files_for_those_that_it_needs(broker, admin_of):
    created(admin_of(broker), "t", **{"segment.bytes": "200"})
    values = [f"{number}".encode() * 60 for number in range(40)]
    producer = one_by_one(broker)
    producer.produce("t", values[0])
    assert producer.flush(60) == 0
    soft = limit_descriptors(broker, descriptors_in_use(broker))
    for value in values[1:]:
        producer.produce("t", value)
    assert producer.flush(30) == 0
    limit_descriptors(broker, soft)
    assert read(broker, "t") == values
    assert "no file descriptor is left" not in broker.logs()


def test_connections_leave_the_reserved_file_descriptors_to_logs_and_coordinators(new_broker, admin_of):
    broker = new_broker(reserved_file_descriptors=24, offsets_topic_num_partitions=2)
    admin = admin_of(broker)
    created(admin, "t", **{"segment.bytes": "200"})
    producer = one_by_one(broker)
    producer.produce("t", b"0" * 60)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    soft = limit_descriptors(broker, descriptors_in_use(broker) + 60)
    with contextlib.ExitStack() as stack:
        taken = 0
        while not turned_away(stack.enter_context(connect(broker.bootstrap_servers))):
            taken += 1
            assert taken < 100, "connections take what is reserved"
        assert taken >= 30
        # A client that is connected is served, whatever that needs: new segments, new logs, an offset.
        for number in range(1, 30):
            producer.produce("t", f"{number}".encode() * 60)
        assert producer.flush(30) == 0
        created(admin, "later", 4)
        consumer.commit(offsets=[TopicPartition("t", 0, 30)], asynchronous=False)
        assert turned_away(stack.enter_context(connect(broker.bootstrap_servers))), "at once, not after a time-out"
    said(broker, "refused the connection of 127.0.0.1")
    until(lambda: "reserved.file.descriptors are in use" in broker.logs(), "the log says so")
    assert "no file descriptor is left" not in broker.logs()
    until(lambda: answers(broker.host, broker.port, 5), "others are served when the connections are gone")
    limit_descriptors(broker, soft)
    consumer.close()


def turned_away(connection):
    """Whether the broker closed it instead of answering."""
    try:
        connection.ask(API_VERSIONS, 0, b"")
        return False
    except (EOFError, ConnectionError):
        return True


def test_a_directory_that_belongs_to_no_topic_is_named_and_kept(broker):
    broker.terminate()
    stray = os.path.join(broker.data_dir, "lost-0")
    os.mkdir(stray)
    broker.start()
    broker.terminate()
    until(
        lambda: "1 directories belong to no known topic and are not served: lost-0." in broker.logs(), "the log says so"
    )
    assert os.path.isdir(stray)


def test_a_broker_in_this_process_is_a_context_manager(tmp_path, admin_of):
    with pylog_spark.start_broker(tmp_path, num_partitions=4) as running:
        created(admin_of(running), "t", -1)
        assert len(admin_of(running).list_topics(timeout=60).topics["t"].partitions) == 4
        assert "running" in repr(running)
    assert "closed" in repr(running)
    running.close()
    with pylog_spark.start_broker(tmp_path) as again:
        assert again.topic_count == 1
        assert again.partition_count == 4


def test_a_broker_in_this_process_refuses_wrong_settings_before_it_touches_the_disk(tmp_path):
    with pytest.raises(
        ValueError, match=r"num.partition is not a broker setting of pylog: did you mean num.partitions"
    ):
        pylog_spark.start_broker(tmp_path / "data", num_partition=4)
    with pytest.raises(ValueError, match="allow_plaintext=True"):
        pylog_spark.start_broker(tmp_path / "data", host="0.0.0.0")
    assert not (tmp_path / "data").exists()


def test_importing_the_package_imports_nothing_heavy():
    heavy = ("pyspark", "pyarrow", "click", "pylog_spark._native", "pylog_spark.broker")
    code = f"import sys, pylog_spark; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_broker_without_users_does_not_load_openssl():
    code = "import sys, pylog_spark.broker.process, pylog_spark.broker.security; print('_hashlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_broker_command_imports_nothing_that_it_may_not_need():
    later = ("clustered", "membership", "requests", "security_requests", "messages")
    heavy = (
        *(
            "javaproperties",
            "kazoo",
            "pyarrow",
            "pyspark",
            "rich",
            "ssl",
            "http",
            "xml",
            "urllib.request",
            "shutil",
            "lzma",
            "zstandard",
        ),
        *(f"pylog_spark.broker.{name}" for name in later),
    )
    code = f"import sys, pylog_spark.cli.broker; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.long  # tests/unit/broker
@pytest.mark.peers
def test_a_data_directory_of_apache_kafka_is_refused_with_what_to_do_and_left_as_it_is(tmp_path):
    with KafkaBroker(tmp_path / "kafka", heap="512m", quick=True) as kafka:
        folder = kafka.data_dir
    before = sorted(path.name for path in folder.iterdir())
    assert "meta.properties" in before
    broker = LocalBroker(folder)
    with pytest.raises(LocalBrokerError) as refused:
        broker.start()
    broker.close()
    assert f"The data directory {folder} belongs to Apache Kafka" in str(refused.value)
    assert "Traceback" not in str(refused.value)
    assert sorted(path.name for path in folder.iterdir()) == before
