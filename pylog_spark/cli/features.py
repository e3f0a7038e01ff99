"""``pylog cluster features``: the cluster's level, and raising it after an upgrade."""

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    say,
)
from pylog_spark.cluster.features import FEATURE


@click.command(epilog="""\b
Examples:
  pylog cluster features
  pylog cluster features --level 2 --execute     when every broker runs the newer pylog; it cannot be undone
""")  # fmt: skip
@click.option("--level", type=click.IntRange(1), help=f"Raise {FEATURE} to this.")
@execute_option
@bootstrap_option
@client_config_option
@json_option
def features(
    level: int | None, execute: bool, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool
) -> None:
    """Show the cluster's level and what the controller's broker understands, or raise the level."""
    with admin_of(bootstrap, client_config) as admin:
        if level is not None:
            admin.raise_level(FEATURE, level, validate_only=not execute)
        found = admin.features()
    if level is not None:
        done = f"The cluster is at level {level}." if execute else f"Every broker understands level {level}."
        say(done + ("" if execute else " Nothing was changed: say --execute to raise it."), err=True)
    elif as_json:
        echo_json(found)
    else:
        rows = [(feature.feature, feature.level, feature.min, feature.max) for feature in found]
        echo_table(["FEATURE", "LEVEL", "UNDERSTOOD-FROM", "TO"], rows)
