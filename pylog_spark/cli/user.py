"""``pylog user create | list | delete``: users that log in by SCRAM."""

import click

from pylog_spark import scram
from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    refuse_failed,
    say,
)
from pylog_spark.cli.passwords import password_of, password_option
from pylog_spark.client.requests import raise_if_failed

_MECHANISM = click.Choice(list(scram.BY_TEXT), case_sensitive=False)


@click.group()
def user() -> None:
    """Create, list and delete users that log in by SCRAM.

    The brokers store what SCRAM needs to check a password, never the password itself.
    """


@user.command(epilog=f"""\b
Examples:
  pylog user create alice
  pylog user create alice --password-file alice.password --mechanism SCRAM-SHA-512
  {"pass show alice | pylog user create alice --password-file -"}
""")  # fmt: skip
@click.argument("name")
@click.option("--mechanism", "-m", "mechanisms", multiple=True, type=_MECHANISM,
              help="Mechanism that the user logs in by. Repeatable.  [default: both]")  # fmt: skip
@click.option("--iterations", type=click.IntRange(scram.MIN_ITERATIONS, scram.MAX_ITERATIONS),
              default=scram.DEFAULT_ITERATIONS, show_default=True,
              help="How often the password is hashed: more makes guessing, and logging in, slower.")  # fmt: skip
@password_option
@bootstrap_option
@client_config_option
def create(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: str | None,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Create the user NAME, or give it another password."""
    password = password_of(name, password_file)
    chosen = list(dict.fromkeys(mechanisms)) or list(scram.BY_TEXT)
    with admin_of(bootstrap, client_config) as admin:
        for mechanism in chosen:
            raise_if_failed(admin.set_user_scram_credential(name, password, mechanism, iterations))
    say(f"User {name} can log in by {' and '.join(chosen)}.")


@user.command("list", epilog="Example: pylog user list")
@bootstrap_option
@client_config_option
@json_option
def list_(bootstrap: str, client_config: list[tuple[str, str]], as_json: bool) -> None:
    """List users and the mechanisms by which they log in."""
    with admin_of(bootstrap, client_config) as admin:
        found = admin.describe_user_scram_credentials()
    refuse_failed(found)
    if as_json:
        kept = ("name", "credentials")
        echo_json([{key: getattr(each, key) for key in kept} for each in found])
    elif found:
        rows = [(each.name, each_credential.mechanism, each_credential.iterations)
                for each in found for each_credential in each.credentials]  # fmt: skip
        echo_table(["USER", "MECHANISM", "ITERATIONS"], rows)
    else:
        say("There are no users.", err=True)


@user.command(epilog="""\b
Examples:
  pylog user delete alice --execute
  pylog user delete alice --mechanism SCRAM-SHA-256 --execute
""")  # fmt: skip
@click.argument("name")
@click.option("--mechanism", "-m", type=_MECHANISM, help="Remove only this mechanism's credential.")
@execute_option
@bootstrap_option
@client_config_option
def delete(
    name: str, mechanism: str | None, execute: bool, bootstrap: str, client_config: list[tuple[str, str]]
) -> None:
    """Delete the user NAME. ACLs and quotas stay; open connections stay until they end or log in again."""
    with admin_of(bootstrap, client_config) as admin:
        (found,) = admin.describe_user_scram_credentials([name])
        raise_if_failed(found)
        present = [credential.mechanism for credential in found.credentials]
        gone = present if mechanism is None else [mechanism]
        if execute:
            for each in gone:
                refuse_failed(admin.delete_user_scram_credentials([(name, each)]))
    left = [each for each in present if each not in gone]
    what = f"User {name} can no longer log in by {' and '.join(gone)}" if left else f"User {name} is deleted"
    would = f"Would delete {' and '.join(gone)} of user {name}. Add --execute to do it."
    say(f"{what}." if execute else would)
