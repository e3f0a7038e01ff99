"""The loggers of a broker: their names, their levels in Kafka's words, and which broker a line comes from.

They are loggers of Python's `logging`, so they belong to the process: several brokers in one process share them. ``root`` stands for ``pylog``,
which is above all of them; Python's own root logger belongs to the user's program and is left alone. Thread-safe as `logging` is.
"""

import contextlib
import contextvars
import logging
from collections.abc import Iterator, Mapping

from pylog_spark._native import log_loggers
from pylog_spark.broker.setting import ConfigError

#: Kafka's name for the logger above all others.
ROOT = "root"
_TOP = "pylog"

#: Every logger and what it is about. Those below ``pylog.broker`` are declared in `broker_native/log`, for both halves.
LOGGERS = {
    **dict(log_loggers()),
    "pylog.zookeeper": "The connection to ZooKeeper.",
    "pylog.zookeeper.kazoo": "The library that speaks with ZooKeeper; errors only.",
}

#: `logging` has no such level.
TRACE = 5
_OFF = logging.CRITICAL + 10
#: Kafka's words, from the most detailed on.
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}

_serving: contextvars.ContextVar[int | None] = contextvars.ContextVar("pylog_broker", default=None)


@contextlib.contextmanager
def serving_as(node_id: int) -> Iterator[None]:
    """Inside the block, lines that this thread logs are those of the broker `node_id`. A new thread takes this over with `contextvars.copy_context`."""
    before = _serving.set(node_id)
    try:
        yield
    finally:
        _serving.reset(before)


def name_brokers() -> None:
    """Give each record of these loggers the attributes ``broker`` (the broker's id, or None) and ``fields``. Calling it again changes nothing."""
    for name in (_TOP, *LOGGERS):
        logging.getLogger(name).addFilter(_name_broker)


def _name_broker(record: logging.LogRecord) -> bool:
    if not hasattr(record, "broker"):
        record.broker = _serving.get()
    if not hasattr(record, "fields"):
        record.fields = {}
    return True


def named(name: str) -> logging.Logger:
    """The logger of this name, which may be ``root``."""
    return logging.getLogger(_TOP if name == ROOT else name)


def exists(name: str) -> bool:
    """Whether there is such a logger."""
    return name == ROOT or name in LOGGERS


def levels() -> dict[str, str]:
    """The level that each logger has now, its own or that of the nearest one above, as Kafka's word."""
    return {name: _threshold(named(name).getEffectiveLevel()) for name in (ROOT, *LOGGERS)}


def _threshold(number: int) -> str:
    """Kafka's word for the level of a logger, which is that of the least severe lines that it writes. OFF when it writes none."""
    return next((word for word, least in LEVELS.items() if number <= least), "OFF")


def severity(number: int) -> str:
    """Kafka's word for the level of a line."""
    return next((word for word, least in reversed(LEVELS.items()) if number >= least), "TRACE")


def set_level(name: str, word: str | None) -> None:
    """Give a logger the level `word`; with None it has that of the nearest logger above."""
    named(name).setLevel(logging.NOTSET if word is None else LEVELS[word])


def configure(given: Mapping[str, int]) -> None:
    """Set levels as `parse_levels` read them."""
    for name, level in given.items():
        named(name).setLevel(level)


def parse_levels(text: str) -> dict[str, int]:
    """Read ``info`` or ``info,pylog.broker.network=debug``: the level of the root, and of single loggers.

    Raises
    ------
    ConfigError
        A logger or a level does not exist.
    """
    given = {}
    for part in text.split(","):
        name, equals, word = (each.strip() for each in part.rpartition("="))
        name = name if equals else ROOT
        if not exists(name):
            raise ConfigError(f"There is no logger {name}: the loggers are {', '.join((ROOT, *LOGGERS))}.")
        known = {**LEVELS, "OFF": _OFF, "WARNING": logging.WARNING}
        if word.upper() not in known:
            words = ", ".join(level.lower() for level in (*reversed(LEVELS), "OFF"))
            raise ConfigError(f"There is no log level {word!r}: the levels are {words}.")
        given[name] = known[word.upper()]
    return given
