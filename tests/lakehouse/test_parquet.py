"""A topic as a table of Parquet files: each record once, whatever is run again, and one frame of table and log."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pylog_spark import lakehouse
from pylog_spark.errors import PylogError
from tests.spark.support import Topic

Topics = Callable[..., Topic]

SCHEMA = "id bigint, name string"


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def put(topic: Topic, *numbers: int, partition: int = 0) -> None:
    topic.put([f'{{"id": {number}, "name": "n{number}"}}' for number in numbers], partition)


def loaded(topic: Topic, table: str, **given: Any) -> None:
    given = {"schema": SCHEMA, **given}
    lakehouse.load(topic.spark, table, subscribe=topic.name, **{"kafka.bootstrap.servers": topic.servers}, **given)


def rows(topic: Topic, table: str, tail: bool = False) -> list[tuple[int, int, int]]:
    """(partition, offset, id) of all rows, sorted."""
    options = {"subscribe": topic.name, "kafka.bootstrap.servers": topic.servers} if tail else {}
    found = lakehouse.read(topic.spark, table, **options).select("partition", "offset", "id").collect()
    return sorted(tuple(row) for row in found)


def test_loads_go_on_where_the_table_ends_and_a_read_joins_what_the_log_has_besides(
    make_topic: Topics, table: str
) -> None:
    topic = make_topic(partitions=2)
    put(topic, 0, 1)
    put(topic, 10, partition=1)
    loaded(topic, table)
    put(topic, 2)
    first = [(0, 0, 0), (0, 1, 1), (1, 0, 10)]
    assert rows(topic, table) == first
    assert rows(topic, table, tail=True) == sorted([*first, (0, 2, 2)])
    loaded(topic, table)
    put(topic, 11, partition=1)
    assert rows(topic, table) == sorted([*first, (0, 2, 2)])
    assert rows(topic, table, tail=True) == sorted([*first, (0, 2, 2), (1, 1, 11)])


def test_a_batch_that_runs_again_and_a_checkpoint_that_is_lost_or_old_add_no_row_twice(
    make_topic: Topics, table: str
) -> None:
    topic = make_topic()
    put(topic, 0, 1)
    loaded(topic, table)
    checkpoint = Path(table, "_pylog", "checkpoint")
    old = shutil.copytree(checkpoint, f"{table}-old")
    for name in ("0", ".0.crc"):  # as after a crash between the table's commit and Spark's
        (checkpoint / "commits" / name).unlink()
    put(topic, 2)
    loaded(topic, table)
    assert rows(topic, table) == [(0, 0, 0), (0, 1, 1), (0, 2, 2)]
    shutil.rmtree(checkpoint)
    loaded(topic, table)
    shutil.copytree(old, checkpoint, dirs_exist_ok=True)
    put(topic, 3)
    loaded(topic, table)
    assert rows(topic, table) == [(0, number, number) for number in range(4)]


def test_files_that_no_commit_names_are_not_read(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    put(topic, 0)
    loaded(topic, table)
    (file,) = Path(table).glob("date=*/*.parquet")
    shutil.copy(file, file.with_name("left-by-a-crash.parquet"))
    assert rows(topic, table) == [(0, 0, 0)]


def test_a_checkpoint_that_is_ahead_of_the_table_is_an_error(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    put(topic, 0)
    loaded(topic, table)
    put(topic, 1)
    loaded(topic, table)
    Path(table, "_pylog/commits/00000000000000000001.json").unlink()
    put(topic, 2)
    with pytest.raises(
        Exception, match=r"PYLOG_TABLE_STATE\] The checkpoint is ahead of the table: .* the table ends at 1"
    ):
        loaded(topic, table)


def test_a_later_schema_adds_columns_and_another_type_is_refused(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    put(topic, 0)
    loaded(topic, table)
    topic.put(['{"id": 1, "name": "n1", "price": {"net": 2.5}}'])
    loaded(topic, table, schema="id bigint, price struct<net double>")
    topic.put(['{"id": 2, "price": {"net": 3.5, "tax": 0.5}}'])
    loaded(topic, table, schema="id bigint, name string, price struct<net double, tax double>")
    found = (
        lakehouse.read(topic.spark, table).orderBy("offset").select("id", "name", "price.net", "price.tax").collect()
    )
    assert [tuple(row) for row in found] == [(0, "n0", None, None), (1, "n1", 2.5, None), (2, None, 3.5, 0.5)]
    with pytest.raises(
        PylogError, match=r"PYLOG_INVALID_SCHEMA\] The column price.net is double in the table and string"
    ):
        loaded(topic, table, schema="id bigint, price struct<net string>")


def test_values_stay_bytes_without_a_schema_and_files_lie_by_the_columns_that_are_named(
    make_topic: Topics, table: str
) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a", None])
    topic.put([b"\x00\xff"], 1)
    loaded(topic, table, schema=None, partition_by=["record_topic", "record_partition"], record_prefix="record_")
    found = lakehouse.read(topic.spark, table).collect()
    assert {(row.record_topic, row.record_partition, row.record_offset, row.record_value) for row in found} == {
        (topic.name, 0, 0, b"a"),
        (topic.name, 0, 1, None),
        (topic.name, 1, 0, b"\x00\xff"),
    }
    folders = {str(path.parent.relative_to(table)) for path in Path(table).glob("*=*/*/*.parquet")}
    assert folders == {f"record_topic={topic.name}/record_partition={number}" for number in (0, 1)}


def test_a_stream_keeps_the_table_fresh(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    options = {"subscribe": topic.name, "kafka.bootstrap.servers": topic.servers}
    query = lakehouse.stream(topic.spark, table, schema=SCHEMA, **options)
    try:
        put(topic, 0)
        query.processAllAvailable()
        put(topic, 1)
        query.processAllAvailable()
        assert rows(topic, table) == [(0, 0, 0), (0, 1, 1)]
    finally:
        query.stop()


def test_a_topic_that_was_made_again_is_not_mixed_with_the_one_of_before(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    put(topic, 0)
    loaded(topic, table)
    topic.recreate()
    put(topic, 0)
    with pytest.raises(PylogError, match="PYLOG_TOPIC_RECREATED"):
        loaded(topic, table)


def test_a_table_that_is_not_there_is_one_sentence(spark: Any, table: str) -> None:
    with pytest.raises(PylogError, match=r"PYLOG_TABLE_STATE\] There is no table in"):
        lakehouse.read(spark, table)
