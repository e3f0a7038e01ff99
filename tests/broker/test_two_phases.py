"""Two-phase commit (KIP-939) over real sockets: a prepared transaction outlives its producer, its time-out and its broker.

Apache Kafka 4.4 refuses to keep a prepared transaction; what both do alike is compared in tests/oracle.
"""

import re
import uuid

import pytest

from pylog_spark._native import Client, RecordWriter
from tests.client.support import values_batch
from tests.harness.runs import mostly_long
from tests.harness.waiting import said
from tests.oracle.script import Script, error_names
from tests.oracle.transactions import END_TV1, END_TV2, PRODUCE_TV2, Transactional, init

KEEP = {"enable_2_pc": True, "keep_prepared_txn": True}
# Longer than it takes to prepare a transaction, on a busy machine, too.
SHORT_MS = 1_000
PREPARES = 6


@pytest.fixture
def script_of():
    """Raw requests to a broker: `script_of(broker)`."""
    scripts = []

    def make(broker) -> Script:
        scripts.append(Script(broker.bootstrap_servers, f"two-{uuid.uuid4().hex[:8]}", is_kafka=False))
        return scripts[-1]

    yield make
    for script in scripts:
        script.close()


def begun(s: Script, txn: str, topic: str, **fields: object) -> Transactional:
    """A producer whose transaction holds one record."""
    s.until_good("FindCoordinator", key_type=1, coordinator_keys=[txn])
    answer = init(s, txn, version=PREPARES, **fields)
    assert error_names(answer) == ["NONE"], answer
    producer = Transactional(s, txn, answer["producer_id"], answer["producer_epoch"])
    assert error_names(producer.produce(topic, f"of {txn}", version=PRODUCE_TV2)) == ["NONE"]
    return producer


def prepare(s: Script, producer: Transactional) -> Transactional:
    """Prepare its transaction; who ends it."""
    named = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    answer = init(s, producer.txn, version=PREPARES, **named, **KEEP)
    assert error_names(answer) == ["NONE"]
    ongoing = answer["ongoing_txn_producer_id"], answer["ongoing_txn_producer_epoch"]
    assert ongoing == (producer.producer_id, producer.epoch)
    return Transactional(s, producer.txn, answer["producer_id"], answer["producer_epoch"])


def state(s: Script, txn: str) -> str:
    """What DescribeTransactions says."""
    (found,) = s.call("DescribeTransactions", transactional_ids=[txn])["transaction_states"]
    return found["transaction_state"]


