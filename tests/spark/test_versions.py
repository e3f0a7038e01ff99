"""The table of docs/versions.md is what happens: the oldest Spark of it runs every row, the newest also over Connect.

Those runs are long; that the table has every scenario, and the declared range of versions, is checked in `make test`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.client.admin import Admin
from pylog_spark.testing import LocalBroker
from tests import spark_home
from tests.spark.versions.environment import python_with_spark
from tests.spark.versions.program import SCENARIOS

ROOT = Path(__file__).parents[2]
#: What a cell of the table may say -> outcomes of the scenario that it stands for.
MEANING = {"yes": "yes", "refused": "PYLOG_UNSUPPORTED_SPARK", "no": "no"}
RUN_DEADLINE_S = 280


def table() -> dict[str, dict[str, str]]:
    """Version -> row -> cell."""
    rows = [line.strip("|").split("|") for line in (ROOT / "docs/versions.md").read_text().splitlines() if "|" in line]
    head, _, *body = [[cell.strip() for cell in row] for row in rows]
    return {version: {row[0]: row[at] for row in body} for at, version in enumerate(head) if at}


def patch_releases() -> dict[str, str]:
    """Version of the table -> the patch release that the page says it was run with."""
    said = re.search(r"newest patch release \(([\d., ]+)\)", (ROOT / "docs/versions.md").read_text())
    assert said is not None
    return {release.rpartition(".")[0]: release for release in said[1].split(", ")}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path / "data", num_partitions=3) as broker:
        yield broker


@pytest.mark.long
@pytest.mark.timeout(900)  # the first run of all installs an older Spark
@pytest.mark.parametrize(
    ("version", "mode"), [(min(table()), "classic"), (max(table()), "classic"), (max(table()), "connect")]
)
def test_the_table_says_what_happens(version: str, mode: str, brokers: LocalBroker, tmp_path: Path) -> None:
    release = patch_releases()[version]
    newest = version == max(table())
    python = Path(sys.executable) if newest else python_with_spark(release)
    command = [str(python), "-m", "tests.spark.versions.program", brokers.bootstrap_servers, str(tmp_path), mode]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not newest:
        # That is a home of the newest.
        del environment["SPARK_HOME"]
        environment["SPARK_SUBMIT_OPTS"] = spark_home.JAVA
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        environment[name] = str(python)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=RUN_DEADLINE_S, check=False
    )
    found = re.search(r"^outcomes (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr[-4000:]
    outcomes = json.loads(found[1])
    assert outcomes.pop("version") == release
    assert outcomes == {row: MEANING[cell] for row, cell in table()[version].items()}


@pytest.mark.long  # a Spark Connect server of its own; tests/spark/test_secrets.py has one in `make test`
@pytest.mark.timeout(RUN_DEADLINE_S)
def test_over_connect_the_sentence_stands_at_the_beginning_of_what_spark_shows_and_at_its_end_where_java_is_left_out(
    brokers: LocalBroker, tmp_path: Path
) -> None:
    with Admin(brokers.bootstrap_servers) as admin:
        admin.create_topic("small", partitions=1, config={"max.message.bytes": "10"})
    command = [
        sys.executable,
        "-m",
        "tests.spark.versions.positions",
        brokers.bootstrap_servers,
        str(tmp_path),
        "connect",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"^positions (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr[-4000:]
    positions = json.loads(found[1])
    conditions = {name: position["condition"] for name, position in positions.items() if "no Java" not in name}
    assert conditions == {
        "option": "PYLOG_UNKNOWN_OPTION",
        "topic": "PYLOG_UNKNOWN_TOPIC",
        "plan": "PYLOG_OFFSET_OUT_OF_RANGE",
        "read task": "PYLOG_CORRUPT_BATCH",
        "write task": "PYLOG_DELIVERY",
        "stream plan": "PYLOG_INVALID_OPTION",
        "stream read task": "PYLOG_CORRUPT_BATCH",
        "stream write task": "PYLOG_DELIVERY",
    }, [position for position in positions.values() if position["condition"] is None]
    # Before it Spark's own words and one frame, whose path depends on where the package is installed.
    assert {name: position["first"] for name, position in positions.items() if position["first"] > 500} == {}
    assert {frame for position in positions.values() for frame in position["frames"]} == {"spark/raising.py"}
    for name, position in positions.items():
        if "no Java" in name:
            assert position["frames"] == ["spark/raising.py"], name
            assert re.search(r"PylogError: \[PYLOG_\w+\] [^\n]+\n SQLSTATE: \w+$", position["end"]), name


def test_the_table_has_a_row_for_each_scenario_and_each_row_is_run() -> None:
    for rows in table().values():
        assert list(rows) == list(SCENARIOS)
        assert set(rows.values()) <= MEANING.keys()


def test_the_declared_range_of_spark_is_that_of_the_table() -> None:
    declared = re.search(
        r'^spark = \["pyspark>=(\d+\.\d+),<(\d+)\.(\d+)"\]$', (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert declared is not None
    assert list(table()) == sorted(table())
    assert (declared[1], f"{declared[2]}.{int(declared[3]) - 1}") == (min(table()), max(table()))
