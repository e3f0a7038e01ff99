"""``pylog config list | describe | alter``: settings of topics and brokers, levels of brokers' loggers."""

from collections.abc import Collection
from typing import Any

import click

from pylog_spark.cli.common import (
    Owner,
    SettingOption,
    admin_of,
    bootstrap_option,
    client_config_option,
    echo_json,
    echo_table,
    json_option,
    say,
    settings_of,
)
from pylog_spark.client.admin import Admin
from pylog_spark.client.requests import raise_if_failed
from pylog_spark.errors import native

_KIND = click.Choice(["topic", "broker", "broker-logger"])
_HEADINGS = {"topic": "Topic", "broker": "Broker", "broker-logger": "Loggers of broker"}
_DEFAULT = "DEFAULT_CONFIG"


@click.group()
def config() -> None:
    """Show and change settings of topics and brokers, and how much brokers log."""


@config.command("list", epilog="Example: pylog config list topic")
@click.argument("owner", type=click.Choice(["client", "broker", "topic", "group"]), metavar="client|broker|topic|group")
@json_option
def list_settings(owner: Owner, as_json: bool) -> None:
    """List all settings with their defaults and meanings. Needs no broker."""
    rows = settings_of(owner)
    if as_json:
        kept = ("name", "kind", "default", "doc")
        echo_json([{key: getattr(row, key) for key in kept} for row in rows])
        return
    echo_table(["NAME", "DEFAULT", "MEANING"], [(row.name, _shown(_text(row.default)), row.doc) for row in rows])


@config.command(epilog="""\b
Examples:
  pylog config describe topic events
  pylog config describe broker --all
  pylog config describe broker-logger 1
""")  # fmt: skip
@click.argument("kind", type=_KIND, metavar="topic|broker|broker-logger")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--all", "everything", is_flag=True, help="Also show settings that have their defaults.")
@bootstrap_option
@client_config_option
@json_option
def describe(
    kind: str,
    names: tuple[str, ...],
    everything: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """Show settings, and where each value comes from.

    The NAME of a broker, or of its loggers, is the broker's number. Without a NAME, all brokers are shown; topics must be named.
    """
    with admin_of(bootstrap, client_config) as admin:
        described = [_described(admin, kind, name, everything) for name in names or _all_of(admin, kind)]
    if as_json:
        echo_json(described)
        return
    for index, resource in enumerate(described):
        if index:
            click.echo()
        say(f"{_HEADINGS[kind]} {resource['name']}")
        rows = [(each["name"], _shown(each["value"]), each["source"]) for each in resource["configs"]]
        if rows:
            echo_table(["NAME", "VALUE", "SOURCE"], rows)
        else:
            say("All settings have their defaults; --all shows them.")


@config.command(epilog="""\b
Examples:
  pylog config alter topic events --set retention.ms=3600000
  pylog config alter topic events --delete retention.ms --dry-run
  pylog config alter broker 1 --set log.retention.ms=86400000
  pylog config alter broker-logger 1 --set pylog.broker.network=DEBUG
  pylog config alter broker-logger 1 --delete pylog.broker.network
""")  # fmt: skip
@click.argument("kind", type=_KIND, metavar="topic|broker|broker-logger")
@click.argument("name")
@click.option("--set", "-s", "settings", cls=SettingOption, owners=["broker", "topic"], help="Repeatable.")
@click.option("--delete", "-d", "deleted", cls=SettingOption, owners=["broker", "topic"], names_only=True,
              help="Set back to the default. Repeatable.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only ask the broker whether it would accept the change.")
@bootstrap_option
@client_config_option
def alter(
    kind: str,
    name: str,
    settings: list[tuple[str, str]],
    deleted: tuple[str, ...],
    dry_run: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Change settings of the topic or broker NAME, or levels of the loggers of the broker NAME.

    A level holds until the broker stops. A logger whose level is deleted has that of the nearest logger above.
    """
    changes: dict[str, str | None] = {**dict(settings), **dict.fromkeys(deleted)}
    if not changes:
        raise click.UsageError("Nothing to change: give --set or --delete.")
    with admin_of(bootstrap, client_config) as admin:
        if kind != "broker-logger":
            _check_known(admin, kind, name, deleted)
        admin.alter_configs(kind, name, changes, validate_only=dry_run)
    say(f"Would have changed {kind} {name}." if dry_run else f"Changed {kind} {name}.")


def _all_of(admin: Admin, kind: str) -> list[str]:
    if kind == "topic":
        raise click.UsageError("Name the topics, as 'pylog topic list' shows them.")
    return [str(broker.node_id) for broker in admin.cluster().brokers]


def _check_known(admin: Admin, kind: str, name: str, deleted: Collection[str]) -> None:
    """Raises `UsageError` for a setting that is not there: brokers delete one without a word."""
    if not deleted:
        return
    found = admin.configs(kind, [name])[0]
    raise_if_failed(found)
    known = [config.name for config in found.configs]
    for each in deleted:
        if each not in known:
            near = native().nearest(each, known)
            shown = f"'pylog config describe {kind} {name} --all' shows those it has."
            raise click.UsageError(
                f"The {kind} {name} has no setting {each}; {f'did you mean {near}?' if near else shown}"
            )


def _described(admin: Admin, kind: str, name: str, everything: bool) -> dict[str, Any]:
    found = admin.configs(kind, [name])[0]
    raise_if_failed(found)
    configs = [config for config in found.configs if everything or config.source != _DEFAULT]
    kept = ("name", "value", "source", "type", "read_only", "is_sensitive", "synonyms")
    return {"kind": kind, "name": name, "configs": [{key: getattr(config, key) for key in kept} for config in configs]}


def _text(default: str | bool | float | None) -> str | None:
    return str(default).lower() if isinstance(default, bool) else None if default is None else str(default)


def _shown(value: str | None) -> str:
    return "-" if value is None else value
