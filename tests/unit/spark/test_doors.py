"""What Spark imports, when, and what goes over pickle."""

import pickle
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

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
        "print(sorted(name for name in new if name.startswith(('pylog_spark.s', 'pylog_spark._', 'pyarrow'))))"
    )
    assert python(code) == "['pylog_spark.schema']"


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
        "from pylog_spark.sink.task import Target\n"
        "import inspect\n"
        "print(source._admission, len(inspect.signature(source._ReaderBefore42.latestOffset).parameters),"
        " type(sink.stream_writer(Target({}, 't', ('value',)))).__name__)"
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
