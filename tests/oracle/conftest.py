"""Apache Kafka and pylog side by side: one broker each for all cases, with equal settings."""

import os
from collections.abc import Iterator

import pytest

from pylog_spark.testing import LocalBroker
from tests.harness.kafka import SHARED_SETTINGS
from tests.oracle.compare import Brokers
from tests.oracle.guarded.brokers import Guarded, running


@pytest.fixture(scope="session")
def brokers(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Both brokers, running. With ``PYLOG_ORACLE_ALONE`` Apache Kafka is asked alone, to see whether cases say what it does."""
    if os.environ.get("PYLOG_ORACLE_ALONE"):
        yield Brokers(kafka, None).warmed_up()
        return
    ours = {name.replace(".", "_"): value for name, value in SHARED_SETTINGS.items()}
    with LocalBroker(tmp_path_factory.mktemp("pylog"), **ours) as pylog:
        yield Brokers(kafka, pylog.bootstrap_servers).warmed_up()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Both brokers with an authorizer and users, for `test_authorization`."""
    with running(tmp_path_factory.mktemp("guarded")) as both:
        yield both
