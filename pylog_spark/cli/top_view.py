"""The page of ``pylog top``: tables that fit a terminal. Pure.

Names of groups and racks may hold anything; what is no printable character is shown as an escape, and does nothing to the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pylog_spark.cli.activity import Sample
from pylog_spark.cli.common import plural
from pylog_spark.results.markup import printable

#: Lines that are no rows: the title, a note, three headings with a blank line before each, the keys.
_OTHER_LINES = 11
_KEYS = "q quits"


def page(sample: Sample | None, note: str | None, height: int) -> RenderableType:
    """Give the page of a sample.

    Parameters
    ----------
    sample : Sample or None
        What was seen last; None before the first look.
    note : str or None
        Why it is not newer.
    height : int
        Lines of the terminal.
    """
    lines: list[RenderableType] = [Text(_title(sample), style="bold")]
    left_out = [f"Left out: {each}." for each in (sample.left_out if sample else ())]
    notes = left_out if note is None else [note, *left_out]
    lines += [Text(printable(each), style="red") for each in notes]
    if sample is not None:
        lines += _tables(sample, max(height - _OTHER_LINES - len(lines), 3))
    return Group(*lines, Text(f"\n{_KEYS}", style="dim"))


def _title(sample: Sample | None) -> str:
    if sample is None:
        return "pylog top"
    rates = [each.records_per_s for each in sample.brokers if each.records_per_s is not None]
    at = datetime.fromtimestamp(sample.at_ms / 1000, timezone.utc).strftime("%H:%M:%S UTC")
    parts = [
        f"cluster {printable(sample.cluster_id or '-')}",
        plural(len(sample.brokers), "broker"),
        plural(len(sample.topics), "topic"),
        plural(len(sample.groups), "group"),
        f"{_rate(sum(rates) if rates else None)} records/s",
        at,
    ]
    return "  ".join(parts)


def _tables(sample: Sample, rows: int) -> list[RenderableType]:
    """Brokers get what they need up to a third, groups then up to a half of the rest, topics what is left."""
    of_brokers = min(len(sample.brokers), max(rows // 3, 1))
    left = rows - of_brokers
    of_groups = min(len(sample.groups), max(left // 2, left - len(sample.topics), 1))
    of_topics = max(left - of_groups, 1)
    brokers = [
        (
            f"{each.node_id}{' *' if each.is_controller else ''}",
            each.address,
            each.rack or "-",
            f"{each.leads:,}",
            f"{each.replicas:,}",
            _rate(each.records_per_s),
        )
        for each in sample.brokers
    ]
    topics = [
        (
            each.name,
            f"{each.partitions:,}",
            f"{each.under_replicated:,}",
            f"{each.offline:,}",
            f"{each.records:,}",
            _rate(each.records_per_s),
        )
        for each in sample.topics
    ]
    groups = [
        (
            each.group_id,
            each.type,
            each.state,
            f"{each.members:,}",
            "-" if each.lag is None else f"{each.lag:,}",
            _rate(each.records_per_s),
        )
        for each in sample.groups
    ]
    return [
        _table(("BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS", "RECORDS/S"), brokers, of_brokers, texts=3),
        _table(("TOPIC", "PARTITIONS", "NOT-IN-SYNC", "OFFLINE", "RECORDS", "RECORDS/S"), topics, of_topics, texts=1),
        _table(("GROUP", "TYPE", "STATE", "MEMBERS", "LAG", "RECORDS/S"), groups, of_groups, texts=3),
    ]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], room: int, *, texts: int) -> RenderableType:
    """A table of at most `room` lines; the first columns, as many as `texts`, are to the left."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="reverse", expand=True)
    for number, heading in enumerate(headings):
        is_text = number < texts
        table.add_column(
            Text(heading),
            justify="left" if is_text else "right",
            ratio=3 if number == 0 else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    shown = rows if len(rows) <= room else rows[: max(room - 1, 1)]
    for row in shown:
        table.add_row(*(Text(printable(cell)) for cell in row))
    if len(shown) < len(rows):
        table.add_row(Text(f"... and {len(rows) - len(shown):,} more", style="dim"))
    return Group(Text(""), table)


def _rate(records_per_s: float | None) -> str:
    return "-" if records_per_s is None else f"{records_per_s:,.0f}" if records_per_s >= 10 else f"{records_per_s:,.1f}"
