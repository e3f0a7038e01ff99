"""Where a command takes a password from: a file, the environment, or the terminal, where it is not shown. Never from the command line,
which every user of the machine can read."""

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

VARIABLE = "PYLOG_USER_PASSWORD"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def password_option(command: _Command) -> _Command:
    """Add --password-file."""
    return click.option(
        "--password-file",
        metavar="FILE",
        help=f"The file whose first line is the password; - is standard input. Without it, the environment's {VARIABLE}, or else the "
        "terminal is asked.",
    )(command)


def password_of(user: str, password_file: str | None) -> str:
    """The password of `user`. Raises `click.UsageError` when there is none, or nobody to ask."""
    if password_file is not None:
        password = _first_line(password_file)
        named = "standard input" if password_file == "-" else password_file
        if not password:
            raise click.UsageError(f"The first line of {named} is empty: it must be the password.")
        return password
    password = os.environ.get(VARIABLE, "")
    if password:
        return password
    if not sys.stdin.isatty():
        raise click.UsageError(f"Give the password with --password-file FILE or in {VARIABLE}.")
    asked = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True)
    return str(asked)


def _first_line(password_file: str) -> str:
    if password_file == "-":
        return sys.stdin.readline().rstrip("\r\n")
    with open(password_file, encoding="utf-8") as file:
        return file.readline().rstrip("\r\n")
