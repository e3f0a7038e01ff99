"""A real Prometheus scrapes a broker and a query's numbers: it takes the rules, and each query of the dashboard returns data. Costs 10 s, and nothing where
no Prometheus is installed (Debian's package ``prometheus``).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests.broker import test_monitoring as kept
from tests.harness.waiting import until

# what a scrape reads: test_http.py; rules and queries: test_monitoring.py
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None, reason="Prometheus is not installed"
    ),
]

RULES = kept.ROOT / "deploy" / "prometheus" / "pylog-rules.yml"
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: pylog
    static_configs: [{{targets: ["{broker}"]}}]
  - job_name: spark
    static_configs: [{{targets: ["{queries}"]}}]
"""
#: Range of rates instead of the dashboard's, which follows what is looked at.
RANGE = "30s"


class Prometheus:
    """A running one."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str, **given: str) -> Any:
        """The data of an answer; None while nothing answers."""
        try:
            with urllib.request.urlopen(
                f"http://{self._address}/api/v1/{path}?{urlencode(given)}", timeout=30
            ) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError):
            return None

    def results(self, query: str) -> list[Any]:
        """The series that a query returns now."""
        data = self.ask("query", query=query)
        return data["result"] if data else []


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, that scrapes a broker with records and a group, and the numbers of a query that is behind."""
    folder = tmp_path_factory.mktemp("prometheus")
    registry = CollectorRegistry()
    registry.register(kept.query_collector())
    server, thread = start_http_server(0, "127.0.0.1", registry=registry)
    # By default it looks into the archive once in 30 seconds.
    often = {"remote_log_manager_task_interval_ms": 200}
    archiving = LocalBroker(folder / "data", http=True, archive_url=str(folder / "archive"), **often)
    with archiving as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", 1, config={"remote.storage.enable": "true"})
        with Producer(broker.bootstrap_servers, "t") as producer:
            producer.send(b"value")
        admin.alter_group_offsets("g", {("t", 0): 1})
        places = {"broker": broker.http_url.partition("//")[2], "queries": f"127.0.0.1:{server.server_port}"}
        (folder / "prometheus.yml").write_text(CONFIG.format(rules=RULES, **places))
        words = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/db"]
        with (
            (folder / "log").open("w") as lines,
            subprocess.Popen([*words, "--web.listen-address=127.0.0.1:0"], stdout=lines, stderr=lines) as process,
        ):
            try:
                yield Prometheus(listening(folder / "log"))
            finally:
                process.terminate()
    server.shutdown()
    server.server_close()
    thread.join()


def listening(log: Path) -> str:
    """The address that Prometheus has taken."""
    found = until(lambda: re.search(r'msg="Listening on".* address=(\S+)', log.read_text()), log.read_text)
    return found[1]


def test_promtool_finds_no_fault_in_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(kept.ALERTS)} rules found" in done.stdout


def test_prometheus_scrapes_both_and_calculates_each_rule(prometheus: Prometheus) -> None:
    def health() -> dict[str, str]:
        data = prometheus.ask("targets") or {"activeTargets": []}
        return {each["labels"]["job"]: each["health"] for each in data["activeTargets"]}

    until(lambda: health() == {"pylog": "up", "spark": "up"}, lambda: str(health()))

    def rules() -> dict[str, str]:
        groups = (prometheus.ask("rules") or {"groups": []})["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    until(lambda: rules() == dict.fromkeys(kept.ALERTS, "ok"), lambda: str(rules()))


def test_each_query_of_the_dashboard_returns_data(prometheus: Prometheus) -> None:
    asked = {place: query.replace("[1m]", f"[{RANGE}]") for place, query in kept.QUERIES.items()}
    of_panels = {place: query for place, query in asked.items() if place not in kept.ALERTS}
    assert of_panels

    def empty() -> list[str]:
        return [place for place, query in of_panels.items() if not prometheus.results(query)]

    until(lambda: empty() == [], lambda: str(empty()))
