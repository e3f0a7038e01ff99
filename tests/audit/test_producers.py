"""Producers say what they have written, and `check` and ``pylog audit`` name the windows in which the log does not have that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer as PlainProducer

from pylog_spark.audit import Audit, AuditedProducer
from pylog_spark.audit.document import AuditRecord
from pylog_spark.client import Admin, Consumer, LogError, Producer
from tests.audit.support import BEGIN_MS, MINUTE, Audited, at
from tests.harness.children import PipedChild
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]


def put(servers: str, topic: str, *values: bytes) -> None:
    producer = PlainProducer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def pylog(servers: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYLOG_BOOTSTRAP_SERVERS": servers}
    command = [sys.executable, "-m", "pylog_spark", *words]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def test_all_that_several_producers_have_written_is_as_they_say(audited: Audited) -> None:
    for client_id in ("front-1", "front-2"):
        with audited.producer(client_id=client_id) as producer:
            audited.fill(producer, [0, 1, 2])
            audited.fill(producer, [2, 1])  # late ones
    with Producer(audited.servers, audited.topic, audit=Audit(audited.audit, MINUTE)) as own:
        for number in range(100):
            own.send(b"x", timestamp_ms=at(number % 5))
        assert own.publish().records == 100
        own.send(b"x", timestamp_ms=at(0))
        assert own.flush().records == 101
    report = audited.check()
    assert report.differences == ()
    assert (report.windows, report.records) == (5, 2 * 5 * 50 + 101)
    assert audited.check(window_ms=5 * MINUTE).windows == 1


def test_a_lost_record_and_one_that_is_there_twice_are_named_and_no_other_window(audited: Audited) -> None:
    with audited.producer() as producer:
        audited.fill(producer, range(10))
    audited.lose(3)
    audited.double(7)
    report = audited.check()
    assert report.differences == (audited.difference(3, 51, 50), audited.difference(7, 50, 51))
    assert report.windows == 10


def test_one_lost_and_one_twice_in_the_same_window_look_like_all_of_them_in_a_longer_one_only(audited: Audited) -> None:
    with audited.producer() as producer:
        audited.fill(producer, range(4))
    audited.lose(0)
    audited.double(1)
    assert audited.check(window_ms=2 * MINUTE).differences == ()
    assert len(audited.check().differences) == 2


def test_counts_are_a_part_of_a_transaction(audited: Audited) -> None:
    producer = audited.producer(transactional_id=audited.topic)
    producer.init_transactions(30)
    for window, commit in enumerate([True, False, True, False, True]):
        producer.begin_transaction()
        audited.fill(producer, [window])
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    report = audited.check()
    assert report.differences == ()
    assert (report.windows, report.records) == (3, 150)


def test_a_report_of_the_callers_own_still_comes(audited: Audited) -> None:
    seen: list[int] = []
    with audited.producer() as producer:
        producer.produce(
            audited.topic, b"a", partition=0, on_delivery=lambda error, message: seen.append(message.timestamp()[1])
        )
        producer.produce(
            audited.topic, b"a" * 100_000, partition=1, on_delivery=lambda error, message: seen.append(error.code())
        )
    assert len(seen) == 2
    report = audited.check(delay_ms=None)
    assert (report.differences, report.records) == ((), 1)


def test_a_producer_that_goes_on_says_what_it_has_written_now_and_then(audited: Audited) -> None:
    config = {"bootstrap.servers": audited.servers}
    producer = AuditedProducer(config, audited.audit, window_ms=MINUTE, publish_every_s=0.1)
    producer.produce(audited.topic, b"x", timestamp=at(0))

    def said() -> bool:
        producer.poll(0.05)
        return audited.check().records == 1

    until(said, "its count is there without a flush")
    assert audited.check().differences == ()
    assert producer.flush(30) == 0


def test_a_window_that_has_not_ended_is_left_out(audited: Audited) -> None:
    put(audited.servers, audited.topic, b"nobody counts this")
    assert audited.check(audited.topic).windows == 0
    (found,) = audited.check(audited.topic, delay_ms=None).differences
    assert (found.producers, found.log) == (0, 1)


def test_what_is_no_audit_record_is_a_difference_of_the_audit_topic_itself(audited: Audited) -> None:
    with audited.producer() as producer:
        audited.fill(producer, [0])
    other = AuditRecord(audited.topic, BEGIN_MS, 7 * MINUTE, 1, "in longer windows")
    put(audited.servers, audited.audit, b"no audit record", other.value)
    (found,) = audited.check(delay_ms=None).differences
    assert (found.topic, found.producers, found.log) == (audited.audit, 0, 2)


def test_windows_from_which_records_were_deleted_are_left_out(audited: Audited) -> None:
    with audited.producer() as producer:
        audited.fill(producer, range(6))
    with Consumer(audited.servers, audited.topic, start="earliest", follow=False) as consumer:
        found = next(record for record in consumer if record.timestamp_ms >= at(2))
    with Admin(audited.servers) as admin:
        admin.delete_records([(audited.topic, found.partition, found.offset + 1)])
    report = audited.check()
    assert report.differences == ()
    assert report.begins_ms == {audited.topic: at(3)}
    assert report.windows == 3


@pytest.mark.parametrize("setting", ["cleanup.policy=compact", "message.timestamp.type=LogAppendTime"])
def test_a_topic_that_cannot_be_compared_is_refused_with_the_reason(audited: Audited, setting: str) -> None:
    name, value = setting.split("=")
    with Admin(audited.servers) as admin:
        admin.alter_configs("topic", audited.topic, {name: value})
    with pytest.raises(LogError, match=r"leave (it|the topic) out"):
        audited.check(audited.topic)


def test_the_command_line_counts_what_it_writes_and_names_windows_that_differ(audited: Audited, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{number}\n" for number in range(3000)))
    words = ("--audit-topic", audited.audit, "--audit-window", "1m")
    done = pylog(audited.servers, "produce", audited.topic, str(lines), *words, "--json")
    written = json.loads(done.stdout)
    assert (done.returncode, written["records"]) == (0, 3000)
    assert {span["topic"] for span in written["offsets"]} == {audited.topic}
    good = pylog(audited.servers, "audit", audited.audit, "--window", "1m", "--all")
    assert (good.returncode, good.stdout) == (0, "")
    assert "with 3000 records: none of them differ." in good.stderr
    audited.double(4)
    bad = pylog(audited.servers, "audit", audited.audit, "--window", "1m", "-t", audited.topic)
    assert bad.returncode == 1
    assert bad.stdout.splitlines()[1].split() == [
        audited.topic,
        "2026-01-01T00:04:00Z",
        "2026-01-01T00:05:00Z",
        "0",
        "1",
    ]
    shown = json.loads(pylog(audited.servers, "audit", audited.audit, "--window", "1m", "--json").stdout)
    assert [each["log"] for each in shown["differences"]] == [1]


def test_a_slow_pipe_says_what_it_has_written_while_it_waits(audited: Audited) -> None:
    reader, writer = os.pipe()
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "pylog_spark", "produce", audited.topic, "--audit-topic", audited.audit]
    words += ["--audit-window", "1m", "-b", audited.servers]
    with PipedChild(words, env=environment, stdin=reader, errors=True) as writing:
        os.close(reader)
        try:
            os.write(writer, b"early\n")
            until(lambda: audited.check(delay_ms=None).records == 1, "its count is there without an end of input")
        finally:
            os.close(writer)
        assert writing.wait() == 0, writing.errors
    assert audited.check(delay_ms=None).differences == ()