def stable(s: Script, topic: str) -> int:
    """The end of what readers of committed data see."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    answer = s.call("ListOffsets", isolation_level=1, topics=topics)
    return answer["topics"][0]["partitions"][0]["offset"]


def is_aborted(answer: dict) -> bool:
    return answer["transaction_states"][0]["transaction_state"] == "CompleteAbort"


@pytest.mark.parametrize(
    ("committed", "version"), mostly_long([(True, END_TV2), (False, END_TV2), (True, END_TV1)], (True, END_TV2))
)
def test_a_prepared_transaction_survives_a_kill_and_its_time_out_and_only_its_new_epoch_ends_it(
    new_broker, script_of, committed, version
):
    broker = new_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=200)
    s = script_of(broker)
    topic, other = s.topic(), s.topic()
    kept = begun(s, "kept", topic, transaction_timeout_ms=SHORT_MS)
    reborn = prepare(s, kept)
    begun(s, "late", other, transaction_timeout_ms=SHORT_MS)
    broker.kill()
    broker.start()
    s = script_of(broker)
    s.until(is_aborted, "DescribeTransactions", transactional_ids=["late"])
    assert state(s, "kept") == "Ongoing"
    assert stable(s, topic) == 0
    for producer in (kept, reborn):
        producer.s = s
    assert error_names(kept.end(committed, version)) == ["PRODUCER_FENCED"]
    assert error_names(reborn.end(committed, version)) == ["NONE"]
    assert stable(s, topic) == 2
    assert state(s, "kept") == ("CompleteCommit" if committed else "CompleteAbort")


def test_a_prepared_transaction_takes_nothing_more(broker, script_of):
    s = script_of(broker)
    topic, other = s.topic(), s.topic()
    kept = begun(s, "kept", topic)
    reborn = prepare(s, kept)
    assert error_names(kept.produce(other, "late", version=PRODUCE_TV2)) == ["INVALID_PRODUCER_EPOCH"]
    assert error_names(reborn.produce(other, "late", version=PRODUCE_TV2)) == ["INVALID_TXN_STATE"]
    assert error_names(reborn.end(True, END_TV2)) == ["NONE"]
    assert (stable(s, topic), stable(s, other)) == (2, 0)


def test_a_reader_sees_the_end_right_after_its_answer(broker, script_of):
    s = script_of(broker)
    topic = s.topic()
    writer = begun(s, "quick", topic)
    for end in range(2, 60, 2):
        assert error_names(writer.end(True, END_TV2)) == ["NONE"]
        assert stable(s, topic) == end
        assert error_names(writer.produce(topic, "next", version=PRODUCE_TV2)) == ["NONE"]


def test_ids_of_one_transaction_are_forgotten_after_it_and_stay_so(new_broker, script_of):
    broker = new_broker(transactional_id_single_use_expiration_ms=300)
    s = script_of(broker)
    topic = s.topic()
    for txn in ("pylog-once.a", "others"):
        assert error_names(begun(s, txn, topic).end(True, END_TV2)) == ["NONE"]
    prepare(s, begun(s, "pylog-once.kept", topic))
    wanted = ["pylog-once.a", "others", "pylog-once.kept"]

    def forgotten(answer: dict) -> bool:
        # A coordinator that is being loaded after the start knows no state either.
        states = [state["transaction_state"] for state in answer["transaction_states"]]
        return states == ["", "CompleteCommit", "Ongoing"] and error_names(answer) != ["COORDINATOR_LOAD_IN_PROGRESS"]

    for _ in range(2):
        answer = s.until(forgotten, "DescribeTransactions", transactional_ids=wanted)
        assert error_names(answer) == ["TRANSACTIONAL_ID_NOT_FOUND"]
        broker.kill()
        broker.start()
        s = script_of(broker)


def test_a_writers_prepared_transaction_is_committed_after_the_broker_was_killed(new_broker):
    broker = new_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=200)
    config = {"bootstrap.servers": broker.bootstrap_servers}
    Client(config).create_topics([{"name": "t", "num_partitions": 1}])
    writer = RecordWriter(config, "t", transactional_id="pylog-once.w")
    begun = writer.begin()
    writer.write(values_batch([b"a"]))
    writer.flush()
    prepared = writer.prepare()
    assert prepared == writer.prepare(), "said again"
    writer.close()
    assert prepared is not None
    assert prepared["prepared"] is True
    assert prepared["producer_epoch"] == begun["producer_epoch"] + 1
    broker.kill()
    broker.start()
    ending = (prepared["transactional_id"], prepared["producer_id"], prepared["producer_epoch"])
    (outcome,) = Client(config).end_transactions([ending], True, 30_000)
    assert outcome["error"] is None
    assert Client(config).list_offsets([("t", 0, -1)], "read_committed") == [("t", 0, 2, -1)]


def test_a_broker_that_does_not_let_prepare_is_not_asked_to(new_broker, script_of):
    broker = new_broker(transaction_two_phase_commit_enable=False)
    config = {"bootstrap.servers": broker.bootstrap_servers}
    Client(config).create_topics([{"name": "t", "num_partitions": 1}])
    writer = RecordWriter(config, "t", transactional_id="pylog-once.w")
    begun = writer.begin()
    writer.write(values_batch([b"a"]))
    writer.flush()
    prepared = writer.prepare()
    assert prepared == {"transactional_id": "pylog-once.w", "prepared": False, **begun}
    writer.end(True)
    writer.close()
    assert stable(script_of(broker), "t") == 2


def test_a_prepared_transaction_that_stays_open_is_logged_with_the_command_that_ends_it(new_broker, script_of):
    broker = new_broker(transaction_max_timeout_ms=400)
    s = script_of(broker)
    topic = s.topic()
    begun(s, "forgotten", topic, transaction_timeout_ms=SHORT_MS, **KEEP)
    line = f"readers of committed data wait for it in {topic}-0; when its program does not come back, end it: "
    command = 'pylog transaction abort "forgotten" --execute'
    said(broker, line + command)
    said(broker, re.compile(r'transaction "forgotten" is open for \d+ s and prepared, so that no broker ends it'))
