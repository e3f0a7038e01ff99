"""What Spark imports, when, and what goes over pickle."""

import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from pylog_spark.testing import use_this_python

ROOT = Path(__file__).parents[3]
BINARY = from_arrow_schema(pa.schema([("value", pa.binary())]))

_BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name in {blocked!r}:
            raise ImportError(f"blocked {{name}}")
sys.meta_path.insert(0, Block())
"""


def python(code: str, blocked: tuple[str, ...] = ()) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _BLOCKED.format(blocked=blocked) + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr


def test_sparks_lookup_finds_pylog_without_the_native_module() -> None:
    # An ImportError here would hide every auto-registered data source of the user, with no more than a warning.
    code = "import pyspark_pylog; print(pyspark_pylog.DefaultSource.name())"
    assert python(code, ("pylog_spark._native", "pyarrow")) == "pylog"


def test_sparks_lookup_imports_no_room_no_native_module_and_no_pyarrow() -> None:
    code = (
        "import pyspark.sql.datasource\n"  # brings what pyspark itself needs
        "before = set(sys.modules)\n"
        "import pyspark_pylog\n"
        "new = set(sys.modules) - before\n"
        "print(sorted(name for name in new if name.startswith(('pylog_spark.sink', 'pylog_spark.source', 'pylog_spark._', 'pyarrow'))))"
    )
    assert python(code) == "[]"


def test_a_missing_native_module_is_one_sentence_when_it_is_needed() -> None:
    code = (
        "from pylog_spark.errors import native, PylogError\n"
        "try:\n    native()\n"
        "except PylogError as error:\n    print(error)"
    )
    said = python(code, ("pylog_spark._native",))
    assert said.startswith("[PYLOG_NATIVE_MISSING] The compiled module pylog_spark._native cannot be loaded")


def test_rooms_import_on_a_spark_before_4_1_and_before_4_2() -> None:
    code = (
        "import pyspark.sql.datasource as d\n"
        "sys.modules['pyspark.sql.streaming.datasource'] = None\n"
        "del d.DataSourceStreamArrowWriter\n"
        "from pylog_spark.source import stream as source\n"
        "from pylog_spark.sink import stream as sink\n"
        "from pylog_spark.sink.task import WritePlan\n"
        "import inspect\n"
        "print(source._admission, len(inspect.signature(source._ReaderBefore42.latestOffset).parameters),"
        " type(sink.stream_writer(WritePlan({}, 't', ('value',)))).__name__)"
    )
    assert python(code) == "None 1 _RowWriter"


def test_a_pickled_reader_holds_only_plain_config() -> None:
    from pylog_spark.options import STREAM, read_options
    from pylog_spark.source.partition import RangeSource
    from pylog_spark.source.stream import stream_reader

    options = read_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, STREAM)
    reader = stream_reader(options, RangeSource(options.client, ("value",), {}, 1, True))
    reader._log._client = object.__new__(type("Socket", (), {"__reduce__": lambda self: 1 / 0}))  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(reader))
    assert again._log._client is None
    assert again._planner._log is again._log


def test_spark_drives_admission_control_and_available_now() -> None:
    def reader(**options: str) -> Any:
        given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", **options}
        return PylogDataSource(given).streamReader(BINARY)

    assert isinstance(reader(), SupportsTriggerAvailableNow)
    assert len(inspect.signature(reader().latestOffset).parameters) == 2
    assert reader().getDefaultReadLimit() == ReadAllAvailable()
    assert reader(maxOffsetsPerTrigger="7").getDefaultReadLimit() == ReadMaxRows(7)


def test_nothing_starts_and_no_socket_opens_when_a_reader_or_writer_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    # Spark's Python daemon forks one process for each worker.
    import pylog_spark._native as native

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("opened too early")

    for name in ("Client", "RangeReader", "RecordWriter"):
        monkeypatch.setattr(native, name, forbidden)
    read = PylogDataSource({"kafka.bootstrap.servers": "b:1", "subscribe": "t"})
    write = PylogDataSource({"kafka.bootstrap.servers": "b:1", "topic": "t"})
    made = [read.reader(BINARY), read.streamReader(BINARY), write.streamWriter(BINARY, False)]
    assert [type(made_object).__name__ for made_object in made] == ["PylogReader", "_Reader42", "_StreamWriter"]


def test_workers_run_this_python_unless_the_user_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    # What Spark makes of it, with another Python first on the path, is in tests/spark/test_worker.py.
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    for name in names:
        monkeypatch.delenv(name)
    use_this_python()
    assert [os.environ[name] for name in names] == [sys.executable] * 2
    for name in names:
        monkeypatch.setenv(name, "/usr/bin/another")
    use_this_python()
    assert [os.environ[name] for name in names] == ["/usr/bin/another"] * 2


FRAMES = [
    ({"id": pa.int32()}, "A write needs a column value of type STRING or BINARY and the frame has only id"),
    ({"value": pa.int32()}, "The column value must be BINARY or STRING to be written, not INT"),
    ({"value": pa.string(), "key": pa.int32()}, "The column key must be BINARY or STRING to be written, not INT"),
    (
        {"value": pa.string(), "Partition": pa.string()},
        "The column Partition must be INT or BIGINT or SMALLINT or TINYINT to be written, not STRING",
    ),
    (
        {"value": pa.string(), "headers": pa.map_(pa.string(), pa.binary())},
        "The column headers must be ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>",
    ),
]


@pytest.mark.parametrize(("columns", "said"), FRAMES, ids=[" ".join(columns) for columns, _ in FRAMES])
def test_a_wrong_frame_is_refused_when_its_writer_is_made(columns: dict[str, pa.DataType], said: str) -> None:
    source = PylogDataSource({"kafka.bootstrap.servers": "b:1", "topic": "t"})
    frame = from_arrow_schema(pa.schema(list(columns.items())))
    for writer in (source.writer, source.streamWriter):
        with pytest.raises(PylogError) as caught:
            writer(frame, False)
        assert caught.value.condition == "PYLOG_INVALID_SCHEMA"
        assert caught.value.sentence.startswith(said)


def test_a_write_needs_a_topic() -> None:
    with pytest.raises(PylogError) as caught:
        PylogDataSource({"kafka.bootstrap.servers": "b:1"}).writer(BINARY, False)
    assert caught.value.sentence == "A write needs a topic: give the option topic or a column topic of type STRING."


def test_a_wrong_column_of_a_read_is_named() -> None:
    source = PylogDataSource({"kafka.bootstrap.servers": "b:1", "subscribe": "t"})
    for columns, said in (
        ({"value": pa.string()}, "The column value of a read is BINARY, not STRING"),
        ({"Value": pa.binary()}, "'Value'; did you mean value?"),
    ):
        with pytest.raises(PylogError, match=re.escape(said)) as caught:
            source.reader(from_arrow_schema(pa.schema(list(columns.items()))))
        assert caught.value.condition == "PYLOG_INVALID_SCHEMA"
