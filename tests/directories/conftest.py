"""One broker of each kind is filled for all files of this folder; its directory is kept as it was in use, after kill -9 and after a clean stop."""

import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.testing import LocalBroker
from tests.directories.support import Logs, fill, see
from tests.harness.brokers import BOTH
from tests.harness.kafka import SPARK_KAFKA_SETTINGS
from tests.harness.runs import mostly_long

#: What both kinds of brokers are set to.
_SETTINGS = {"log.cleaner.backoff.ms": "50", "log.retention.ms": "-1", "transaction.state.log.num.partitions": "4"}


def _broker(kind: str, folder: Path) -> tuple[Any, Path]:
    """A broker that does not run yet, and its data directory."""
    if kind == "pylog":
        return LocalBroker(folder, **{name.replace(".", "_"): text for name, text in _SETTINGS.items()}), folder
    from tests.peers.kafka import KafkaBroker

    broker = KafkaBroker(folder, {**SPARK_KAFKA_SETTINGS, **_SETTINGS}, heap="512m", quick=True)
    return broker, broker.data_dir


def _copied(data: Path, to: Path) -> Path:
    """A copy of a directory that may be in use: what is renamed or removed meanwhile is looked for again."""
    for _ in range(20):
        with suppress(shutil.Error, FileNotFoundError):
            return Path(shutil.copytree(data, to, ignore=shutil.ignore_patterns("*.deleted", "*.cleaned", "*-delete")))
        shutil.rmtree(to)
    raise AssertionError(f"no copy of {data} was whole")


def _states(kind: str, folder: Path) -> dict[str, Logs]:
    """`Logs` of a broker by the state of its directory: ``running``, ``killed``, ``stopped``."""
    broker, data = _broker(kind, folder / "broker")
    with ExitStack() as ended:
        broker.start()
        ended.callback(broker.close if kind == "pylog" else broker.stop)
        partitions = fill(broker.bootstrap_servers)
        seen = see(broker.bootstrap_servers, partitions)
        found = {"running": Logs(_copied(data, folder / "running"), seen)}
        broker.kill()
        found["killed"] = Logs(_copied(data, folder / "killed"), seen)
        broker.start()
        (broker.terminate if kind == "pylog" else broker.stop)()
        found["stopped"] = Logs(_copied(data, folder / "stopped"), seen)
    return found


@pytest.fixture(scope="session", params=BOTH)
def kinds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Logs]:
    """The directories of a broker of each kind, see `_states`."""
    if request.param == "pylog":
        found: dict[str, Logs] = request.getfixturevalue("ours")
        return found
    return _states(request.param, tmp_path_factory.mktemp("directories"))


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Logs]:
    """The directories of a broker of pylog alone, for what does not depend on who wrote them."""
    return _states("pylog", tmp_path_factory.mktemp("directories"))


@pytest.fixture(params=mostly_long(["running", "killed", "stopped"], "killed", "stopped"))
def logs(request: pytest.FixtureRequest, kinds: dict[str, Logs]) -> Logs:
    """The directory of each kind in each state."""
    return kinds[request.param]
