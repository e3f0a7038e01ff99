"""Reading a Java properties file, as Kafka's server.properties is: ``name=value``, ``#`` comments, ``\\`` line ends."""

import re
from collections.abc import Iterator

from pylog_spark.broker.setting import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read(path: str) -> list[tuple[str, str]]:
    """The (name, value) pairs of the file at `path`, in order.

    Raises
    ------
    ConfigError
        When the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return list(parse(file.read()))
    except OSError as error:
        raise ConfigError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"The settings file {path} is not UTF-8 text: {error.reason}.") from error


def parse(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of `text`. The name ends at the first ``=``, ``:`` or blank that is not escaped.

    Raises
    ------
    ConfigError
        For a ``\\u`` without its four digits, which Java refuses, too.
    """
    for line in _logical_lines(text):
        end = _name_end(line)
        value = line[end:].lstrip(" \t\f")
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(" \t\f")
        yield _unescape(line[:end]), _unescape(value)


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _name_end(line: str) -> int:
    index = 0
    while index < len(line) and line[index] not in "=: \t\f":
        index += 2 if line[index] == "\\" else 1
    return min(index, len(line))


def _unescape(text: str) -> str:
    result, index = [], 0
    while index < len(text):
        if text[index] != "\\" or index + 1 == len(text):
            result.append(text[index])
            index += 1
        elif text[index + 1] == "u":
            result.append(_character(text[index : index + 6]))
            index += 6
        else:
            result.append(_ESCAPES.get(text[index + 1], text[index + 1]))
            index += 2
    return "".join(result)


def _character(escape: str) -> str:
    if not re.fullmatch(r"\\u[0-9a-fA-F]{4}", escape):
        raise ConfigError(
            f"{escape} in the settings file is no character: \\u takes four hexadecimal digits; write \\\\ for a backslash."
        )
    return chr(int(escape[2:], 16))
