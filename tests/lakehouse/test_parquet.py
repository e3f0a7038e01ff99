"""A topic as a table of Parquet files: each record once, whatever is run again, and one frame of table and log."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pylog_spark import lakehouse
from pylog_spark.errors import PylogError
from pylog_spark.lakehouse import commits, loading, parquet
from pylog_spark.lakehouse.files import HadoopFiles, LocalFiles
from pylog_spark.lakehouse.parquet import ParquetTable
from pylog_spark.lakehouse.values import rows_of
from tests.spark.support import Topic

Topics = Callable[..., Topic]

SCHEMA = "id bigint, name string"


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


@pytest.mark.long  # one that is lost or old: above
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
    loaded(topic, table, schema=None, partition_by=["_topic", "_partition"], record_prefix="_")
    found = lakehouse.read(topic.spark, table).collect()
    assert {(row._topic, row._partition, row._offset, row._value) for row in found} == {
        (topic.name, 0, 0, b"a"),
        (topic.name, 0, 1, None),
        (topic.name, 1, 0, b"\x00\xff"),
    }
    folders = {str(path.parent.relative_to(table)) for path in Path(table).glob("*=*/*/*.parquet")}
    assert folders == {f"_topic={topic.name}/_partition={number}" for number in (0, 1)}


@pytest.mark.long  # loads: above
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


def files_of(table: str) -> list[str]:
    return sorted(str(path.relative_to(table)) for path in Path(table).glob("date=*/*.parquet"))


def test_compaction_gives_few_files_and_a_frame_of_before_still_reads_its_own(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    for number in range(3):
        put(topic, number)
        loaded(topic, table)
    before = lakehouse.read(topic.spark, table)
    assert len(before.inputFiles()) == 3
    lakehouse.compact(topic.spark, table)
    after = lakehouse.read(topic.spark, table)
    assert len(after.inputFiles()) == 1
    assert after.collect() == sorted(before.collect(), key=lambda row: row.offset)
    put(topic, 3)
    loaded(topic, table)
    assert rows(topic, table) == [(0, number, number) for number in range(4)]


@pytest.mark.long  # test_delta.py: files stay until no log names them
def test_files_that_nobody_needs_are_removed_when_they_were_kept_long_enough(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    for number in range(3):
        put(topic, number)
        loaded(topic, table)
    lakehouse.compact(topic.spark, table)
    assert len(files_of(table)) == 4
    orphan = Path(table, files_of(table)[0]).with_name("left-by-a-crash.parquet")
    orphan.touch()
    left = Path(table, "_pylog/staging/left-by-a-crash/date=2026-01-01")
    left.mkdir(parents=True)
    made = ParquetTable(topic.spark, table)
    made.clean(timedelta(hours=1))
    assert len(files_of(table)) == 5
    made.clean(timedelta(seconds=-1))
    assert len(files_of(table)) == 1
    assert not left.exists()
    assert rows(topic, table) == [(0, number, number) for number in range(3)]


@pytest.mark.long  # compaction: below
def test_a_load_merges_many_small_files_and_commits_that_name_all_files_are_enough(
    make_topic: Topics, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "WHOLE_EVERY", 3)
    topic = make_topic()
    put(topic, *range(20))
    loaded(topic, table, maxOffsetsPerTrigger=1)
    found = lakehouse.read(topic.spark, table)
    assert len(found.inputFiles()) == 20 - 16 + 1
    assert rows(topic, table) == [(0, number, number) for number in range(20)]
    for number in range(18):  # the last one that names all files is number 18 of 21
        Path(table, "_pylog/commits", commits.commit_name(number)).unlink()
    assert rows(topic, table) == [(0, number, number) for number in range(20)]


@pytest.mark.long  # two loads: below
def test_a_merge_that_meets_a_load_or_another_merge_loses_nothing(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    for number in range(3):
        put(topic, number)
        loaded(topic, table)

    class Meeting(LocalFiles):
        """Lets something else happen between the writing of a merged file and its commit."""

        def put_if_absent(self, name: str, text: str) -> bool:
            if name.startswith("_pylog/commits") and self.others:
                self.others.pop()()
            return super().put_if_absent(name, text)

    files = Meeting(table)
    files.others = [lambda: put(topic, 3) or loaded(topic, table)]
    ParquetTable(topic.spark, table, files).compact()
    assert rows(topic, table) == [(0, number, number) for number in range(4)]
    assert len(lakehouse.read(topic.spark, table).inputFiles()) == 2
    files.others = [lambda: lakehouse.compact(topic.spark, table)]
    ParquetTable(topic.spark, table, files).compact()
    assert len(lakehouse.read(topic.spark, table).inputFiles()) == 1
    assert rows(topic, table) == [(0, number, number) for number in range(4)]


@pytest.mark.long  # a batch that runs again: above
def test_two_loads_at_once_load_each_record_once(make_topic: Topics, table: str) -> None:
    topic = make_topic()
    put(topic, 0)
    loaded(topic, table)
    spec = ParquetTable(topic.spark, table).state().spec
    put(topic, 1, 2)
    late = ParquetTable(topic.spark, table)
    before = late.state()
    loaded(topic, table)
    records = topic.read(startingOffsets=f'{{"{topic.name}":{{"0":1}}}}')
    assert not late.append(rows_of(records, spec), before, spec, before.position)
    assert len(files_of(table)) == 2
    assert rows(topic, table) == [(0, number, number) for number in range(3)]


@pytest.mark.long  # a local one: all others
def test_file_systems_that_hadoop_knows_hold_a_table_too(
    make_topic: Topics, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (loading, parquet):
        monkeypatch.setattr(
            module, "files_of", lambda spark, path: HadoopFiles(spark, f"file:{path}".replace("file:file:", "file:"))
        )
    topic = make_topic()
    put(topic, 0, 1)
    loaded(topic, table)
    put(topic, 2)
    loaded(topic, table)
    lakehouse.compact(topic.spark, table)
    assert rows(topic, table) == [(0, number, number) for number in range(3)]
    files = HadoopFiles(topic.spark, table)
    assert not files.put_if_absent("_pylog/commits/00000000000000000002.json", "another")
    assert files.read("_pylog/commits/00000000000000000002.json") != "another"
    ParquetTable(topic.spark, table).clean(timedelta(seconds=-1))
    assert len(files_of(table)) == 1
    assert rows(topic, table) == [(0, number, number) for number in range(3)]


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
