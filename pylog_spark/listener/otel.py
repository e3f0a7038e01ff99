"""The numbers of queries for OpenTelemetry, as observable instruments: whoever reads the provider's metrics asks for them, in any thread.

A name is that for Prometheus with dots, ``pylog.query.lag.records``; labels are attributes of the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Observation

from pylog_spark.listener.numbers import FAMILIES, Family, Numbers

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


def observe(numbers: Numbers, provider: MeterProvider) -> None:
    """Make an instrument for each kind of number."""
    meter = provider.get_meter("pylog_spark.listener")
    for family in FAMILIES:
        make = meter.create_observable_counter if family.is_counter else meter.create_observable_gauge
        name = family.name.replace("_", ".")
        make(name, callbacks=[_callback(numbers, family)], unit=family.unit, description=family.says)


def _callback(numbers: Numbers, family: Family) -> Callable[[CallbackOptions], Iterable[Observation]]:
    names = ("query", *family.labels)

    def observed(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, dict(zip(names, labels, strict=True))) for labels, value in numbers.samples(family)]

    return observed
