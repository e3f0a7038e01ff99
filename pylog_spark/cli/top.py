"""``pylog top``: brokers, topics and groups in a terminal, with rates and lag, until q is pressed; or as JSON for programs.

It asks what any Kafka cluster answers, so it shows Apache Kafka, too. The terminal is given back as it was.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType

import click

from pylog_spark.cli.activity import Activity, Sample
from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    document,
    duration_ms,
    echo_json,
    echo_table,
    json_option,
    say,
)
from pylog_spark.client.errors import LogError
from pylog_spark.results.markup import printable

#: Most bytes of keys that are read at once.
_KEYS_MAX = 64
#: How long an answer is waited for unless --client-config says otherwise, so that q is not waited for longer.
_PATIENCE = ("default.api.timeout.ms", "10000")


@click.command(epilog="""\b
Examples:
  pylog top
  pylog top --every 5s --bootstrap-server kafka:9092
  pylog top --once --json | jq '.groups[] | select(.lag > 1000)'
""")  # fmt: skip
@click.option(
    "--every",
    "every_ms",
    type=duration_ms,
    default="2s",
    show_default=True,
    metavar="DURATION",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Look twice, so that there are rates, print that and end.")
@click.option("--internal", is_flag=True, help="Also show internal topics.")
@bootstrap_option
@client_config_option
@json_option
def top(
    every_ms: int,
    once: bool,
    internal: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """Show brokers, topics and groups, with rates and lag.

    Rates are counted by offsets. Topics are sorted by their rate, groups by their lag. With --json and without --once, each look is a line of JSON.
    """
    every_s = every_ms / 1000
    if not (once or as_json) and not sys.stdout.isatty():
        raise click.UsageError("Standard output is no terminal: say --once, or --json for a line at each look.")
    with admin_of(bootstrap, [_PATIENCE, *client_config]) as admin:
        activity = Activity(admin, internal=internal)
        if once:
            activity.look()
            time.sleep(every_s)
            _print(activity.look(), as_json)
        elif as_json:
            while True:
                say(json.dumps(activity.look(), default=document))
                sys.stdout.flush()
                time.sleep(every_s)
        else:
            _show(activity, every_s)


def _print(sample: Sample, as_json: bool) -> None:
    if as_json:
        echo_json(sample)
        return
    brokers = [(each.node_id, each.address, each.leads, each.replicas, each.records_per_s) for each in sample.brokers]
    topics = [
        (each.name, each.partitions, each.under_replicated, each.offline, each.records, each.records_per_s)
        for each in sample.topics
    ]
    groups = [
        (each.group_id, each.type, each.state, each.members, each.lag, each.records_per_s) for each in sample.groups
    ]
    tables: Iterable[tuple[list[str], list[tuple[object, ...]]]] = (
        (["BROKER", "ADDRESS", "LEADS", "REPLICAS", "RECORDS/S"], [*brokers]),
        (["TOPIC", "PARTITIONS", "NOT-IN-SYNC", "OFFLINE", "RECORDS", "RECORDS/S"], [*topics]),
        (["GROUP", "TYPE", "STATE", "MEMBERS", "LAG", "RECORDS/S"], [*groups]),
    )

    for number, (headings, rows) in enumerate(tables):
        if number:
            click.echo()
        echo_table(headings, [["-" if cell is None else printable(str(cell)) for cell in row] for row in rows])
    for each in sample.left_out:
        say(f"Left out: {each}.", err=True)


def _show(activity: Activity, every_s: float) -> None:
    """Show one page after the other, until q. Brokers that do not answer are asked again."""
    from rich.console import Console
    from rich.live import Live

    from pylog_spark.cli.top_view import page

    console = Console()
    sample: Sample | None = None
    with _Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            note = None
            try:
                sample = activity.look()
            except LogError as error:
                note = error.sentence
            live.update(page(sample, note, console.size.height), refresh=True)
            if b"q" in keys.wait(every_s).lower():
                return


class _Keys:
    """Single keys of a terminal, without Return; where standard input is none, nothing is ever pressed."""

    def __init__(self) -> None:
        self._given_back = ExitStack()
        self._is_terminal = sys.stdin.isatty()

    def __enter__(self) -> _Keys:
        if self._is_terminal:
            import termios
            import tty

            before = termios.tcgetattr(sys.stdin)
            self._given_back.callback(termios.tcsetattr, sys.stdin, termios.TCSADRAIN, before)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._given_back.close()

    def wait(self, timeout_s: float) -> bytes:
        """Give the keys that are pressed; none where that does not happen in time."""
        if not self._is_terminal:
            time.sleep(timeout_s)
            return b""
        is_pressed = bool(select.select([sys.stdin], [], [], timeout_s)[0])
        # Not by sys.stdin, which would keep a second key where no select sees it.
        return os.read(sys.stdin.fileno(), _KEYS_MAX) if is_pressed else b""
