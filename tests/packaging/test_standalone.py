"""A packed environment (``spark.archives``) is all that the workers of a cluster need of pylog: a real Master and two Workers. Long: two minutes."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from pylog_spark.testing.process import Child
from tests.harness.waiting import until
from tests.packaging.environment import run

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ROWS = 1000
WORKERS = 2
JOB = Path(__file__).with_name("job.py")


@pytest.fixture(scope="module")
def master(spark_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Master with two Workers of one core each, which have no Python of their own."""
    place = tmp_path_factory.mktemp("workers")
    # What the test's environment says of Python and Spark is not for them.
    bare = {"PATH": os.defpath, "HOME": str(place), "SPARK_LOCAL_IP": "127.0.0.1"}
    bare |= {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    launch = [str(spark_folder / "bin" / "spark-class")]
    every = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        first = stack.enter_context(closing(Child("The Master")))
        first.start([*launch, "org.apache.spark.deploy.master.Master", *every], bare, log_output=True)
        found = until(lambda: re.search(r"Starting Spark master at (spark://\S+)", first.logs()), first.logs)
        for number in range(WORKERS):
            child = stack.enter_context(closing(Child(f"Worker {number}")))
            more = ["--cores", "1", "--memory", "1g", "--work-dir", str(place / str(number)), found[1]]
            child.start([*launch, "org.apache.spark.deploy.worker.Worker", *every, *more], bare, log_output=True)
        until(lambda: first.logs().count("Registering worker") == WORKERS, first.logs)
        yield found[1]


def test_a_job_runs_on_two_workers_with_the_python_of_an_archive(
    spark_folder: Path, packed: Path, master: str, tmp_path: Path
) -> None:
    settings = {
        "spark.archives": "environment.tar.gz#environment",
        "spark.cores.max": WORKERS,
        "spark.executor.cores": 1,
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    with LocalBroker(tmp_path / "data") as broker:
        job = (JOB, broker.bootstrap_servers, "numbers", ROWS)
        # Both halves of Spark start the Python of this name: the driver that of the folder, a worker that of the archive.
        variables = {"PYSPARK_PYTHON": "./environment/bin/python", "SPARK_HOME": str(spark_folder)}
        printed = run(spark_folder / "bin" / "spark-submit", "--master", master, *words, *job, cwd=packed, **variables)
    answer = json.loads(re.findall(r"^ANSWER (.*)$", printed, re.MULTILINE)[0])
    assert answer["numbers"] == [ROWS, ROWS, sum(range(ROWS))]
    executors = {re.search(r"/(app-[^/]+/\d+)/", each) for each in answer["places"]}
    assert len({found[1] for found in executors if found}) == WORKERS, answer["places"]
