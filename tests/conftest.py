"""What every test may use: a running broker, clients of it, and this Python for Spark's workers."""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count

import pytest

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

# A shell that starts a test run in the background lets it ignore SIGINT, and every child would inherit that; the children
# that tests interrupt are to be as a terminal would start them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_topic_numbers = count()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of one broker shared by the tests of a session that need no special one.

    ``PYLOG_TEST_SERVERS`` names a running broker instead, for example Apache Kafka, to see what it does with the same test.
    """
    given = os.environ.get("PYLOG_TEST_SERVERS")
    if given:
        yield given
        return
    from pylog_spark.testing import LocalBroker

    with LocalBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def new_topic() -> str:
    """A topic name that no other test uses; the topic itself does not exist yet."""
    return f"topic-{os.getpid()}-{next(_topic_numbers)}"
