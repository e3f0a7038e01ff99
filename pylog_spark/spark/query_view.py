"""What is shown of a running query: rows a second, lag by topic, where the time of a batch goes. Pure; pyspark is not imported here.

At most `ROWS_MAX` topics are shown (`pylog_spark.results.markup`); names are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.listener.progress import BatchProgress
from pylog_spark.results.display import as_rich
from pylog_spark.results.markup import Shown, as_html

if TYPE_CHECKING:
    from rich.console import Group

#: How many of the last batches the line of rates has.
RATES_MAX = 60

_BARS = "▁▂▃▄▅▆▇█"
#: Spark's name of a whole batch among its parts.
_WHOLE = "triggerExecution"


@dataclass(frozen=True)
class QueryView:
    """A query as it is now.

    Attributes
    ----------
    name : str
        Its name; its id when it has none.
    state : str
        ``running``, ``stopped``, or why it failed.
    is_active : bool
        Whether it runs.
    batch : BatchProgress or None
        Its last batch; None before the first one is finished.
    rates : sequence of float
        Rows a second of the last batches, the newest one last.
    """

    name: str
    state: str
    is_active: bool
    batch: BatchProgress | None
    rates: Sequence[float] = ()

    def _repr_html_(self) -> str:
        return "".join(map(as_html, self.tables()))

    def __rich__(self) -> Group:
        from rich.console import Group

        return Group(*map(as_rich, self.tables()))

    def __str__(self) -> str:
        """One line."""
        if self.batch is None:
            return f"query {self.name}: {self.state}, no batch is finished yet"
        rows = sum(source.rows for source in self.batch.sources)
        return (
            f"query {self.name}: {self.state}, batch {self.batch.batch_id}: {rows:,} rows, "
            f"{_rate(self.batch.processed_rate)} rows/s, lag {sum(lag for _, _, lag in self.lags()):,}"
        )

    def lags(self) -> list[tuple[str, int, int]]:
        """Give topics with the number of their partitions that are read, and how many records the query is behind; the most first."""
        partitions: dict[str, int] = {}
        behind: dict[str, int] = {}
        for source in self.batch.sources if self.batch is not None else ():
            lag = source.lag()
            for partition in source.end.offsets if source.end is not None else ():
                partitions[partition.topic] = partitions.get(partition.topic, 0) + 1
                behind[partition.topic] = behind.get(partition.topic, 0) + lag.get(partition, 0)
        rows = [(topic, count, behind[topic]) for topic, count in partitions.items()]
        return sorted(rows, key=lambda row: (-row[2], row[0]))

    def tables(self) -> list[Shown]:
        """Give what is shown, one table below the other."""
        title = f"Query {self.name}: {self.state}"
        if self.batch is None:
            return [Shown(f"{title}, no batch is finished yet")]
        batch = self.batch
        numbers = [
            ("batch", f"{batch.batch_id:,}"),
            ("rows of it", f"{sum(source.rows for source in batch.sources):,}"),
            ("rows/s that came", _rate(batch.input_rate)),
            ("rows/s processed", _rate(batch.processed_rate)),
        ]
        if len(self.rates) > 1:
            numbers.append((f"the last {len(self.rates)} batches", _line(self.rates)))
        tables = [Shown(title, ("", ""), numbers)]
        if lags := self.lags():
            tables.append(Shown("Lag in records", ("topic", "partitions", "lag"), lags))
        whole = batch.parts_ms.get(_WHOLE, 0)
        parts = [(name, took, _bar(took, whole)) for name, took in batch.parts_ms.items() if name != _WHOLE]
        if parts:
            slowest = sorted(parts, key=lambda part: -part[1])
            tables.append(Shown(f"The {whole:,} ms of the batch", ("part", "ms", ""), slowest))
        if batch.state_rows:
            tables.append(Shown("State", ("operator", "rows"), list(batch.state_rows.items())))
        return tables


def _rate(rows_per_s: float | None) -> str:
    return "-" if rows_per_s is None else f"{rows_per_s:,.1f}"


def _bar(part: int, whole: int) -> str:
    return "█" * round(20 * min(part / whole, 1)) if whole > 0 else ""


def _line(rates: Sequence[float]) -> str:
    highest = max(rates) or 1.0
    return "".join(_BARS[min(int(len(_BARS) * rate / highest), len(_BARS) - 1)] for rate in rates)
