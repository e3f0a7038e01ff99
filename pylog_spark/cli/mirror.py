"""``pylog mirror``, ``pylog mirror lag`` and ``pylog mirror promote``."""

import re
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pylog_spark.cli.command_config import settings_of_file
from pylog_spark.cli.common import (
    SettingOption,
    admin_of,
    bootstrap_option,
    client_config_option,
    document,
    echo_json,
    echo_table,
    json_option,
    plural,
    say,
)

if TYPE_CHECKING:
    from pylog_spark.client.admin import Admin

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: How long a mirror that is stopped may take for its last step.
_LAST_STEP_S = 5.0


def _pattern(_ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{text!r} is no regular expression: {error}.", param=parameter) from None
    return text


def _clusters(command: _Command) -> _Command:
    """Add the options that name both clusters and the topics."""
    options = [
        click.option("--from", "source", metavar="HOST:PORT", help="A broker of the cluster that is copied."),
        click.option("--to", "target", metavar="HOST:PORT", help="A broker of the cluster that gets the copy."),
        click.option(
            "--from-config",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="A Java properties file with settings of the client for --from, such as security.protocol.",
        ),
        click.option(
            "--to-config",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="The same for --to.",
        ),
        click.option(
            "--topics",
            default=".*",
            show_default=True,
            metavar="REGEX",
            callback=_pattern,
            help="Which topics: their whole names match.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _client(servers: str | None, file: str | None, option: str) -> dict[str, str]:
    given = settings_of_file(file) if file else {}
    settings = {"client.id": "pylog-mirror", **given}
    if servers:
        settings["bootstrap.servers"] = servers
    if not settings.get("bootstrap.servers"):
        raise click.UsageError(f"Which cluster? Give {option} HOST:PORT.")
    return settings


@click.group(
    invoke_without_command=True,
    epilog="Example: pylog mirror --from kafka:9092 --to 127.0.0.1:9092 --topics 'orders.*'",
)
@_clusters
@click.option(
    "--config", "-c", "settings", cls=SettingOption, owners=["topic"],
    help="A setting of the copies that is to be other than in the source. Repeatable.",
)  # fmt: skip
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(1),
    help="Replicas of the copies; as in the source, or as many as there are brokers, when left out.",
)
@click.option(
    "--groups", default=".*", show_default=True, metavar="REGEX", callback=_pattern,
    help="The consumer groups whose offsets are kept in the target: their whole names match.",
)  # fmt: skip
@click.option("--max-bytes-per-second", type=click.IntRange(1), help="Copy no more than this in a second.")
@click.option(
    "--interval", type=click.FloatRange(0.1), default=10.0, show_default=True, metavar="SECONDS",
    help="How often to print how far it is.",
)  # fmt: skip
@click.pass_context
def mirror(
    ctx: click.Context,
    source: str | None,
    target: str | None,
    from_config: str | None,
    to_config: str | None,
    topics: str,
    settings: list[tuple[str, str]],
    replication_factor: int | None,
    groups: str,
    max_bytes_per_second: int | None,
    interval: float,
) -> None:
    """Keep topics of one cluster in another, Apache Kafka or pylog, until Ctrl-C.

    In a pylog the copies have the same bytes and offsets, and only the mirror writes to them, until 'pylog mirror promote'. In Apache Kafka they have the
    same records, each once, at offsets of their own. It can be killed and started again at any time.
    """
    if ctx.invoked_subcommand is not None:
        return
    from pylog_spark.cli.signals import StopSignal
    from pylog_spark.mirror.copying import MirrorOptions, TopicMirror, stopped

    options = MirrorOptions(topics, groups, dict(settings), replication_factor, max_bytes_per_second, interval)
    from_settings, to_settings = _client(source, from_config, "--from"), _client(target, to_config, "--to")
    stop, stopping = StopSignal(), threading.Event()
    running = TopicMirror(from_settings, to_settings, options, _say)
    try:
        running.begin()
    except BaseException:
        running.close()
        raise
    partitions = plural(len(running.progress()), "partition")
    _say(f"pylog mirror ready: {plural(len(running.topics), 'topic')}, {partitions} of cluster {running.source_id}")
    failures: list[Exception] = []
    thread = threading.Thread(target=_run, args=(running, stopping, stop, failures), name="pylog-mirror")
    thread.start()
    stop.wait()
    stopped(running, thread, stopping, _LAST_STEP_S)
    if failures:
        raise failures[0]
    _say("stopped")


def _run(running: Any, stopping: threading.Event, stop: Any, failures: list[Exception]) -> None:
    try:
        running.run(stopping)
    except Exception as error:  # noqa: BLE001  The main thread shows it.
        if not stopping.is_set():
            failures.append(error)
        stop.come()


def _say(line: str) -> None:
    say(line)
    sys.stdout.flush()


@mirror.command()
@_clusters
@json_option
def lag(
    source: str | None,
    target: str | None,
    from_config: str | None,
    to_config: str | None,
    topics: str,
    as_json: bool,
) -> None:
    """Show how far the copies are behind, whether a mirror runs or not."""
    from pylog_spark.mirror.lag import lags

    to_settings = _client(target, to_config, "--to")
    with _admin(_client(source, from_config, "--from")) as from_admin, _admin(to_settings) as to_admin:
        found = lags(from_admin, to_admin, to_settings, topics)
    if as_json:
        echo_json([{**document(each), "lag": each.lag} for each in found])
    elif found:
        shown = [
            (each.topic, each.partition, *("-" if value is None else value for value in
             (each.source_end_offset, each.end_offset, each.lag)))
            for each in found
        ]  # fmt: skip
        echo_table(["TOPIC", "PARTITION", "SOURCE", "COPY", "LAG"], shown)
    else:
        say("The target has no mirrors of that source.", err=True)


def _admin(settings: dict[str, str]) -> "Admin":
    from pylog_spark.client.admin import Admin

    return Admin(settings["bootstrap.servers"], settings)


@mirror.command()
@click.argument("topic")
@bootstrap_option
@client_config_option
def promote(topic: str, bootstrap: str, client_config: list[tuple[str, str]]) -> None:
    """End the mirror of TOPIC: from then on anybody may write to the copy, and no mirror does.

    What the mirror has not copied yet is not in it: see 'pylog mirror lag'. Transactions that are open in the copy are aborted.
    """
    from pylog_spark.mirror.promotion import promote as end

    with admin_of(bootstrap, client_config) as admin:
        end(admin, topic)
    say(f"Topic {topic} is no mirror any more: it can be written to.")
