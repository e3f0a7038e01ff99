"""Names of transactions: unique, readable again, and never taken for another write's."""

import re

import pytest

from pylog_spark.options.write import ABANDONED_AFTER_MS
from pylog_spark.sink.decision import topic_of
from pylog_spark.sink.identity import (
    BATCH,
    ONCE,
    STREAM,
    Write,
    batch_write,
    fresh_job,
    in_ledger,
    ledger_of,
    parse_task_id,
    pattern_of,
    task_transaction_id,
    write_of,
)

YEAR_MS = 365 * 86_400_000
KEYS = ["8e2c6f0e-9f0d-4a55-9d1c-6c7f0a3b1f11", "orders.daily", "a.1.2.ff", "(x|y)* [z]?", "Zürich ^1$ {2}+\\d", "."]


@pytest.mark.parametrize("key", KEYS)
def test_a_tasks_name_says_key_version_partition_and_job_whatever_the_key_is(key: str) -> None:
    job = fresh_job()
    name = parse_task_id(task_transaction_id(Write(BATCH, key, 12), 3, job))
    assert name is not None
    assert (name.key, name.version, name.partition, name.job) == (key, 12, 3, job)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("given_ms", "named_ms"), [(1_000, 1_000), (1_001, 2_000), (1_200_000, 1_200_000), (YEAR_MS, YEAR_MS)]
)
def test_a_tasks_name_says_after_how_long_its_write_counts_as_abandoned(key: str, given_ms: int, named_ms: int) -> None:
    text = task_transaction_id(Write(BATCH, key, 12), 3, "00c0ffee", given_ms)
    name = parse_task_id(text)
    assert name is not None
    assert (name.key, name.version, name.partition, name.job) == (key, 12, 3, "00c0ffee")
    assert name.abandoned_after_ms == named_ms
    assert re.fullmatch(pattern_of(key), text)


def test_a_name_that_does_not_say_when_its_write_counts_as_abandoned_means_the_usual_time() -> None:
    name = parse_task_id("pylog-once.orders.7.0.1f00ba12c0ffee00")
    assert name is not None
    assert name.abandoned_after_ms == ABANDONED_AFTER_MS == 1_200_000


@pytest.mark.parametrize("name", [None, "team-a", "a.b_c"])
def test_a_ledger_is_a_part_of_every_name_of_a_write_and_of_the_topic_with_its_decisions(name: str | None) -> None:
    begin = "" if name is None else f"{name}:"
    for write in (
        batch_write(("a:b", 7), "orders", name),
        batch_write(("a:b", 7), None, name),
        batch_write(None, "t", name),
    ):
        assert write.driver_id.startswith((f"pylog-sink.{begin}", f"pylog-once.{begin}"))
        assert write.task_prefix.startswith(f"pylog-once.{begin}")
        assert ledger_of(write.key) == name
        assert topic_of(write.key) == ("__pylog_sink" if name is None else f"__pylog_sink.{name}")
        found = parse_task_id(task_transaction_id(write, 1, fresh_job()))
        assert found is not None
        assert (found.key, write_of(write.key).kind) == (write.key, ONCE if write.kind == ONCE else STREAM)
    assert ledger_of(in_ledger("8e2c6f0e-9f0d-4a55-9d1c-6c7f0a3b1f11", name)) == name


@pytest.mark.parametrize(
    "key", ["8e2c6f0e-9f0d-4a55-9d1c-6c7f0a3b1f11", "topic/a:b", "/a:b", "topic/", ":a", "a/b/c:d"]
)
def test_a_key_without_a_ledger_has_none(key: str) -> None:
    assert (ledger_of(key), topic_of(key)) == (None, "__pylog_sink")


def test_two_attempts_at_one_task_never_share_a_name() -> None:
    write, job = Write(STREAM, "q", 0), fresh_job()
    # More than Spark ever makes of one task. Of a thousand, with 32 random bits each, two were alike in one of 8,600 runs.
    assert len({task_transaction_id(write, 0, job) for _ in range(20)}) == 20


@pytest.mark.parametrize("key", KEYS)
def test_the_pattern_of_a_key_matches_its_tasks_and_nothing_else(key: str) -> None:
    pattern = pattern_of(key)
    assert re.fullmatch(pattern, task_transaction_id(Write(BATCH, key, 1), 0, fresh_job()))
    for other in (key + "x", "x" + key, key.replace(".", "-") + "!", key + ".1"):
        assert not re.fullmatch(pattern, task_transaction_id(Write(BATCH, other, 1), 0, fresh_job()))


def test_drivers_of_repeatable_writes_share_a_name_and_a_one_time_write_uses_one_that_brokers_forget() -> None:
    assert Write(STREAM, "q", 1).driver_id == Write(STREAM, "q", 2).driver_id == "pylog-sink.q"
    assert Write(ONCE, "k", 0).driver_id.startswith("pylog-once.")
    assert parse_task_id(Write(ONCE, "k", 0).driver_id) is None
    assert parse_task_id("somebody-elses") is None


def test_a_batch_without_a_name_is_a_write_of_its_own() -> None:
    assert batch_write(None, "t") != batch_write(None, "t")
    assert batch_write(("orders", 3), "t") == Write(BATCH, "t/orders", 3)
    assert batch_write(("t/orders", 3), None) == Write(BATCH, "/t/orders", 3), "no topic's name is empty"
