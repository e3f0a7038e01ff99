"""Fixtures that pytest finds by itself where pylog is installed: the page's example, and the rest, in a folder without a conftest.

It starts pytest twice, Spark once and a cluster once: about 20 s.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

# the fixtures themselves: tests/cli and tests/cluster use them
pytestmark = [pytest.mark.long, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "broker.md"
MORE = """
from pylog_spark.client import Admin


def described(servers, name):
    with Admin(servers) as admin:
        return admin.topic(name)


seen = []


@pytest.mark.parametrize("number", range(2))
def test_a_topic_is_of_one_test(number, pylog_broker, pylog_topic):
    assert len(described(pylog_broker.bootstrap_servers, pylog_topic).partitions) == 1
    seen.append((pylog_broker, pylog_topic))
    assert len({topic for _, topic in seen}) == len(seen)
    assert len({id(broker) for broker, _ in seen}) == 1


def test_a_cluster_has_three_brokers(pylog_cluster):
    with Admin(pylog_cluster.bootstrap_servers) as admin:
        assert len(admin.cluster().brokers) == 3


def test_a_session_that_runs_is_taken(pylog_spark_session):
    from pyspark.sql import SparkSession

    assert SparkSession.getActiveSession() is pylog_spark_session
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)


def test_pytest_finds_the_fixtures_by_itself_and_the_pages_example_passes(tmp_path: Path) -> None:
    (example,) = (
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "pylog_topic" in block
    )
    (tmp_path / "test_job.py").write_text(example + MORE)
    done = run_pytest(tmp_path)
    assert re.search(r"^5 passed", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_without_the_plugin_there_are_no_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_none.py").write_text("def test_of_a_broker(pylog_broker):\n    pass\n")
    done = run_pytest(tmp_path, "-p", "no:pylog")
    assert "fixture 'pylog_broker' not found" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
