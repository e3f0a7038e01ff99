"""``--command-config FILE``: settings of the client from a Java properties file, as Kafka's own tools take them.

So passwords need not be on a command line, where other users of the machine see them. ``--client-config`` wins over the file, and the
file's ``bootstrap.servers`` over the default of ``--bootstrap-server``. Settings of the Java clients that this client does not have are
ignored or refused as by the data source.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

#: Under which key the context of a command has the file's settings.
_META = "pylog_spark.cli.command_config"
ENVIRONMENT = "PYLOG_COMMAND_CONFIG"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def command_config_option(command: _Command) -> _Command:
    """Add --command-config."""
    return click.option(
        "--command-config",
        type=click.Path(dir_okay=False),
        envvar=ENVIRONMENT,
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=_read,
        metavar="FILE",
        help="A Java properties file with settings of the client, such as security.protocol and sasl.jaas.config.",
    )(command)


def command_config() -> dict[str, str]:
    """The settings of this command's file; none without a file."""
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(_META, {}))


def settings_of_file(path: str) -> dict[str, str]:
    """The client's settings in a Java properties file. Raises `click.BadParameter` for one that cannot be read or is refused."""
    from pylog_spark.broker.properties import read
    from pylog_spark.broker.setting import ConfigError
    from pylog_spark.options.java import IGNORED, REFUSED

    try:
        given = dict(read(path))
    except ConfigError as error:
        raise click.BadParameter(error.args[0]) from None
    for name in given:
        if name in REFUSED:
            # In the file names have no "kafka." before them, as options of the data source have.
            why = re.sub(r"\bkafka\.", "", REFUSED[name])
            raise click.BadParameter(f"{path}: the setting {name} is refused: {why}.")
    return {name: text for name, text in given.items() if name not in IGNORED and name != "group.id"}


def _read(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    if path is None or context.resilient_parsing:
        return
    try:
        settings = settings_of_file(path)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, context, parameter) from None
    if servers := settings.pop("bootstrap.servers", ""):
        context.default_map = {**(context.default_map or {}), "bootstrap": servers}
    context.meta[_META] = settings
