"""``pylog audit``: name the windows in which the log does not have what the producers say. Exit code 1 when there are some."""

from datetime import datetime, timezone

import click

from pylog_spark.audit.comparing import Report
from pylog_spark.audit.document import DELAY_MS, WINDOW_MS
from pylog_spark.cli.common import (
    bootstrap_option,
    client_config_option,
    client_settings,
    duration_ms,
    echo_json,
    echo_table,
    json_option,
    plural,
    say,
)

_EPILOG = """\b
Examples:
  pylog audit audit
  pylog audit audit --topic orders --topic payments
  pylog audit audit --window 1h --json
"""


@click.command(epilog=_EPILOG)
@click.argument("audit_topic")
@click.option("--topic", "-t", "topics", multiple=True, metavar="TOPIC",
              help="Look at this topic only. Repeatable.  [default: all that AUDIT_TOPIC names]")  # fmt: skip
@click.option("--window", type=duration_ms, metavar="DURATION", default=f"{WINDOW_MS // 60_000}m", show_default=True,
              help="Length of the windows: that of the producers, or a multiple of it.")  # fmt: skip
@click.option("--delay", type=duration_ms, metavar="DURATION", default=f"{DELAY_MS // 60_000}m", show_default=True,
              help="Leave windows out that ended less than so long ago.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Compare every window, also those that have not ended.")
@json_option
@bootstrap_option
@client_config_option
def audit(
    audit_topic: str,
    topics: tuple[str, ...],
    window: int,
    delay: int,
    everything: bool,
    as_json: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Compare what producers say in AUDIT_TOPIC that they have written with what the log has.

    Prints each window whose counts differ, and ends with exit code 1 when there is one. A log with fewer records than the
    producers say has lost some; one with more has some twice, or from a producer that does not count.
    """
    from pylog_spark.audit.checking import check

    report = check(
        bootstrap,
        audit_topic,
        topics,
        window_ms=window,
        delay_ms=None if everything else delay,
        config=client_settings(bootstrap, client_config),
    )
    if as_json:
        echo_json(report)
    elif report.differences:
        rows = [
            (each.topic, _time(each.start_ms), _time(each.start_ms + window), each.producers, each.log)
            for each in report.differences
        ]
        echo_table(["TOPIC", "FROM", "TO", "PRODUCERS", "LOG"], rows)
    _summary(report)
    if report.differences:
        raise click.exceptions.Exit(1)


def _summary(report: Report) -> None:
    for topic, begin_ms in sorted(report.begins_ms.items()):
        say(f"Records of {topic} were deleted: its windows are compared from {_time(begin_ms)} on.", err=True)
    compared = f"{plural(report.windows, 'window')} with {plural(report.records, 'record')}"
    until = "" if report.ends_ms is None else f" up to {_time(report.ends_ms)}"
    say(f"Compared {compared}{until}: {len(report.differences) or 'none'} of them differ.", err=True)


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1_000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
