"""Where to set offsets: the options that say so, of commands that move a group or a query, and what the brokers make of them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from pylog_spark.cli.common import milliseconds
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.places import bounds_of
from pylog_spark.offsets.reset import How, Known, ResetScenario, duration_ms, new_offset, selected

Partition = tuple[str, int]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def reset_options(command: _Command) -> _Command:
    """Add the options that each name a position."""
    options = (
        click.option("--to-earliest", is_flag=True, help="To the first record."),
        click.option("--to-latest", is_flag=True, help="To the end, after the last record."),
        click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To this offset."),
        click.option("--shift-by", type=int, metavar="N", help="N offsets further, or back when N is negative."),
        click.option(
            "--to-datetime",
            metavar="TIME",
            help="To the first record of this time, such as 2026-01-31T12:00 (UTC).",
        ),
        click.option(
            "--by-duration",
            metavar="PERIOD",
            help="To the first record of the last PERIOD, such as PT1H or P7D.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def scenario_of(ways: Mapping[str, Any]) -> ResetScenario:
    """The one position that these options name. Raises a usage error."""
    given = {key: value for key, value in ways.items() if value is not None and value is not False}
    if len(given) != 1:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in ways)
        raise click.UsageError(f"Say which offsets to set, with one of {names}.")
    way, value = next(iter(given.items()))
    if way == "by_duration":
        try:
            return ResetScenario(How.TIME, int(time.time() * 1000) - duration_ms(value))
        except ValueError as error:
            raise click.BadParameter(f"{error}.", param_hint="--by-duration") from None
    if way == "to_datetime":
        return ResetScenario(How.TIME, milliseconds(value))
    return ResetScenario(How(way.replace("_", "-")), 0 if value is True else value)


def selection_of(topics: Sequence[str]) -> list[tuple[str, list[int] | None]]:
    """Read each TOPIC or TOPIC:0,1 of --topic."""
    try:
        return list(selected(topics))
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--topic") from None


def expanded(admin: Admin, wanted: Iterable[tuple[str, list[int] | None]]) -> list[Partition]:
    """The partitions that are selected. Raises `LogError` when one does not exist."""
    partitions: set[Partition] = set()
    for topic, numbers in wanted:
        there = [partition.partition for partition in admin.topic(topic).partitions]
        missing = sorted(set(numbers or []) - set(there))
        if missing:
            sentence = f"Topic '{topic}' has no partition {missing[0]}; it has {len(there)}."
            raise LogError("UNKNOWN_TOPIC_OR_PARTITION", sentence)
        partitions.update((topic, number) for number in (there if numbers is None else numbers))
    return sorted(partitions)


def moves_of(
    admin: Admin, partitions: Sequence[Partition], current: dict[Partition, int], scenario: ResetScenario
) -> list[dict[str, Any]]:
    """The current and the new offset of each partition whose topic is still there. Raises `LogError`."""
    bounds = bounds_of(admin, partitions)
    at_time: dict[Partition, int] = {}
    if scenario.how is How.TIME:
        found = admin.offsets([(*partition, scenario.value) for partition in bounds])
        at_time = {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
    moves = []
    for partition, (start, end, _) in bounds.items():
        offset = new_offset(scenario, Known(start, end, current.get(partition), at_time.get(partition)))
        if offset is None:
            sentence = f"The group has no offset in {partition[0]}-{partition[1]} to shift: use another option, such as --to-offset."
            raise LogError("INVALID_ARGUMENT", sentence)
        moves.append(
            {"topic": partition[0], "partition": partition[1], "offset": current.get(partition), "new_offset": offset}
        )
    return moves
