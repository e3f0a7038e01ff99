"""``pylog sink list | finish | abort``: Spark's exactly-once writes for administrators. An abort is only shown until --execute is given."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    client_settings,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    open_for_s,
    plural,
    say,
)
from pylog_spark.client.errors import LogError, translated
from pylog_spark.errors import PylogError
from pylog_spark.results.transactions import TransactionDescription
from pylog_spark.sink import overview


@click.group()
def sink() -> None:
    """List Spark's exactly-once writes, end those that a dead driver has left open."""


@sink.command("list", epilog="Example: pylog sink list --open")
@click.option("--open", "only_open", is_flag=True, help="Only those with open transactions.")
@bootstrap_option
@client_config_option
@json_option
def list_(only_open: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """List writes: decided (finished, unfinished), undecided, left over.

    KEY is the id of a streaming query, or TOPIC/txnAppId of a batch. TOPICS are the topics that open transactions
    have written to; readers of committed data have to wait there.
    """
    with _sentences():
        found = overview.survey(client_settings(bootstrap, client_config))
    described = _described(bootstrap, client_config, [name for status in found for name in status.open])
    rows = [_row(status, described) for status in found if status.open or not only_open]
    if as_json:
        echo_json(rows)
    elif rows:
        shown = ("key", "version", "state", "transactions", "open_for_s")
        cells = [
            [*("-" if row[name] is None else row[name] for name in shown), ",".join(row["topics"]) or "-"]
            for row in rows
        ]
        echo_table(["KEY", "VERSION", "STATE", "OPEN", "OPEN-FOR-S", "TOPICS"], cells)
    else:
        say("There are no exactly-once writes.", err=True)


@sink.command(epilog="Example: pylog sink finish 8a5ae1a5-7bf4-4d5c-a1b4-0d2b8f1a7f5e")
@click.argument("keys", nargs=-1, metavar="[KEY...]")
@bootstrap_option
@client_config_option
@json_option
def finish(keys: tuple[str, ...], bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """Commit transactions that are decided and still open, and abort those left over, as the next run of the query would.

    Without a KEY, of all writes.
    """
    settings = client_settings(bootstrap, client_config)
    with _sentences():
        found = overview.survey(settings)
        known = {status.key for status in found}
        for key in keys:
            if key not in known:
                raise LogError(
                    "INVALID_ARGUMENT", f"There is no write {key!r}: 'pylog sink list' shows the writes there are."
                )
        ended = sorted(
            {status.key for status in found if status.state in (overview.UNFINISHED, overview.LEFT_OVER)}
            & set(keys or known)
        )
        for key in ended:
            overview.finish_decided(settings, key)
    if as_json:
        echo_json(ended)
    say(f"Finished {plural(len(ended), 'write')}.", err=True)


@sink.command(epilog="Example: pylog sink abort 8a5ae1a5-7bf4-4d5c-a1b4-0d2b8f1a7f5e --execute")
@click.argument("key")
@execute_option
@bootstrap_option
@client_config_option
@json_option
def abort(key: str, execute: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """Abort the open transactions of an undecided write: its rows are never seen.

    For a query that will not run again. A query that still runs fails, and writes the same rows when it is started again.
    """
    settings = client_settings(bootstrap, client_config)
    with _sentences():
        ids = overview.abort_undecided(settings, key) if execute else overview.undecided(overview.survey(settings), key)
    if as_json:
        echo_json({"key": key, "transactional_ids": ids, "executed": execute})
    what = f"{plural(len(ids), 'transaction')} of {key}"
    say(f"Aborted {what}." if execute else f"Would abort {what}; nothing is changed without --execute.", err=True)


def _row(status: overview.WriteStatus, described: Mapping[str, TransactionDescription]) -> dict[str, Any]:
    own = [described[name] for name in status.open if name in described]
    return {
        "key": status.key,
        "version": status.version,
        "kind": status.kind,
        "state": status.state,
        "transactions": len(status.open),
        "open_for_s": open_for_s(*own),
        "topics": sorted({topic for each in own for topic, _ in each.partitions}),
        "transactional_ids": list(status.open),
    }


def _described(
    bootstrap: str, client_config: Sequence[tuple[str, str]], names: Sequence[str]
) -> dict[str, TransactionDescription]:
    """What the brokers know of open transactions, by transactional id."""
    if not names:
        return {}
    with admin_of(bootstrap, client_config) as admin:
        return {
            description.transactional_id: description
            for description in admin.describe_transactions(names)
            if not description.error
        }


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn the sink's errors into those that the command line prints."""
    try:
        with translated():
            yield
    except PylogError as error:
        raise LogError(error.condition, error.sentence) from error
