"""A real YARN on 127.0.0.1: a ResourceManager and NodeManagers, each a Java process of its own, of the release whose client pyspark brings."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from pylog_spark.testing.process import Child, free_port
from tests.harness.waiting import until
from tests.peers.jars import classpath
from tests.peers.tools import QUICK

_SERVER = "org.apache.hadoop.yarn.server"
#: Addresses of the ResourceManager that others must know before it runs.
_FACES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_NODE_MB = 2048
_START_S = 180.0


@dataclass(frozen=True)
class Yarn:
    """A running one.

    Attributes
    ----------
    settings : Path
        What ``HADOOP_CONF_DIR`` is for its clients.
    logs : Path
        The folder where nodes keep what containers print: ``*/APPLICATION/CONTAINER/stdout``.
    """

    settings: Path
    logs: Path


@contextmanager
def yarn(folder: Path, nodes: int) -> Iterator[Yarn]:
    """Run it in `folder`, and wait until all `nodes` are registered. Raises `ProcessError` when one of its processes ends."""
    common = _common()
    made = Yarn(folder / "client", folder / "logs")
    _write(made.settings, common)
    with ExitStack() as stack:
        manager = stack.enter_context(closing(Child("The ResourceManager")))
        manager.start(_java(made.settings, "resourcemanager.ResourceManager"), _bare(folder), log_output=True)
        every = [manager]
        for number in range(nodes):
            node = stack.enter_context(closing(Child(f"NodeManager {number}")))
            stack.callback(_end, node)
            own = {
                "yarn.nodemanager.local-dirs": folder / "local" / str(number),
                "yarn.nodemanager.log-dirs": made.logs / str(number),
            }
            _write(folder / f"node{number}", {**common, **own})
            node.start(_java(folder / f"node{number}", "nodemanager.NodeManager"), _bare(folder), log_output=True)
            every.append(node)

        def registered() -> bool:
            for each in every:
                each.process()
            return manager.logs().count("from NEW to RUNNING") == nodes

        until(registered, lambda: "\n".join(each.logs()[-3000:] for each in every), _START_S)
        yield made


def _end(node: Child) -> None:
    """Stop a node such that it ends its containers, which a killed one leaves."""
    if node.running:
        node.stop(signal.SIGTERM)


def _common() -> dict[str, object]:
    """What the manager, the nodes and clients agree on."""
    faces = {f"yarn.resourcemanager.{face}": f"127.0.0.1:{free_port()}" for face in _FACES}
    own = {f"yarn.nodemanager.{face}": "127.0.0.1:0" for face in ("address", "localizer.address", "webapp.address")}
    return {
        **faces,
        **own,
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.resource.memory-mb": _NODE_MB,
        "yarn.nodemanager.resource.cpu-vcores": 2,
        "yarn.scheduler.minimum-allocation-mb": 128,
        # What is measured of a container is not what this is about, and the disk of a machine that runs tests may be nearly full.
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": 100,
        # By default all drivers together have a tenth of the memory.
        "yarn.scheduler.capacity.maximum-am-resource-percent": 0.6,
    }


def _write(folder: Path, settings: Mapping[str, object]) -> None:
    """A folder of settings, as Hadoop's processes look for one on their class path."""
    folder.mkdir(parents=True)
    each = "".join(
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in settings.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>\n{each}</configuration>\n")


def _java(settings: Path, name: str) -> list[str]:
    return ["java", *QUICK, "-Xmx300m", "-cp", f"{settings}:{classpath('yarn')}", f"{_SERVER}.{name}"]


def _bare(home: Path) -> dict[str, str]:
    """An environment in which nothing tells containers of a Python or a Spark. They start ``JAVA_HOME``'s Java."""
    java = os.environ.get("JAVA_HOME") or Path(shutil.which("java") or "").resolve().parents[1]
    return {"PATH": f"{java}/bin:{os.defpath}", "HOME": str(home), "JAVA_HOME": str(java)}
