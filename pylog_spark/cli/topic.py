"""``pylog topic create | list | describe | alter | delete``."""

import sys
from collections.abc import Iterable
from typing import Any

import click

from pylog_spark.cli.common import (
    SettingOption,
    admin_of,
    bootstrap_option,
    client_config_option,
    echo_json,
    echo_table,
    json_option,
    plural,
    refuse_failed,
    say,
)
from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.errors import LogError
from pylog_spark.results.topics import PartitionOffset

_TOPIC_CONFIG = click.option(
    "--config", "-c", "settings", cls=SettingOption, owners=["topic"],
    help="A setting of the topic, such as retention.ms=86400000 or durability=flushed. Repeatable.",
)  # fmt: skip


@click.group()
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command(epilog="Example: pylog topic create events --partitions 8 --config retention.ms=86400000")
@click.argument("name")
@click.option("--partitions", "-p", type=int, default=-1, help="How many; the broker's num.partitions when left out.")
@click.option("--replication-factor", "-r", type=int, default=-1, help="Copies of each partition (one broker: 1).")
@_TOPIC_CONFIG
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic exists already.")
@bootstrap_option
@client_config_option
@json_option
def create(
    name: str,
    partitions: int,
    replication_factor: int,
    settings: list[tuple[str, str]],
    if_not_exists: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """Create the topic NAME."""
    with admin_of(bootstrap, client_config) as admin:
        try:
            made = admin.create_topic(name, partitions, replication_factor, dict(settings))
        except LogError as error:
            if not (if_not_exists and error.kind == "TOPIC_ALREADY_EXISTS"):
                raise
            say(f"Topic {name} exists already.", err=True)
            return
    if as_json:
        echo_json(made)
    else:
        say(f"Created topic {name} with {plural(made.num_partitions, 'partition')}.")


@topic.command("list")
@click.option("--internal", is_flag=True, help="Also internal topics, such as __consumer_offsets.")
@bootstrap_option
@client_config_option
@json_option
def list_(internal: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """List topics."""
    with admin_of(bootstrap, client_config) as admin:
        found = sorted(admin.topics(), key=lambda topic: topic.name)
    shown = [topic for topic in found if internal or not topic.is_internal]
    if as_json:
        kept = ("name", "topic_id", "is_internal")
        echo_json(
            [{**{key: getattr(topic, key) for key in kept}, "partitions": len(topic.partitions)} for topic in shown]
        )
    elif shown:
        echo_table(
            ["TOPIC", "PARTITIONS", "ID"], [(topic.name, len(topic.partitions), topic.topic_id) for topic in shown]
        )
    else:
        say("There are no topics yet: create one with 'pylog topic create NAME'.", err=True)


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--all-configs", is_flag=True, help="Also show settings that have their defaults.")
@bootstrap_option
@client_config_option
@json_option
def describe(
    names: tuple[str, ...], all_configs: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool
) -> None:
    """Show partitions, offsets and settings of topics.

    STABLE is the last stable offset, up to which readers of committed data read; it is before END while a transaction is
    open ('pylog transaction list').
    """
    with admin_of(bootstrap, client_config) as admin:
        described = [_described(admin, name, all_configs) for name in names]
    if as_json:
        echo_json(described)
        return
    for index, topic in enumerate(described):
        if index:
            click.echo()
        _show(topic)


@topic.command(epilog="Example: pylog topic alter events --partitions 16 --config retention.ms=3600000")
@click.argument("name")
@click.option(
    "--partitions",
    "-p",
    type=int,
    help="Grow to this many. Later records of a key may go to another partition than earlier ones.",
)
@_TOPIC_CONFIG
@click.option(
    "--delete-config",
    cls=SettingOption,
    owners=["topic"],
    names_only=True,
    help="Reset a setting to its default. Repeatable.",
)
@bootstrap_option
@client_config_option
def alter(
    name: str,
    partitions: int | None,
    settings: list[tuple[str, str]],
    delete_config: tuple[str, ...],
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Change settings of the topic NAME, or add partitions."""
    changes: dict[str, str | None] = {**dict(settings), **dict.fromkeys(delete_config)}
    if partitions is None and not changes:
        raise click.UsageError("Nothing to change: give --partitions, --config or --delete-config.")
    with admin_of(bootstrap, client_config) as admin:
        if changes:
            admin.alter_configs("topic", name, changes)
        if partitions is not None:
            admin.create_partitions(name, partitions)
    say(f"Changed topic {name}.")


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--yes", "-y", is_flag=True, help="Delete without asking.")
@click.option("--if-exists", is_flag=True, help="Succeed when a topic does not exist.")
@bootstrap_option
@client_config_option
def delete(
    names: tuple[str, ...], yes: bool, if_exists: bool, bootstrap: str, client_config: list[tuple[str, str]]
) -> None:
    """Delete topics with all their records."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting a topic deletes its records: add --yes to delete it without being asked.")
        click.confirm(f"Delete {', '.join(names)} with all records?", abort=True, err=True)
    with admin_of(bootstrap, client_config) as admin:
        results = admin.delete_topics(names)
    gone = {"UNKNOWN_TOPIC_OR_PARTITION"} if if_exists else set()
    refuse_failed(result for result in results if result.error not in gone)
    deleted = [result.name for result in results if not result.error]
    if deleted:
        say(f"Deleted {', '.join(deleted)}.")


def _by_partition(offsets: Iterable[PartitionOffset]) -> dict[int, int]:
    return {offset.partition: offset.offset for offset in offsets}


def _described(admin: Admin, name: str, all_configs: bool) -> dict[str, Any]:
    found = admin.topic(name)
    numbers = sorted(partition.partition for partition in found.partitions)
    latest = [(name, number, LATEST) for number in numbers]
    starts = _by_partition(admin.offsets([(name, number, EARLIEST) for number in numbers]))
    ends = _by_partition(admin.offsets(latest))
    stable = _by_partition(admin.offsets(latest, "read_committed"))
    configs = admin.configs("topic", [name])[0].configs
    by_number = {partition.partition: partition for partition in found.partitions}
    partitions = [
        {**{key: getattr(by_number[number], key) for key in ("partition", "leader", "leader_epoch", "replicas", "isr")},
         "start_offset": starts[number], "stable_offset": min(stable[number], ends[number]), "end_offset": ends[number]}
        for number in numbers
    ]  # fmt: skip
    shown = {config.name: config.value for config in configs if all_configs or config.source != "DEFAULT_CONFIG"}
    return {"name": name, "topic_id": found.topic_id, "partitions": partitions, "configs": shown}


def _show(described: dict[str, Any]) -> None:
    partitions = described["partitions"]
    span = sum(partition["end_offset"] - partition["start_offset"] for partition in partitions)
    say(f"Topic {described['name']} (id {described['topic_id']})")
    say(f"{plural(len(partitions), 'partition')}, {plural(span, 'offset')}")
    for name, value in described["configs"].items():
        say(f"  {name}={value}")
    rows = [
        (
            partition["partition"],
            partition["leader"],
            partition["start_offset"],
            partition["stable_offset"],
            partition["end_offset"],
            ",".join(map(str, partition["isr"])),
        )
        for partition in partitions
    ]
    echo_table(["PARTITION", "LEADER", "START", "STABLE", "END", "ISR"], rows)
