"""``pylog quota list | set | remove``: limits for users, client ids and addresses."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    echo_json,
    echo_table,
    json_option,
    refuse_failed,
    say,
)

_TYPES = ("user", "client-id", "ip")
#: What the help calls one and several of each type.
_WORDS = {"user": ("A user", "users"), "client-id": ("A client id", "client ids"), "ip": ("An address", "addresses")}
_KNOWN = {
    "producer_byte_rate": "bytes a second that may be produced, at each broker",
    "consumer_byte_rate": "bytes a second that may be consumed, at each broker",
    "request_percentage": "percent of one thread's time that requests may take, at each broker",
    "controller_mutation_rate": "partitions a second that may be created and deleted (stored, not enforced yet)",
    "connection_creation_rate": "connections a second that an address may open, at each broker (stored, not enforced yet)",
}
_QUOTAS = "\b\nQuotas:\n" + "\n".join(f"  {name}: {meaning}" for name, meaning in _KNOWN.items())

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Values = dict[str, Any]


def _entity_options(command: _Command) -> _Command:
    """Add the options that name the entity."""
    for kind in reversed(_TYPES):
        one, several = _WORDS[kind]
        flag = f"default_{kind.replace('-', '_')}"
        command = click.option(f"--default-{kind}", flag, is_flag=True,
                               help=f"The default for all {several} without a quota of their own.")(command)  # fmt: skip
        command = click.option(f"--{kind}", kind.replace("-", "_"), metavar="ADDRESS" if kind == "ip" else "NAME",
                               help=f"{one}.")(command)  # fmt: skip
    return command


def _entity(given: _Values) -> dict[str, str | None]:
    entity: dict[str, str | None] = {}
    for kind in _TYPES:
        name, default = given[kind.replace("-", "_")], given[f"default_{kind.replace('-', '_')}"]
        if name is not None and default:
            raise click.UsageError(f"--{kind} and --default-{kind} exclude each other.")
        if name is not None or default:
            entity[kind] = name
    return entity


def _named(given: _Values) -> dict[str, str | None]:
    entity = _entity(given)
    if not entity:
        raise click.UsageError("Missing --user, --client-id or --ip, or a default such as --default-user.")
    return entity


@click.group()
def quota() -> None:
    """List, set and remove quotas of users, client ids and addresses.

    A quota of a user and client id together comes before one of the user, and that before one of the client id.
    """


@quota.command("list", epilog="""\b
Examples:
  pylog quota list
  pylog quota list --user alice
""")  # fmt: skip
@_entity_options
@bootstrap_option
@client_config_option
@json_option
def list_(bootstrap: str, client_config: list[tuple[str, str]], as_json: bool, **given: Any) -> None:
    """List all quotas, or those of a user, client id or address."""
    with admin_of(bootstrap, client_config) as admin:
        found = admin.describe_client_quotas(_entity(given))
    if as_json:
        echo_json(found)
    elif found:
        rows = [(_shown(each.entity), name, f"{value:g}" if value % 1 else f"{value:.0f}")
                for each in found for name, value in sorted(each.quotas.items())]  # fmt: skip
        echo_table(["ENTITY", "QUOTA", "VALUE"], rows)
    else:
        say("There are no quotas.", err=True)


@quota.command("set", epilog=f"""\b
Examples:
  pylog quota set producer_byte_rate=1048576 consumer_byte_rate=2097152 --user alice
  pylog quota set request_percentage=50 --default-user --client-id reports
  pylog quota set connection_creation_rate=20 --default-ip

{_QUOTAS}
""")  # fmt: skip
@click.argument("quotas", nargs=-1, required=True, metavar="QUOTA=NUMBER...")
@_entity_options
@click.option("--dry-run", is_flag=True, help="Only ask the brokers whether they would accept it.")
@bootstrap_option
@client_config_option
def set_(
    quotas: tuple[str, ...], dry_run: bool, bootstrap: str, client_config: list[tuple[str, str]], **given: Any
) -> None:
    """Set quotas of a user, a client id, a user and client id together, or an address."""
    entity, values = _named(given), dict(map(_quota, quotas))
    with admin_of(bootstrap, client_config) as admin:
        refuse_failed(admin.alter_client_quotas([(entity, values)], validate_only=dry_run))
    say(f"{'Would have set' if dry_run else 'Set'} {', '.join(values)} of {_shown(entity)}.")


@quota.command(epilog="""\b
Examples:
  pylog quota remove producer_byte_rate --user alice
  pylog quota remove --user alice
""")  # fmt: skip
@click.argument("quotas", nargs=-1, metavar="[QUOTA...]")
@_entity_options
@bootstrap_option
@client_config_option
def remove(quotas: tuple[str, ...], bootstrap: str, client_config: list[tuple[str, str]], **given: Any) -> None:
    """Remove quotas of a user, a client id, a user and client id together, or an address. Without a QUOTA, remove all of them."""
    entity = _named(given)
    with admin_of(bootstrap, client_config) as admin:
        present = admin.describe_client_quotas(entity, strict=True)
        there = {name for each in present for name in each.quotas}
        gone = sorted(set(quotas) or there)
        missing = sorted(set(quotas) - there)
        if missing:
            raise click.ClickException(f"{_shown(entity)} has no quota {', '.join(missing)}.")
        if gone:
            refuse_failed(admin.alter_client_quotas([(entity, dict.fromkeys(gone))]))
    say(f"Removed {', '.join(gone)} of {_shown(entity)}." if gone else f"{_shown(entity)} has no quotas.")


def _quota(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        if not equals or not name:
            raise ValueError(text)
        return name, float(value)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not QUOTA=NUMBER.") from None


def _shown(entity: dict[str, str | None]) -> str:
    return ", ".join(
        f"default {kind}" if name is None else f"{kind} {name}" for kind, name in sorted(entity.items(), reverse=True)
    )
