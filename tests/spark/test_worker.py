"""What a call of Spark leaves behind in its Python processes, which go on to the next call and collect garbage in between."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.support import Topic, topic_maker

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def make_topic(servers: str, new_topic: str) -> Topics:
    """Makes topics; none of these tests needs a session of Spark in its own process."""
    return topic_maker(None, servers, new_topic)


_START = """
import gc, pickle
import pyarrow as pa
from pylog_spark.datasource import PylogDataSource
from pyspark.sql.types import BinaryType, StructType
schema = StructType().add("value", BinaryType())
"""
_PLAN_READ = """
source = PylogDataSource({{"kafka.bootstrap.servers": {servers!r}, "subscribe": {topic!r}}})
reader = source.reader(schema)
carried = pickle.dumps((reader, reader.partitions()))
"""
_READ = """
reader, (part,) = pickle.loads(carried)
assert [batch.num_rows for batch in reader.read(part)] == [2]
"""
_PLAN_WRITE = """
source = PylogDataSource(
    {{"kafka.bootstrap.servers": {servers!r}, "topic": {topic!r}, "delivery": "at-least-once"}}
)
carried = pickle.dumps(source.streamWriter(schema, False))
"""
_WRITE = """
assert pickle.loads(carried).write(iter([pa.record_batch({"value": pa.array([b"a"])})])).records == 1
"""


def _run(code: str) -> tuple[int, str]:
    """Run `code` in a process of its own: how many objects the collector leaves alone afterwards, and `carried`."""
    end = "print(gc.get_freeze_count(), carried.hex())"
    done = subprocess.run(
        [sys.executable, "-c", f"{_START}\nassert gc.get_freeze_count() == 0\n{code}\n{end}"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    count, carried = done.stdout.split()
    return int(count), carried


@pytest.mark.parametrize(("plan", "task"), [(_PLAN_READ, _READ), (_PLAN_WRITE, _WRITE)], ids=["read", "write"])
def test_the_collection_after_a_call_need_not_look_at_what_is_imported(
    servers: str, make_topic: Topics, plan: str, task: str
) -> None:
    topic = make_topic()
    topic.put(["a", "b"])
    planned, carried = _run(plan.format(servers=servers, topic=topic.name))
    ran, _ = _run(f"carried = bytes.fromhex({carried!r})\n{task}")
    assert min(planned, ran) > 10_000


def test_what_is_imported_later_is_left_alone_from_the_next_call_on() -> None:
    code = """
from pylog_spark.spark.worker import freeze_imports
freeze_imports()
before = gc.get_freeze_count()
import pandas
freeze_imports()
carried = (gc.get_freeze_count() - before).to_bytes(4, "big")
gc.collect()
cycles = [[] for _ in range(1000)]
freeze_imports()
carried += sum(one is cycles for one in gc.get_objects()).to_bytes(4, "big")
"""
    _, carried = _run(code)
    grown, own = int(carried[:8], 16), int(carried[8:], 16)
    assert grown > 10_000, "what pandas made is walked through after every task"
    assert own == 1, "what a task makes must stay under the collector's eyes"


@pytest.mark.long  # a driver of its own; its settings are in tests/unit/spark/test_datasource.py and test_interpreter.py
@pytest.mark.parametrize(
    "session",
    [
        "from pylog_spark.testing import spark_session as session",
        "import pylog_spark\nfrom pyspark.sql import SparkSession\nsession = SparkSession.builder.master('local[1]').getOrCreate",
    ],
)
def test_workers_find_this_python_although_the_path_has_another(
    tmp_path: Path, servers: str, make_topic: Topics, session: str
) -> None:
    topic = make_topic()
    topic.put(["a"])
    trap = tmp_path / "python3"
    trap.write_text("#!/bin/sh\necho the wrong python was started >&2\nexit 1\n")
    trap.chmod(0o755)
    code = (
        "import os\n"
        "for name in ('PYSPARK_PYTHON', 'PYSPARK_DRIVER_PYTHON'): os.environ.pop(name, None)\n"
        f"os.environ['PATH'] = {str(tmp_path)!r} + ':' + os.environ['PATH']\n"
        f"{session}\n"
        "spark = session()\n"
        f"frame = spark.read.format('pylog').option('kafka.bootstrap.servers', {servers!r}).option('subscribe', {topic.name!r})\n"
        "print('rows', frame.load().count())\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert "rows 1" in done.stdout, done.stderr[-2000:]
