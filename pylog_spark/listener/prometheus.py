"""The numbers of queries for Prometheus, as a collector of prometheus-client's. Any thread may collect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from pylog_spark.listener.numbers import FAMILIES, Family, Numbers

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class QueryCollector(Collector):
    """Gives the numbers of queries to a registry."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def describe(self) -> Iterator[Metric]:
        """The kinds of numbers, so that a registry need not collect to know them."""
        yield from map(_empty, FAMILIES)

    def collect(self) -> Iterator[Metric]:
        """All numbers now."""
        for family, samples in self._numbers.families():
            metric = _empty(family)
            for labels, value in samples:
                metric.add_metric(labels, value)
            yield metric


def _empty(family: Family) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
    return kind(family.name, family.says, labels=("query", *family.labels))
