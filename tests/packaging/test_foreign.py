"""A wheel for another processor or C library runs there: a broker and its client in a foreign Python. Long, and only where both are named.

``PYLOG_TEST_FOREIGN_WHEEL`` is the wheel, ``PYLOG_TEST_FOREIGN_PYTHON`` a program that is that Python, such as the script of
``python -m tests.packaging.foreign`` or ``python -m tests.packaging.musl``.
"""

import os
import sys
from pathlib import Path

import pytest

from pylog_spark.client import read_range
from pylog_spark.testing import LocalBroker
from tests.packaging.environment import PINS, pip, run
from tests.packaging.foreign import platforms

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ROWS = 2000
#: Writes by each compression, reads all of it again, and prints the processor and how many records came back the same.
PROGRAM = """
import platform, sys
from pylog_spark.client import Admin, Producer, read_range
from pylog_spark.testing import LocalBroker

folder, rows = sys.argv[1], int(sys.argv[2])
with LocalBroker(folder) as broker:
    servers = broker.bootstrap_servers
    with Admin(servers) as admin:
        admin.create_topic("t", 1, 1)
    compressions = ("none", "gzip", "snappy", "lz4", "zstd")
    for compression in compressions:
        with Producer(servers, "t", {"compression.type": compression}) as producer:
            for number in range(rows):
                producer.send(f"{compression} {number}".encode(), key=b"k%d" % number)
    table = read_range(servers, "t").read_all()
    wanted = [f"{compression} {number}".encode() for compression in compressions for number in range(rows)]
    assert table["value"].to_pylist() == wanted
    print(platform.machine(), table.num_rows)
"""


def named(variable: str) -> str:
    """What a variable names; without it the test is skipped."""
    if not (found := os.environ.get(variable)):
        pytest.skip(f"{variable} names nothing: see docs/platforms.md for a foreign Python and its wheel.")
    return found


def test_a_foreign_wheel_keeps_records_that_come_back_the_same_there_and_here(tmp_path: Path) -> None:
    wheel, python = Path(named("PYLOG_TEST_FOREIGN_WHEEL")).absolute(), named("PYLOG_TEST_FOREIGN_PYTHON")
    version = run(python, "-c", "import sys; print(*sys.version_info[:2], sep='.')").strip()
    place, data = tmp_path / "packages", tmp_path / "data"
    machine, names = platforms(wheel)
    beside = [word for name in names for word in ("--platform", name)]
    words = ("--target", place, "--only-binary=:all:", "--python-version", version, "--constraint", PINS)
    pip(sys.executable, "install", *words, *beside, wheel)
    printed = run(python, "-c", PROGRAM, data, ROWS, cwd=tmp_path, PYTHONPATH=str(place))
    assert printed.split() == [machine, str(5 * ROWS)]
    # The directory is the same on each processor.
    with LocalBroker(data) as broker:
        table = read_range(broker.bootstrap_servers, "t").read_all()
    assert table.num_rows == 5 * ROWS
    assert table["value"][-1].as_py() == f"zstd {ROWS - 1}".encode()
