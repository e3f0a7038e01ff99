"""A packed environment (``--archives``) is all that a job on YARN needs of pylog, in client and in cluster mode: a real ResourceManager, two NodeManagers.

Long: some minutes, most of them the environments, which test_standalone.py shares, and Spark's six starts.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from tests.packaging.environment import run
from tests.packaging.yarn import Yarn, yarn

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.timeout(900)]
ROWS = 1000
NODES = 2
EXECUTORS = 2
JOB = Path(__file__).with_name("job.py")
PYTHON = "./environment/bin/python"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A YARN whose nodes have no Python of their own."""
    with yarn(tmp_path_factory.mktemp("yarn"), NODES) as running:
        yield running


def submit(cluster: Yarn, spark_folder: Path, packed: Path, mode: str, servers: str) -> str:
    """Run the job as a user would, in the folder of the packed environment; gives what spark-submit prints."""
    settings = {
        "spark.submit.deployMode": mode,
        "spark.executor.instances": EXECUTORS,
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        # Otherwise Spark packs its own jars, some 400 MB, for each job.
        "spark.yarn.jars": f"local:{spark_folder}/jars/*",
        "spark.yarn.stagingDir": f"file:{cluster.settings.parent}/staging",
        "spark.ui.enabled": "false",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    job = ("--archives", "environment.tar.gz#environment", JOB, servers, f"numbers-{mode}", ROWS)
    variables = {"PYSPARK_PYTHON": PYTHON, "SPARK_HOME": str(spark_folder), "HADOOP_CONF_DIR": str(cluster.settings)}
    variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return run(spark_folder / "bin" / "spark-submit", "--master", "yarn", *words, *job, cwd=packed, **variables)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_job_on_yarn_runs_with_the_python_of_an_archive(
    cluster: Yarn, spark_folder: Path, packed: Path, tmp_path: Path, mode: str
) -> None:
    with LocalBroker(tmp_path / "data") as broker:
        printed = submit(cluster, spark_folder, packed, mode, broker.bootstrap_servers)
    if mode == "cluster":
        # What the driver prints stays on its node.
        printed = "".join(each.read_text() for each in cluster.logs.glob("*/*/*/stdout"))
    answer = json.loads(re.findall(r"^ANSWER (.*)$", printed, re.MULTILINE)[0])
    assert answer["numbers"] == [ROWS, ROWS, sum(range(ROWS))]
    containers = {re.search(r"/(container_\w+)/environment/lib/", each) for each in answer["places"]}
    assert len({found[1] for found in containers if found}) == EXECUTORS, answer["places"]
