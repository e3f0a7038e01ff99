"""What every test may use: a running broker, clients of it, and this Python for Spark's workers."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import spark_home
from tests.harness import last_words, order, runs, seconds
from tests.harness.kafka import kafka, spark_kafka
from tests.harness.last_words import pytest_runtest_logstart, pytest_runtest_makereport
from tests.harness.secured import secured
from tests.harness.zookeeper import worker_zookeeper

__all__ = [
    "kafka",
    "pytest_runtest_logstart",
    "pytest_runtest_makereport",
    "secured",
    "spark_kafka",
    "worker_zookeeper",
]

# Before the first session: Python workers have what the environment of Spark's Java process had at its start.
os.environ["PYLOG_TEST_RACK"] = "b"
# Those that tests name in the options of queries.
os.environ["PYLOG_ALLOWED_TOKEN_FUNCTIONS"] = ",".join(
    (
        "tests.harness.secured:give_token",
        *(f"tests.spark.secrets_logins:{name}" for name in ("good_token", "refused_in_tasks", "failing_in_tasks")),
    )
)
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

# The processes that tests start, some thousands, are to compile what they import once, and not each of them anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

spark_home.prepare()

# Hypothesis gives a drawn case 200 ms on the clock, which a busy machine does not keep; and what it draws is to be the same each time, but
# for long runs.
settings.register_profile(
    "pylog", deadline=None, derandomize=not runs.LONG, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pylog")

# A shell that starts a test run in the background lets it ignore SIGINT, and every child would inherit that; the children
# that tests interrupt are to be as a terminal would start them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_topic_numbers = count()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """See `seconds`; what dies leaves a line: `last_words`."""
    last_words.pytest_configure(config)
    if (watch := seconds.stopwatch()) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(watch)


def pytest_report_header() -> str:
    """What repeats this run."""
    return f"seed {runs.SEED} (PYLOG_TEST_SEED={runs.SEED} draws the same again)"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To import all files of tests takes each process seconds."""
    left_out = collection_path.suffix == ".py" and order.is_left_out(collection_path, config.getoption("markexpr"))
    # None lets others decide.
    return left_out or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One part of a long run; and in a run of several processes, files are handed out by the servers that they need."""
    order.keep_part(config, items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        order.sort(items)


def pytest_collection_finish() -> None:
    """Modules and tests stay as long as the process: no later collection of garbage is to go through them, of which there is one a file
    (a quarter of a second of the processor's time, with all tests)."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """See `order`."""
    return order.ByServers(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="module", autouse=True)
def _no_client_outlives_its_file() -> Iterator[None]:
    """End the clients that hang in a cycle of references: they would knock for minutes at the ports of brokers that are gone, where
    something else may listen by then.
    """
    yield
    gc.collect()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of one broker shared by the tests of a session that need no special one.

    ``PYLOG_TEST_SERVERS`` names a running broker instead, for example Apache Kafka, to see what it does with the same test;
    ``PYLOG_TEST_CLUSTER=1`` takes a cluster of three.
    """
    given = os.environ.get("PYLOG_TEST_SERVERS")
    if given:
        yield given
        return
    from tests.harness.brokers import pylog

    with pylog(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="module")
def spark() -> Any:
    """A session with two cores, small pauses between triggers and, where they can be had, the jars of Spark's Kafka connector: the
    one of the process, or the next when a file before this one has ended it. It ends with the process."""
    from pylog_spark.testing import spark_session

    settings = {
        "spark.sql.streaming.pollingDelay": "20ms",
        "spark.task.maxFailures": "1",
        "spark.sql.shuffle.partitions": "1",
    }
    session = spark_session(config={**settings, **spark_home.OUT_OF_THE_WAY, **spark_home.connector()})
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture
def pushdown(spark: Any) -> Iterator[None]:
    """Spark's own setting, without which it refuses a reader that takes conditions."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def pytest_sessionfinish() -> None:
    """Stop Spark in peace, if there is any."""
    if (sql := sys.modules.get("pyspark.sql")) is not None and (
        session := sql.SparkSession.getActiveSession()
    ) is not None:
        session.stop()


@pytest.fixture
def new_topic() -> str:
    """A topic name that no other test uses; the topic itself does not exist yet."""
    return f"topic-{os.getpid()}-{next(_topic_numbers)}"
