"""``pylog transaction list | describe | producers | abort``. An abort is only shown until --execute is given."""

from typing import Any

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    document,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    open_for_s,
    partitions_of,
    refuse_failed,
    say,
)
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.transactions import ANY_DURATION
from pylog_spark.offsets.reset import duration_ms
from pylog_spark.results.transactions import TransactionDescription
from pylog_spark.sink.protocol import OPEN, is_prepared

_NO_TRANSACTION = -1

# States in which no transaction is under way, although the brokers still give the times of the last one.
_ENDED = ("Empty", "CompleteCommit", "CompleteAbort")


@click.group()
def transaction() -> None:
    """List and describe transactions, end one that hangs."""


@transaction.command("list", epilog="Example: pylog transaction list --state Ongoing --open-longer-than PT15M")
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    help="Only transactions in this state, such as Ongoing. Repeatable.",
)
@click.option(
    "--open-longer-than",
    "duration",
    metavar="PERIOD",
    help="Only transactions open for longer than PERIOD, such as PT15M.",
)
@bootstrap_option
@client_config_option
@json_option
def list_(
    states: tuple[str, ...],
    duration: str | None,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """List transactional ids, and for how long their open transactions have held back readers of committed data.

    A PREPARED transaction waits for its program to decide, and no broker ends it. A TRANSACTIONAL-ID that begins with
    pylog-once. belongs to a write of Spark: the text up to the last two dots has its key and version, see 'pylog sink list'.
    """
    open_for_ms = ANY_DURATION if duration is None else _duration(duration)
    with admin_of(bootstrap, client_config) as admin:
        found = admin.transactions(states, duration_ms=open_for_ms)
        names = [listing.transactional_id for listing in found if listing.state == OPEN]
        described = (
            {description.transactional_id: description for description in admin.describe_transactions(names)}
            if names
            else {}
        )
    listed = [{**document(listing), **_openness(described.get(listing.transactional_id))} for listing in found]
    if as_json:
        echo_json(listed)
    elif listed:
        rows = [
            (
                row["transactional_id"],
                row["state"],
                "yes" if row["prepared"] else "-",
                "-" if row["open_for_s"] is None else row["open_for_s"],
                row["producer_id"],
                row["coordinator"],
            )
            for row in listed
        ]
        echo_table(["TRANSACTIONAL-ID", "STATE", "PREPARED", "OPEN-FOR-S", "PRODUCER", "COORDINATOR"], rows)
    else:
        say("There are no transactional ids.", err=True)


@transaction.command(epilog="Example: pylog transaction describe my-sink-0")
@click.argument("names", nargs=-1, required=True, metavar="TRANSACTIONAL-ID...")
@bootstrap_option
@client_config_option
@json_option
def describe(names: tuple[str, ...], bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """Show the state of transactional ids, and the partitions of their open transactions."""
    with admin_of(bootstrap, client_config) as admin:
        found = [admin.transaction(name) for name in names]
    if as_json:
        echo_json(found)
        return
    for index, description in enumerate(found):
        if index:
            click.echo()
        _show(description)


@transaction.command(epilog="Example: pylog transaction producers events:0")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:0,1]...")
@bootstrap_option
@client_config_option
@json_option
def producers(topics: tuple[str, ...], bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """Show the producers that write to partitions, and where their open transactions begin."""
    with admin_of(bootstrap, client_config) as admin:
        partitions = [partition for text in topics for partition in partitions_of(admin, text)]
        found = admin.producers(partitions)
    refuse_failed(found)
    rows = [{**document(producer), "topic": each.topic, "partition": each.partition}
            for each in found for producer in each.producers]  # fmt: skip
    if as_json:
        echo_json(rows)
    elif rows:
        shown = ("topic", "partition", "producer_id", "producer_epoch", "last_sequence", "transaction_start_offset")
        cells = [
            ["-" if key == shown[-1] and row[key] == _NO_TRANSACTION else row[key] for key in shown] for row in rows
        ]
        echo_table(["TOPIC", "PARTITION", "PRODUCER", "EPOCH", "LAST-SEQUENCE", "START-OFFSET"], cells)
    else:
        say("No producer with an id writes there.", err=True)


@transaction.command(epilog="""\b
Examples:
  pylog transaction abort my-sink-0 --execute
  pylog transaction abort --topic events --partition 0 --start-offset 4711 --execute

The first also fences the producer that has the id. The second is for a transaction that no
coordinator knows any more; 'pylog transaction producers events' shows where it begins.
""")  # fmt: skip
@click.argument("name", required=False, metavar="[TRANSACTIONAL-ID]")
@click.option("--topic", help="The topic of a transaction that hangs.")
@click.option("--partition", type=click.IntRange(0), help="Its partition.")
@click.option("--start-offset", type=click.IntRange(0), help="The first offset of the transaction.")
@execute_option
@bootstrap_option
@client_config_option
@json_option
def abort(
    name: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    execute: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """End an open transaction; its records are never seen by readers of committed data."""
    place = (topic, partition, start_offset)
    if (name is None) == (place == (None, None, None)):
        raise click.UsageError("Give a TRANSACTIONAL-ID, or --topic, --partition and --start-offset.")
    with admin_of(bootstrap, client_config) as admin:
        if name is not None:
            aborted = _abort_by_id(admin, name, execute)
        else:
            if topic is None or partition is None or start_offset is None:
                raise click.UsageError("--topic, --partition and --start-offset belong together.")
            aborted = _abort_in_partition(admin, topic, partition, start_offset, execute)
    if as_json:
        echo_json({**aborted, "executed": execute})
    what = (
        f"transaction of {name}" if name is not None else f"transaction at {topic}-{partition}, offset {start_offset}"
    )
    done = f"Aborted the {what}." if execute else f"Would abort the {what}; nothing is changed without --execute."
    say(done, err=True)


def _openness(described: TransactionDescription | None) -> dict[str, Any]:
    if described is None:
        return {"prepared": False, "open_for_s": None}
    return {"prepared": is_prepared(described), "open_for_s": open_for_s(described)}


def _abort_by_id(admin: Admin, name: str, execute: bool) -> dict[str, Any]:
    before = admin.transaction(name)
    if execute:
        admin.fence_producer(name)
    return {"transactional_id": name, "state": before.state, "producer_id": before.producer_id}


def _abort_in_partition(admin: Admin, topic: str, partition: int, start: int, execute: bool) -> dict[str, Any]:
    found = admin.producers([(topic, partition)])
    refuse_failed(found)
    begun = [producer for producer in found[0].producers if producer.transaction_start_offset == start]
    if not begun:
        sentence = (
            f"No transaction begins at offset {start} of {topic}-{partition}: 'pylog transaction producers {topic}:{partition}' "
            "shows which do."
        )
        raise LogError("INVALID_ARGUMENT", sentence)
    producer = begun[0]
    if execute:
        admin.abort_transaction(
            topic, partition, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
        )
    return {"topic": topic, "partition": partition, "start_offset": start, "producer_id": producer.producer_id}


def _show(description: TransactionDescription) -> None:
    say(f"Transactional id {description.transactional_id} ({description.state})")
    say(f"producer {description.producer_id} epoch {description.producer_epoch}, coordinator {description.coordinator}")
    age_s = open_for_s(description)
    if age_s is not None and description.state not in _ENDED:
        limit = (
            ", prepared: no broker ends it"
            if is_prepared(description)
            else f" of {description.timeout_ms / 1000:.0f} s"
        )
        say(f"open for {age_s} s{limit}")
    if description.partitions:
        echo_table(["TOPIC", "PARTITION"], sorted(description.partitions))


def _duration(text: str) -> int:
    try:
        return duration_ms(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--open-longer-than") from None
