"""What the commands share: the option that names the broker, NAME=VALUE options, tables, JSON."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from pylog_spark.cli.command_config import command_config, command_config_option
from pylog_spark.results.markup import printable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from click.shell_completion import CompletionItem

    from pylog_spark._native import SettingRow
    from pylog_spark.client.admin import Admin
    from pylog_spark.client.requests import Result
    from pylog_spark.results.transactions import TransactionDescription

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

_COLUMN_GAP = 2
#: Most settings that the help of an option names. When there are more, it only says where they are listed.
_NAMES_IN_HELP_MAX = 50
#: Width of tables that do not go to a terminal: so large that no row is folded.
_LINE_WITHOUT_END = 1_000_000

_Command = TypeVar("_Command", bound=Callable[..., Any])


Owner = Literal["client", "broker", "topic", "group"]


def settings_of(*owners: Owner) -> "list[SettingRow]":
    """The settings of `owners` as they are declared, in the order of their names; when several owners have a name, the last one's."""
    from pylog_spark._native import settings

    rows = {row.name: row for owner in owners for row in settings(owner)}
    return [rows[name] for name in sorted(rows)]


class SettingOption(click.Option):
    """An option that takes settings of `owners`, any number of times. A shell completes their names; ``--help`` says where they are listed.

    Its value is a list of (name, value), or with `names_only` a tuple of names.
    """

    def __init__(self, *args: Any, owners: Sequence[Owner], names_only: bool = False, **kwargs: Any) -> None:
        form: dict[str, Any] = (
            {"metavar": "NAME"} if names_only else {"metavar": "NAME=VALUE", "callback": named_values}
        )
        super().__init__(*args, **{"multiple": True, **form, **kwargs})
        self._owners = tuple(owners)
        self._ending = "" if names_only else "="

    def shell_complete(self, _ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The settings whose names begin with `incomplete`, each with its meaning."""
        from click.shell_completion import CompletionItem

        rows = [row for row in settings_of(*self._owners) if row.name.startswith(incomplete)]
        return [CompletionItem(f"{row.name}{self._ending}", help=row.doc) for row in rows]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help, with the names of the settings when there are few."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names = [row.name for row in settings_of(*self._owners)]
        known = f"One of {', '.join(names)}. " if len(names) <= _NAMES_IN_HELP_MAX else ""
        where = " and ".join(f"'pylog config list {owner}'" for owner in self._owners)
        return record[0], f"{record[1]} {known}See {where}."


def bootstrap_option(command: _Command) -> _Command:
    """Add --bootstrap-server."""
    return click.option(
        "--bootstrap-server",
        "-b",
        "bootstrap",
        envvar="PYLOG_BOOTSTRAP_SERVERS",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="The broker to ask first.",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def client_config_option(command: _Command) -> _Command:
    """Add --client-config and --command-config."""
    command = command_config_option(command)
    return click.option(
        "--client-config",
        "client_config",
        cls=SettingOption,
        owners=["client"],
        help="A setting of the client by Kafka's name, such as request.timeout.ms=5000. Repeatable. Passwords belong in --command-config.",
    )(command)


def execute_option(command: _Command) -> _Command:
    """Add --execute, without which a command that deletes or moves something only shows what it would do."""
    return click.option("--execute", is_flag=True, help="Do it; without --execute it is only shown.")(command)


def admin_of(bootstrap: str, client_config: Iterable[tuple[str, str]]) -> "Admin":
    """The admin client for this command line."""
    from pylog_spark.client.admin import Admin

    return Admin(bootstrap, client_settings(bootstrap, client_config))


def milliseconds(text: str) -> int:
    """A time as milliseconds since 1970, from such a number or from ISO 8601 (UTC when no zone is given)."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        # Python 3.10 does not read the Z.
        moment = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither milliseconds nor a time like 2026-01-31T12:00.") from None
    return int(moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp() * 1000)


def _time(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    return None if text is None else milliseconds(text)


def time_option(*names: str, meaning: str) -> Callable[[_Command], _Command]:
    """An option for a time, such as ``--since``; the command gets milliseconds since 1970, or None."""
    return click.option(*names, callback=_time, metavar="TIME", help=meaning)


#: The part of a topic by time that a command takes; it gets `since` and `until`.
since_option = time_option(
    "--since",
    meaning="Begin with the first record of this time: ms since 1970, or 2026-01-31T12:00 (UTC if no zone is given).",
)
until_option = time_option("--until", meaning="End before the first record of this time.")


def duration_ms(text: str) -> int:
    """A duration such as ``10m`` or ``30s``, from one second to a year (a click type)."""
    from pylog_spark.offsets.texts import timeout

    try:
        return timeout(text)
    except ValueError as error:
        raise click.BadParameter(f"It {error}.") from None


def plural(count: int, noun: str, several: str | None = None) -> str:
    """``1 group``, ``2 groups``; `several` is the noun's plural where it takes more than an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


def named_values(_ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[tuple[str, str]]:
    """Split each NAME=VALUE (a click callback)."""
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param=parameter)
        pairs.append((name.strip(), value))
    return pairs


def partitions_of(admin: "Admin", text: str) -> list[tuple[str, int]]:
    """The partitions that TOPIC or TOPIC:0,1 names. Raises `LogError` when the topic does not exist."""
    from pylog_spark.offsets.reset import selected

    try:
        ((topic, numbers),) = selected([text])
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None
    there = [partition.partition for partition in admin.topic(topic).partitions]
    return [(topic, number) for number in (there if numbers is None else numbers)]


def client_settings(bootstrap: str, more: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """The client's configuration for this command line."""
    return {"client.id": "pylog-cli", **command_config(), "bootstrap.servers": bootstrap, **dict(more)}


def say(line: str, *, err: bool = False) -> None:
    """Print one line. The only way in which commands print text that others have chosen, such as names: what is not printable in it is shown as
    an escape, does nothing to the terminal, and begins no line."""
    click.echo(printable(line), err=err)


def echo_json(value: object) -> None:
    """Print `value` as indented JSON; dataclasses in it as `document` gives them."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=document)
    # JSON itself escapes only those below the space.
    click.echo("\n".join(map(_escaped, text.split("\n"))))


def _escaped(line: str) -> str:
    """A line of JSON in which what is not printable is escaped as JSON has it."""
    return (
        line if line.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)
    )


def document(result: "DataclassInstance") -> dict[str, Any]:
    """The fields of a dataclass by their names, in alphabetical order: its JSON form."""
    return dataclasses.asdict(result, dict_factory=lambda fields: dict(sorted(fields)))


def echo_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with aligned columns, numbers to the right. On a terminal long cells fold; in a pipe or file each row is one line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[printable(str(cell)) for cell in row] for row in rows]
    table = Table(box=None, padding=(0, _COLUMN_GAP, 0, 0), pad_edge=False, show_header=True, header_style="")
    for index, heading in enumerate(headings):
        numeric = bool(cells) and all(_is_number(row[index]) for row in cells)
        table.add_column(Text(printable(heading)), justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        # As text: square brackets in a name are no markup.
        table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        console.width = _LINE_WITHOUT_END
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit() or text == "-"


def open_for_s(*described: "TransactionDescription") -> int | None:
    """For how many seconds the oldest of some transactions has been open; None when not known."""
    from pylog_spark.sink.protocol import open_for_ms

    age_ms = open_for_ms(described, time.time_ns() // 1_000_000)
    return None if age_ms is None else round(age_ms / 1000)


def refuse_failed(results: Iterable["Result"]) -> None:
    """Raise the first error among admin results, and say how many more there are."""
    from pylog_spark.client.errors import LogError

    failed = [
        (result.error, result.message or f"{getattr(result, 'name', 'The request')}: {result.error}.")
        for result in results
        if result.error
    ]
    if failed:
        more = f" ({len(failed) - 1} more failed.)" if len(failed) > 1 else ""
        error, sentence = failed[0]
        raise LogError(error, sentence + more)
