"""A table with a Delta log: engines that read Delta see what is committed, each row once, whatever is merged, killed or done at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import pytest

from pylog_spark import lakehouse
from pylog_spark.errors import PylogError
from pylog_spark.lakehouse import commits, delta
from pylog_spark.lakehouse.delta import DeltaTable
from pylog_spark.lakehouse.parquet import ParquetTable
from tests.spark.support import Topic

Topics = Callable[..., Topic]

SCHEMA = "id bigint, name string"


def put(topic: Topic, *numbers: int, partition: int = 0) -> None:
    topic.put([f'{{"id": {number}, "name": "n{number}"}}' for number in numbers], partition)


def loaded(topic: Topic, table: str, **given: Any) -> None:
    given = {"schema": SCHEMA, "table_format": "delta", "subscribe": topic.name, **given}
    lakehouse.load(topic.spark, table, **{"kafka.bootstrap.servers": topic.servers}, **given)


def rows(table: str) -> list[tuple[int, int, int]]:
    """(partition, offset, id) of all rows that a reader of Delta sees, sorted."""
    found = deltalake.DeltaTable(table).to_pyarrow_table(columns=["partition", "offset", "id"])
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_readers_of_delta_see_what_each_load_committed(make_topic: Topics, table: str) -> None:
    topic = make_topic(partitions=2)
    put(topic, 0, 1)
    put(topic, 10, partition=1)
    loaded(topic, table)
    first = [(0, 0, 0), (0, 1, 1), (1, 0, 10)]
    assert rows(table) == first
    put(topic, 2)
    loaded(topic, table)
    assert rows(table) == sorted([*first, (0, 2, 2)])
    assert [row.id for row in lakehouse.read(topic.spark, table, table_format="delta").orderBy("id").collect()] == [
        0,
        1,
        2,
        10,
    ]
    actions = deltalake.DeltaTable(table).get_add_actions(flatten=True)
    assert sum(actions["num_records"].to_pylist()) == 4


def test_columns_have_their_values_types_and_partitions_whatever_is_in_them(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    places = ["a b", "x/y:z%", "ü=1", "", None]
    topic.put([f'{{"place": {"null" if place is None else chr(34) + place + chr(34)}}}' for place in places])
    loaded(topic, table, schema="place string", partition_by=["place"])
    found = deltalake.DeltaTable(table).to_pyarrow_table().sort_by("offset")
    # Spark writes an empty text as a partition without a value.
    assert found["place"].to_pylist() == ["a b", "x/y:z%", "ü=1", None, None]
    spark_rows = lakehouse.read(topic.spark, table, table_format="delta").orderBy("offset").collect()
    assert found["place"].to_pylist() == [row.place for row in spark_rows]
    assert [int(time.timestamp()) for time in found["timestamp"].to_pylist()] == [
        int(row.timestamp.timestamp()) for row in spark_rows
    ]
    topic.put(['{"place": "x/y:z%"}'])
    loaded(topic, table, schema="place string", partition_by=["place"])
    lakehouse.compact(topic.spark, table, table_format="delta")
    merged = deltalake.DeltaTable(table)
    assert len(merged.file_uris()) == 4
    assert sorted(map(str, merged.to_pyarrow_table()["place"].to_pylist())) == sorted(
        map(str, [*places[:3], None, None, places[1]])
    )


@pytest.mark.long  # a later schema: test_parquet.py
def test_new_columns_also_in_structs_come_with_a_later_schema(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    topic.put(['{"id": 0}'])
    loaded(topic, table, schema="id bigint")
    topic.put(['{"id": 1, "price": {"net": 2.5}}'])
    loaded(topic, table, schema="id bigint, price struct<net double>")
    topic.put(['{"id": 2, "price": {"net": 3.5, "tax": 0.5}}'])
    loaded(topic, table, schema="id bigint, price struct<net double, tax double>")
    found = deltalake.DeltaTable(table).to_pyarrow_table(columns=["id", "price"]).sort_by("id").to_pylist()
    assert found[1:] == [
        {"id": 1, "price": {"net": 2.5, "tax": None}},
        {"id": 2, "price": {"net": 3.5, "tax": 0.5}},
    ]
    assert (found[0]["id"], (found[0]["price"] or {}).get("net")) == (0, None)


@pytest.mark.long  # a new table: above
def test_a_table_of_parquet_files_gets_its_delta_log_when_it_is_loaded_as_one(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    for number in range(2):
        put(topic, number)
        loaded(topic, table, table_format="parquet")
    loaded(topic, table)
    assert rows(table) == [(0, 0, 0), (0, 1, 1)]


@pytest.mark.long  # test_parquet.py: compaction
def test_a_merge_changes_the_files_and_no_row_and_says_so(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    for number in range(3):
        put(topic, number)
        loaded(topic, table)
    before = deltalake.DeltaTable(table)
    lakehouse.compact(topic.spark, table, table_format="delta")
    after = deltalake.DeltaTable(table)
    assert (len(before.file_uris()), len(after.file_uris())) == (3, 1)
    assert rows(table) == [(0, number, number) for number in range(3)]
    assert before.to_pyarrow_table().num_rows == 3  # whoever opened it before still reads its files
    log = Path(table, "_delta_log", f"{after.version():020}.json").read_text()
    assert log.count('"dataChange":false') == 4
    assert '"dataChange":true' not in log


@pytest.mark.long  # test_parquet.py: a batch that runs again
def test_what_a_crash_kept_from_the_delta_log_comes_with_the_next_load(
    make_topic: Topics, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "WHOLE_EVERY", 3)
    topic = make_topic()
    put(topic, 0)
    loaded(topic, table)
    with monkeypatch.context() as dying:
        dying.setattr(DeltaTable, "publish", lambda self: None)
        put(topic, *range(1, 6))
        loaded(topic, table, maxOffsetsPerTrigger=1)
        lakehouse.compact(topic.spark, table, table_format="delta")
    assert rows(table) == [(0, 0, 0)]
    version = deltalake.DeltaTable(table).version()
    loaded(topic, table)  # although the log has nothing new
    assert rows(table) == [(0, number, number) for number in range(6)]
    assert deltalake.DeltaTable(table).version() == version + 6  # five loads and a merge
    # The same when the commits between are gone.
    with monkeypatch.context() as dying:
        dying.setattr(DeltaTable, "publish", lambda self: None)
        put(topic, *range(6, 12))
        loaded(topic, table, maxOffsetsPerTrigger=1)
    ParquetTable(topic.spark, table)._remove_commits(ParquetTable(topic.spark, table).state(), 2**62)
    loaded(topic, table)
    assert rows(table) == [(0, number, number) for number in range(12)]


def test_of_two_that_publish_the_same_commit_one_does_and_a_late_one_brings_nothing_back(
    make_topic: Topics, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    for number in range(2):
        put(topic, number)
        loaded(topic, table)
    with monkeypatch.context() as dying:
        dying.setattr(DeltaTable, "publish", lambda self: None)
        put(topic, 2)
        loaded(topic, table)
    late = DeltaTable(topic.spark, table)
    there = deltalake.DeltaTable(table)
    ((before, after),) = late._steps(1, late.state())
    lakehouse.compact(topic.spark, table, table_format="delta")
    assert not late._step(there, before, after)
    assert rows(table) == [(0, number, number) for number in range(3)]
    assert len(deltalake.DeltaTable(table).file_uris()) == 1


@pytest.mark.long  # a commit that another one has: below
def test_a_delta_log_that_something_else_wrote_to_is_refused(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    for number in range(2):
        put(topic, number)
        loaded(topic, table)
    deltalake.DeltaTable(table).optimize.compact()
    put(topic, 2)
    with pytest.raises(PylogError, match=r"PYLOG_TABLE_STATE\] The Delta table .* was changed by something else"):
        loaded(topic, table)
    deltalake.DeltaTable(table).restore(1)
    loaded(topic, table)
    assert rows(table) == [(0, number, number) for number in range(3)]


@pytest.mark.long  # test_parquet.py: a frame of before reads its own
def test_files_stay_until_the_delta_log_does_not_name_them(
    make_topic: Topics, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    for number in range(2):
        put(topic, number)
        loaded(topic, table)
    with monkeypatch.context() as dying:
        dying.setattr(DeltaTable, "publish", lambda self: None)
        lakehouse.compact(topic.spark, table, table_format="delta")
    DeltaTable(topic.spark, table).clean(timedelta(seconds=-1))
    assert rows(table) == [(0, 0, 0), (0, 1, 1)]
    assert len(list(Path(table).glob("date=*/*.parquet"))) == 1


def test_what_delta_cannot_have_is_one_sentence_before_anything_is_written(
    make_topic: Topics, table: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    put(topic, 0)
    with pytest.raises(PylogError, match=r"PYLOG_INVALID_SCHEMA\] Delta allows no space .* which 'the id' has"):
        loaded(topic, table, schema="`the id` bigint")
    with pytest.raises(PylogError, match=r"A Delta table has no type timestamp_ntz, which the column seen has"):
        loaded(topic, table, schema="id bigint, seen array<struct<at timestamp_ntz>>")
    assert not Path(table, "_pylog").exists()
    with pytest.raises(PylogError, match=r"PYLOG_INVALID_OPTION\] table_format is parquet or delta, not 'csv'"):
        loaded(topic, table, table_format="csv")
    monkeypatch.setitem(delta.__dict__, "_delta", delta._delta)
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(PylogError, match=r"pip install \"pylog-spark\[delta\]\""):
        loaded(topic, table)
