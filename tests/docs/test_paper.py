"""The page about the Kafka paper names files and tests that are there, and the paper's experiment runs."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from benchmarks.brokers import PylogBroker
from benchmarks.load import consume, create_topic, fill
from benchmarks.paper.backlog import forget, read_from_disk
from benchmarks.paper.figures import draw

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper.md"


def rows() -> Iterator[list[str]]:
    """The cells of the rows of the page's tables of three columns, without their heads."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and cells[2] != "shown by":
            yield cells


def test_every_row_names_files_that_are_there_and_tests_that_are_in_them() -> None:
    checked = 0
    for said, place, shown in rows():
        files = re.findall(r"`((?:pylog_spark|broker_native|examples|benchmarks)[\w/.]*)`", place)
        assert files or place.startswith("Spark"), said
        assert [file for file in files if not (ROOT / file).exists()] == []
        tests = re.findall(r"`([\w/.]+\.(?:py|rs))`: ((?:`\w+`(?:, )?)+)", shown)
        assert tests, said
        for file, names in tests:
            code = (ROOT / file).read_text()
            for name in re.findall(r"\w+", names):
                assert re.search(rf"\b(?:def|fn) {name}\(", code), f"{file} has no {name}"
                checked += 1
    assert checked > 25


def test_the_figures_of_the_page_are_drawn_from_the_kept_results(tmp_path: Path) -> None:
    draw(ROOT / "benchmarks" / "paper" / "results.json", tmp_path)
    for picture in sorted(tmp_path.glob("*.svg")):
        assert picture.read_text() == (ROOT / "docs" / picture.name).read_text()
        assert f"]({picture.name})" in PAGE.read_text()
    assert len(list(tmp_path.glob("*.svg"))) == 2


@pytest.mark.long
@pytest.mark.peers
@pytest.mark.parametrize("systems", [["pylog"], ["kafka", "activemq"]])
def test_the_experiment_runs(systems: list[str], tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks.paper",
        "--rounds",
        "1",
        "--records",
        "2000",
        "--results",
        str(results),
    ]
    named = [word for system in systems for word in ("--system", system)]
    environment = {**os.environ, "BENCH_DIR": str(tmp_path / "bench")}
    done = subprocess.run(
        [*command, *named], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = json.loads(results.read_text())["lines"]
    assert {(line["system"], line["role"]) for line in lines} == set(product(systems, ("producer", "consumer")))
    assert all(speed > 0 for line in lines for speed in line["runs"])
    fifty = [line["mean_batches"][0] for line in lines if line["batch"] == 50 and line["role"] == "producer"]
    assert all(40 < mean <= 50 for mean in fifty)
    assert len(fifty) == 2
    assert sorted(file.name for file in tmp_path.glob("*.svg")) == ["paper-consumer.svg", "paper-producer.svg"]


@pytest.mark.slow
def test_a_restart_of_the_broker_leaves_the_page_cache_warm() -> None:
    folder = ROOT / ".cache" / "bench"  # a temporary folder may lie in memory
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        broker = PylogBroker(Path(place))
        broker.start()
        try:
            create_topic(broker.bootstrap_servers, "backlog", 1)
            fill(broker.bootstrap_servers, "backlog", 5_000, b"x" * 10_000, 1)
            broker.stop()
            broker.start()
            consume(broker.bootstrap_servers, "backlog", 5_000)
            assert read_from_disk(broker.pid) < 1_000_000
            forget(sorted(broker.data_dir.glob("backlog-0/*.log")))
            consume(broker.bootstrap_servers, "backlog", 5_000)
            assert read_from_disk(broker.pid) > 45_000_000, "or this test would see no read at all"
        finally:
            broker.stop()
