"""The alerts and the dashboard under `deploy/`: their queries are PromQL, and each asks for numbers that a broker has, or a listener of Spark's.

What they give is calculated where there is a Prometheus (`test_prometheus`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from pylog_spark.client import Admin, Producer
from pylog_spark.listener.numbers import Measured
from pylog_spark.listener.numbers import Numbers as QueryNumbers
from pylog_spark.listener.progress import BatchProgress
from pylog_spark.listener.prometheus import QueryCollector
from pylog_spark.offsets import TopicPartition
from pylog_spark.testing import LocalBroker
from tests.broker import test_http
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy" / "prometheus" / "pylog-rules.yml").read_text())
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "pylog.json").read_text())
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
#: What Prometheus itself adds to each number, and has of each broker.
OF_PROMETHEUS = {"job", "instance"}
UP = "up"
Numbers = dict[str, list[dict[str, str]]]


def queries() -> dict[str, str]:
    """All queries by where they are, as Prometheus gets them."""
    asked = {name: rule["expr"] for name, rule in ALERTS.items()}
    for title, panel in PANELS.items():
        for target in panel["targets"]:
            asked[f"{title} {target['refId']}"] = target["expr"].replace("$job", ".*").replace("$__rate_interval", "1m")
    return asked


QUERIES = queries()


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    """The labels of all numbers, by name, of a broker that has been written to, archives, and has a group."""
    folder = tmp_path_factory.mktemp("broker")
    # By default it looks into the archive once in 30 seconds.
    often = {"remote_log_manager_task_interval_ms": 200}
    archiving = LocalBroker(folder / "data", http=True, archive_url=str(folder / "archive"), **often)
    with archiving as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t", partitions=1, config={"remote.storage.enable": "true"})
        with Producer(broker.bootstrap_servers, "t") as producer:
            producer.send(b"value")
        admin.alter_group_offsets("g", {("t", 0): 1})
        known = ("kafka_server_brokertopicmetrics_remotelogsizebytes", (("topic", "t"),))
        until(lambda: known in test_http.numbers(broker), "it has looked into the archive")
        shown = [(name, dict(labels)) for name, labels in test_http.numbers(broker)]
    found: Numbers = {UP: [{}]}
    for name, labels in [*shown, *of_a_query()]:
        found.setdefault(name, []).append(labels)
    return found


def of_a_query() -> Iterator[tuple[str, dict[str, str]]]:
    """The names and labels of a query's numbers."""
    for family in query_collector().collect():
        for sample in family.samples:
            yield sample.name, sample.labels


def query_collector() -> QueryCollector:
    """The numbers of a query that is behind."""
    queries = QueryNumbers()
    source = {"numInputRows": 1, "endOffset": {"t": {"0": 1}}, "latestOffset": {"t": {"0": 2}}}
    batch = {"id": "id", "runId": "run", "batchId": 0, "durationMs": {"triggerExecution": 1}, "sources": [source]}
    queries.add(BatchProgress.of_json(json.dumps(batch)))
    queries.measure("id", {(0, TopicPartition("t", 0)): Measured(2, 0.0, 1)})
    return QueryCollector(queries)


def nodes(query: str) -> list[Any]:
    """All parts of the query."""
    parts: list[Any] = []
    promql.walk(promql.parse(query), pre_visit=parts.append)
    return parts


def selected(selector: promql.VectorSelector, numbers: Numbers) -> list[dict[str, str]]:
    """The series that the selector finds, without what Prometheus adds."""
    wanted = {each.name: each for each in selector.matchers.matchers if each.name not in OF_PROMETHEUS}
    assert all(each.op == promql.MatchOp.Equal for each in wanted.values())
    series = numbers.get(selector.name, [])
    return [labels for labels in series if all(labels.get(name) == each.value for name, each in wanted.items())]


@pytest.mark.parametrize("place", QUERIES)
def test_a_query_asks_for_numbers_that_there_are(place: str, numbers: Numbers) -> None:
    parts = nodes(QUERIES[place])
    selectors = [part for part in parts if isinstance(part, promql.VectorSelector)]
    labels = set(OF_PROMETHEUS)
    for selector in selectors:
        series = selected(selector, numbers)
        assert series, f"nobody has {selector}"
        labels |= set(series[0])
    assert selectors
    for part in parts:
        if isinstance(part, promql.AggregateExpr) and part.modifier is not None:
            assert set(part.modifier.labels) <= labels


@pytest.mark.parametrize("place", QUERIES)
def test_rates_are_of_counters_and_slopes_of_gauges(place: str, numbers: Numbers) -> None:
    for name, of in calls(QUERIES[place]):
        is_counter = re.search(r"_(total|count|bucket|sum)$", of) is not None
        if name in ("rate", "increase"):
            assert is_counter, f"{name} of the gauge {of}"
        if name == "deriv":
            assert not is_counter, f"deriv of the counter {of}"


def calls(query: str) -> Iterator[tuple[str, str]]:
    """The functions over ranges, each with the name of what it is over."""
    for part in nodes(query):
        if isinstance(part, promql.Call):
            for argument in part.args:
                if isinstance(argument, promql.MatrixSelector):
                    yield part.func.name, argument.vector_selector.name


def test_the_page_says_of_each_alert_why_and_of_no_other() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    assert re.findall(r"^\| `(Pylog\w+)` \|", page, re.MULTILINE) == list(ALERTS)


def test_each_alert_has_a_severity_and_names_what_it_found() -> None:
    for rule in ALERTS.values():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert re.search(r"\{\{ \$(value|labels\.\w+) \}\}", rule["annotations"]["summary"])


def test_panels_do_not_overlap_and_have_a_sentence_and_a_source_each() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
    assert all(panel["description"].endswith(".") for panel in PANELS.values())
    assert {panel["datasource"]["uid"] for panel in PANELS.values()} == {"${datasource}"}
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
